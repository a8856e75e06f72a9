"""One dwell of many targets in the exact circuit, kernels chosen and checked.

A dwell is a whole number of carrier periods with the injection switched on at its
start and off at its end. The phase is read after switch-off against the free reference
oscillator: the node's voltage and state at the end lie on one isochron of the free
cycle, whole turns come from the counted upward crossings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from oscc.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from oscc.checks import require_choice, require_finite, require_shape
from oscc.device.card import Card
from oscc.errors import RequestError, UndecidedError
from oscc_sims import circuit_lanes, circuit_scalar, segments
from oscc_sims.segments import Drive, Lanes

ENERGY_PARTS = ("supply_J", "r_series_J", "vo2_J", "capacitor_J", "injected_J")
"""Columns of `DwellResult.energy_J`; supply + injected = the three others."""


@dataclass(frozen=True, slots=True, eq=False)
class DwellResult:
    """What one dwell left behind.

    Attributes:
        lead_rad: Phase against the free reference, unwrapped, shape (M,).
        crossings: Upward crossings of each target, shape (M,).
        fallback: Targets that the lanes kernel handed to the scalar kernel, shape (M,).
        evaluations: Evaluations of the voltage per target on average.
        energy_J: Energies by `ENERGY_PARTS`, shape (M, 5); None if not asked for.
    """

    lead_rad: FloatArray
    crossings: IntArray
    fallback: BoolArray
    evaluations: float
    energy_J: FloatArray | None


def run_dwell(
    card: Card,
    injection: ComplexArray,
    phi0_rad: FloatArray,
    periods: int,
    *,
    threads: int = 1,
    energy: bool = False,
    kernel: str = "lanes",
    spread: Mapping[str, FloatArray] | None = None,
) -> DwellResult:
    """Exact dwell of every target, started on the free cycle at its own phase.

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order, see
            `oscc.device.coupler`.
        phi0_rad: Start phases, any turn (kept in the result), shape (M,).
        periods: Length of the dwell in carrier periods, >= 1.
        threads: Worker threads; the result does not depend on it.
        energy: Also integrate the energies in closed form.
        kernel: `lanes`, or `scalar` for the oracle.
        spread: Card parameters lane by lane, see `segments.cells`.

    Raises:
        RequestError: shapes do not fit or values are not finite.
        UndecidedError: a target could not be followed to the end of the dwell.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> seen = run_dwell(card, np.zeros((1, 2), complex), np.ones(1), 3)
        >>> round(float(seen.lead_rad[0]), 9)
        1.0
    """
    plan = prepare_dwell(card, injection, periods, spread=spread)
    return follow(plan, phi0_rad, threads=threads, energy=energy, kernel=kernel)


@dataclass(frozen=True, slots=True, eq=False)
class DwellPlan:
    """What a dwell needs but for the start phases, to be run more than once.

    Attributes:
        cells: Device parameters of the lanes.
        drive: What the kernels read.
        sure: Lanes that the lanes kernel may take, shape (M,).
    """

    cells: segments.Cells
    drive: Drive
    sure: BoolArray


def prepare_dwell(
    card: Card,
    injection: ComplexArray,
    periods: int,
    *,
    spread: Mapping[str, FloatArray] | None = None,
) -> DwellPlan:
    """Everything of a dwell that does not depend on the start phases.

    Args:
        injection: As in `run_dwell`, like all other arguments.

    Raises:
        RequestError: shapes do not fit or values are not finite.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> plan = prepare_dwell(card, np.zeros((1, 2), complex), 3)
        >>> round(float(follow(plan, np.ones(1)).lead_rad[0]), 9)
        1.0
    """
    current = np.asarray(injection, dtype=np.complex128)
    require_shape("injection", current, (-1, -1), axes="(targets, orders)")
    require_finite("injection", current)
    if current.shape[1] < 1:
        raise RequestError("Argument `injection` must have a column for order 0.")
    if (current[:, 0].imag != 0).any():
        raise RequestError("Argument `injection` must be real in order 0.")
    if int(periods) != periods or periods < 1:
        raise RequestError(
            f"Argument `periods` must be a whole number >= 1, but is {periods!r}."
        )
    cell = segments.cells(card, current.shape[0], spread)
    drive = segments.drive_of(cell, current, int(periods))
    return DwellPlan(cell, drive, segments.monotone(cell, current))


def follow(
    plan: DwellPlan,
    phi0_rad: FloatArray,
    *,
    threads: int = 1,
    energy: bool = False,
    kernel: str = "lanes",
) -> DwellResult:
    """Run a prepared dwell from start phases; arguments as in `run_dwell`.

    Raises:
        RequestError: shapes do not fit or values are not finite.
        UndecidedError: a target could not be followed to the end of the dwell.
    """
    require_choice("kernel", kernel, ("lanes", "scalar"))
    start = np.asarray(phi0_rad, dtype=np.float64)
    wanted = f"({plan.sure.size} targets,)"
    require_shape("phi0_rad", start, plan.sure.shape, axes=wanted)
    require_finite("phi0_rad", start)
    v, state, turns = segments.start_of(plan.cells, start)
    out = Lanes(
        v=v,
        state=state,
        ups=np.zeros(start.size, dtype=np.int64),
        energy=np.zeros((start.size, len(ENERGY_PARTS) if energy else 0)),
    )
    fallback, steps = _run(plan, out, kernel, threads)
    lost = out.ups < 0
    if lost.any():
        raise UndecidedError(
            f"{int(lost.sum())} of {lost.size} targets could not be followed to the "
            f"end of the dwell, first target {int(lost.argmax())}."
        )
    lead = segments.phase_in_cycle(plan.cells, out.v, out.state)
    lead += segments.TWO_PI * (turns + out.ups - plan.drive.periods)
    return DwellResult(
        lead_rad=lead,
        crossings=out.ups,
        fallback=fallback,
        evaluations=steps / max(start.size, 1),
        energy_J=out.energy if energy else None,
    )


def _run(
    plan: DwellPlan, out: Lanes, kernel: str, threads: int
) -> tuple[BoolArray, int]:
    """Run all targets; which of them fell back, and the evaluations in all."""
    everyone = np.arange(out.v.size)
    if kernel == "scalar":
        steps = _scalar(plan.drive, out, everyone, threads)
        return np.zeros(out.v.size, dtype=np.bool_), steps
    # the scalar kernel integrates the energies; phases stay those of the lanes kernel
    twin = out._replace(v=out.v.copy(), state=out.state.copy(), ups=out.ups.copy())
    steps = _lanes(plan, out, np.flatnonzero(plan.sure), threads)
    fallback = ~plan.sure | (out.ups < 0)
    steps += _scalar(plan.drive, out, np.flatnonzero(fallback), threads)
    if out.energy.size:
        steps += _scalar(plan.drive, twin, np.flatnonzero(~fallback), threads)
    return fallback, steps


def _lanes(plan: DwellPlan, out: Lanes, lanes: IntArray, threads: int) -> int:
    drive = plan.drive
    guess = segments.free_lengths(plan.cells, out.v, out.state)
    # blocks of one state save half a period each
    order = lanes[np.argsort(out.state[lanes].astype(np.int8), kind="stable")]
    return _spread_out(
        lambda part: circuit_lanes.run_lanes(part, drive, guess, out), order, threads
    )


def _scalar(drive: Drive, out: Lanes, lanes: IntArray, threads: int) -> int:
    return _spread_out(
        lambda part: circuit_scalar.run_scalar(part, drive, out), lanes, threads
    )


def _spread_out(run: Callable[[IntArray], int], lanes: IntArray, threads: int) -> int:
    """Run lanes in chunks over threads; each lane writes to its own place alone."""
    chunk = 8 * circuit_lanes.BLOCK
    parts = [lanes[begin : begin + chunk] for begin in range(0, lanes.size, chunk)]
    if threads <= 1 or len(parts) <= 1:
        return sum(run(part) for part in parts)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(run, parts))
