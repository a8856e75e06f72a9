"""Backend of lock stages: pair cells that share one coupling and one dwell.

    dpsi/dtau = Omega - g gamma sin psi,   psi = phi - theta,   psi(0) = 0

With K t = g gamma the same for every cell the detuning alone differs, x = Omega/(K t),
so that a cell is known by its x. Engines take the problem with a device card, or
without one.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import BoolArray
from oscc.errors import RequestError
from oscc.ir.stage import Stage
from oscc_backends.artefact import LockProblem

SPREAD = 1e-9  # of K t over the cells: the rounding of gain times strength, and room


def problem(stage: Stage) -> LockProblem:
    """The pair cells of a lock stage, in the order of its targets.

    Raises:
        RequestError: the stage reads phases, runs anything but one plain dwell, or its
            cells have other than one edge without frustration each, start apart, or
            differ in their coupling.
    """
    where = f"stage {stage.name}"
    _require_plain(stage, where)
    edges, count = stage.edges, stage.targets
    if not np.array_equal(edges.target, np.arange(count)):
        raise RequestError(
            f"{where}: a lock stage has one edge a cell, but has {edges.target.size} "
            f"edges for {count} cells."
        )
    _refuse(edges.alpha_rad != 0, where, "a frustration offset, which no cell has")
    apart = stage.phi0_rad != stage.theta_rad[edges.source]
    _refuse(apart, where, "a start apart: both oscillators of a cell start alike")
    pull = stage.gain_rad * edges.gamma
    _refuse(pull <= 0, where, "a coupling that is not above zero, so that it repels")
    lock_rad = float(np.median(pull))
    differs = np.abs(pull - lock_rad) > SPREAD * lock_rad
    _refuse(differs, where, f"another coupling than {lock_rad:.6g} rad a dwell")
    assert stage.index is not None
    return LockProblem(
        stage=stage.name,
        ratio=stage.detuning_rad / lock_rad,
        lock_rad=lock_rad,
        periods=stage.dwell_periods,
        index=stage.index,
    )


def _require_plain(stage: Stage, where: str) -> None:
    if stage.readout != "coherence":
        raise RequestError(
            f"{where}: it reads {stage.readout}s; a lock stage reads coherences."
        )
    run = (stage.update, stage.scheme, stage.substeps)
    if run != ("flow", "plain", 1):
        raise RequestError(
            f"{where}: a lock stage runs one plain dwell of the flow, but it asks for "
            f"update `{run[0]}`, scheme `{run[1]}` and {run[2]} substeps."
        )


def _refuse(wrong: BoolArray, where: str, what: str) -> None:
    if wrong.any():
        raise RequestError(
            f"{where}: {int(wrong.sum())} of {wrong.size} cells have {what}, first "
            f"cell {int(wrong.argmax())}."
        )
