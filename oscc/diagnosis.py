"""What is wrong with a checkpoint: every fault of its tensors, each on its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from oscc.checkpoint import describe
from oscc.errors import RequestError
from oscc.models.config import ModelConfig
from oscc.weights import DIVERGED, Weights, non_finite, read_weights

_CLOSE = 0.6  # of difflib: names that differ more are not taken for each other
_RENAME = "Rename it in the state_dict that you save."
_SIZES = "Correct the sizes of the configuration, or take the checkpoint that fits."

Shape = tuple[int, ...]


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
        weights = read_weights(path, key, finite=False)
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
    faults = list(tensor_faults(_wanted(config), _shapes(weights)))
    if not faults:
        detail = "names and shapes fit the model"
        found.append(Check("checkpoint.tensors", True, detail))
    return [*found, *faults, *_lowering(config)]


def tensor_faults(
    wanted: Mapping[str, Shape], found: Mapping[str, Shape]
) -> Iterator[Check]:
    """Every missing, unknown or misshapen tensor, with the nearest name.

    Args:
        wanted: Shapes of the model's tensors by name.
        found: Shapes of the file's tensors by name.

    Example:
        >>> (fault,) = tensor_faults({"beta": ()}, {"bta": ()})
        >>> fault.detail
        'tensor `bta` (): unknown; nearest `beta`, which is missing'
    """
    missing = [name for name in wanted if name not in found]
    for name in (name for name in found if name not in wanted):
        near = get_close_matches(name, missing, 1, _CLOSE)
        if near:
            missing.remove(near[0])
            beside = f"nearest `{near[0]}`, which is missing"
            misfit = wanted[near[0]] != found[name]
            beside += f" and has shape {wanted[near[0]]}" if misfit else ""
            yield _tensor(f"`{name}` {found[name]}: unknown; {beside}", _RENAME)
            continue
        other = get_close_matches(name, wanted, 1, _CLOSE)
        beside = f"; nearest `{other[0]}`, which is there" if other else ""
        mend = "Leave it out of the state_dict that you save."
        yield _tensor(f"`{name}` {found[name]}: unknown{beside}", mend)
    for name in missing:
        yield _tensor(f"`{name}` {wanted[name]}: missing", _SIZES)
    for name, shape in wanted.items():
        if found.get(name, shape) != shape:
            yield _tensor(f"`{name}` {found[name]}: shape should be {shape}", _SIZES)


def _tensor(detail: str, mend: str) -> Check:
    return Check("checkpoint.tensors", False, f"tensor {detail}", mend)


def _contents(weights: Weights) -> list[Check]:
    """Tensors that are not finite, or their number; notes on how they were read."""
    faults = [non_finite(name, weights.arrays[name]) for name in sorted(weights.arrays)]
    bad = [Check("checkpoint.file", False, text, DIVERGED) for text in faults if text]
    count = f"{len(weights.arrays)} finite tensors"
    notes = [Check("checkpoint.note", True, note) for note in weights.notes]
    return [*(bad or [Check("checkpoint.file", True, count)]), *notes]


def _shapes(weights: Weights) -> dict[str, Shape]:
    return {name: tuple(array.shape) for name, array in weights.arrays.items()}


def _wanted(config: ModelConfig) -> dict[str, Shape]:
    from oscc.models.base import build_model

    state = build_model(config).state_dict()
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def _lowering(config: ModelConfig) -> list[Check]:
    """Notes on what cannot become oscillators; the checkpoint is sound without it."""
    from oscc.lower.program import require_lowering

    notes = []
    try:
        require_lowering(config.family, config.values)
    except RequestError as error:
        notes.append(str(error))
    if config.update == "euler":
        notes.append(
            "trained with Euler steps: hardware runs it as probe; as a flow it is "
            "another model"
        )
    return [Check("checkpoint.note", True, note) for note in notes]
