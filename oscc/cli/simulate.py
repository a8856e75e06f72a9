"""`oscc simulate`: run an engine on a build folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oscc.cli import shared
from oscc.cli.options import Run, setting, verb_command
from oscc.cli.output import say, table, wrote
from oscc.cli.results import build_folder, emit

_DEFAULT_TIMEOUT_S = 600.0


def simulate_options(run: Run) -> Any:
    """How engines are run, from the configuration."""
    from oscc.verbs.simulate import SimulateOptions

    section = run.config.simulate
    return SimulateOptions(
        stages=section.stages,
        targets=section.targets,
        jobs=run.jobs,
        timeout_s=run.config.timeout_s or _DEFAULT_TIMEOUT_S,
        gate=section.gate,
    )


@verb_command(
    "simulate",
    text="Run an engine on BUILD and keep what it saw under sim/ENGINE.",
    example="oscc simulate build/first --engine circuit",
)
@click.argument("build", type=click.Path(path_type=Path))
@setting(
    "--engine",
    "simulate.engine",
    group="Input",
    text="ir, phase, circuit, ngspice, gnucap or pyspice.",
)
@setting(
    "--stages",
    "simulate.stages",
    group="Input",
    text="Stages to run, such as layer.0.coupling.",
)
@shared.TARGETS
@setting(
    "--gate",
    "simulate.gate",
    group="Accuracy",
    text="Run every deck a second time at half the step.",
)
def command(run: Run, build: Path) -> None:
    """Run the engine and print what it did."""
    from oscc.files import read_json
    from oscc.verbs.simulate import simulate_folder

    engine = run.config.simulate.engine
    folder = build_folder(run, build)
    simulate_folder(folder, engine, simulate_options(run))
    facts = read_json(folder / "sim" / engine / "run.json", "oscc.run/1")
    if not emit(run, facts):
        _show(folder, engine, facts)


def _show(folder: Path, engine: str, facts: dict[str, Any]) -> None:
    from oscc.units import counted, grouped

    targets = sum(facts["targets"].values())
    periods, wall = facts["oscillator_periods"], facts["wall_s"]
    say(
        f"{engine} · {counted(targets, 'target')} · "
        f"{grouped(periods)} oscillator-periods · {facts['jobs']} jobs"
    )
    rows = [(name, grouped(count)) for name, count in facts["targets"].items()]
    table(("stage", "targets"), rows, right=(1,))
    path = folder / "sim" / engine / "observables.safetensors"
    say(f"wrote {wrote(path)}   [{wall:.1f} s]")
