"""Bits per character with the hardware in the loop.

Every layer runs on the phases that the hardware returned for the layer before it; all
columns see the same windows of held-out text, every position counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.corpus import Symbols
from oscc.errors import RequestError
from oscc.ir.plan import total_periods
from oscc.ir.stage import Stage
from oscc.ladder.agreement import bits as bits_of
from oscc.ladder.agreement import divergence_nats, log_softmax, top1
from oscc.lower.program import LOCK_FAMILIES
from oscc.passes.options import PassOptions, Scheme
from oscc.verbs.compile import CompileRequest, default_device, pass_options
from oscc.verbs.compile_cells import require_lock_mode
from oscc.verbs.correlate import LoopScores
from oscc.verbs.evaluate_locks import LockLoop
from oscc.verbs.evaluate_scores import Growth, Scores, StageTally, batches
from oscc.verbs.evaluate_spice import SpiceRequest, SpiceSample, judge_sample
from oscc.verbs.held_out import CALIBRATION_WINDOWS, symbols_of
from oscc.verbs.stage_run import read_drive, run_stage

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.device.card import Card
    from oscc.trace import Coupling, Step

FORMAT = "oscc.evaluate/1"
ENGINES = ("phase", "circuit")

_CALIBRATION_SHARE = 0.5

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """What is evaluated, and how.

    Args:
        tokens: Fewest tokens over all windows; a given text is used whole.
        request: Device, scheme, accuracy and seed, as for compile.
        lock_step: Detunings of pair cells are set in this step, in units of the lock
            range: cells of one detuning are one circuit, run once. 0 for exact ones.
        progress: Called with column, windows done and windows in all.
        spice: SPICE on a sample of targets that the circuit ran; None runs none.
        keep: Called with the figures of the loop before SPICE begins.
    """

    tokens: int = 20_000
    request: CompileRequest = field(default_factory=CompileRequest)
    lock_step: float = 1e-3
    progress: Progress = lambda column, done, total: None
    spice: SpiceRequest | None = None
    keep: Callable[[dict[str, Any]], None] = lambda content: None


def evaluate(
    model: LoadedCheckpoint,
    engine: str = "circuit",
    *,
    text: Path | None = None,
    options: EvaluateOptions | None = None,
) -> dict[str, Any]:
    """Content of evaluate.json.

    Args:
        model: What `oscc.load` returned.
        engine: `phase` or `circuit`, in the loop.
        text: Text file or folder, used whole; the held-out split of the standard
            library without it.
        options: Tokens, device, accuracy.

    Raises:
        RequestError: an unknown engine, or a text that cannot be used.
        UndecidedError: an engine could not reach its accuracy.
    """
    options = options or EvaluateOptions()
    if engine not in ENGINES:
        raise RequestError(
            f"evaluate runs {' or '.join(ENGINES)} in the loop, not `{engine}`."
        )
    if options.request.mode != "prefill":
        raise RequestError(
            "evaluate computes every token of its windows; ask for mode `prefill`."
        )
    if options.spice is not None and engine != "circuit":
        raise RequestError(
            "SPICE starts every dwell where the circuit engine did: ask for engine "
            "`circuit`, or leave --spice out."
        )
    loop, held_out, corpus = _prepared(model, engine, options, text)
    loop.growth = Growth()
    if options.spice is not None:
        windows = sum(len(group) for group in held_out)
        loop.sample = SpiceSample(options.spice, windows, options.request.seed)
    return _compare(loop, held_out, corpus)


def in_loop(
    model: LoadedCheckpoint, engine: str, options: EvaluateOptions
) -> tuple[_Loop | LockLoop, list[Symbols]]:
    """The model with its engine in the place of coupling steps, and held-out windows.

    Args:
        model: What `oscc.load` returned.
        engine: `phase` or `circuit`.
        options: Tokens, device, accuracy.
    """
    loop, held_out, _ = _prepared(model, engine, options, None)
    return loop, held_out


def _prepared(
    model: LoadedCheckpoint, engine: str, options: EvaluateOptions, text: Path | None
) -> tuple[_Loop | LockLoop, list[Symbols], str]:
    training, held_out, corpus = symbols_of(
        model, text, options.tokens, options.request.unknown
    )
    kind = LockLoop if model.config.family in LOCK_FAMILIES else _Loop
    loop: _Loop | LockLoop = kind(model, engine, options)
    if engine == "circuit":
        calibration = [window for group in training for window in group]
        loop.choose_schemes(calibration[:CALIBRATION_WINDOWS])
    return loop, held_out, corpus


class _Loop:
    """A model whose coupling steps are replaced by an engine, layer by layer."""

    def __init__(
        self, model: LoadedCheckpoint, engine: str, options: EvaluateOptions
    ) -> None:
        from oscc.device.card_file import load_card
        from oscc.lower.program import require_mean_field, require_scored_by

        require_mean_field(model.config.family, options.request.mean_field)
        require_scored_by(model.config.family, options.request.score)
        require_lock_mode(model.config, options.request.lock_mode)
        self.model = model
        self.engine = engine
        self.options = options
        self.card: Card = load_card(
            options.request.device or default_device(model.config.family)
        )
        self.passes: PassOptions = pass_options(self.card, options.request)
        self.schemes: dict[str, Scheme] = {}
        self.layers: dict[str, StageTally] = {}
        self.sample: SpiceSample | None = None
        self.growth: Growth | None = None
        self.scores = LoopScores(
            self.card, model.config.heads, 1e-3 * options.request.accuracy_mrad
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """What is compared, digital first."""
        return ("digital", *dict.fromkeys(("phase", self.engine)))

    def forward(self, tokens: IntArray, column: str) -> FloatArray:
        """Logits of a batch of windows, shape (B, T, V)."""
        from oscc.trace import forward_with

        steps: dict[str, Coupling] = {"phase": self.phase, "circuit": self.circuit}
        if self.growth is not None:
            self.growth.begin(column)
            steps["digital"] = self.digital
        scoring = None
        if column != "digital" and self.options.request.score == "hardware":
            scoring = self.scores.correlator(column, column == self.engine)
        return forward_with(self.model.model, tokens, steps.get(column), scoring)

    def choose_schemes(self, training: Sequence[Symbols]) -> None:
        """Scheme of every stage, on all calibration windows together.

        It need not carry the largest drive of every window: a window with more gets
        longer dwells, as compiling it alone would give it.
        """
        from oscc.passes.dwell import accuracy_share, choose_scheme
        from oscc.trace import trace

        request = self.options.request
        seen: dict[str, list[Stage]] = {}
        for window in training:
            for layer in trace(self.model.model, window[:-1]).layers:
                for stage in (self.drive(layer), self.stage(layer)):
                    if stage is not None:
                        seen.setdefault(stage.name, []).append(stage)
        for name, stages in seen.items():
            self.schemes[name], _ = choose_scheme(
                stages,
                self.passes,
                accuracy_rad=1e-3 * request.accuracy_mrad * accuracy_share(stages[0]),
                seed=request.seed,
                share=_CALIBRATION_SHARE,
            )

    def drive(self, layer: Step) -> Stage | None:
        """The stage that reads the modes of a step, where they are not the host's."""
        from oscc.lower import lower_mode_drive
        from oscc.lower.program import MODE_DRIVE
        from oscc.trace import ModesTrace

        on_host = self.options.request.mean_field == "host"
        if on_host or not isinstance(layer, ModesTrace):
            return None
        settings = self._settings(f"layer.{layer.layer}.{MODE_DRIVE}")
        return lower_mode_drive(layer.layer, layer, **settings)

    def stage(self, layer: Step, sums: ComplexArray | None = None) -> Stage:
        """The stage of one step on one window, with its scheme if it has one."""
        from oscc.lower import lower_layer

        config = self.model.config
        return lower_layer(
            config.family,
            config.update,
            layer.layer,
            layer,
            update=self.options.request.update,
            successor=config.successor,
            sums=sums,
            **self._settings(layer.name),
        )

    def _settings(self, name: str) -> dict[str, Any]:
        scheme = self.schemes.get(name)
        if scheme is None:
            return {}
        settings = {
            "scheme": scheme.name,
            "substeps": scheme.substeps,
            "dwell_periods": scheme.dwell_periods,
        }
        return settings | ({"probe_epsilon": scheme.epsilon} if scheme.epsilon else {})

    def digital(self, number: int, layer: Step) -> FloatArray:
        """The exact step, kept to compare with."""
        assert self.growth is not None
        return self.growth.keep(layer.name, layer.next_rad)

    def phase(self, number: int, layer: Step) -> FloatArray:
        """Coupling step by the phase engine."""
        return self._step("phase", layer)

    def circuit(self, number: int, layer: Step) -> FloatArray:
        """Coupling step by the circuit engine, its error noted."""
        return self._step("circuit", layer)

    def _step(self, engine: str, layer: Step) -> FloatArray:
        sums, drive = None, self.drive(layer)
        if drive is not None:
            sums = read_drive(drive, self._ran(drive, engine), layer)
        phases = self._ran(self.stage(layer, sums), engine)
        if self.growth is not None and engine == self.engine:
            self.growth.compare(layer.name, phases, angle=True)
        return phases

    def _ran(self, stage: Stage, engine: str) -> FloatArray:
        """Phases of a stage; noted where the engine is the one in question."""
        on_circuit = engine == "circuit"
        stage = self._within_limit(stage) if on_circuit else stage
        if on_circuit and self.sample is not None:
            self.sample.keep(stage.name, stage)
        threads = self.options.request.threads
        phases = run_stage(stage, engine, self.card, threads=threads)
        if engine == self.engine:
            error = phases - stage.on_grid(stage.digital_rad)
            periods = total_periods(stage) if on_circuit else 0
            self._note(stage.name, error, periods)
        return phases

    def _note(self, name: str, error: FloatArray, periods: int) -> None:
        self.layers.setdefault(name, StageTally()).note(error, periods)

    def _within_limit(self, stage: Stage) -> Stage:
        """The stage with dwells as long as its largest injection needs."""
        from oscc.passes.legalise import largest_injection

        ratio, _ = largest_injection(stage, self.passes)
        share = ratio / self.passes.injection_limit
        if share <= 1.0:
            return stage
        return replace(stage, dwell_periods=math.ceil(stage.dwell_periods * share))


def _compare(
    loop: _Loop | LockLoop, held_out: list[Symbols], corpus: str
) -> dict[str, Any]:
    scores = Scores({name: [] for name in loop.columns})
    done, total = 0, sum(len(group) for group in held_out)
    for batch in batches(held_out):
        done += len(batch)
        logs = {}
        for name in loop.columns:
            logits = loop.forward(batch[:, :-1], name)
            logs[name] = log_softmax(logits)
            scores.bits[name] += list(bits_of(logs[name], batch[:, 1:]))
            loop.options.progress(name, done, total)
        one, other = logs["digital"], logs[loop.engine]
        scores.agree += list(top1(one, other))
        scores.divergence += list(divergence_nats(one, other))
    content = _content(loop, scores, corpus)
    if loop.sample is None:
        return content
    loop.options.keep(content)
    return content | {"spice": _spice(loop, loop.sample)}


def _spice(loop: _Loop | LockLoop, sample: SpiceSample) -> dict[str, Any]:
    """The entry `spice` of the targets that were drawn."""
    from oscc.device.card_file import card_to_mapping

    loop.options.progress("spice", 0, len(sample.stages))
    request = loop.options.request
    return judge_sample(
        sample,
        family=loop.model.config.family,
        device=card_to_mapping(loop.card),
        accuracy_rad=1e-3 * request.accuracy_mrad,
        seed=request.seed,
    )


def _content(loop: _Loop | LockLoop, scores: Scores, corpus: str) -> dict[str, Any]:
    engine = loop.engine
    delta, error, windows = scores.change(engine)
    return {
        "format": FORMAT,
        "checkpoint": loop.model.digest,
        "corpus_sha256": corpus,
        "engine": engine,
        "device": loop.card.name,
        "accuracy_rad": 1e-3 * loop.options.request.accuracy_mrad,
        "tokens": sum(window.size for window in scores.bits["digital"]),
        "windows": windows,
        "unit": loop.model.vocabulary.unit,
        "bpc_digital": scores.mean("digital"),
        "bpc_phase": scores.mean("phase"),
        "bpc_hardware": scores.mean(engine),
        "delta_bpc": delta,
        "delta_se": error,
        "top1_agreement": float(np.concatenate(scores.agree).mean()),
        "kl_nats": float(np.concatenate(scores.divergence).mean()),
        **(_by_layer(loop) if isinstance(loop, _Loop) else loop.content()),
    }


def _growth(loop: _Loop, step: str) -> float | None:
    """Distance from the digital model after a step; what reads modes has none."""
    if loop.growth is None or step not in loop.growth.counts:
        return None
    return loop.growth.rms(step)


def _by_layer(loop: _Loop) -> dict[str, Any]:
    stages = sum(layer.stages for layer in loop.layers.values())
    periods = sum(layer.periods for layer in loop.layers.values())
    return {
        **loop.scores.content(),
        "periods_per_stage": periods / stages if loop.engine == "circuit" else None,
        "layers": [
            {
                "stage": name,
                "rms_rad": math.sqrt(layer.squares / layer.targets),
                "slips": layer.slips,
                "rms_rad_to_model": _growth(loop, name),
            }
            for name, layer in loop.layers.items()
        ],
        "schemes": [
            {
                "stage": name,
                "scheme": scheme.name,
                "substeps": scheme.substeps,
                "dwell_periods": scheme.dwell_periods,
            }
            for name, scheme in loop.schemes.items()
        ],
    }
