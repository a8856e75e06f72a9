"""Training of a model on a corpus: batches, schedule, guarded steps, resumable state.

Every draw is named by (seed, purpose, step), so a run that was stopped gives bit for
bit the weights of one that was not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from oscc import tensors
from oscc.corpus import Corpus, Symbols
from oscc.errors import RequestError, UndecidedError
from oscc.models.base import Advance, LayerState, build_model
from oscc.models.config import ModelConfig
from oscc.models.disturbance import Disturbance
from oscc.models.phase import couple
from oscc.models.residual import dropping
from oscc.seeds import stream
from oscc.trace import effective_gain, exact_step

STATE_FORMAT = "oscc.training/1"
VALIDATION_BATCHES = 24
VALIDATION_ROWS = 16


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Settings of the optimiser; defaults are those of the shipped checkpoints.

    A step whose gradient norm before clipping exceeds `skip_norm` is skipped; the run
    fails once `skip_limit` steps were skipped, and at once when a loss is not finite.
    `phase_noise_rad`, `gain_error` and `weight_bits` disturb every coupling step of the
    training (see oscc.models.disturbance); the figures afterwards are without them.
    """

    steps: int = 9000
    batch: int = 8
    learning_rate: float = 1e-2
    warm_up: int = 50
    final_share: float = 0.1
    clip: float = 1.0
    skip_norm: float = 50.0
    skip_limit: int = 20
    save_every: int = 250
    phase_noise_rad: float = 0.0
    gain_error: float = 0.0
    weight_bits: int = 0

    @property
    def disturbance(self) -> Disturbance:
        """What is done to the coupling steps while training."""
        return Disturbance(self.phase_noise_rad, self.gain_error, self.weight_bits)


@dataclass(slots=True)
class Progress:
    """Where a run is: steps done, skipped steps, running loss, curve."""

    step: int = 0
    skipped: list[int] = field(default_factory=list)
    largest_norm: float = 0.0
    running_nats: float | None = None
    curve: list[list[float]] = field(default_factory=list)


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
) -> float:
    """Mean bits a symbol on 24 fixed batches of 16 windows.

    The batches depend on the purpose alone, so all runs are measured on the same.

    Args:
        model: A model of any family.
        config: Its configuration.
        symbols: Part of a corpus.
        purpose: Name of the random stream that places the windows.
        exact: Solve the flow exactly; else as training integrates it.
    """
    total, advance = 0.0, exact_advance(config)
    with torch.no_grad():
        for i in range(VALIDATION_BATCHES):
            rng = stream(0, purpose, i)
            x, y = batch_of(symbols, config.context, VALIDATION_ROWS, rng)
            total += _loss(model(x, advance if exact else None), y).item()
    return total / VALIDATION_BATCHES / math.log(2)


def _loss(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


class _NotFinite(UndecidedError):
    """The loss of a step is not finite."""


def _coupled(config: ModelConfig, index: int, state: LayerState) -> torch.Tensor:
    return couple(config, state)


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
        for name, part in (("train", corpus.train), ("held-out", corpus.held_out)):
            if len(part) < config.context + 2:
                raise RequestError(
                    f"The {name} part of the corpus has {len(part)} symbols, a window "
                    f"of context {config.context} needs {config.context + 2}."
                )
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
        self.progress = Progress()
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            trained, lr=training.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
        )

    def run(self, state_path: Path, report: Report | None = None) -> None:
        """Train to the last step, saving the state on the way.

        Raises:
            UndecidedError: too many steps were skipped, or a loss was not finite; the
                state holds the last good weights.
        """
        while self.progress.step < self.training.steps:
            try:
                self._step()
            except _NotFinite as error:  # these weights are not good: keep the older
                kept = f"The last good weights are in `{state_path}`."
                none = "No state was saved before."
                raise UndecidedError(
                    f"{error} {kept if state_path.exists() else none}"
                ) from error
            except UndecidedError as error:
                self.save_state(state_path)
                raise UndecidedError(
                    f"{error} The last good weights are in `{state_path}`."
                ) from error
            if self.progress.step % self.training.save_every == 0:
                self._measure()
                self.save_state(state_path)
                if report is not None:
                    report(self.progress)
        if self.progress.step % self.training.save_every:
            self._measure()
        self.model.cpu()  # what is measured afterwards is solved exactly, there

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
            raise _NotFinite(self._not_finite(x, advance))
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), t.clip))
        p.step += 1
        if not norm <= t.skip_norm:
            self._skip(norm)
            return
        self.optimiser.step()
        p.largest_norm = max(p.largest_norm, norm)
        value = loss.item()
        running = p.running_nats
        p.running_nats = value if running is None else 0.98 * running + 0.02 * value

    def _not_finite(self, x: torch.Tensor, advance: Advance | None) -> str:
        """Where a loss stopped being finite: weight, coupling step or logits."""
        mend = "Lower the learning rate, or choose another bound."
        start = f"Training stopped at step {self.progress.step + 1}: the loss is not"
        for name, parameter in self.model.named_parameters():
            if not torch.isfinite(parameter).all():
                return f"{start} finite, for `{name}` holds such values. {mend}"
        place: list[str] = []

        def watched(index: int, state: LayerState) -> torch.Tensor:
            after = (advance or partial(_coupled, self.config))(index, state)
            for name, value in (
                *zip(state._fields, state, strict=True),
                ("phi", after),
            ):
                if not torch.isfinite(value).all():
                    place.append(f"`{name}` of coupling step {index}")
            return after

        with torch.no_grad():
            self.model(x, watched)
        return f"{start} finite, first {[*place, 'the logits'][0]}. {mend}"

    def _skip(self, norm: float) -> None:
        self.progress.skipped.append(self.progress.step)
        if len(self.progress.skipped) < self.training.skip_limit:
            return
        name, largest = "", -1.0
        for key, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                size = float(parameter.grad.norm())
                if not math.isfinite(size):
                    name = key
                    break
                if size > largest:
                    name, largest = key, size
        raise UndecidedError(
            f"Training stopped at step {self.progress.step}: "
            f"{len(self.progress.skipped)} steps had a gradient norm above "
            f"{self.training.skip_norm:g} (the last {norm:.3g}, largest in `{name}`). "
            "Lower the learning rate, or choose another bound."
        )

    def _measure(self) -> None:
        nats = self.progress.running_nats
        if nats is not None:
            self.progress.curve.append([self.progress.step, nats / math.log(2)])

    def save_state(self, path: Path) -> None:
        """Write weights, optimiser and progress, atomically."""
        arrays: tensors.Arrays = {}
        names = {id(p): name for name, p in self.model.named_parameters()}
        for name, value in self.model.state_dict().items():
            arrays[f"weights.{name}"] = value.detach().cpu().numpy()
        for parameter, slots in self.optimiser.state.items():
            for slot, value in slots.items():
                key = f"optimiser.{slot}.{names[id(parameter)]}"
                arrays[key] = np.asarray(value.cpu())
        metadata = {
            "format": STATE_FORMAT,
            "run": self._run_name(),
            "progress": json.dumps(asdict(self.progress), sort_keys=True),
        }
        tensors.save(path, arrays, metadata)

    def load_state(self, path: Path) -> None:
        """Go on from a saved state of the same run.

        Raises:
            RequestError: the file is of another format, run, or corpus.
        """
        arrays, metadata = tensors.load(path)
        if metadata.get("format") != STATE_FORMAT:
            raise RequestError(f"`{path}` is not the state of a training run.")
        if metadata.get("run") != self._run_name():
            raise RequestError(
                f"`{path}` belongs to another run: its configuration, seed or corpus "
                "differs. Choose another output folder, or train from the start."
            )
        self.progress = Progress(**json.loads(metadata["progress"]))
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                value = torch.from_numpy(arrays[f"weights.{name}"].copy())
                parameter.copy_(value)
                self._load_slots(name, parameter, arrays)

    def _load_slots(
        self, name: str, parameter: nn.Parameter, arrays: tensors.Arrays
    ) -> None:
        if not parameter.requires_grad or self.progress.step == 0:
            return
        slots: dict[str, Any] = {}
        for slot in ("step", "exp_avg", "exp_avg_sq"):
            key = f"optimiser.{slot}.{name}"
            if key in arrays:
                value = torch.from_numpy(np.array(arrays[key]))
                # the optimiser counts its steps on the host
                slots[slot] = value if slot == "step" else value.to(parameter.device)
        if slots:
            self.optimiser.state[parameter] = slots

    def _run_name(self) -> str:
        content = {
            "model": json.loads(self.config.to_json()),
            "training": asdict(self.training),
            "seed": self.seed,
            "corpus": self.corpus.digest,
        }
        return json.dumps(content, sort_keys=True)


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
