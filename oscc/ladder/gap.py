"""Gap: the whole difference between hardware and digital layer, split by cause.

    circuit - digital = (ir - digital) + (phase - ir) + (circuit - phase)

Each step of the ladder changes one thing, so that each difference has one cause; what
they do not add up to is `unexplained`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oscc.arrays import FloatArray
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.levels import StageErrors, compare_dwells
from oscc.observables import Observables

CAUSES = (
    "euler_gap",
    "integrator_gap",
    "probe_bias",
    "averaging",
    "harmonics",
    "discretisation",
    "quantisation",
    "pruning",
    "mismatch",
    "noise",
    "loading",
    "unexplained",
)

Cause = dict[str, float]


def _size(parts: list[FloatArray]) -> Cause:
    every = np.concatenate([p.ravel() for p in parts])
    return {
        "rms_rad": float(np.sqrt(np.mean(every**2))),
        "max_rad": float(np.abs(every).max()),
    }


def phase_cause(stage: Stage) -> str:
    """What makes level phase differ from level ir.

    `unexplained` where both run the same update, so that nothing should.
    """
    if stage.update == "probe":
        return "probe_bias" if stage.model_update == "euler" else "euler_gap"
    return "euler_gap" if stage.model_update == "euler" else "unexplained"


def causes(program: Program, seen: Mapping[str, Observables]) -> dict[str, Cause]:
    """Size of every cause that the levels at hand can tell; the others are left out.

    Args:
        program: The program.
        seen: Observables by level or engine: `ir`, `phase`, `circuit`, simulators.
    """
    parts: dict[str, list[FloatArray]] = {}
    for stage in program.stages:
        have = {k: v for k, v in seen.items() if stage.name in v.stages}
        if "ir" in have:
            ir = have["ir"].phase(stage.name)
            digital = stage.digital_rad.reshape(ir.shape)
            parts.setdefault("integrator_gap", []).append(ir - digital)
            if "phase" in have:
                step = have["phase"].phase(stage.name) - ir
                parts.setdefault(phase_cause(stage), []).append(step)
        if "phase" in have and "circuit" in have:
            step = have["circuit"].phase(stage.name) - have["phase"].phase(stage.name)
            parts.setdefault("averaging", []).append(step)
    found = {name: _size(values) for name, values in parts.items()}
    simulators = _discretisation(program, seen)
    if simulators:
        found["discretisation"] = _size([e.error_rad for e in simulators])
    return {name: found[name] for name in CAUSES if name in found}


def _discretisation(
    program: Program, seen: Mapping[str, Observables]
) -> list[StageErrors]:
    out: list[StageErrors] = []
    for engine, observables in seen.items():
        if engine not in ("ir", "phase", "circuit") and "circuit" in seen:
            out += compare_dwells(program, observables, seen["circuit"])
    return out
