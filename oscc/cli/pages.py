"""Reference pages made from the command line itself: verbs, settings, schema."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from oscc.cli.main import VERBS, group
from oscc.cli.options import GROUPS
from oscc.config import schema_json
from oscc.files import dump_json
from oscc.schema import keys, wanted

_MADE = "<!-- Written by `make reference` from the command line itself. -->\n"


def pages() -> dict[str, str]:
    """Text of every made page by its path under `docs/`.

    Example:
        >>> sorted(pages())
        ['reference/cli.md', 'reference/settings.md', 'schemas/config.json']
    """
    return {
        "reference/cli.md": cli_page(),
        "reference/settings.md": settings_page(),
        "schemas/config.json": dump_json(schema_json()),
    }


def cli_page() -> str:
    """Every verb with its options."""
    parts = [
        _MADE,
        "# Command line\n",
        "Every verb takes the options under *Common*; they are listed once, at the "
        "end. An option beats `--set`, which beats the file of `--config`, which "
        "beats the default.\n",
    ]
    parts += [_verb(name) for name in VERBS]
    parts.append("## Common options\n\n" + _options(_command("energy"), "Common"))
    return "\n".join(parts)


def _command(name: str) -> click.Command:
    command = import_module(VERBS[name][0]).command
    assert isinstance(command, click.Command)
    return command


def _verb(name: str) -> str:
    command = _command(name)
    context = click.Context(command, info_name=name, parent=click.Context(group))
    usage = " ".join(["oscc", name, *command.collect_usage_pieces(context)])
    example = (command.epilog or "").splitlines()[0].removeprefix("Example: ")
    parts = [f"## {name}\n", f"{command.help}\n", f"    {usage}\n"]
    for heading in GROUPS[:-1]:
        rows = _options(command, heading)
        if rows:
            parts.append(f"**{heading}**\n\n{rows}")
    parts.append(f"Example: `{example}`\n")
    return "\n".join(parts)


def _options(command: click.Command, heading: str) -> str:
    context = click.Context(command, info_name="verb")
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or not isinstance(parameter, click.Option):
            continue
        if getattr(parameter, "group", "Common") == heading:
            rows.append(f"| `{_cell(record[0])}` | {_cell(record[1])} |\n")
    return "| option | meaning |\n|---|---|\n" + "".join(rows) if rows else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def settings_page() -> str:
    """Every key of the configuration with what it takes and its default."""
    rows = "".join(
        f"| `{key}` | {_cell(wanted(kind))} | {_default(default)} |\n"
        for key, kind, default in keys()
    )
    return (
        f"{_MADE}\n# Settings\n\n"
        "Given by an option, by `--set KEY=VALUE`, or in the YAML file of `--config`. "
        "An unknown key is refused with the nearest known one. `oscc config show` "
        "prints each with where its value came from; the JSON Schema is "
        "[config.json](../schemas/config.json), for editors.\n\n"
        f"| key | takes | default |\n|---|---|---|\n{rows}"
    )


def _default(default: Any) -> str:
    if default is None or default == {}:
        return ""
    if isinstance(default, tuple):
        return f"`[{', '.join(map(str, default))}]`"
    word = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{word}`"
