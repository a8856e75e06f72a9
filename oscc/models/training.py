"""Training of a model on a corpus: batches, schedule, guarded steps, resumable state.

Every draw is named by (seed, purpose, step), so a run that was stopped gives bit for
bit the weights of one that was not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from oscc.corpus import HELD_OUT_TAIL, Corpus, Symbols
from oscc.errors import RequestError
from oscc.models.base import Advance, LayerState, build_model
from oscc.models.config import ModelConfig
from oscc.models.phase import couple
from oscc.models.residual import dropping
from oscc.models.training_config import Progress, TrainingConfig
from oscc.models.training_faults import (
    MEND,
    Diverged,
    first_not_finite,
    largest_gradient,
)
from oscc.models.training_state import (
    TrainingState,
    Weights,
    load_state,
    save_state,
)
from oscc.seeds import stream
from oscc.trace import effective_gain, exact_step

__all__ = [
    "CURVE_BATCHES",
    "VALIDATION_BATCHES",
    "VALIDATION_ROWS",
    "Diverged",
    "Progress",
    "Trainer",
    "TrainingConfig",
    "batch_of",
    "bits_per_character",
    "drive_quantiles",
    "exact_advance",
]

VALIDATION_BATCHES = 24
VALIDATION_ROWS = 16
CURVE_BATCHES = 4  # of the validation's, measured at every saved state


Report = Callable[[Progress], None]


def batch_of(
    symbols: Symbols, context: int, rows: int, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and next symbols at random places, shape (rows, context) each."""
    starts = rng.integers(0, len(symbols) - context, rows)
    text = np.stack([symbols[i : i + context + 1] for i in starts]).astype(np.int64)
    whole = torch.from_numpy(text)
    return whole[:, :-1], whole[:, 1:]


def exact_advance(config: ModelConfig) -> Advance:
    """Coupling steps with the flow solved exactly, for `forward` of a model."""

    def advance(index: int, state: LayerState) -> torch.Tensor:
        return torch.from_numpy(exact_step(config, state)).to(state.theta.dtype)

    return advance


def bits_per_character(
    model: nn.Module,
    config: ModelConfig,
    symbols: Symbols,
    purpose: str,
    *,
    exact: bool = True,
    batches: int | None = None,
) -> float:
    """Mean bits a symbol on 24 fixed batches of 16 windows, or on the first of them.

    The batches depend on the purpose alone, so all runs are measured on the same.

    Args:
        model: A model of any family.
        config: Its configuration.
        symbols: Part of a corpus.
        purpose: Name of the random stream that places the windows.
        exact: Solve the flow exactly, on the CPU; else as training integrates it.
        batches: How many of the batches; all without it.
    """
    total, advance = 0.0, exact_advance(config)
    count = VALIDATION_BATCHES if batches is None else batches
    device = next(model.parameters()).device
    with torch.no_grad():
        for i in range(count):
            rng = stream(0, purpose, i)
            batch = batch_of(symbols, config.context, VALIDATION_ROWS, rng)
            x, y = (part.to(device) for part in batch)
            total += _loss(model(x, advance if exact else None), y).item()
    return total / count / math.log(2)


def _loss(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


class Trainer:
    """One run: model, optimiser and progress, saved as one file to go on from."""

    def __init__(
        self,
        config: ModelConfig,
        training: TrainingConfig,
        corpus: Corpus,
        seed: int,
        device: str = "cpu",
    ) -> None:
        _require_long_enough(corpus, config.context)
        if corpus.vocabulary.size != config.symbols:
            raise RequestError(
                f"The corpus has {corpus.vocabulary.size} symbols, the model "
                f"{config.symbols}. Leave `symbols` out: the corpus says it."
            )
        if config.mask == "none":
            raise RequestError(
                "Without a causal mask a token reads the symbol it is to predict. "
                "Give --set model.mask=causal to train."
            )
        self.config, self.training = config, training
        self.corpus, self.seed = corpus, seed
        self.model, self.device = build_model(config, seed).to(device), device
        # refuses, before the first step, what the family cannot be disturbed by
        training.disturbance.advance(self.model, stream(seed, "training disturbance"))
        self.progress = Progress()
        self.saved_step: int | None = None
        self.good: Weights = {}  # of the lowest held-out loss so far
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            trained, lr=training.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
        )

    def run(
        self,
        state_path: Path,
        report: Report | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Train to the last step, saving the state on the way and at the end.

        Args:
            state_path: File of the state.
            report: Called after every saved state.
            stopped: Asked after every step; where it says yes, the state is saved and
                the run ends.

        Raises:
            Diverged: too many steps were skipped, or a loss was not finite; the state
                that was saved before is left as it is.
            KeyboardInterrupt: `stopped` said yes; its text says what is kept.
        """
        p, t = self.progress, self.training
        while p.step < t.steps:
            try:
                self._step()
                due = p.step % t.save_every == 0 or p.step == t.steps
                if due:
                    self._measure()
            except Diverged as error:
                raise Diverged(f"{error} {self._kept(state_path)}") from error
            if due:
                self.save_state(state_path)
                if report is not None:
                    report(p)
            if stopped():
                if not due:
                    self.save_state(state_path)
                raise KeyboardInterrupt(f"step {p.step} of {t.steps} is saved.")
        self.model.cpu()  # what is measured afterwards is solved exactly, there

    def _kept(self, path: Path) -> str:
        if self.saved_step is None:
            return "No state was saved before."
        return f"The state saved before, of step {self.saved_step}, is in `{path}`."

    def learning_rate(self, step: int) -> float:
        """Linear warm-up times a cosine that ends at `final_share`."""
        t = self.training
        warm = min(1.0, (step + 1) / max(1, t.warm_up))
        cosine = 0.5 * (1 + math.cos(math.pi * step / t.steps))
        return t.learning_rate * warm * (t.final_share + (1 - t.final_share) * cosine)

    def _step(self) -> None:
        t, p = self.training, self.progress
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate(p.step)
        rng = stream(self.seed, "training batch", p.step)
        batch = batch_of(self.corpus.train, self.config.context, t.batch, rng)
        x, y = (part.to(self.device) for part in batch)
        noise = stream(self.seed, "training disturbance", p.step)
        advance = t.disturbance.advance(self.model, noise)
        with dropping(self.model, noise):
            loss = _loss(self.model(x, advance), y)
        if not math.isfinite(loss.item()):
            where = first_not_finite(
                self.model, self.config, partial(self.model, x), advance
            )
            raise Diverged(
                f"Training stopped at step {p.step + 1}: the loss is not finite, "
                f"{where}. {MEND}"
            )
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), t.clip))
        p.step += 1
        p.recent_norm = max(p.recent_norm, norm if math.isfinite(norm) else math.inf)
        if not norm <= t.skip_norm:
            self._skip(norm)
            return
        self.optimiser.step()
        p.largest_norm = max(p.largest_norm, norm)
        value = loss.item()
        running = p.running_nats
        p.running_nats = value if running is None else 0.98 * running + 0.02 * value

    def _skip(self, norm: float) -> None:
        self.progress.skipped.append(self.progress.step)
        if len(self.progress.skipped) < self.training.skip_limit:
            return
        raise Diverged(
            f"Training stopped at step {self.progress.step}: "
            f"{len(self.progress.skipped)} steps had a gradient norm above "
            f"{self.training.skip_norm:g} (the last {norm:.3g}, largest in "
            f"`{largest_gradient(self.model)}`). {MEND}"
        )

    def _measure(self) -> None:
        """Add a row to the curve; weights of no finite loss are not to be saved."""
        p = self.progress
        bits = bits_per_character(
            self.model,
            self.config,
            self.corpus.held_out,
            "validation batch",
            exact=False,
            batches=CURVE_BATCHES,
        )
        if not math.isfinite(bits):
            raise Diverged(
                f"Training stopped at step {p.step}: the loss on held-out text is not "
                f"finite. {MEND}"
            )
        if p.running_nats is not None:
            if not p.validation or bits < min(p.validation):
                self.good = {
                    name: value.detach().cpu().clone()
                    for name, value in self.model.state_dict().items()
                }
                p.good_step = p.step
            p.curve.append([p.step, p.running_nats / math.log(2)])
            p.validation.append(bits)
            p.norms.append(p.recent_norm)
            p.recent_norm = 0.0

    def save_state(self, path: Path) -> None:
        """Write weights, optimiser and progress, atomically."""
        state = TrainingState(self._run_name(), self.progress, self.good)
        save_state(path, self.model, self.optimiser, state)
        self.saved_step = self.progress.step

    def load_state(self, path: Path) -> None:
        """Go on from a saved state of the same run.

        Raises:
            RequestError: the file is of another format, run, or corpus.
        """
        state = load_state(path, self.model, self.optimiser, self._run_name())
        self.progress, self.good = state.progress, state.good
        self.saved_step = self.progress.step

    def _run_name(self) -> str:
        content = {
            "model": json.loads(self.config.to_json()),
            "training": asdict(self.training),
            "seed": self.seed,
            "corpus": self.corpus.digest,
            "vocabulary": json.loads(self.corpus.vocabulary.to_json()),
        }
        return json.dumps(content, sort_keys=True)


def _require_long_enough(corpus: Corpus, context: int) -> None:
    """Refuse a corpus of which a part cannot hold one window and its next symbol."""
    parts = {"train": corpus.train, "held-out": corpus.held_out}
    if len(corpus.test):
        parts["test"] = corpus.test
    name, part = min(parts.items(), key=lambda item: len(item[1]))
    if len(part) >= context + 2:
        return
    whole = sum(map(len, parts.values()))
    share = len(part) / whole if len(part) else HELD_OUT_TAIL
    longer = f"a text of {math.ceil((context + 2) / share)} symbols or more"
    shorter = f", or a context of at most {len(part) - 2} (--set model.context=…)"
    raise RequestError(
        f"The {name} part of the corpus has {len(part)} of its {whole} symbols, a "
        f"window of context {context} needs {context + 2}. Give {longer}"
        f"{shorter if len(part) > 2 else ''}."
    )


def drive_quantiles(
    model: nn.Module, config: ModelConfig, symbols: Symbols
) -> list[dict[str, float]]:
    """Strength s = |g| sum_n |C_n| by coupling step on 8 fixed held-out windows.

    Returns:
        For each coupling step (two a layer in FSN-MF, none without phases) the 5, 50,
        95, 99 and 100 % quantiles [rad] and the share of targets with a negative
        gain, both of the effective gain; the share of targets that rest, which have
        none, and the largest drive that they would have; the largest increment of
        the step, and the gap between the training integrator and the exact step
        (rms, largest).
    """
    out: list[dict[str, float]] = []

    def advance(index: int, state: LayerState) -> torch.Tensor:
        a, b = state.a.double().numpy(), state.b.double().numpy()
        gain, field = effective_gain(state), np.hypot(a, b).sum(axis=0)
        moduli = np.abs(gain) * field
        resting = (gain == 0.0) & (state.gain.double().numpy() != 0.0)
        unused = np.abs(state.gain.double().numpy()) * field * resting
        levels = np.quantile(moduli, (0.05, 0.5, 0.95, 0.99, 1.0))
        names = ("p5_rad", "p50_rad", "p95_rad", "p99_rad", "max_rad")
        row = {name: float(x) for name, x in zip(names, levels, strict=True)}
        exact = exact_step(config, state)
        coarse = couple(config, LayerState(*(x.double() for x in state)))
        gap = coarse.numpy() - exact
        increment = exact - state.theta.double().numpy()
        row["negative_share"] = float((gain < 0).mean())
        row["resting_share"] = float(resting.mean())
        row["resting_max_rad"] = float(unused.max())
        row["largest_increment_rad"] = float(np.abs(increment).max())
        row["integrator_gap_rms_rad"] = float(np.sqrt(np.mean(gap**2)))
        row["integrator_gap_max_rad"] = float(np.abs(gap).max())
        out.append(row)
        return torch.from_numpy(exact).to(state.theta.dtype)

    with torch.no_grad():
        x, _ = batch_of(symbols, config.context, 8, stream(0, "drive windows"))
        model(x, advance)
    return out
