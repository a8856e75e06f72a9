"""Pass `choose_dwell`: scheme, substeps and periods of least energy that are accurate.

The error of every candidate is measured by circuit runs on trial targets, cheapest
candidate first. Applying the pass twice equals applying it once: the trials depend on
drives, gains and seed alone, which the pass leaves as they are.

Trials run hardest first, in growing parts, and a candidate is dropped as soon as what
has run decides: one slip, or a sum of squares that is too large whatever the rest
gives. So the choice is the one that all trials would make, for a small part of the
work.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import BoolArray, FloatArray, IntArray
from oscc.device.coupler import injection_A, injection_ratio
from oscc.device.cycle_energy import energy_per_period_J
from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.passes.legalise import largest_injection
from oscc.passes.options import PassOptions, Scheme, Targets, Trial
from oscc.passes.record import record
from oscc.passes.trials import stage_drive, trial_targets
from oscc.units import counted

_SUBSTEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
_PERIODS = (
    *(3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24),
    *(32, 48, 64, 96, 128, 192, 256),
)
# The rare targets near a repeller make the rms, and trials move them away by chance; so
# less than the wanted error is asked for.
_MARGIN = 0.6
# A probe's bias falls with epsilon squared, while read-out errors grow as 1/epsilon: it
# is only lowered where the bias asks for it.
_EPSILONS = (0.02, 0.01, 0.005, 0.0025)
_READER_SHARE = 0.2
_SLIP_RAD = np.pi / 2
_MOST_PERIODS = 2000
# Sizes of the first parts of the trials; the rest follows in one.
_PARTS = (256, 768)


def choose_dwell(program: Program, options: PassOptions) -> Program:
    """Choose how each stage is run.

    Raises:
        RequestError: no scheme reaches the accuracy within the card's limit.
    """
    stages, chosen = [], []
    for stage in program.stages:
        if stage.readout == "coherence":  # a pass of their own chooses their dwell
            stages.append(stage)
            continue
        accuracy = program.accuracy_rad * accuracy_share(stage)
        scheme, numbers = choose_scheme(
            (stage,), options, accuracy_rad=accuracy, seed=program.seed
        )
        stages.append(_with_scheme(stage, scheme))
        asked = {"asked_rad": accuracy} if accuracy != program.accuracy_rad else {}
        chosen.append({"stage": stage.name, **numbers, **asked})
    return record(
        program.replace(stages=tuple(stages)), "choose_dwell", {"stages": chosen}
    )


def accuracy_share(stage: Stage) -> float:
    """Share of the wanted accuracy that a stage is asked for.

    An error of what reads collective modes comes out of the stage of the modes two to
    three times larger (docs/decisions/0006-modes.md).

    Example:
        >>> from oscc.testing.tiny import tiny_stage
        >>> accuracy_share(tiny_stage())
        1.0
    """
    return _READER_SHARE if stage.readers > 1 else 1.0


def choose_scheme(
    stages: Sequence[Stage],
    options: PassOptions,
    *,
    accuracy_rad: float,
    seed: int,
    share: float = 1.0,
) -> tuple[Scheme, dict[str, Any]]:
    """Scheme of least energy for one stage, or for one layer on several inputs.

    Args:
        stages: The stage; or the same layer on several inputs, judged together.
        options: What the passes may be told.
        accuracy_rad: Wanted rms error [rad].
        seed: Seed of the trials.
        share: Part of the stages whose largest injection must be within the card's
            limit; the others are left out, and need longer dwells than the scheme.

    Returns:
        The scheme, and what its trials showed.

    Raises:
        RequestError: no scheme reaches the accuracy within the card's limit.
    """
    candidates = _candidates(stages[0], options)
    fixed = len(candidates) == 1
    if options.trial is None:
        if not fixed:
            raise RequestError(
                "Choosing a scheme needs trial runs; give scheme, substeps and periods."
            )
        return candidates[0], _numbers(candidates[0], None, 0)
    bench = _bench(stages, seed, options, options.trial)
    checks = [_within_limit(stage, options) for stage in stages]
    limit = np.inf if fixed else _MARGIN * accuracy_rad
    missed: list[tuple[float, Scheme, BoolArray]] = []
    cheaper = {"above_injection_limit": 0, "slipped": 0, "above_wanted_error": 0}
    for tried, scheme in enumerate(candidates, 1):
        fits = np.array([check(scheme) for check in checks])
        if fits.mean() < share:
            cheaper["above_injection_limit"] += 1
            continue
        error, floor = bench.measure(scheme, fits, limit)
        if error is not None:
            return scheme, _numbers(scheme, error, tried) | {"cheaper": cheaper}
        cheaper["slipped" if floor <= limit else "above_wanted_error"] += 1
        missed.append((floor, scheme, fits))
    least = bench.least(missed)
    if not np.isfinite(least):
        raise RequestError(_too_strong(stages, candidates, options))
    raise RequestError(_refusal(stages[0], accuracy_rad, len(candidates), least))


@dataclass(frozen=True, slots=True, eq=False)
class _Bench:
    """Trial targets in the order in which they run, with what they should reach."""

    trial: Trial
    targets: Targets
    want_rad: FloatArray
    stage: IntArray

    def measure(
        self, scheme: Scheme, fits: BoolArray, limit: float = np.inf
    ) -> tuple[FloatArray | None, float]:
        """Error of every trial of the stages that fit, and its rms [rad].

        Where a part of the trials shows that the rms is above the limit, or a slip,
        there is no error, and the rms is a lower bound. Without a limit all run.
        """
        chosen = np.flatnonzero(fits[self.stage])
        total, begin, squares = chosen.size, 0, 0.0
        errors: list[FloatArray] = []
        while begin < total:
            end = begin + (*_PARTS, total)[min(len(errors), len(_PARTS))]
            part = chosen[begin:end]
            run = self.trial.hardware(self.targets.take(part), scheme)
            error = run - self.want_rad[part]
            errors.append(error)
            squares += float((error**2).sum())
            floor = float(np.sqrt(squares / total))
            slipped = bool((np.abs(error) > _SLIP_RAD).any())
            if np.isfinite(limit) and (floor > limit or slipped):
                return None, floor
            begin = end
        return np.concatenate(errors), floor

    def least(self, missed: list[tuple[float, Scheme, BoolArray]]) -> float:
        """Smallest rms over all trials of the candidates that were dropped [rad]."""
        found = np.inf
        for floor, scheme, fits in sorted(missed, key=lambda one: one[0]):
            if floor >= found:
                break
            found = min(found, self.measure(scheme, fits)[1])
        return float(found)


def _bench(
    stages: Sequence[Stage], seed: int, options: PassOptions, trial: Trial
) -> _Bench:
    drawn = [
        trial_targets(
            stage,
            seed + number,
            count=options.trial_targets,
            draws=options.trial_draws,
        )
        for number, stage in enumerate(stages)
    ]
    targets = Targets(
        np.concatenate([one.drive for one in drawn]),
        drawn[0].harmonics,
        np.concatenate([one.phi0_rad for one in drawn]),
        _detunings(drawn),
    )
    flow = stages[0].update == "flow"
    want = trial.exact(targets) if flow else euler_step(targets)
    order = np.argsort(-_difficulty(targets, want), kind="stable")
    stage = np.repeat(np.arange(len(drawn)), [one.phi0_rad.size for one in drawn])
    return _Bench(trial, targets.take(order), want[order], stage[order])


def _detunings(drawn: Sequence[Targets]) -> FloatArray | None:
    """Detunings of all trials, zero where a stage has none; None where none has."""
    if all(one.detuning_rad is None for one in drawn):
        return None
    parts = [
        np.zeros(one.phi0_rad.size) if one.detuning_rad is None else one.detuning_rad
        for one in drawn
    ]
    return np.concatenate(parts)


def _difficulty(targets: Targets, want: FloatArray) -> FloatArray:
    """Drive strength times the stretch of the flow, which together rank the errors.

    An error made at the start of a dwell leaves it multiplied by f(end) / f(start).
    """
    begin, end = (np.abs(_pull(targets, phi)) for phi in (targets.phi0_rad, want))
    strength: FloatArray = np.abs(targets.drive).sum(axis=1)
    stretch = end / np.where(begin > 0, begin, 1.0)
    return strength * np.maximum(stretch, 1.0)


def _pull(targets: Targets, phi_rad: FloatArray) -> FloatArray:
    turned = targets.drive * np.exp(-1j * np.outer(phi_rad, targets.harmonics))
    out: FloatArray = turned.imag.sum(axis=1)
    return out if targets.detuning_rad is None else out + targets.detuning_rad


def euler_step(targets: Targets) -> FloatArray:
    """Phases after one Euler step, which a probe should reach, shape (M,) [rad]."""
    return targets.phi0_rad + _pull(targets, targets.phi0_rad)


def _within_limit(stage: Stage, options: PassOptions) -> Callable[[Scheme], bool]:
    """Whether a scheme keeps the largest injection of the stage within the limit.

    First-order currents are proportional to gain over periods, so one evaluation
    tells all; second-order currents are worked out for each scheme.
    """
    unit = _unit_ratio(stage, options)

    def fits(scheme: Scheme) -> bool:
        if scheme.name == "corrected":
            ratio, _ = largest_injection(_with_scheme(stage, scheme), options)
            return ratio <= options.injection_limit
        return unit * scheme.gain_a_period <= options.injection_limit

    return fits


def _with_scheme(stage: Stage, scheme: Scheme) -> Stage:
    return dataclasses.replace(
        stage,
        scheme=scheme.name,
        substeps=scheme.substeps,
        dwell_periods=scheme.dwell_periods,
        probe_epsilon=scheme.epsilon or stage.probe_epsilon,
    )


def _too_strong(
    stages: Sequence[Stage], candidates: Sequence[Scheme], options: PassOptions
) -> str:
    """Refusal where no scheme keeps the injection within the limit, and by how much."""
    times, mildest = min(
        (
            max(largest_injection(_with_scheme(s, one), options)[0] for s in stages)
            / options.injection_limit,
            number,
        )
        for number, one in enumerate(candidates)
    )
    scheme = candidates[mildest]
    enough = math.ceil(times * scheme.dwell_periods)
    return (
        f"stage {stages[0].name}: every scheme that was asked for needs more than the "
        f"card's largest injection, {times:.3g} times it at the least. Ask for "
        f"--periods {enough} with {counted(scheme.substeps, 'substep')}, for "
        "more substeps, or for another --device."
    )


def _refusal(stage: Stage, accuracy_rad: float, tried: int, least: float) -> str:
    return (
        f"stage {stage.name}: {1e3 * accuracy_rad:g} mrad is not reached by "
        f"{tried} schemes of up to {_MOST_PERIODS} periods; the best gave "
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
