"""`oscc config`: the configuration of a run, or its schema."""

from __future__ import annotations

from typing import Any

import click

from oscc.cli.options import Run, verb_command
from oscc.cli.output import emit_json, say, table
from oscc.config import Settings, schema_json


@verb_command(
    "config",
    text="Show every setting with its value and where it came from, or the schema.",
    example="oscc config show --set compile.periods=72",
)
@click.argument("what", type=click.Choice(["show", "schema"]))
def command(run: Run, what: str) -> None:
    """Print the settings or the schema."""
    if what == "schema":
        emit_json(schema_json())
        return
    settings = Settings(run.config, run.origins)
    rows = [(key, _plain(value), origin) for key, value, origin in settings.rows()]
    if run.json:
        emit_json(
            {
                key: {"value": value, "from": origin}
                for key, value, origin in settings.rows()
            }
        )
        return
    table(("key", "value", "from"), rows)
    say("A setting is given by its option, by --set KEY=VALUE, or in --config FILE.")


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
