"""What `oscc evaluate` found, as text for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oscc.cli.output import say, table, wrote
from oscc.units import counted, grouped, si_text


def show(content: Mapping[str, Any], path: Path) -> None:
    """Print bits by engine, errors by layer, SPICE where it was asked for."""
    tokens = grouped(content["tokens"])
    change = content["bpc_phase"] - content["bpc_digital"]
    rows = [
        ("digital", f"{content['bpc_digital']:.4f}", "", tokens),
        ("phase", f"{content['bpc_phase']:.4f}", f"{change:+.4f}", tokens),
    ]
    if content["engine"] != "phase":
        rows.append(
            (
                content["engine"],
                f"{content['bpc_hardware']:.4f}",
                f"{content['delta_bpc']:+.4f}",
                tokens,
            )
        )
    unit = content.get("unit", "character")
    columns = ("engine", f"bits per {unit}", "Δ digital", "tokens")
    table(columns, rows, right=(1, 2, 3))
    error = content["delta_se"]
    spread = "without an error estimate: one window"
    if error is not None:
        spread = f"± {error:.4f} (1 σ, paired over {content['windows']} windows)"
    say(
        f"Δ of {content['engine']} {spread} · top-1 agreement "
        f"{100 * content['top1_agreement']:.2f} % · "
        f"KL {content['kl_nats']:.2e} nats"
    )
    _show_layers(content["layers"])
    for one in content.get("correlations", ()):
        say(f"{one['correlation']}: {one['rms_nat']:.2g} nat rms")
    if content["periods_per_stage"] is not None:
        say(f"{content['periods_per_stage']:.1f} oscillator periods a stage on average")
    if "spice" in content:
        _show_spice(content["spice"])
    say(f"wrote {wrote(path)}")


def _show_layers(layers: Sequence[Mapping[str, Any]]) -> None:
    for layer in layers:
        grown = _grown(layer)
        if layer["rms_rad"] is None:
            say(
                f"{layer['stage']}: {layer['rms_coherence']:.3g} rms in cos over "
                f"{grouped(layer['cells'])} cells, {layer['slips']} flipped, "
                f"{layer['undecided']} undecided{grown}"
            )
            continue
        error = si_text(layer["rms_rad"], "rad")
        say(f"{layer['stage']}: {error} rms, {counted(layer['slips'], 'slip')}{grown}")


def _grown(layer: Mapping[str, Any]) -> str:
    """Distance from the digital model, with what the layers before brought along."""
    if layer.get("rms_rad_to_model") is not None:
        return f"; {si_text(layer['rms_rad_to_model'], 'rad')} from the digital model"
    if layer.get("rms_coherence_to_model") is not None:
        return f"; {layer['rms_coherence_to_model']:.3g} from the digital model"
    return ""


def _show_spice(spice: Mapping[str, Any]) -> None:
    """Verdict on the drawn targets, and their errors by step."""
    of_cells = any("rms_coherence_to_circuit" in row for row in spice["layers"])
    unit = "coherence" if of_cells else "rad"
    columns = ("SPICE on the drawn", "engine", "windows", "targets")
    against = ("rms to circuit", "max to circuit", "rms to digital", "max to digital")
    rows = [
        (
            row["stage"],
            row["engine"],
            str(row["windows"]),
            str(row["targets"]),
            *(
                _error(row[f"{size}_{unit}_to_{one}"], unit)
                for one in ("circuit", "digital")
                for size in ("rms", "max")
            ),
        )
        for row in spice["layers"]
    ]
    for level in spice["levels"]:
        if level["passed"] is not None:
            say(f"SPICE on {_judged(level)}")
    for entry in spice["convergence"]:
        state = "converged" if entry["passed"] else "not converged"
        moved = _error(entry.get("change_coherence", entry.get("change_rad")), unit)
        say(f"halving the step moves {entry['engine']} by at most {moved}: {state}")
    if rows:
        table((*columns, *against), rows, right=(2, 3, 4, 5, 6, 7))
    say(f"SPICE: {spice['sentence']}")


def _judged(level: Mapping[str, Any]) -> str:
    """Error of a simulator over all drawn targets, beside what is allowed."""
    unit = "rad" if level["tolerance_rad"] is not None else "coherence"
    error, allowed = (_error(level[f"{k}_{unit}"], unit) for k in ("rms", "tolerance"))
    return (
        f"{counted(level['targets'], 'target')}, {level['engine']} against circuit: "
        f"{error} rms, {allowed} allowed"
    )


def _error(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return si_text(value, "rad") if unit == "rad" else f"{value:.3g} in cos"
