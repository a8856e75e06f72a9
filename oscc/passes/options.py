"""Options of the passes: one frozen value for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.device.card import Card
from oscc.device.coupler import INJECTION_LIMIT


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to run a stage.

    Args:
        name: `plain`, `extrapolated` or `corrected`.
        substeps: S.
        dwell_periods: P.
        epsilon: Gain factor of a probe, None for a flow.
    """

    name: str
    substeps: int
    dwell_periods: int
    epsilon: float | None = None

    @property
    def runs(self) -> int:
        """1 for a flow, 2 for a probe."""
        return 1 if self.epsilon is None else 2

    @property
    def periods(self) -> int:
        """Periods in all: S P plain, 3 S P extrapolated; twice for a probe."""
        factor = 3 if self.name == "extrapolated" else 1
        return self.runs * factor * self.substeps * self.dwell_periods

    @property
    def gain_a_period(self) -> float:
        """Share of the stage's gain in a period of the short dwell."""
        return (self.epsilon or 1.0) / (self.substeps * self.dwell_periods)

    @property
    def reads(self) -> int:
        """Reads, and phase writes, of every target."""
        return self.runs * self.substeps * (2 if self.name == "extrapolated" else 1)


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Scalar targets for a trial: drive (M, N), orders (N,), start phases (M,).

    `detuning_rad` (M,) over the dwell; None where no target is detuned.
    """

    drive: ComplexArray
    harmonics: IntArray
    phi0_rad: FloatArray
    detuning_rad: FloatArray | None = None

    def take(self, rows: IntArray) -> Targets:
        """Targets of the rows given."""
        offset = self.detuning_rad
        return Targets(
            self.drive[rows],
            self.harmonics,
            self.phi0_rad[rows],
            None if offset is None else offset[rows],
        )


class Trial(Protocol):
    """Runs targets on hardware and exactly, to learn the error of a scheme."""

    def exact(self, targets: Targets) -> FloatArray:
        """Phases after the exact flow, shape (M,) [rad]."""

    def hardware(self, targets: Targets, scheme: Scheme) -> FloatArray:
        """Phases after the scheme on the device, shape (M,) [rad]."""


@dataclass(frozen=True, slots=True)
class PassOptions:
    """What the passes may be told.

    Args:
        card: The device card of the program.
        trial: Runs trial targets; None leaves the predicted error out.
        scheme: `auto`, or a scheme by name.
        substeps: S, or None to choose it.
        periods: P, or None to choose it.
        injection_limit: Largest injection over the card's smallest charging current.
        dwell_J: Energy of one write and one read of a target [J].
        trial_targets: Targets drawn a stage for the trials.
        trial_draws: Fresh start phases for each.
    """

    card: Card
    trial: Trial | None
    scheme: str = "auto"
    substeps: int | None = None
    periods: int | None = None
    injection_limit: float = INJECTION_LIMIT
    dwell_J: float = 2e-12
    trial_targets: int = 8192
    trial_draws: int = 2
