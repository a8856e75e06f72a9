"""Checkpoints: write and read.

A checkpoint is a safetensors file with the metadata `format`, `family`, `update`,
`config` and `vocabulary`. Files that torch.save wrote are read too, given the model
section of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc import tensors
from oscc.corpus import ASCII, Vocabulary
from oscc.errors import RequestError
from oscc.files import sha256_file
from oscc.fitting import Fitted, fit
from oscc.misfits import near_pairs
from oscc.models.config import ModelConfig
from oscc.tensor_values import Shape
from oscc.vocabulary import vocabulary_of
from oscc.weights import Weights, read_weights

if TYPE_CHECKING:
    from torch import nn

    from oscc.models.phase import PhaseModel
    from oscc.models.residual import ResidualModel

CHECKPOINT_FORMAT = "oscc.checkpoint/1"
_LISTED = 6  # names shown of a long list
_OTHERS = {
    "oscc.program": "is the program of a build, not a checkpoint. Name its folder.",
    "oscc.observables": "holds what a simulation saw, not a model. Name a checkpoint.",
}


@dataclass(frozen=True, slots=True, eq=False)
class LoadedCheckpoint:
    """A model with its weights, the characters it knows, and how it was read.

    `digest` is the SHA-256 of the file; `notes` say what was stripped, chosen or
    cast on the way.
    """

    model: PhaseModel | ResidualModel
    vocabulary: Vocabulary
    digest: str
    notes: tuple[str, ...] = ()

    @property
    def config(self) -> ModelConfig:
        """Configuration of the model."""
        return self.model.config


def save_checkpoint(
    path: Path, model: nn.Module, config: ModelConfig, vocabulary: Vocabulary
) -> None:
    """Write a checkpoint in float32, atomically; equal content is equal bytes.

    Raises:
        RequestError: the vocabulary does not have the model's number of symbols.
        ToolError: the file could not be written.
    """
    if vocabulary.size != config.symbols:
        raise RequestError(
            f"The vocabulary has {vocabulary.size} symbols, the model {config.symbols}."
        )
    arrays = {
        name: value.detach().cpu().numpy().astype(np.float32)
        for name, value in model.state_dict().items()
    }
    metadata = {
        "format": CHECKPOINT_FORMAT,
        "family": config.family,
        "update": config.update,
        "config": config.to_json(),
        "vocabulary": vocabulary.to_json(),
    }
    tensors.save(path, arrays, metadata)


def load_checkpoint(
    path: Path,
    key: str | None = None,
    model_config: Mapping[str, Any] | None = None,
) -> LoadedCheckpoint:
    """Model of a checkpoint file, every one of its tensors accounted for.

    Args:
        path: A checkpoint of ours, or a torch.save or safetensors file of weights.
        key: Which weights to take where the file holds several, such as `ema`.
        model_config: For files without our metadata: fields of ModelConfig, and
            `vocabulary` (its characters as text, or a mapping of `characters` and
            `other`).

    Raises:
        RequestError: the file is missing, damaged, foreign, ambiguous, of another
            family or size, or holds values that are not finite.
    """
    path = Path(path)
    weights = read_weights(path, key)
    config, vocabulary, notes = describe(path, weights, model_config)
    fitted = fit(config, weights)
    model = _fill(path, config, fitted)
    return LoadedCheckpoint(
        model,
        vocabulary,
        sha256_file(path),
        (*weights.notes, *notes, *fitted.notes),
    )


def describe(
    path: Path, weights: Weights, model_config: Mapping[str, Any] | None
) -> tuple[ModelConfig, Vocabulary, tuple[str, ...]]:
    """Configuration, vocabulary and notes, from the metadata or the model section.

    Raises:
        RequestError: neither says what model it is, or they contradict each other.
    """
    metadata = weights.metadata
    written = metadata.get("format", "")
    if written == CHECKPOINT_FORMAT:
        config = ModelConfig.from_json(metadata.get("config", ""))
        for name in ("family", "update"):
            if metadata.get(name) != getattr(config, name):
                raise RequestError(
                    f"`{path}`: `{name}` is {metadata.get(name)!r} in the metadata, "
                    f"but {getattr(config, name)!r} in the config. Make them agree."
                )
        _require_agreement(path, config, model_config)
        vocabulary = Vocabulary.from_json(metadata.get("vocabulary", ""))
        return config, _fitting(path, vocabulary, config), ()
    if written:
        raise RequestError(_foreign(path, written, metadata))
    if model_config is None:
        raise RequestError(
            f"`{path}` does not say what model it holds. Give the section `model:` of "
            "--config with family, update, sizes and vocabulary."
        )
    fields = dict(model_config)
    given = fields.pop("vocabulary", None)
    vocabulary, notes = _given_vocabulary(given)
    fields.setdefault("symbols", vocabulary.size)
    config = ModelConfig.from_mapping(fields)
    return config, _fitting(path, vocabulary, config), notes


def _foreign(path: Path, written: str, metadata: Mapping[str, str]) -> str:
    """What a file of another format of ours is, and what to do with it."""
    kind = written.partition("/")[0]
    if kind == "oscc.training":
        step = re.search(r'"step": (\d+)', metadata.get("progress", ""))
        return (
            f"`{path}` is the state of an unfinished training"
            f"{f' (step {step[1]})' if step else ''}, not a checkpoint. Give the same "
            "oscc train command again, with the same -o and --name: it goes on from "
            "this state (--resume) and writes the checkpoint at its end."
        )
    if kind in _OTHERS:
        return f"`{path}` {_OTHERS[kind]}"
    return (
        f"`{path}` has format {written!r}, but this version reads "
        f"{CHECKPOINT_FORMAT!r}. Take a version of oscc that reads it, or another file."
    )


def _require_agreement(
    path: Path, config: ModelConfig, model_config: Mapping[str, Any] | None
) -> None:
    for name, value in (model_config or {}).items():
        if name == "vocabulary":
            continue
        if not hasattr(config, name):
            ModelConfig.from_mapping({"family": config.family, name: value})
        if getattr(config, name) != value:
            raise RequestError(
                f"`{path}` has `{name}` {getattr(config, name)!r}, but the section "
                f"`model:` asks for {value!r}. Leave it out: the file says what it is."
            )


def _given_vocabulary(given: Any) -> tuple[Vocabulary, tuple[str, ...]]:
    if given is None:
        return ASCII, ("no vocabulary given: tab, newline, ASCII 32 to 126, other",)
    return vocabulary_of(given), ()


def _fitting(path: Path, vocabulary: Vocabulary, config: ModelConfig) -> Vocabulary:
    if vocabulary.size != config.symbols:
        raise RequestError(
            f"`{path}`: the vocabulary has {vocabulary.size} symbols, "
            f"the model {config.symbols}."
        )
    return vocabulary


def _fill(
    path: Path, config: ModelConfig, fitted: Fitted
) -> PhaseModel | ResidualModel:
    """Model with every tensor from the file, none left at its start value."""
    import torch

    from oscc.models.base import build_model

    if fitted.faults:
        raise RequestError(f"`{path}`: {fitted.faults[0]}")
    if fitted.misfits:  # told before the model is built, which may be large
        found = {name: tuple(a.shape) for name, a in fitted.arrays.items()}
        raise RequestError(_mismatch(path, config, fitted.wanted, found))
    model: Any = build_model(config)
    copies = {name: torch.from_numpy(a.copy()) for name, a in fitted.arrays.items()}
    model.load_state_dict(copies, strict=True)
    loaded: PhaseModel | ResidualModel = model.eval()
    return loaded


def _mismatch(
    path: Path,
    config: ModelConfig,
    wanted: Mapping[str, Shape],
    found: Mapping[str, Shape],
) -> str:
    """One line each: missing tensors, unexpected ones, how to mend it."""
    missing = [n for n in wanted if n not in found]
    extra = [n for n in found if n not in wanted]
    other = [n for n in wanted if n in found and wanted[n] != found[n]]
    near = near_pairs(wanted, found)
    parts = []
    if missing:
        hints = [f"`{old}` is near to `{new}`" for old, new in near.items()][:_LISTED]
        hint = "; " + ", ".join(hints) if hints else ""
        parts.append(f"missing {_listed(missing, wanted)}{hint}")
    if extra:
        parts.append(f"unexpected {_listed(extra, found)}")
    if other:
        shapes = [f"`{n}` {found[n]} instead of {wanted[n]}" for n in other[:_LISTED]]
        parts.append("of another shape " + ", ".join(shapes) + _more(other))
    return (
        f"`{path}` does not fit family {config.family} with k = {config.k}, "
        f"{config.layers} layers, {config.heads} heads: "
        + "\n".join(part.rstrip(".") + "." for part in parts)
        + " Save the state_dict of that model, or correct the sizes."
    )


def _listed(names: list[str], shapes: Mapping[str, Shape]) -> str:
    shown = ", ".join(f"`{name}` {shapes[name]}" for name in names[:_LISTED])
    return shown + _more(names)


def _more(names: list[str]) -> str:
    extra = len(names) - _LISTED
    return f" and {extra} more" if extra > 0 else ""
