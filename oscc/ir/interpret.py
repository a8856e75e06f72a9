"""Interpreter: what a stage means, written down plainly (level 1 of the ladder).

    S_n = sum_u A_tu gamma_n sin(n theta_u + alpha_n)
    R_n = sum_u A_tu gamma_n cos(n theta_u + alpha_n)
    dphi/dtau = Omega + g sum_n [S_n cos(n phi) - R_n sin(n phi)]

It runs the update that the layer was trained with: the flow by an adaptive
Runge-Kutta method on the equation itself, or one explicit Euler step. Nothing in here
is shared with the engines.
"""

from __future__ import annotations

import numpy as np

from oscc.arrays import FloatArray
from oscc.ir.correlation import Correlation
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.observables import Observables

# The error of the integrator stays far below the 1e-6 rad that level ir is judged at,
# also where the flow stretches by a factor of 1e3.
_RTOL, _ATOL = 1e-12, 1e-12
_CHUNK = 2048


def field(stage: Stage) -> tuple[FloatArray, FloatArray]:
    """Real and imaginary part of C_n of every target, each (N, T, K) or (N, T').

    N runs over `stage.harmonics`.
    """
    if stage.flat:
        return _listed_field(stage)
    orders = stage.harmonics
    shape = (len(orders), *stage.phi0_rad.shape)
    real, imaginary = np.zeros(shape), np.zeros(shape)
    for coupling in stage.factored:
        heads = coupling.head_of_coordinate
        for number, order in enumerate(coupling.harmonics):
            angle = order * stage.theta_rad + coupling.alpha_rad[number]
            slot = orders.index(int(order))
            for j in range(shape[2]):
                weights = coupling.weights[heads[j]] * coupling.gamma[number, j]
                real[slot, :, j] += weights @ np.cos(angle[:, j])
                imaginary[slot, :, j] += weights @ np.sin(angle[:, j])
    return real, imaginary


def _listed_field(stage: Stage) -> tuple[FloatArray, FloatArray]:
    edges, orders = stage.edges, stage.harmonics
    shape = (len(orders), stage.targets)
    real, imaginary = np.zeros(shape), np.zeros(shape)
    slot = np.searchsorted(orders, edges.harmonic)
    angle = edges.harmonic * stage.theta_rad[edges.source] + edges.alpha_rad
    np.add.at(real, (slot, edges.target), edges.gamma * np.cos(angle))
    np.add.at(imaginary, (slot, edges.target), edges.gamma * np.sin(angle))
    return real, imaginary


def rate(
    stage: Stage, phi: FloatArray, real: FloatArray, imaginary: FloatArray
) -> FloatArray:
    """dphi/dtau at phases phi, in the shape of the targets."""
    pull = np.zeros_like(phi)
    for slot, order in enumerate(stage.harmonics):
        pull += imaginary[slot] * np.cos(order * phi) - real[slot] * np.sin(order * phi)
    out: FloatArray = stage.detuning_rad + stage.gain_rad * pull
    return out


def interpret(stage: Stage) -> FloatArray:
    """Phases at the end of a stage under the model's own update, [rad].

    Returns:
        Shape of the targets, (T, K) or (T',).

    Raises:
        UndecidedError: the integrator did not reach the end of the dwell.

    Source: docs/reference/physics.md, the one equation.
    """
    real, imaginary = field(stage)
    if stage.model_update == "euler":
        return stage.phi0_rad + rate(stage, stage.phi0_rad, real, imaginary)
    return _flow(stage, real, imaginary)


def interpret_cells(stage: Stage) -> FloatArray:
    """Coherence of every pair cell after any time, shape (pairs,).

        cos psi = sqrt(1 - x^2) where |x| <= 1, else 0;  x = Omega / (g |C|)

    Source: fixed point of dpsi/dtau = Omega - g |C| sin psi; Hays, arXiv 2602.14445.
    """
    real, imaginary = field(stage)
    pull = np.abs(stage.gain_rad) * np.hypot(real[0], imaginary[0])
    still = np.maximum(pull**2 - stage.detuning_rad**2, 0.0)
    out: FloatArray = np.sqrt(still) / pull
    return out


def interpret_correlation(stage: Correlation) -> FloatArray:
    """The sums as their equation says (oscc.ir.correlation), shape (H, T, S), [nat].

    One cosine of a difference at a time; nothing is shared with the engines.

    Example:
        >>> from oscc.ir.correlation import Correlation
        >>> one, zero = np.ones((1, 1)), np.zeros((1, 1))
        >>> both = Correlation("c", zero, zero + np.pi / 3, one, one, one[None])
        >>> float(interpret_correlation(both).round(12)[0, 0, 0])
        0.5
    """
    out = np.zeros(stage.digital.shape)
    for query, key in np.argwhere(stage.visible).tolist():
        cosine = np.cos(stage.query_rad[query] - stage.key_rad[key])
        terms = stage.query_gain[query] * stage.key_gain[key] * cosine
        out[:, query, key] = terms.reshape(stage.heads, -1).sum(axis=1)
    return out


def _flow(stage: Stage, real: FloatArray, imaginary: FloatArray) -> FloatArray:
    from scipy.integrate import solve_ivp

    from oscc.errors import UndecidedError

    orders = np.array(stage.harmonics)[:, None]
    a = (stage.gain_rad * imaginary).reshape(orders.size, -1)
    b = (stage.gain_rad * real).reshape(orders.size, -1)
    detuning, start = stage.detuning_rad.ravel(), stage.phi0_rad.ravel()
    out = np.empty_like(start)
    # Targets of like drive share their steps; order them so, then put them back.
    order = np.argsort(np.hypot(a, b).sum(axis=0), kind="stable")
    for first in range(0, start.size, _CHUNK):
        part = order[first : first + _CHUNK]
        ca, cb, cd, c0 = a[:, part], b[:, part], detuning[part], start[part]

        def slope(_: float, moved: FloatArray) -> FloatArray:
            angle = orders * (c0 + moved)  # noqa: B023 (used within this turn only)
            pull = ca * np.cos(angle) - cb * np.sin(angle)  # noqa: B023
            total: FloatArray = cd + pull.sum(axis=0)  # noqa: B023
            return total

        found = solve_ivp(
            slope, (0, 1), np.zeros(part.size), method="DOP853", rtol=_RTOL, atol=_ATOL
        )
        if not found.success or found.t[-1] != 1.0:
            raise UndecidedError(
                f"stage {stage.name}: the interpreter stopped at {found.t[-1]:.3g} "
                f"of the dwell ({found.message})."
            )
        out[part] = c0 + found.y[:, -1]
    return out.reshape(stage.phi0_rad.shape)


def run(program: Program) -> Observables:
    """Level 1 of every stage of a program."""
    arrays: dict[str, FloatArray] = {}
    for stage in program.stages:
        if stage.readout == "coherence":
            coherence = interpret_cells(stage)
            arrays[f"{stage.name}.coherence"] = coherence
            arrays[f"{stage.name}.locked"] = (coherence > 0).astype(np.float64)
        else:
            arrays[f"{stage.name}.phase"] = interpret(stage).reshape(stage.grid)
    for one in program.correlations:
        arrays[f"{one.name}.correlation"] = interpret_correlation(one)
    return Observables("ir", program.digest(), arrays, {})
