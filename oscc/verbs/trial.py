"""Trials of the passes: the circuit engine against the exact flow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.passes.options import Scheme, Targets


@dataclass(frozen=True, slots=True)
class CircuitTrial:
    """Runs trial targets on a device card.

    Args:
        card: The card of the program.
        threads: Worker threads; no result depends on it.
    """

    card: Card
    threads: int = 1

    def exact(self, targets: Targets) -> FloatArray:
        """Phases after the exact flow, shape (M,) [rad]."""
        from oscc_sims import extrapolation, mobius

        detuning = targets.detuning_rad
        if targets.harmonics.tolist() == [1] and detuning is None:
            moved = mobius.increment(targets.phi0_rad, targets.drive[:, 0])
        else:
            moved, _ = extrapolation.increment(
                targets.phi0_rad,
                targets.drive,
                targets.harmonics,
                np.zeros(targets.phi0_rad.size) if detuning is None else detuning,
            )
        return targets.phi0_rad + moved

    def hardware(self, targets: Targets, scheme: Scheme) -> FloatArray:
        """Phases after a scheme on the device, shape (M,) [rad]."""
        from oscc_sims.schemes import run_probe, run_scheme

        if scheme.epsilon is None:
            return run_scheme(
                self.card,
                targets.drive,
                targets.harmonics,
                targets.phi0_rad,
                scheme=scheme.name,
                substeps=scheme.substeps,
                dwell_periods=scheme.dwell_periods,
                detuning_rad=targets.detuning_rad,
                threads=self.threads,
            ).phase_rad
        return run_probe(
            self.card,
            targets.drive,
            targets.harmonics,
            targets.phi0_rad,
            epsilon=scheme.epsilon,
            scheme=scheme.name,
            substeps=scheme.substeps,
            dwell_periods=scheme.dwell_periods,
            detuning_rad=targets.detuning_rad,
            threads=self.threads,
        ).phase_rad
