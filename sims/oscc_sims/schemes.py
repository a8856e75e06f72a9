"""Dwell schemes: how dwells are combined into the flow of one stage.

plain         one dwell of P periods
extrapolated  S substeps of gain g/S; each is run over P and 2P periods from the same
              written phase, and 2 psi(2P) - psi(P) is written for the next
corrected     one dwell with second-order currents, the ripple taken out of the written
              and of the read phase; needs the field of every target on the host

Source: docs/reference/physics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscc.arrays import ComplexArray, FloatArray
from oscc.checks import (
    require_choice,
    require_finite,
    require_positive,
    require_shape,
)
from oscc.device.averaging import ripple_rad, second_order_currents, without_ripple
from oscc.device.card import Card
from oscc.device.coupler import INJECTION_LIMIT, injection_A, require_injection
from oscc.errors import RequestError
from oscc_sims.circuit_dwell import follow, prepare_dwell

SCHEMES = ("plain", "extrapolated", "corrected")


@dataclass(frozen=True, slots=True, eq=False)
class SchemeResult:
    """What one stage run by a scheme left behind.

    Dwells stand in the order in which they run: substep by substep, the one over P
    periods before the one over 2P.

    Attributes:
        phase_rad: Phase at the end, unwrapped, shape (M,).
        start_rad: Phase written before each dwell, shape (M, D).
        end_rad: Phase read after each dwell, shape (M, D).
        dwell_periods: Length of each dwell, D numbers.
        injection_ratio: Largest peak injection over the smallest C |dV/dt|, shape (M,).
        periods: Carrier periods in all.
        fallback_lanes: How often a target was handed to the scalar kernel.
        energy_J: Energies of each dwell by `circuit_dwell.ENERGY_PARTS`, shape
            (M, D, 5); None if not asked for.
    """

    phase_rad: FloatArray
    start_rad: FloatArray
    end_rad: FloatArray
    dwell_periods: tuple[int, ...]
    injection_ratio: FloatArray
    periods: int
    fallback_lanes: int
    energy_J: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class ProbeResult:
    """Two runs at small drives of opposite sign, with the displacement they give.

    Attributes:
        displacement_rad: (psi(+eps) - psi(-eps)) / (2 eps), shape (M,).
        phase_rad: Start phase plus displacement: the Euler step, shape (M,).
        plus: The run at +eps times the drive.
        minus: The run at -eps times the drive.
    """

    displacement_rad: FloatArray
    phase_rad: FloatArray
    plus: SchemeResult
    minus: SchemeResult


@dataclass(frozen=True, slots=True)
class _Options:
    scheme: str
    threads: int
    energy: bool
    kernel: str


class _Run:
    """The prepared dwells of one stage, with the read-outs so far.

    Every substep has the same current, the dwell over 2P periods half of it: the same
    gain over twice the time.
    """

    def __init__(
        self,
        card: Card,
        current: ComplexArray,
        periods: int,
        options: _Options,
    ) -> None:
        self.card, self.current, self.options = card, current, options
        lengths = (1, 2) if options.scheme == "extrapolated" else (1,)
        self.plans = [
            prepare_dwell(card, current / length, periods * length)
            for length in lengths
        ]
        self.starts: list[FloatArray] = []
        self.ends: list[FloatArray] = []
        self.lengths: list[int] = []
        self.fallback = 0
        self.energy: list[FloatArray] = []

    def dwell(self, phase: FloatArray, which: int = 0) -> FloatArray:
        """Write, run and read one dwell; note it."""
        plan = self.plans[which]
        seen = follow(
            plan,
            phase,
            threads=self.options.threads,
            energy=self.options.energy,
            kernel=self.options.kernel,
        )
        self.starts.append(phase)
        self.ends.append(seen.lead_rad)
        self.lengths.append(plan.drive.periods)
        self.fallback += int(seen.fallback.sum())
        if seen.energy_J is not None:
            self.energy.append(seen.energy_J)
        return seen.lead_rad

    def result(self, phase: FloatArray, ratio: FloatArray) -> SchemeResult:
        """All read-outs, with the phase that the scheme made of them."""
        return SchemeResult(
            phase_rad=phase,
            start_rad=np.stack(self.starts, axis=1),
            end_rad=np.stack(self.ends, axis=1),
            dwell_periods=tuple(self.lengths),
            injection_ratio=ratio,
            periods=sum(self.lengths),
            fallback_lanes=self.fallback,
            energy_J=np.stack(self.energy, axis=1) if self.options.energy else None,
        )


def _plain(run: _Run, phase: FloatArray) -> FloatArray:
    return run.dwell(phase)


def _extrapolated(run: _Run, phase: FloatArray) -> FloatArray:
    return -run.dwell(phase) + 2.0 * run.dwell(phase, which=1)


def _corrected(run: _Run, phase: FloatArray) -> FloatArray:
    """Write the phase with its ripple, take the ripple out of the phase read."""
    written = phase + ripple_rad(run.card, run.current, phase)
    return without_ripple(run.card, run.current, run.dwell(written))


_SUBSTEPS: dict[str, Callable[[_Run, FloatArray], FloatArray]] = {
    "plain": _plain,
    "extrapolated": _extrapolated,
    "corrected": _corrected,
}


def run_scheme(
    card: Card,
    drive: ComplexArray,
    harmonics: npt.ArrayLike,
    phi0_rad: FloatArray,
    *,
    scheme: str,
    substeps: int,
    dwell_periods: int,
    threads: int = 1,
    energy: bool = False,
    detuning_rad: FloatArray | None = None,
    kernel: str = "lanes",
    limit: float = INJECTION_LIMIT,
    where: str = "",
) -> SchemeResult:
    """Run every target of a stage in the exact circuit.

    Args:
        drive: Gain times field of each target and harmonic, [rad], shape (M, H).
        harmonics: Orders of the columns of `drive`, shape (H,).
        phi0_rad: Start phases, any turn (kept in the result), shape (M,).
        scheme: `plain`, `extrapolated` or `corrected`.
        substeps: Number S of substeps, each of gain 1/S.
        dwell_periods: Length P of the short dwell of one substep, in periods.
        threads: Worker threads; the result does not depend on it.
        energy: Also integrate the energies in closed form.
        detuning_rad: Detuning of each target over the dwell, [rad], shape (M,).
        kernel: `lanes`, or `scalar` for the oracle.
        limit: Largest allowed injection ratio.
        where: Name of the stage, for messages.

    Raises:
        RequestError: shapes do not fit, or a target needs more injection than allowed.
        UndecidedError: a target could not be followed to the end of a dwell.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> seen = run_scheme(
        ...     card, np.array([[1j]]), [1], np.zeros(1),
        ...     scheme="extrapolated", substeps=4, dwell_periods=6,
        ... )
        >>> round(float(seen.phase_rad[0]), 3), seen.periods   # 2 atan(tanh(1/2))
        (0.866, 72)
    """
    options = _Options(scheme, threads, energy, kernel)
    start = _checked(scheme, substeps, np.asarray(drive), phi0_rad, where)
    offset = None if detuning_rad is None else np.asarray(detuning_rad) / substeps
    current = injection_A(
        card,
        np.asarray(drive, dtype=np.complex128) / substeps,
        harmonics,
        dwell_periods,
        detuning_rad=offset,
    )
    if scheme == "corrected":
        current = second_order_currents(card, current)
    ratio = require_injection(card, current, limit=limit, where=where)
    run = _Run(card, current, int(dwell_periods), options)
    phase = start
    for _ in range(int(substeps)):
        phase = _SUBSTEPS[scheme](run, phase)
    return run.result(phase, ratio)


def _checked(
    scheme: str,
    substeps: int,
    drive: ComplexArray,
    phi0_rad: FloatArray,
    where: str,
) -> FloatArray:
    """Start phases, once the request is found sound."""
    require_choice("scheme", scheme, SCHEMES, where=where)
    start = np.asarray(phi0_rad, dtype=np.float64)
    require_shape("phi0_rad", start, drive.shape[:1], axes="(targets,)", where=where)
    require_finite("phi0_rad", start, where=where)
    if int(substeps) != substeps or substeps < 1:
        raise RequestError(
            f"Argument `substeps` must be a whole number >= 1, but is {substeps!r}."
        )
    return start


def run_probe(
    card: Card,
    drive: ComplexArray,
    harmonics: npt.ArrayLike,
    phi0_rad: FloatArray,
    *,
    epsilon: float,
    scheme: str,
    substeps: int,
    dwell_periods: int,
    threads: int = 1,
    energy: bool = False,
    detuning_rad: FloatArray | None = None,
    kernel: str = "lanes",
    where: str = "",
) -> ProbeResult:
    """Euler step of the flow, from two runs at +epsilon and -epsilon times the drive.

        displacement = (psi(+epsilon) - psi(-epsilon)) / (2 epsilon)

    Args:
        epsilon: Size of the probe relative to the drive, above zero.
        scheme: As in `run_scheme`, like all other arguments.

    Raises:
        RequestError: as `run_scheme`, or epsilon is not above zero.
        UndecidedError: as `run_scheme`.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> seen = run_probe(
        ...     card, np.array([[2j]]), [1], np.zeros(1), epsilon=0.02,
        ...     scheme="extrapolated", substeps=1, dwell_periods=6,
        ... )
        >>> round(float(seen.displacement_rad[0]), 2)   # Im of the drive
        2.0
    """
    require_positive("epsilon", epsilon, where=where)
    start = np.asarray(phi0_rad, dtype=np.float64)

    def at(size: float) -> SchemeResult:
        return run_scheme(
            card,
            size * np.asarray(drive),
            harmonics,
            start,
            scheme=scheme,
            substeps=substeps,
            dwell_periods=dwell_periods,
            threads=threads,
            energy=energy,
            detuning_rad=None if detuning_rad is None else size * detuning_rad,
            kernel=kernel,
            where=where,
        )

    plus, minus = at(epsilon), at(-epsilon)
    moved = (plus.phase_rad - minus.phase_rad) / (2.0 * epsilon)
    return ProbeResult(moved, start + moved, plus, minus)
