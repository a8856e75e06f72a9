"""Artefact types: what backends make and engines take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.ir.correlation import Correlation
from oscc.ir.plan import Dwell
from oscc.phases import TURN


@dataclass(frozen=True, slots=True, eq=False)
class ScalarProblem:
    """Targets of one stage as independent scalar equations.

        dphi/dtau = detuning + sum_n Im[exp(-i n phi) drive_n],   tau in [0, 1]

    Args:
        stage: Name of the stage.
        harmonics: Orders, shape (N,).
        drive: g C_n of each target, gain included, shape (M, N) [rad].
        phi0_rad: Start phases, shape (M,), unwrapped [rad].
        detuning_rad: Detuning over the dwell, shape (M,) [rad].
        index: Token and coordinate of each target, shape (M, 2).
        update: `flow` or `probe`.
        probe_epsilon: Gain factor of a probe.
        scheme: `plain`, `extrapolated` or `corrected`.
        substeps: Dwells in sequence.
        dwell_periods: Periods of the short dwell.
        dwells: The plan of the stage.
    """

    stage: str
    harmonics: IntArray
    drive: ComplexArray
    phi0_rad: FloatArray
    detuning_rad: FloatArray
    index: IntArray
    update: str
    probe_epsilon: float
    scheme: str
    substeps: int
    dwell_periods: int
    dwells: tuple[Dwell, ...]

    @property
    def grid(self) -> tuple[int, int]:
        """Tokens and coordinates of the targets, (T, K)."""
        tokens, coordinates = np.ptp(self.index, axis=0) + 1
        return int(tokens), int(coordinates)


@dataclass(frozen=True, slots=True, eq=False)
class LockProblem:
    """Pair cells of one stage, each with a phase difference of its own.

        dpsi/dtau = lock_rad (ratio - sin psi),   tau in [0, 1],   psi(0) = 0

    Args:
        stage: Name of the stage.
        ratio: Detuning over lock range, x of each cell, shape (M,).
        lock_rad: K t of the dwell, the same for every cell, > 0 [rad].
        periods: P, the dwell in carrier periods.
        index: Head, token and partner of each cell, shape (M, 3).
    """

    stage: str
    ratio: FloatArray
    lock_rad: float
    periods: int
    index: IntArray

    @property
    def rate(self) -> float:
        """K/w0, the lock range over the angular frequency of the card."""
        return self.lock_rad / (TURN * self.periods)


@dataclass(frozen=True, slots=True, eq=False)
class PhaseArtefact:
    """Problems of a program for the phase engine, stage by stage."""

    program: str
    problems: tuple[ScalarProblem | LockProblem, ...]
    correlations: tuple[Correlation, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CircuitArtefact:
    """Problems of a program with the device card, for the circuit engine."""

    program: str
    device: Mapping[str, Any]
    problems: tuple[ScalarProblem | LockProblem, ...]
    correlations: tuple[Correlation, ...] = ()
