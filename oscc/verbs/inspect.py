"""Look into a build folder, a checkpoint, or the device cards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ir.views import edges_of
from oscc.observables import Observables
from oscc.units import counted


def inspect(
    path: Path | None = None,
    *,
    pair: str | None = None,
    cards: bool = False,
    key: str | None = None,
    model_config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a build folder, a checkpoint or the shipped cards hold.

    Args:
        path: Build folder or checkpoint file.
        pair: `SOURCE,TARGET,COORDINATE` (tokens u, t and coordinate j) of a build; of
            a stage of modes u is the number of the mode; of pair cells
            `HEAD,TOKEN,PARTNER`.
        cards: List the device cards instead.
        key: Which mapping of a foreign checkpoint holds the weights.
        model_config: Model section of the configuration, for a foreign checkpoint.

    Raises:
        RequestError: nothing was named, or it cannot be read.
    """
    if cards:
        return inspect_cards()
    if path is None:
        raise RequestError("Name a build folder or a checkpoint, or give --cards.")
    if path.is_dir():
        return inspect_build(path, pair)
    if pair is not None:
        raise RequestError("--pair looks into a build folder, not into a checkpoint.")
    from oscc.verbs.inspect_checkpoint import inspect_checkpoint

    return inspect_checkpoint(path, key, model_config)


def inspect_cards() -> dict[str, Any]:
    """Every shipped card with its period, duty and energy."""
    from oscc.device.card_file import card_names, load_card
    from oscc.device.cycle_energy import energy_per_period_J
    from oscc.device.piecewise import duty, period_s

    rows = []
    for name in card_names():
        card = load_card(name)
        rows.append(
            {
                "name": name,
                "description": card.description,
                "period_s": period_s(card),
                "duty": duty(card),
                "energy_per_period_J": energy_per_period_J(card).supply_J,
                "values": {
                    key: getattr(card, key)
                    for key in (
                        "vdd_V",
                        "r_series_ohm",
                        "c_F",
                        "r_ins_ohm",
                        "r_met_ohm",
                        "v_imt_V",
                        "v_mit_V",
                    )
                },
            }
        )
    return {"format": "oscc.inspect/1", "kind": "cards", "cards": rows}


def inspect_build(path: Path, pair: str | None = None) -> dict[str, Any]:
    """Outline of a program, what is on oscillators, which files are there.

    Raises:
        RequestError: not a build folder, or no such pair; or observables of another
            program, where an engine's reading of the pair is wanted.
    """
    from oscc.build import BuildFolder
    from oscc.ir.outline import outline
    from oscc.verbs.inspect_cells import cell_facts, stages_of_cells

    folder = BuildFolder.open(path)
    program = folder.program()
    content: dict[str, Any] = {
        "format": "oscc.inspect/1",
        "kind": "build",
        "engines": list(folder.engines()),
        "program": outline(program),
        "coverage": coverage(program),
    }
    if program.of_cells:
        content["cells"] = stages_of_cells(program)
    if pair is not None:
        seen = {name: folder.observables(name, program) for name in folder.engines()}
        ran = {name: one for name, one in seen.items() if one is not None}
        facts = cell_facts if program.of_cells else pair_facts
        content["pair"] = facts(program, ran, pair)
    return content


def coverage(program: Program) -> dict[str, Any]:
    """Multiply-accumulates on oscillators and on the host, in all and by layer.

    A pair term is a real weight times a phasor: two multiply-accumulates; four where
    the pair has an offset of its own. The host's include what only the oscillators
    need, such as the field for the bound.
    """
    from oscc.ir.views import pair_macs
    from oscc.lower.correlate import READ_OUT

    on_host = [o for o in program.host_operations if o.unit == "mac"]
    by_name: dict[str, int] = {}
    for operation in on_host:
        by_name[operation.name] = by_name.get(operation.name, 0) + operation.count
    layers = []
    numbers = {o.layer for o in on_host} | ({-1} if program.correlations else set())
    for number in sorted(numbers, key=lambda n: (n < 0, n)):
        stages = {
            stage.name: pair_macs(stage)
            for stage in program.stages
            if stage.name.startswith(f"layer.{number}.")
        }
        stages |= {
            one.name: one.macs
            for one in program.correlations
            if one.name.startswith(f"layer.{number}.")
            or (number < 0 and one.name == READ_OUT)
        }
        host = sum(o.count for o in on_host if o.layer == number)
        layers.append({"layer": number, "stages": stages, **_shared(stages, host)})
    every = {stage.name: pair_macs(stage) for stage in program.stages}
    every |= {one.name: one.macs for one in program.correlations}
    whole = _shared(every, sum(o.count for o in on_host))
    return {**whole, "host_by_operation": by_name, "layers": layers}


def _shared(stages: Mapping[str, int], host: int) -> dict[str, Any]:
    coupled = sum(stages.values())
    return {
        "oscillator_macs": coupled,
        "host_macs": host,
        "share_on_oscillators": coupled / max(coupled + host, 1),
    }


def _numbers(pair: str) -> tuple[int, int, int]:
    parts = pair.split(",")
    if len(parts) != 3 or not all(p.strip().isdigit() for p in parts):
        raise RequestError(
            f"--pair must be SOURCE,TARGET,COORDINATE, such as 3,17,5, not {pair!r}."
        )
    return int(parts[0]), int(parts[1]), int(parts[2])


def pair_facts(
    program: Program, seen: Mapping[str, Observables], pair: str
) -> list[dict[str, Any]]:
    """Every term of one pair in every stage, and the phase that its target ended at.

    Where pairs are listed, source and target are the numbers of two oscillators of the
    target's token, such as a mode and a coordinate; a stage without one of them is left
    out.

    Raises:
        RequestError: malformed, or outside the banks.
    """
    source, target, coordinate = _numbers(pair)
    out = []
    for stage in program.stages:
        coordinates, row = stage.grid[1], target - stage.begins
        tokens = 0 <= row < stage.grid[0] and (
            stage.flat or source < len(stage.theta_rad)
        )
        if not tokens:
            raise RequestError(
                f"--pair {pair}: stage {stage.name} has {_tokens(stage)}."
            )
        if coordinate >= coordinates and not stage.flat:
            raise RequestError(
                f"--pair {pair}: stage {stage.name} has {coordinates} coordinates."
            )
        held, terms = source, _terms
        phases = stage.theta_rad if stage.flat else stage.theta_rad[:, coordinate]
        if stage.source_index is not None:
            terms = _listed_terms
            rows = np.flatnonzero((stage.source_index == [target, source]).all(axis=1))
            if not rows.size or coordinate >= coordinates:
                continue
            held = int(rows[0])
        place = (row, coordinate)
        out.append(
            {
                "stage": stage.name,
                "source_is": _source_word(stage),
                "source_theta_rad": float(phases[held]),
                **_target(stage, seen, place),
                "terms": terms(stage, held, row, coordinate),
            }
        )
    return out


def _target(
    stage: Stage, seen: Mapping[str, Observables], place: tuple[int, int]
) -> dict[str, Any]:
    """Where a target starts and ends: in the model, and by engine that ran it [rad]."""
    target = [place[0] + stage.begins, place[1]]
    out = {}
    for engine, one in seen.items():
        if stage.name not in one.stages:
            continue
        index = one.index(stage.name, stage.grid, stage.begins)
        rows = np.flatnonzero((index == target).all(axis=1))
        if rows.size:
            out[engine] = float(one.phase(stage.name).reshape(-1)[rows[0]])
    return {
        "target_phi0_rad": float(stage.on_grid(stage.phi0_rad)[place]),
        "target_digital_rad": float(stage.on_grid(stage.digital_rad)[place]),
        "target_read_rad": out,
        "gain_rad": float(stage.on_grid(stage.gain_rad)[place]),
    }


def _tokens(stage: Stage) -> str:
    """Which tokens may be named, for a refusal."""
    rows = stage.grid[0]
    if not stage.begins:
        return counted(rows, "token")
    last = stage.begins + rows - 1
    if stage.flat:
        return f"target token {last}"
    return f"source tokens 0 to {len(stage.theta_rad) - 1} and target token {last}"


def _source_word(stage: Stage) -> str:
    if not stage.flat:
        return "token"
    return "coordinate" if stage.modes is None else "mode"


def _listed_terms(
    stage: Stage, source: int, row: int, coordinate: int
) -> list[dict[str, Any]]:
    """Terms of a row of a flat bank of sources."""
    edges = stage.edges
    mine = edges_of(stage, row * stage.grid[1] + coordinate)
    return [
        {
            "route": "edges",
            "harmonic": int(edges.harmonic[k]),
            "strength": float(edges.gamma[k]),
            "frustration_rad": float(edges.alpha_rad[k]),
        }
        for k in mine[edges.source[mine] == source]
    ]


def _terms(
    stage: Stage, source: int, row: int, coordinate: int
) -> list[dict[str, Any]]:
    rows = []
    for coupling in stage.factored:
        head = coupling.head_of_coordinate[coordinate]
        weight = float(coupling.weights[head, row, source])
        for number, order in enumerate(coupling.harmonics.tolist()):
            gamma = float(coupling.gamma[number, coordinate])
            if weight * gamma:
                rows.append(
                    {
                        "route": coupling.route,
                        "harmonic": order,
                        "weight": weight,
                        "strength": weight * gamma,
                        "frustration_rad": float(
                            coupling.alpha_rad[number, coordinate]
                        ),
                    }
                )
    return rows
