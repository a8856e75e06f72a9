"""Closed loop: every layer runs on the phases that the engine gave the one before.

The open loop judges each stage on the digital layer's own input. Here the host
operations of the model run in between, so that what one layer gets wrong is what the
next one sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.device.card import Card
from oscc.device.card_file import card_from_mapping
from oscc.errors import RequestError
from oscc.ir.correlation import Correlation
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.agreement import bits, divergence_nats, log_softmax, top1
from oscc.observables import Observables
from oscc.verbs.correlate import Correlator
from oscc.verbs.stage_run import ENGINES, read_drive, run_stage

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.trace import Step


@dataclass(slots=True, eq=False)
class ClosedLoop:
    """A program's model with its coupling steps on an engine, run once an engine.

    Args:
        program: Says how each stage is run; layers it lacks stay digital.
        model: The checkpoint that the program was compiled from.
        threads: Worker threads; no result depends on it.

    Raises:
        RequestError: the checkpoint is another one.
    """

    program: Program
    model: LoadedCheckpoint
    threads: int = 1
    logits: dict[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_own(self.program, self.model)

    def run(self, engine: str) -> Observables:
        """Phases of every stage with the engine in the loop.

        Raises:
            RequestError: the engine cannot run in the loop, or a target needs more
                injection than the card allows.
            UndecidedError: the engine could not reach its accuracy.
        """
        from oscc.trace import forward_with

        require_whole(engine)
        card = card_from_mapping(self.program.device, "the program's device card")
        phases: dict[str, FloatArray] = {}

        def ran(stage: Stage) -> FloatArray:
            found = run_stage(stage, engine, card, threads=self.threads)
            phases[f"{stage.name}.phase"] = found
            return found

        def step(number: int, layer: Step) -> FloatArray:
            sums = None
            drive = self._drive(number, layer)
            if drive is not None:
                sums = read_drive(drive, ran(drive), layer)
            stage = self._stage(number, layer, sums)
            if stage is None:
                return layer.next_rad
            # tokens that the program does not compute were computed before
            return np.concatenate([layer.next_rad[: stage.begins], ran(stage)])

        tokens = self.program.tokens[None]
        scoring = self._correlator(engine, card, phases)
        logits = forward_with(self.model.model, tokens, step, scoring)
        self.logits[engine] = logits[0]
        return Observables(engine, self.program.digest(), phases, {"loop": "closed"})

    def _correlator(
        self, engine: str, card: Card, kept: dict[str, FloatArray]
    ) -> Correlator | None:
        """Scores and logits by the engine, where the program has them."""
        known = {one.name: one for one in self.program.correlations}
        if not known:
            return None

        def chosen(one: Correlation) -> Correlation | None:
            if one.name not in known:
                return None
            mine = known[one.name]
            return replace(
                one,
                quality=mine.quality,
                settle_periods=mine.settle_periods,
                periods=mine.periods,
            )

        def seen(one: Correlation, sums: FloatArray) -> None:
            kept[f"{one.name}.correlation"] = sums

        first = self.program.tokens.size - self.program.computed_tokens
        heads = self.model.config.heads
        return Correlator(
            engine, card, heads=heads, chosen=chosen, seen=seen, first=first
        )

    def _drive(self, number: int, layer: Step) -> Stage | None:
        """The program's stage that reads the modes of a step, if it has one."""
        from oscc.lower import lower_mode_drive
        from oscc.lower.program import MODE_DRIVE
        from oscc.trace import ModesTrace

        known = self._known(f"layer.{number}.{MODE_DRIVE}")
        if known is None or not isinstance(layer, ModesTrace):
            return None
        return _renewed(known, lower_mode_drive(number, layer))

    def _stage(
        self, number: int, layer: Step, sums: ComplexArray | None
    ) -> Stage | None:
        """The program's stage of a step, on the phases that the loop brought."""
        from oscc.lower import lower_layer

        known = self._known(layer.name)
        if known is None:
            return None
        config = self.model.config
        fresh = lower_layer(
            config.family,
            config.update,
            number,
            layer,
            successor=config.successor,
            sums=sums,
        )
        return _renewed(known, fresh)

    def _known(self, name: str) -> Stage | None:
        return next((s for s in self.program.stages if s.name == name), None)

    def agreement(self, engine: str) -> dict[str, Any]:
        """How the whole model on an engine agrees with the digital one.

        The text itself is the judge: each token but the last predicts the next. Only
        tokens that the program computes count.
        """
        from oscc.trace import forward_with

        digital = forward_with(self.model.model, self.program.tokens[None], None)[0]
        return agreement_of(self.program, engine, digital, self.logits[engine])


def require_own(program: Program, model: LoadedCheckpoint) -> None:
    """Refuse a checkpoint that a program was not compiled from.

    Raises:
        RequestError: it is another one.
    """
    wanted = program.provenance.get("checkpoint_sha256")
    if wanted != model.digest:
        raise RequestError(
            f"The program was compiled from checkpoint {str(wanted)[:8]}, this one "
            f"is {model.digest[:8]}. Give the checkpoint it was compiled from."
        )


def require_whole(engine: str) -> None:
    """Refuse an engine that does not run every target.

    Raises:
        RequestError: it cannot stand in the loop.
    """
    if engine not in ENGINES:
        raise RequestError(
            f"{engine} runs sampled targets alone, so it has no closed loop. "
            f"Ask for levels {', '.join(ENGINES)}, or drop --closed-loop."
        )


def agreement_of(
    program: Program, engine: str, digital: FloatArray, hardware: FloatArray
) -> dict[str, Any]:
    """How the logits of a program's tokens agree with the digital ones.

    Args:
        program: What was compiled; only tokens that it computes count.
        engine: What was in the loop.
        digital: Logits of the digital model, shape (T, V).
        hardware: Logits with the engine in the loop, shape (T, V).
    """
    tokens = program.tokens
    first = tokens.size - program.computed_tokens
    one, other = log_softmax(digital[first:]), log_softmax(hardware[first:])
    tokens = tokens[first:]
    costs = [
        bits(logs[:-1], tokens[1:]) if tokens.size > 1 else None
        for logs in (one, other)
    ]
    return {
        "engine": engine,
        "top1_agreement": float(top1(one, other).mean()),
        "kl_nats": float(divergence_nats(one, other).mean()),
        "bpc_digital": None if costs[0] is None else float(costs[0].mean()),
        "bpc_hardware": None if costs[1] is None else float(costs[1].mean()),
    }


def _renewed(known: Stage, fresh: Stage) -> Stage:
    """A stage of the program on other phases, run as the program says."""
    from oscc.lower import last_token

    fresh = last_token(fresh) if known.begins else fresh
    return replace(
        known,
        theta_rad=fresh.theta_rad,
        phi0_rad=fresh.phi0_rad,
        gain_rad=fresh.gain_rad,
        couplings=fresh.couplings,
        digital_rad=fresh.digital_rad,
    )
