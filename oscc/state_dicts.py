"""The state dict inside what a checkpoint file holds.

Files wrap weights in mappings (`{"model": ...}`), keep averaged copies beside them,
put a prefix before every name, and add counters. Each rule that is applied is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from oscc.checks import nearest
from oscc.errors import RequestError

PLAIN_NAMES = ("state_dict", "model", "model_state_dict", "online_model")
AVERAGED_NAMES = (
    *("ema", "ema_state_dict", "model_ema", "ema_model", "ema_params"),
    *("averaged_model", "swa_model", "shadow"),
)
_WRAPPERS = ("_orig_mod.", "_forward_module.", "module.", "model.", "net.", "network.")
_OTHER_NAMES = ("optim", "scheduler", "lr_scheduler", "scaler", "grad_scaler", "amp")
_COUNTERS = (
    *("initted", "step", "n_averaged", "num_updates", "epoch", "global_step"),
    *("num_batches_tracked", "iteration"),
)
_COPIES = ("ema_model", "online_model")  # ema_pytorch: the average is what to use
_DEPTH = 6  # of mappings in mappings
_LISTED = 6


@dataclass(frozen=True, slots=True)
class Unread:
    """In the place of a tensor whose element type is not read."""

    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Tensors by name before casting: numpy arrays, torch tensors, or neither.

    `types` names the element type that the file states, where the array no longer
    does.
    """

    content: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)


def is_tensor(value: Any) -> bool:
    """Whether a value is an array of numpy or a tensor of torch."""
    import torch

    return isinstance(value, torch.Tensor | np.ndarray | Unread)


def find_state_dict(path: Path, found: Any, key: str | None) -> tuple[Raw, str | None]:
    """The mapping of weights in what a torch.save file holds.

    Mappings are searched within mappings; those of optimisers are passed over.

    Args:
        path: The file, for messages.
        found: Its content.
        key: Place of the mapping, such as `ema` or `checkpoint.model`.

    Returns:
        The mapping, and what of the key was not used: None if all of it was.

    Raises:
        RequestError: no weights, or several mappings of them and no key.
    """
    if not isinstance(found, Mapping):
        kind = type(found).__name__
        raise RequestError(f"`{path}` holds a {kind}, not named weights.")
    every = list(_mappings(found))
    places = {place: value for place, value in every if _holds_weights(value)}
    if not places:
        places = {place: value for place, value in every if _holds_tensors(value)}
    if not places:
        names = ", ".join(f"`{name}`" for name in list(found)[:_LISTED])
        raise RequestError(
            f"`{path}` holds no tensors{f', only {names}' if names else ''}. "
            f'Save it with: torch.save(model.state_dict(), "{path.name}")'
        )
    place, rest = _chosen(path, places, key)
    content = {str(name): value for name, value in places[place].items()}
    return Raw(content, notes=(f"weights found under `{place}`",) if place else ()), (
        rest
    )


def _mappings(
    value: Mapping[Any, Any], place: str = "", above: tuple[int, ...] = ()
) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Every mapping with its dotted place, but for those of optimisers."""
    if {"state", "param_groups"} <= set(value) or id(value) in above:
        return
    yield place, value
    if len(above) < _DEPTH:
        for name, inner in value.items():
            if isinstance(inner, Mapping) and not str(name).startswith(_OTHER_NAMES):
                inside = f"{place}.{name}" if place else str(name)
                yield from _mappings(inner, inside, (*above, id(value)))


def _holds_tensors(value: Mapping[Any, Any]) -> bool:
    return any(is_tensor(v) for v in value.values())


def _holds_weights(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds a floating-point tensor of more than one number."""
    import torch

    return any(
        isinstance(v, torch.Tensor) and v.is_floating_point() and v.numel() > 1
        for v in value.values()
    )


def _chosen(
    path: Path, places: Mapping[str, Any], key: str | None
) -> tuple[str, str | None]:
    """Place that the key names, or the only one; what of the key was not used."""
    if key is not None:
        for fitting in (
            [place for place in places if place == key],
            [place for place in places if place.rpartition(".")[2] == key],
            [place for place in places if place and key.startswith(f"{place}.")],
        ):
            if len(fitting) == 1:
                rest = key.removeprefix(f"{fitting[0]}.")
                return fitting[0], rest if key.startswith(f"{fitting[0]}.") else None
    if len(places) == 1:
        return next(iter(places)), key
    names = [place for place in places if place]
    raise _ambiguous(path, names, key, at_top="" in places)


def _ambiguous(
    path: Path, names: list[str], key: str | None, *, at_top: bool = False
) -> RequestError:
    listed = " and ".join(f"`{name}`" for name in names)
    top = "at its top and " if at_top else ""
    fault = "" if key is None else f", none under the key `{key}`"
    hint = nearest(key, names) if key is not None else ""
    return RequestError(
        f"`{path}` holds weights {top}under {listed}{fault}.{hint} "
        f"Choose with --key {names[0]}."
    )


def pick_copy(path: Path, raw: Raw, key: str | None) -> tuple[Raw, str | None]:
    """One copy of weights whose names begin with the copy: `ema.w` beside `model.w`.

    `ema_model.*` beside `online_model.*` is what ema_pytorch writes: the average is
    taken. Other copies beside each other need a key.

    Returns:
        The chosen copy under plain names, and what of the key was not used.

    Raises:
        RequestError: several copies and no key.
    """
    heads = {name.partition(".")[0] for name in raw.content if "." in name}
    known = (*_COPIES, *PLAIN_NAMES, *AVERAGED_NAMES)
    copies = [name for name in dict.fromkeys(known) if name in heads]
    last = key.rpartition(".")[2] if key is not None else ""
    if last in copies:
        key, wanted = None, last
    elif copies and set(copies) <= set(_COPIES):
        wanted = copies[0]
    elif len(copies) > 1:
        raise _ambiguous(path, copies, key)
    else:  # a single prefix goes if every name has it, see `strip_prefixes`
        return raw, key
    return _copy(raw, wanted, [name for name in copies if name != wanted]), key


def _copy(raw: Raw, wanted: str, others: list[str]) -> Raw:
    left_out = tuple(f"{name}." for name in others)
    kept = {
        name.removeprefix(f"{wanted}."): value
        for name, value in raw.content.items()
        if not name.startswith(left_out)
    }
    note = f"took the copy `{wanted}.*`"
    if others:
        note += f"; --key {others[0]} takes the other"
    types = {
        name.removeprefix(f"{wanted}."): kind
        for name, kind in raw.types.items()
        if not name.startswith(left_out)
    }
    return replace(raw, content=kept, types=types, notes=(*raw.notes, note))


def strip_prefixes(raw: Raw) -> Raw:
    """Leave out counters, and wrapper prefixes that every name has.

    A prefix that only some names have stays: it is part of the name.
    """
    content, types, notes = dict(raw.content), dict(raw.types), list(raw.notes)
    changed = True
    while changed:
        counters = [name for name, value in content.items() if _counts(name, value)]
        for name in counters:
            del content[name]
        if counters:
            notes.append("counters ignored: " + ", ".join(sorted(counters)))
        changed = False
        for prefix in _WRAPPERS:
            if content and all(name.startswith(prefix) for name in content):
                content = {k.removeprefix(prefix): v for k, v in content.items()}
                types = {k.removeprefix(prefix): v for k, v in types.items()}
                notes.append(f"prefix `{prefix}` removed from every name")
                changed = True
    return replace(raw, content=content, types=types, notes=tuple(notes))


def _counts(name: str, value: Any) -> bool:
    """Whether an entry is a counter of training: a known name, a single number."""
    if name.rpartition(".")[2] not in _COUNTERS:
        return False
    if is_tensor(value):
        return int(np.prod(value.shape, dtype=np.int64)) <= 1
    return isinstance(value, bool | int | float)


def known_keys(raw: Raw) -> list[str]:
    """What --key could have meant."""
    heads = {name.partition(".")[0] for name in raw.content}
    return [*PLAIN_NAMES, *AVERAGED_NAMES, *sorted(heads)]
