"""`oscc completion`: the script that completes verbs and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from oscc.cli.options import Run, verb_command
from oscc.cli.output import say


@verb_command(
    "completion",
    text="Print the completion script of a shell, for its start-up file.",
    example="oscc completion bash",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(run: Run, shell: str) -> None:
    """Print the script."""
    del run
    from oscc.cli.main import group

    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(group, {}, "oscc", "_OSCC_COMPLETE").source())
