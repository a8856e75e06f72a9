"""Outline: the structure of a program as YAML for people, without large arrays."""

from __future__ import annotations

from typing import Any

from oscc.ir.plan import total_periods
from oscc.ir.program import CONVENTIONS, Program
from oscc.ir.stage import Stage
from oscc.ir.upgrade import FORMAT
from oscc.ir.views import coupled_pairs, pair_terms


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "name": stage.name,
        **_banks(stage),
        "coupled_pairs": coupled_pairs(stage),
        "pair_terms": pair_terms(stage),
        "update": stage.update,
        "model_update": stage.model_update,
        "scheme": stage.scheme,
        "substeps": stage.substeps,
        "dwell_periods": stage.dwell_periods,
        "periods_in_all": total_periods(stage),
        "readout": stage.readout,
        "causal": stage.causal,
        "fidelity": stage.fidelity,
    }


def _banks(stage: Stage) -> dict[str, Any]:
    if stage.flat:
        edges = {"form": "edges", "harmonics": list(stage.harmonics)}
        targets: dict[str, Any] = {"oscillators": stage.targets}
        if stage.readout == "phase":
            targets = dict(zip(("tokens", "coordinates"), stage.grid, strict=True))
        if stage.begins:
            targets["first_token"] = stage.begins
        if stage.lock_mode != "host":
            targets["lock_mode"] = stage.lock_mode
        return {
            "targets": targets,
            "sources": {"oscillators": int(stage.theta_rad.size)},
            "couplings": [{**edges, "edges": int(stage.edges.target.size)}],
        }
    tokens, coordinates = stage.grid
    out: dict[str, Any] = {
        "targets": {"tokens": tokens, "coordinates": coordinates},
        "sources": {"tokens": stage.theta_rad.shape[0], "coordinates": coordinates},
        "couplings": [
            {
                "route": coupling.route,
                "harmonics": coupling.harmonics.tolist(),
                "heads": coupling.weights.shape[0],
            }
            for coupling in stage.factored
        ],
    }
    if stage.begins:
        out["targets"]["first_token"] = stage.begins
    return out


def _correlations(program: Program) -> dict[str, Any]:
    """Scores and logits of oscillators, where the program has any."""
    if not program.correlations:
        return {}
    rows = [
        {
            "name": one.name,
            "queries": one.query_rad.shape[0],
            "keys": one.key_rad.shape[0],
            "coordinates": one.query_rad.shape[1],
            "heads": one.heads,
            "outputs": one.outputs,
            "mixers": one.mixers,
            "quality": one.quality,
            "periods_in_all": one.periods_in_all,
            "causal": one.causal,
        }
        for one in program.correlations
    ]
    return {"correlations": rows}


def outline(program: Program) -> dict[str, Any]:
    """Plain content of the outline: what is in the program, and where it came from."""
    return {
        "format": FORMAT,
        "digest": program.digest(),
        "family": program.family,
        "device": program.device.get("name"),
        "coupler": program.coupler,
        "accuracy_rad": program.accuracy_rad,
        "tokens": int(program.tokens.size),
        "mode": "decode" if program.decodes else "prefill",
        "computed_tokens": program.computed_tokens,
        "seed": program.seed,
        "conventions": dict(CONVENTIONS),
        "notes": list(program.notes),
        "stages": [_stage(stage) for stage in program.stages],
        **_correlations(program),
        "host_operations": [
            {"name": o.name, "layer": o.layer, "count": o.count, "unit": o.unit}
            for o in program.host_operations
        ],
        "provenance": dict(program.provenance),
    }


def outline_yaml(program: Program) -> str:
    """Text of `program.yaml`."""
    import yaml

    head = "# Outline of program.safetensors, for reading; the arrays are in there.\n"
    body: str = yaml.safe_dump(outline(program), sort_keys=False, allow_unicode=True)
    return head + body
