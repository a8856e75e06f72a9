"""Backend `phase`: a program as scalar phase equations, one a target.

drive_n = g_a sum_b c_{n,ab} exp(i n theta_b)
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from oscc.arrays import ComplexArray
from oscc.ir.plan import dwells
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc_backends import lock
from oscc_backends.artefact import LockProblem, PhaseArtefact, ScalarProblem


def drive(stage: Stage) -> ComplexArray:
    """Complex drive of every target, shape (T*K, N), by one product a head.

    N runs over `stage.harmonics`.
    """
    orders = stage.harmonics
    if stage.flat:
        edges = stage.edges
        shape = (stage.targets, len(orders))
        place = np.ravel_multi_index(
            (edges.target, np.searchsorted(orders, edges.harmonic)), shape
        )
        sent = np.exp(1j * edges.harmonic * stage.theta_rad[edges.source])
        sent *= edges.coefficients * stage.gain_rad[edges.target]
        total = np.bincount(place, sent.real, shape[0] * shape[1]) + 1j * np.bincount(
            place, sent.imag, shape[0] * shape[1]
        )
        listed: ComplexArray = total.reshape(shape)
        return listed
    tokens, coordinates = stage.grid
    out = np.zeros((len(orders), tokens, coordinates), dtype=np.complex128)
    for coupling in stage.factored:
        heads = coupling.weights.shape[0]
        width = coordinates // heads
        for order, coefficient in zip(
            coupling.harmonics, coupling.coefficients, strict=True
        ):
            phasor = np.exp(1j * order * stage.theta_rad) * coefficient
            slot = out[orders.index(int(order))]
            for head in range(heads):
                columns = slice(head * width, (head + 1) * width)
                slot[:, columns] += coupling.weights[head] @ phasor[:, columns]
    scaled: ComplexArray = (out * stage.gain_rad).reshape(len(orders), -1).T
    return np.ascontiguousarray(scaled)


def problem(stage: Stage) -> ScalarProblem:
    """The targets of one stage for the phase engine."""
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


def build(program: Program, *, stages: Collection[str] | None = None) -> PhaseArtefact:
    """Artefact of all stages, or of those named.

    Raises:
        RequestError: the program has no stage of a name, or a stage of pair cells is
            no lock stage.
    """
    chosen = program.stages if stages is None else [program.stage(n) for n in stages]
    formed = program.correlations if stages is None else ()
    return PhaseArtefact(
        program.digest(), tuple(any_problem(s) for s in chosen), formed
    )
