"""Command line: a lazy table of verbs; one verb's module is imported when it is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from oscc.cli.exits import guarded
from oscc.cli.streams import write

VERBS: dict[str, tuple[str, str]] = {
    "train": ("oscc.cli.train", "Train a model family on a text corpus."),
    "compile": ("oscc.cli.compile", "Compile a checkpoint and a text to hardware."),
    "simulate": ("oscc.cli.simulate", "Run an engine on a build folder."),
    "verify": ("oscc.cli.verify", "Judge a build level by level."),
    "energy": ("oscc.cli.energy", "Account for the energy of a build."),
    "evaluate": ("oscc.cli.evaluate", "Bits per character, hardware in the loop."),
    "report": ("oscc.cli.report", "Write one self-contained page of a build."),
    "inspect": ("oscc.cli.inspect", "Look into a build, a checkpoint or the cards."),
    "doctor": ("oscc.cli.doctor", "Say what is wrong, and how to mend it."),
    "config": ("oscc.cli.config", "Show the configuration or its schema."),
    "completion": ("oscc.cli.completion", "Print the completion script of a shell."),
}
"""Verb to the module that holds its `command`, with one line of help."""


class _Lazy(click.Group):
    """Group that lists its commands from the table, without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS:
            return None
        command = import_module(VERBS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from oscc.checks import nearest

        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            ctx.fail(f"there is no verb `{name}`.{nearest(name, VERBS)}")
        return super().resolve_command(ctx, args)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


@click.group(
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done and passed, 1 the verdict is fail, 2 the request is "
    "wrong, 3 a tool is missing or failed, 4 inconclusive.  Start with: make demo",
)
@click.option("--version", is_flag=True, help="Versions of all parts; with --json too.")
@click.option("--json", "as_json", is_flag=True, help="With --version: as JSON.")
@click.pass_context
def group(ctx: click.Context, version: bool, as_json: bool) -> None:
    """Compile trained oscillator-attention models to circuits, and check them."""
    if version:
        from oscc.cli.versions import show

        show(as_json=as_json)
        ctx.exit(0)
    if ctx.invoked_subcommand is None:
        write(ctx.get_help() + "\n")
        ctx.exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Instead of those of the process.

    Returns:
        Exit status.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    return guarded(group, given)
