"""Backend `circuit`: a program as targets with summed injections, on a device card.

Every source hands a cosine and a sine of each harmonic to its weights; a target adds
what it receives, turns it by the frustration offset and scales it by its gain. The
engine makes the injected currents from that and from the card.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.ir.coupling import Coupling
from oscc.ir.plan import dwells
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc_backends import lock
from oscc_backends.artefact import CircuitArtefact, LockProblem, ScalarProblem


def _received(coupling: Coupling, theta: FloatArray, order: int) -> ComplexArray:
    """Sum over sources of A exp(i n theta), shape (T, K), by stacked real products."""
    heads = coupling.weights.shape[0]
    sources, coordinates = theta.shape
    split = theta.reshape(sources, heads, coordinates // heads).transpose(1, 0, 2)
    both = np.concatenate([np.cos(order * split), np.sin(order * split)], axis=2)
    summed = np.matmul(coupling.weights, both)
    half = coordinates // heads
    phasor = summed[:, :, :half] + 1j * summed[:, :, half:]
    out: ComplexArray = phasor.transpose(1, 0, 2).reshape(-1, coordinates)
    return out


def drive(stage: Stage) -> ComplexArray:
    """Complex pull of every target over one dwell, shape (T*K, N) [rad]."""
    orders = stage.harmonics
    if stage.flat:
        return _listed_drive(stage)
    columns = {order: np.zeros(stage.grid, complex) for order in orders}
    for coupling in stage.factored:
        for number, order in enumerate(coupling.harmonics.tolist()):
            alpha = coupling.alpha_rad[number]
            turn = np.cos(alpha) + 1j * np.sin(alpha)
            received = _received(coupling, stage.theta_rad, order)
            columns[order] += coupling.gamma[number] * turn * received
    return np.stack(
        [(stage.gain_rad * columns[order]).ravel() for order in orders], axis=1
    )


def _listed_drive(stage: Stage) -> ComplexArray:
    """As `drive`, added edge by edge, one order after the other."""
    edges, out = stage.edges, []
    for order in stage.harmonics:
        mine = np.flatnonzero(edges.harmonic == order)
        angle = order * stage.theta_rad[edges.source[mine]] + edges.alpha_rad[mine]
        sums = [np.zeros(stage.targets), np.zeros(stage.targets)]
        for total, part in zip(sums, (np.cos(angle), np.sin(angle)), strict=True):
            np.add.at(total, edges.target[mine], edges.gamma[mine] * part)
        out.append(stage.gain_rad * (sums[0] + 1j * sums[1]))
    return np.stack(out, axis=1)


def problem(stage: Stage) -> ScalarProblem:
    """The targets of one stage for the circuit engine."""
    return ScalarProblem(
        stage=stage.name,
        harmonics=np.array(stage.harmonics, dtype=np.int64),
        drive=drive(stage),
        phi0_rad=stage.phi0_rad.ravel(),
        detuning_rad=stage.detuning_rad.ravel(),
        index=stage.target_index,
        update=stage.update,
        probe_epsilon=stage.probe_epsilon,
        scheme=stage.scheme,
        substeps=stage.substeps,
        dwell_periods=stage.dwell_periods,
        dwells=dwells(stage),
    )


def any_problem(stage: Stage) -> ScalarProblem | LockProblem:
    """The targets of one stage, or its pair cells."""
    return lock.problem(stage) if stage.readout == "coherence" else problem(stage)


def build(
    program: Program, *, stages: Collection[str] | None = None
) -> CircuitArtefact:
    """Artefact of all stages, or of those named.

    Raises:
        RequestError: the program has no stage of a name, or a stage of pair cells is
            no lock stage.
    """
    chosen = program.stages if stages is None else [program.stage(n) for n in stages]
    return CircuitArtefact(
        program.digest(),
        program.device,
        tuple(any_problem(s) for s in chosen),
        program.correlations if stages is None else (),
    )
