"""Pass `choose_dwell`: scheme, substeps and periods of least energy that are accurate.

The error of every candidate is measured by circuit runs on trial targets, cheapest
candidate first. Applying the pass twice equals applying it once: the trials depend on
drives, gains and seed alone, which the pass leaves as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.coupler import injection_A, injection_ratio
from oscc.device.cycle_energy import energy_per_period_J
from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.passes.options import PassOptions, Scheme, Targets
from oscc.passes.record import record
from oscc.passes.trials import stage_drive, trial_targets

_SUBSTEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
_PERIODS = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)
# The chance that a trial misses the rare targets near a repeller, which make the rms,
# is met by asking for less than the wanted error.
_MARGIN = 0.6
# A probe's bias falls with epsilon squared, while read-out errors grow as 1/epsilon: it
# is only lowered where the bias asks for it.
_EPSILONS = (0.02, 0.01, 0.005, 0.0025)
_SLIP_RAD = np.pi / 2
_MOST_PERIODS = 2000


def choose_dwell(program: Program, options: PassOptions) -> Program:
    """Choose how each stage is run.

    Raises:
        RequestError: no scheme reaches the accuracy within the card's limit.
    """
    stages, chosen = [], []
    for stage in program.stages:
        scheme, numbers = _choose(stage, program, options)
        stages.append(
            dataclasses.replace(
                stage,
                scheme=scheme.name,
                substeps=scheme.substeps,
                dwell_periods=scheme.dwell_periods,
                probe_epsilon=scheme.epsilon or stage.probe_epsilon,
            )
        )
        chosen.append({"stage": stage.name, **numbers})
    return record(
        program.replace(stages=tuple(stages)), "choose_dwell", {"stages": chosen}
    )


def _choose(
    stage: Stage, program: Program, options: PassOptions
) -> tuple[Scheme, dict[str, Any]]:
    targets = trial_targets(
        stage,
        program.seed,
        count=options.trial_targets,
        draws=options.trial_draws,
    )
    candidates = _candidates(stage, options)
    fixed = len(candidates) == 1
    if options.trial is None:
        if not fixed:
            raise RequestError(
                "Choosing a scheme needs trial runs; give scheme, substeps and periods."
            )
        return candidates[0], _numbers(candidates[0], None, 0)
    want = _reference(stage, targets, options)
    unit = _unit_ratio(stage, options)
    least = np.inf
    for tried, scheme in enumerate(candidates, 1):
        if unit * scheme.gain_a_period > options.injection_limit:
            continue
        error = options.trial.hardware(targets, scheme) - want
        rms = float(np.sqrt(np.mean(error**2)))
        least = min(least, rms)
        slips = int((np.abs(error) > _SLIP_RAD).sum())
        if fixed or (rms <= _MARGIN * program.accuracy_rad and not slips):
            return scheme, _numbers(scheme, error, tried)
    raise RequestError(_refusal(stage, program, candidates, least))


def _refusal(
    stage: Stage, program: Program, candidates: list[Scheme], least: float
) -> str:
    if not np.isfinite(least):
        return (
            f"stage {stage.name}: every scheme that was asked for needs more than the "
            "card's largest injection. Ask for more periods or substeps, or another "
            "--device."
        )
    return (
        f"stage {stage.name}: {1e3 * program.accuracy_rad:g} mrad is not reached by "
        f"{len(candidates)} schemes of up to {_MOST_PERIODS} periods; the best gave "
        f"{1e3 * least:.3g} mrad. Ask for a larger --accuracy-mrad or another --device."
    )


def _numbers(scheme: Scheme, error: FloatArray | None, tried: int) -> dict[str, Any]:
    out: dict[str, Any] = {
        "scheme": scheme.name,
        "substeps": scheme.substeps,
        "dwell_periods": scheme.dwell_periods,
        "periods_in_all": scheme.periods,
        "probe_epsilon": scheme.epsilon,
        "candidates_tried": tried,
    }
    if error is not None:
        out |= {
            "trial_targets": int(error.size),
            "predicted_rms_rad": float(np.sqrt(np.mean(error**2))),
            "predicted_median_rad": float(np.median(np.abs(error))),
            "predicted_p99_rad": float(np.quantile(np.abs(error), 0.99)),
            "predicted_slips": int((np.abs(error) > _SLIP_RAD).sum()),
        }
    return out


def _reference(stage: Stage, targets: Targets, options: PassOptions) -> FloatArray:
    """What the hardware should reach: the exact flow, or the Euler step of a probe."""
    if stage.update == "flow":
        assert options.trial is not None
        return options.trial.exact(targets)
    turned = targets.drive * np.exp(-1j * np.outer(targets.phi0_rad, targets.harmonics))
    out: FloatArray = targets.phi0_rad + turned.imag.sum(axis=1)
    return out


def _unit_ratio(stage: Stage, options: PassOptions) -> float:
    """Largest injection ratio of the stage at full gain over one period.

    Injection is proportional to gain over periods, so every scheme follows from it.
    """
    current = injection_A(
        options.card,
        stage_drive(stage),
        np.array(stage.harmonics),
        1,
        detuning_rad=stage.detuning_rad.ravel(),
    )
    return float(injection_ratio(options.card, current).max(initial=0.0))


def _candidates(stage: Stage, options: PassOptions) -> list[Scheme]:
    """Schemes to try, cheapest first."""
    period_J = energy_per_period_J(options.card).supply_J
    found = list(_listed(stage, options))
    cost = [s.periods * period_J + s.reads * options.dwell_J for s in found]
    return [found[k] for k in np.argsort(cost, kind="stable")]


def _listed(stage: Stage, options: PassOptions) -> Iterator[Scheme]:
    flow = stage.update == "flow"
    if options.periods is not None:
        name = "extrapolated" if options.scheme == "auto" else options.scheme
        epsilon = None if flow else stage.probe_epsilon
        yield Scheme(name, options.substeps or 1, options.periods, epsilon)
        return
    auto = options.scheme == "auto"
    for name in ("plain", "extrapolated") if auto else (options.scheme,):
        for s in _SUBSTEPS if options.substeps is None else (options.substeps,):
            for p in _PERIODS:
                for epsilon in (None,) if flow else _EPSILONS:
                    scheme = Scheme(name, s, p, epsilon)
                    if scheme.periods <= _MOST_PERIODS:
                        yield scheme
