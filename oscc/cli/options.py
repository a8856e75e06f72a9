"""Options: those of every verb, and those that stand for a key of the configuration."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click

from oscc.cli.logs import RunLog
from oscc.cli.output import Progress
from oscc.config import Config, resolve
from oscc.errors import RequestError
from oscc.schema import keys
from oscc.strict_yaml import load_value

GROUPS = ("Input", "Device", "Accuracy", "Run", "Common")

_KINDS = {key: (kind, default) for key, kind, default in keys()}


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One run of a verb: its configuration and what every verb is told.

    `given` holds the keys that an option set, with their values.
    """

    verb: str
    config: Config
    given: Mapping[str, Any]
    origins: Mapping[str, str]
    out: Path | None
    force: bool
    json: bool
    quiet: bool
    log: RunLog

    @property
    def jobs(self) -> int:
        """Workers: as asked, else the cores that this process may use."""
        return self.config.jobs or len(os.sched_getaffinity(0))

    def progress(self) -> Progress:
        """A line of progress on standard error."""
        return Progress(quiet=self.quiet or self.json)


class Option(click.Option):
    """Option with the group under which `--help` lists it."""

    def __init__(self, *args: Any, group: str = "Run", **rest: Any) -> None:
        self.group = group
        super().__init__(*args, **rest)


class _Command(click.Command):
    """Command whose help lists options by group and refuses in our words."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        for group in GROUPS:
            rows = []
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                option = isinstance(parameter, click.Option)
                if option and record and getattr(parameter, "group", "Common") == group:
                    rows.append(record)
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        for line in (self.epilog or "").splitlines():
            formatter.write_paragraph()
            formatter.write_text(line)


def setting(flag: str, key: str, *, group: str, text: str) -> Callable[..., Any]:
    """Option that stands for a key of the configuration.

    Args:
        flag: Such as `--periods`.
        key: Dotted key, such as `compile.periods`.
        group: Heading in the help.
        text: Help, without the default, which is added.
    """
    kind, default = _KINDS[key]
    boolean = kind is bool
    name = flag.removeprefix("--")
    shown = _default_text(default)
    return click.option(
        f"{flag}/--no-{name}" if boolean else flag,
        key.replace(".", "__"),
        cls=Option,
        group=group,
        type=bool if boolean else str,
        default=None,
        metavar=None if boolean else _metavar(kind, name),
        help=f"{text}{shown}",
    )


def _default_text(default: Any) -> str:
    if default is None or default == {}:
        return ""
    if isinstance(default, bool):
        return f"  [{'on' if default else 'off'}]"
    if isinstance(default, tuple):
        return f"  [{','.join(map(str, default))}]"
    return f"  [{default:g}]" if isinstance(default, float) else f"  [{default}]"


def _members(kind: Any) -> tuple[Any, ...]:
    """The kinds that a union holds; a kind that is no union is its only member."""
    union = get_origin(kind) in (Union, UnionType)
    return get_args(kind) if union else (kind,)


def _words(kind: Any) -> list[str]:
    """The words that a key takes, empty where it takes something else."""
    return [
        word
        for member in _members(kind)
        if get_origin(member) is Literal
        for word in get_args(member)
    ]


def _metavar(kind: Any, name: str) -> str:
    return "|".join(_words(kind)) or name.rpartition("-")[2].upper()


def _value(kind: Any, text: Any) -> Any:
    """Value of an option's text in the kind of its key; a wrong one stays text."""
    members = _members(kind)
    lists = [member for member in members if get_origin(member) is tuple]
    if not isinstance(text, str) or _words(kind):
        return text
    if str in members:
        return int(text) if text.isdigit() and len(members) > 2 else text
    if lists:
        item = get_args(lists[0])[0]
        return [_value(item, word.strip()) for word in text.split(",") if word.strip()]
    try:
        return load_value(text, "option")
    except RequestError:
        return text


_COMMON = (
    click.option(
        "--config",
        "common_config",
        cls=Option,
        group="Common",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="YAML file of settings (oscc config show).",
    ),
    click.option(
        "--set",
        "common_sets",
        cls=Option,
        group="Common",
        multiple=True,
        metavar="A.B=C",
        help="One setting; before the file, after an option.",
    ),
    click.option(
        "-o",
        "--out",
        "common_out",
        cls=Option,
        group="Common",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Folder of the results.",
    ),
    setting("--seed", "seed", group="Common", text="Seed of every draw."),
    setting("--jobs", "jobs", group="Common", text="Workers; no result depends on it."),
    setting(
        "--timeout",
        "timeout_s",
        group="Common",
        text="Longest time of one simulator run, in seconds.",
    ),
    click.option(
        "--force",
        "common_force",
        cls=Option,
        group="Common",
        is_flag=True,
        help="Replace an existing build of ours, nothing else.",
    ),
    click.option(
        "--json",
        "common_json",
        cls=Option,
        group="Common",
        is_flag=True,
        help="Only the content of the JSON file on standard output.",
    ),
    click.option(
        "-q",
        "--quiet",
        "common_quiet",
        cls=Option,
        group="Common",
        is_flag=True,
        help="No progress, no warnings.",
    ),
    click.option(
        "-v",
        "--verbose",
        "common_verbose",
        cls=Option,
        group="Common",
        count=True,
        help="Say more on standard error; twice for details.",
    ),
    click.option(
        "--debug",
        "common_debug",
        cls=Option,
        group="Common",
        is_flag=True,
        help="Show the traceback of an error.",
    ),
)


def verb_command(name: str, *, text: str, example: str) -> Callable[..., click.Command]:
    """Make the command of a verb from a function `(run, **own options) -> status`.

    Args:
        name: Name of the verb.
        text: One sentence for `--help`.
        example: A command line that works, for `--help`.
    """
    epilog = (
        f"Example: {example}\n"
        "Exit status: 0 done and passed, 1 the verdict is fail, 2 the request is "
        "wrong, 3 a tool is missing or failed, 4 inconclusive.\n"
        f"More: docs/reference/cli.md, section {name}"
    )

    def make(function: Callable[..., int | None]) -> click.Command:
        @functools.wraps(function)
        def call(**options: Any) -> int:
            return _run(name, function, options)

        made = click.command(
            name,
            cls=_Command,
            help=text,
            epilog=epilog,
            context_settings={"help_option_names": ["-h", "--help"]},
        )(call)
        for option in _COMMON:
            option(made)
        made.params += _params_of(made)
        return made

    return make


def _params_of(command: click.Command) -> list[click.Parameter]:
    added = list(reversed(getattr(command, "__click_params__", [])))
    own = {parameter.name for parameter in command.params}
    return [parameter for parameter in reversed(added) if parameter.name not in own]


def _run(
    name: str, function: Callable[..., int | None], options: dict[str, Any]
) -> int:
    flags = {
        parameter.name.replace("__", "."): parameter.opts[-1]
        for parameter in click.get_current_context().command.params
        if parameter.name and (parameter.name.replace("__", ".") in _KINDS)
    }
    given = {}
    for key in flags:
        text = options.pop(key.replace(".", "__"))
        if text is not None:
            given[key] = _value(_KINDS[key][0], text)
    common = {
        key.removeprefix("common_"): options.pop(key)
        for key in list(options)
        if key.startswith("common_")
    }
    quiet = bool(common["quiet"])
    log = RunLog(name, -1 if quiet else common["verbose"])
    with log.open():
        settings = resolve(common["config"], common["sets"], given, flags)
        run = Run(
            verb=name,
            config=settings.config,
            given=given,
            origins=settings.origins,
            out=common["out"],
            force=common["force"],
            json=common["json"],
            quiet=quiet,
            log=log,
        )
        return function(run, **options) or 0
