"""What is wrong with a checkpoint: every fault of its tensors, each on its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oscc.checkpoint import describe
from oscc.errors import RequestError
from oscc.fitting import fit
from oscc.models.config import ModelConfig
from oscc.tensor_values import Fault
from oscc.weights import Weights, read_weights

UNCOMPILED = "checkpoint.compile.note"
"""Name of the finding that nothing of a checkpoint can be compiled."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of a diagnosis; `mend` is empty where nothing is to be done."""

    name: str
    ok: bool
    detail: str
    mend: str = ""


def diagnose_checkpoint(
    path: Path,
    key: str | None = None,
    model_config: Mapping[str, Any] | None = None,
) -> list[Check]:
    """What is sound and what is wrong with a checkpoint.

    A file that cannot be read, or does not say what model it holds, ends the list:
    later checks need what it lacks. Faults of tensors are all listed.

    Args:
        path: As for `load_checkpoint`.
        key: As for `load_checkpoint`.
        model_config: As for `load_checkpoint`.

    Returns:
        One entry a finding; notes (such as an Euler update) are entries that are ok.
    """
    path = Path(path)
    found: list[Check] = []
    try:
        weights = read_weights(path, key, strict=False)
        found += _contents(weights)
        config, vocabulary, notes = describe(path, weights, model_config)
    except RequestError as error:
        done = {check.name for check in found}
        name = next(n for n in ("file", "model") if f"checkpoint.{n}" not in done)
        detail, _, mend = str(error).partition(". ")
        return [*found, Check(f"checkpoint.{name}", False, detail, mend)]
    detail = f"{config.family}, update {config.update}, context {config.context}"
    found.append(Check("checkpoint.model", True, detail))
    found += [Check("checkpoint.note", True, note) for note in notes]
    detail = f"{len(vocabulary.characters)} {vocabulary.unit}s"
    found.append(Check("checkpoint.vocabulary", True, detail))
    fitted = fit(config, weights)
    found += [Check("checkpoint.note", True, note) for note in fitted.notes]
    faults = [*fitted.faults, *fitted.misfits]
    if not faults:
        detail = "names and shapes fit the model"
        found.append(Check("checkpoint.tensors", True, detail))
    layers = _lowering(config) if fitted.wanted else []  # not a million of them
    return [*found, *_checks("checkpoint.tensors", faults), *layers]


def _checks(name: str, faults: Iterable[Fault]) -> list[Check]:
    return [Check(name, False, fault.detail, fault.mend) for fault in faults]


def _contents(weights: Weights) -> list[Check]:
    """Tensors that cannot be used, or their number; notes on how they were read."""
    count = f"{len(weights.arrays)} finite tensors"
    bad = _checks("checkpoint.file", weights.faults)
    notes = [Check("checkpoint.note", True, note) for note in weights.notes]
    return [*(bad or [Check("checkpoint.file", True, count)]), *notes]


def _lowering(config: ModelConfig) -> list[Check]:
    """Notes on what becomes of each layer; none of them is a fault."""
    from oscc.lower.parts import layer_sentences, refusal

    notes = layer_sentences(config)
    if config.update == "euler":
        notes.append(
            "trained with Euler steps: hardware runs it as probe; as a flow it is "
            "another model"
        )
    found = [Check("checkpoint.note", True, note) for note in notes]
    if refusal(config):
        # a note, not a fault: the file is what it says, and mending it changes nothing
        detail = (
            f"nothing of this checkpoint can be compiled: {config.family} "
            "has no layer that runs on oscillators here; `train` and `inspect` take it"
        )
        found.append(Check(UNCOMPILED, True, detail))
    return found
