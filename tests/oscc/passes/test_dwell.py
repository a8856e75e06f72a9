"""choose_dwell: what it promises holds on the true targets; fixed wishes are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from oscc.arrays import FloatArray
from oscc.device import Card, load_card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.errors import RequestError
from oscc.ir import Program, Stage
from oscc.passes import PassOptions, dwell
from oscc.passes.dwell import choose_dwell
from oscc.passes.options import Scheme, Targets
from oscc.testing.tiny import tiny_program, tiny_stage
from oscc.verbs.trial import CircuitTrial
from oscc_backends import circuit, phase
from oscc_sims import circuit as engine
from oscc_sims import phase as exact

CARD = load_card("vo2-two-state-6k")


def options(card: Card = CARD, **changes: Any) -> PassOptions:
    return PassOptions(**({"card": card, "trial": CircuitTrial(card)} | changes))


def true_rms(stage: Stage) -> float:
    """Error of the circuit on the targets themselves, by its own engine."""
    found, _ = engine.solve(CARD, circuit.problem(stage))
    if stage.update == "flow":
        want = exact.solve(phase.problem(stage))
    else:
        drive = phase.drive(stage)
        turned = drive * np.exp(-1j * np.outer(stage.phi0_rad, stage.harmonics))
        want = stage.phi0_rad.ravel() + turned.imag.sum(axis=1)
    return float(np.sqrt(np.mean((found - want) ** 2)))


def numbers(program: Program) -> dict[str, Any]:
    found: dict[str, Any] = program.provenance["passes"][-1]["stages"][0]
    return found


@pytest.mark.parametrize("gain", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("accuracy", [0.03, 0.01, 0.002])
def test_the_accuracy_holds_on_the_targets_under_test(
    gain: float, accuracy: float
) -> None:
    stage = tiny_stage(9, tokens=12, coordinates=6, gain_rad=gain)
    program = choose_dwell(tiny_program(stage, accuracy_rad=accuracy), options())
    assert numbers(program)["predicted_rms_rad"] <= 0.6 * accuracy
    assert true_rms(program.stages[0]) <= accuracy


def test_the_accuracy_holds_under_a_probe() -> None:
    stage = tiny_stage(9, tokens=8, gain_rad=3.0, update="probe", model_update="euler")
    program = choose_dwell(tiny_program(stage, accuracy_rad=0.01), options())
    assert numbers(program)["probe_epsilon"] in (0.02, 0.01, 0.005, 0.0025)
    assert true_rms(program.stages[0]) <= 0.01


def test_more_accuracy_costs_more_periods() -> None:
    stage = tiny_stage(9, tokens=8, gain_rad=4.0)
    periods = [
        numbers(choose_dwell(tiny_program(stage, accuracy_rad=a), options()))[
            "periods_in_all"
        ]
        for a in (0.1, 0.01, 0.001)
    ]
    assert periods == sorted(periods)
    assert periods[0] < periods[2]


def test_applying_it_twice_equals_applying_it_once() -> None:
    program = tiny_program(tiny_stage(9, tokens=8, gain_rad=4.0))
    once = choose_dwell(program, options())
    twice = choose_dwell(once, options())
    assert twice == once
    records = twice.provenance["passes"]
    assert len(records) == 2
    assert records[0] == records[1]


def test_fixed_substeps_and_periods_are_kept_and_measured() -> None:
    stage = tiny_stage(9, tokens=8, gain_rad=4.0)
    asked = options(scheme="plain", substeps=3, periods=17)
    # far from the accuracy: what was asked for is run all the same
    program = choose_dwell(tiny_program(stage, accuracy_rad=1e-6), asked)
    chosen = program.stages[0]
    assert (chosen.scheme, chosen.substeps, chosen.dwell_periods) == ("plain", 3, 17)
    found = numbers(program)
    assert found["candidates_tried"] == 1
    assert found["periods_in_all"] == 51
    assert found["predicted_rms_rad"] > 1e-6
    assert found["trial_targets"] == 64


def test_periods_alone_mean_extrapolated_in_one_substep() -> None:
    program = choose_dwell(tiny_program(tiny_stage(1)), options(periods=40))
    stage = program.stages[0]
    assert (stage.scheme, stage.substeps, stage.dwell_periods) == (
        "extrapolated",
        1,
        40,
    )


def test_fixed_substeps_alone_are_kept() -> None:
    stage = tiny_stage(9, tokens=8, gain_rad=4.0)
    program = choose_dwell(tiny_program(stage), options(substeps=5))
    assert program.stages[0].substeps == 5
    assert true_rms(program.stages[0]) <= 0.01


@pytest.mark.parametrize("scheme", ["plain", "extrapolated", "corrected"])
def test_a_named_scheme_is_kept(scheme: str) -> None:
    stage = tiny_stage(9, tokens=8, gain_rad=3.0)
    program = choose_dwell(tiny_program(stage), options(scheme=scheme))
    assert program.stages[0].scheme == scheme
    assert true_rms(program.stages[0]) <= 0.01


def test_auto_never_takes_the_host_assisted_scheme() -> None:
    stage = tiny_stage(9, tokens=8, gain_rad=3.0)
    program = choose_dwell(tiny_program(stage), options())
    assert program.stages[0].scheme in ("plain", "extrapolated")


def test_an_accuracy_out_of_reach_says_the_best_there_was() -> None:
    stage = tiny_stage(9, tokens=4, gain_rad=4.0)
    program = tiny_program(stage, accuracy_rad=1e-12)
    asked = options(scheme="plain", substeps=2)
    with pytest.raises(RequestError) as caught:
        choose_dwell(program, asked)
    best = min(true_trial_rms(program, Scheme("plain", 2, p)) for p in (128, 192, 256))
    assert str(caught.value) == (
        "stage layer.0.coupling: 1e-09 mrad is not reached by 23 schemes of up to 2000 "
        f"periods; the best gave {1e3 * best:.3g} mrad. Ask for a larger "
        "--accuracy-mrad or another --device."
    )


def true_trial_rms(program: Program, scheme: Scheme) -> float:
    from oscc.passes.trials import trial_targets

    targets = trial_targets(program.stages[0], program.seed, count=2048, draws=2)
    trial = CircuitTrial(CARD)
    error = trial.hardware(targets, scheme) - trial.exact(targets)
    return float(np.sqrt(np.mean(error**2)))


@pytest.mark.parametrize("scheme", ["plain", "corrected"])
def test_drives_beyond_the_card_are_refused_with_the_reason(scheme: str) -> None:
    program = tiny_program(tiny_stage(gain_rad=2000.0, tokens=2, coordinates=2))
    with pytest.raises(RequestError) as caught:
        choose_dwell(program, options(scheme=scheme, substeps=1, periods=3))
    said = re.fullmatch(
        r"stage layer.0.coupling: every scheme that was asked for needs more than the "
        r"card's largest injection, ([\d.e+]+) times it at the least. Ask for "
        r"--periods (\d+) with 1 substep, for more substeps, or for another --device\.",
        str(caught.value),
    )
    assert said
    assert float(said[1]) > 100
    enough = options(scheme=scheme, substeps=1, periods=int(said[2]))
    choose_dwell(program, enough)


def test_without_trials_only_a_fixed_scheme_can_be_chosen() -> None:
    program = tiny_program()
    with pytest.raises(RequestError, match="Choosing a scheme needs trial runs"):
        choose_dwell(program, options(trial=None))
    fixed = options(trial=None, scheme="plain", substeps=2, periods=9)
    chosen = choose_dwell(program, fixed)
    assert chosen.stages[0].dwell_periods == 9
    assert "predicted_rms_rad" not in numbers(chosen)


@dataclass(slots=True)
class Table:
    """A trial whose errors are made up: size of the scheme times tail of the target.

    It notes how many targets each scheme was run on.
    """

    seed: int
    tail: float
    ran: dict[Scheme, int] = field(default_factory=dict)

    def exact(self, targets: Targets) -> FloatArray:
        return targets.phi0_rad

    def hardware(self, targets: Targets, scheme: Scheme) -> FloatArray:
        self.ran[scheme] = self.ran.get(scheme, 0) + targets.phi0_rad.size
        return targets.phi0_rad + self.error(targets, scheme)

    def error(self, targets: Targets, scheme: Scheme) -> FloatArray:
        random = np.random.default_rng(
            [self.seed, scheme.substeps, scheme.dwell_periods]
        )
        size = 2.0 * random.lognormal() / scheme.periods**1.5
        heavy = np.abs(np.sin(1e3 * targets.phi0_rad)) ** -self.tail
        return size * np.minimum(heavy, 1e3)


def cheapest_by_hand(
    program: Program, table: Table, accuracy: float
) -> tuple[Scheme, float] | None:
    """The rule, without shortcuts: cheapest first, every trial of every candidate."""
    from oscc.passes.trials import trial_targets

    stage = program.stages[0]
    targets = trial_targets(stage, program.seed, count=2048, draws=2)
    period_J = energy_per_period_J(CARD).supply_J
    schemes = [
        Scheme(name, s, p)
        for name in ("plain", "extrapolated")
        for s in dwell._SUBSTEPS
        for p in dwell._PERIODS
    ]
    kept = [s for s in schemes if s.periods <= 2000]
    for scheme in sorted(kept, key=lambda s: s.periods * period_J + s.reads * 2e-12):
        error = table.error(targets, scheme)
        rms = float(np.sqrt(np.mean(error**2)))
        if rms <= 0.6 * accuracy and (np.abs(error) <= np.pi / 2).all():
            return scheme, rms
    return None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tail", [0.1, 0.45, 0.8])
def test_shortcuts_never_change_the_choice(seed: int, tail: float) -> None:
    """Weak drives, so that the card's limit excludes nothing."""
    stage = tiny_stage(seed, tokens=40, coordinates=20, gain_rad=0.1)
    program = tiny_program(stage, accuracy_rad=0.01)
    table = Table(seed, tail)
    wanted = cheapest_by_hand(program, table, 0.01)
    if wanted is None:
        with pytest.raises(RequestError, match="is not reached"):
            choose_dwell(program, options(trial=table))
        return
    found = numbers(choose_dwell(program, options(trial=table)))
    scheme, rms = wanted
    assert (found["scheme"], found["substeps"], found["dwell_periods"]) == (
        scheme.name,
        scheme.substeps,
        scheme.dwell_periods,
    )
    assert found["predicted_rms_rad"] == pytest.approx(rms, rel=1e-12)
    assert table.ran[scheme] == 1600


def test_shortcuts_change_nothing_on_the_circuit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = tiny_stage(9, tokens=40, coordinates=16, gain_rad=5.0)
    program = tiny_program(stage, accuracy_rad=0.005)
    quick = choose_dwell(program, options())
    monkeypatch.setattr(dwell, "_PARTS", (10**9,))
    slow = choose_dwell(program, options())
    assert quick == slow
    assert quick.provenance == slow.provenance


def test_most_candidates_run_on_a_part_of_the_trials() -> None:
    stage = tiny_stage(9, tokens=40, coordinates=20, gain_rad=5.0)

    @dataclass(slots=True)
    class Counting:
        inner: CircuitTrial
        ran: list[int] = field(default_factory=list)

        def exact(self, targets: Targets) -> FloatArray:
            return self.inner.exact(targets)

        def hardware(self, targets: Targets, scheme: Scheme) -> FloatArray:
            self.ran.append(targets.phi0_rad.size)
            return self.inner.hardware(targets, scheme)

    counting = Counting(CircuitTrial(CARD))
    program = choose_dwell(
        tiny_program(stage, accuracy_rad=0.003), options(trial=counting)
    )
    found = numbers(program)
    assert found["candidates_tried"] > 20
    # why each cheaper candidate was not taken
    assert sum(found["cheaper"].values()) == found["candidates_tried"] - 1
    assert found["cheaper"]["above_wanted_error"] > 0
    everything = found["candidates_tried"] * found["trial_targets"]
    assert sum(counting.ran) < 0.4 * everything


def test_a_slip_is_never_accepted() -> None:
    """Errors tiny but for one target that lost a turn."""

    class Slipping:
        def exact(self, targets: Targets) -> FloatArray:
            return targets.phi0_rad

        def hardware(self, targets: Targets, scheme: Scheme) -> FloatArray:
            out = np.array(targets.phi0_rad)
            if scheme.periods < 60:
                out[-1] += 2.0 * np.pi
            return out

    stage = tiny_stage(9, tokens=10, gain_rad=0.1)
    program = tiny_program(stage, accuracy_rad=10.0)
    found = numbers(choose_dwell(program, options(trial=Slipping())))
    assert found["periods_in_all"] == 60
    assert found["predicted_slips"] == 0


def test_every_stage_gets_its_own_scheme() -> None:
    weak = tiny_stage(9, tokens=6, gain_rad=0.2)
    strong = tiny_stage(9, tokens=6, gain_rad=6.0, name="layer.1.coupling")
    program = choose_dwell(tiny_program(weak, strong), options())
    rows = program.provenance["passes"][-1]["stages"]
    assert [row["stage"] for row in rows] == ["layer.0.coupling", "layer.1.coupling"]
    assert rows[0]["periods_in_all"] < rows[1]["periods_in_all"]


def test_only_the_plan_of_a_stage_changes() -> None:
    program = tiny_program(tiny_stage(9, tokens=6))
    chosen = choose_dwell(program, options()).stages[0]
    restored = replace(
        chosen,
        scheme=program.stages[0].scheme,
        substeps=program.stages[0].substeps,
        dwell_periods=program.stages[0].dwell_periods,
    )
    assert program.replace(stages=(restored,)) == program
