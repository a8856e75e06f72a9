"""Bits per character with the hardware in the loop.

Every layer runs on the phases that the hardware returned for the layer before it; all
columns see the same windows of held-out text, every position counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.errors import RequestError
from oscc.ir.stage import Stage
from oscc.ladder.agreement import bits as bits_of
from oscc.ladder.agreement import divergence_nats, log_softmax, top1
from oscc.ladder.levels import SLIP_RAD
from oscc.passes.options import PassOptions, Scheme
from oscc.verbs.compile import CompileRequest, pass_options

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.device.card import Card
    from oscc.trace import LayerTrace

FORMAT = "oscc.evaluate/1"
ENGINES = ("phase", "circuit")

_CALIBRATION_WINDOWS = 4
_WINDOWS_AT_ONCE = 16

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """What is evaluated, and how.

    Args:
        tokens: Fewest tokens over all windows; a given text is used whole.
        request: Device, scheme, accuracy and seed, as for compile.
        progress: Called with column, windows done and windows in all.
    """

    tokens: int = 20_000
    request: CompileRequest = field(default_factory=CompileRequest)
    progress: Progress = lambda column, done, total: None


@dataclass(slots=True, eq=False)
class _Layer:
    """Errors of one layer against its own exact update, gathered over windows."""

    squares: float = 0.0
    targets: int = 0
    slips: int = 0
    periods: int = 0
    stages: int = 0

    def note(self, error: FloatArray, periods: int) -> None:
        self.squares += float((error**2).sum())
        self.targets += error.size
        self.slips += int((np.abs(error) > SLIP_RAD).sum())
        self.periods += periods
        self.stages += 1


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
    training, held_out, corpus = _symbols(model, text, options)
    loop = _Loop(model, options)
    if engine == "circuit":
        loop.choose_schemes(training)
    return _compare(loop, engine, held_out, corpus)


def _symbols(
    model: LoadedCheckpoint, text: Path | None, options: EvaluateOptions
) -> tuple[Any, Any, str]:
    """Calibration windows, held-out windows, digest of the corpus."""
    from oscc.corpus import read_text, standard_library, windows

    context = model.config.context
    corpus = standard_library()
    training = windows(corpus.train, context, _CALIBRATION_WINDOWS * context)
    if text is None:
        held_out = windows(corpus.held_out, context, options.tokens)
        return training, held_out, corpus.digest
    from oscc.files import sha256_bytes

    content = read_text(text)
    symbols = model.vocabulary.encode(
        content, unknown=options.request.unknown, where=str(text)
    )
    every = windows(symbols, context, len(symbols))
    return training, every, sha256_bytes(content.encode())


class _Loop:
    """A model whose coupling steps are replaced by an engine, layer by layer."""

    def __init__(self, model: LoadedCheckpoint, options: EvaluateOptions) -> None:
        from oscc.device.card_file import load_card

        self.model = model
        self.options = options
        self.card: Card = load_card(options.request.device)
        self.passes: PassOptions = pass_options(self.card, options.request)
        self.schemes: dict[int, Scheme] = {}
        self.layers: dict[int, _Layer] = {}

    def choose_schemes(self, training: Any) -> None:
        """Scheme of every layer: the costliest that calibration windows ask for."""
        from oscc.device.card_file import card_to_mapping
        from oscc.lower import lower
        from oscc.passes.dwell import choose_dwell
        from oscc.trace import trace

        request = self.options.request
        for window in training[:_CALIBRATION_WINDOWS]:
            program = choose_dwell(
                lower(
                    trace(self.model.model, window[:-1]),
                    card_to_mapping(self.card),
                    update=request.update,
                    accuracy_rad=1e-3 * request.accuracy_mrad,
                    seed=request.seed,
                ),
                self.passes,
            )
            for number, stage in enumerate(program.stages):
                found = _scheme_of(stage)
                known = self.schemes.get(number)
                if known is None or found.periods > known.periods:
                    self.schemes[number] = found

    def stage(self, number: int, layer: LayerTrace) -> Stage:
        """The stage of one layer on one window, with its scheme if it has one."""
        from oscc.lower import lower_layer

        config = self.model.config
        scheme = self.schemes.get(number)
        settings: dict[str, Any] = {}
        if scheme is not None:
            settings = {
                "scheme": scheme.name,
                "substeps": scheme.substeps,
                "dwell_periods": scheme.dwell_periods,
            }
            if scheme.epsilon is not None:
                settings["probe_epsilon"] = scheme.epsilon
        return lower_layer(
            config.family,
            config.update,
            number,
            layer,
            update=self.options.request.update,
            successor=config.successor,
            **settings,
        )

    def phase(self, number: int, layer: LayerTrace) -> FloatArray:
        """Coupling step by the phase engine."""
        from oscc_backends import phase
        from oscc_sims.phase import solve

        stage = self.stage(number, layer)
        return solve(phase.problem(stage)).reshape(stage.phi0_rad.shape)

    def circuit(self, number: int, layer: LayerTrace) -> FloatArray:
        """Coupling step by the circuit engine, its error noted."""
        from oscc.ir.plan import total_periods
        from oscc_backends import circuit
        from oscc_sims.circuit import solve

        stage = self._within_limit(self.stage(number, layer))
        found, _ = solve(
            self.card, circuit.problem(stage), threads=self.options.request.threads
        )
        phases = found.reshape(stage.phi0_rad.shape)
        noted = self.layers.setdefault(number, _Layer())
        noted.note(phases - layer.next_rad, total_periods(stage))
        return phases

    def _within_limit(self, stage: Stage) -> Stage:
        """The stage with as many substeps as its largest injection needs."""
        from oscc.passes.legalise import largest_injection

        ratio, _ = largest_injection(stage, self.passes)
        share = ratio / self.passes.injection_limit
        if share <= 1.0:
            return stage
        return replace(stage, substeps=math.ceil(stage.substeps * share))


def _scheme_of(stage: Stage) -> Scheme:
    epsilon = stage.probe_epsilon if stage.update == "probe" else None
    return Scheme(stage.scheme, stage.substeps, stage.dwell_periods, epsilon)


def _compare(loop: _Loop, engine: str, held_out: Any, corpus: str) -> dict[str, Any]:
    from oscc.trace import forward_with

    columns = {"digital": None, "phase": loop.phase}
    if engine == "circuit":
        columns["circuit"] = loop.circuit
    bits: dict[str, list[FloatArray]] = {name: [] for name in columns}
    agree, divergence = [], []
    total = len(held_out)
    for first in range(0, total, _WINDOWS_AT_ONCE):
        batch = held_out[first : first + _WINDOWS_AT_ONCE].astype(np.int64)
        logs = {}
        for name, step in columns.items():
            logits = forward_with(loop.model.model, batch[:, :-1], step)
            logs[name] = log_softmax(logits)
            bits[name].append(bits_of(logs[name], batch[:, 1:]))
            loop.options.progress(name, min(first + len(batch), total), total)
        agree.append(top1(logs["digital"], logs[engine]))
        divergence.append(divergence_nats(logs["digital"], logs[engine]))
    joined = {name: np.concatenate(parts) for name, parts in bits.items()}
    return _content(loop, engine, joined, corpus) | {
        "top1_agreement": float(np.concatenate(agree).mean()),
        "kl_nats": float(np.concatenate(divergence).mean()),
    }


def _content(
    loop: _Loop, engine: str, bits: Mapping[str, FloatArray], corpus: str
) -> dict[str, Any]:
    """Positions of a window share their text, so errors come from window means."""
    paired = (bits[engine] - bits["digital"]).mean(axis=1)
    error = (
        float(paired.std(ddof=1) / np.sqrt(paired.size)) if paired.size > 1 else None
    )
    layers = loop.layers
    stages = sum(layer.stages for layer in layers.values())
    return {
        "format": FORMAT,
        "checkpoint": loop.model.digest,
        "corpus_sha256": corpus,
        "engine": engine,
        "device": loop.card.name,
        "accuracy_rad": 1e-3 * loop.options.request.accuracy_mrad,
        "tokens": int(bits["digital"].size),
        "windows": int(paired.size),
        "bpc_digital": float(bits["digital"].mean()),
        "bpc_phase": float(bits["phase"].mean()),
        "bpc_hardware": float(bits[engine].mean()),
        "delta_bpc": float(paired.mean()),
        "delta_se": error,
        "periods_per_stage": (
            sum(layer.periods for layer in layers.values()) / stages if stages else None
        ),
        "layers": [
            {
                "stage": f"layer.{number}.coupling",
                "rms_rad": math.sqrt(layer.squares / layer.targets),
                "slips": layer.slips,
            }
            for number, layer in sorted(layers.items())
        ],
        "schemes": [
            {
                "stage": f"layer.{number}.coupling",
                "scheme": scheme.name,
                "substeps": scheme.substeps,
                "dwell_periods": scheme.dwell_periods,
            }
            for number, scheme in sorted(loop.schemes.items())
        ],
    }
