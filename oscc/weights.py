"""Named weights out of files of any container: ours, torch.save, wrapped by training.

Files are never unpickled: torch.load runs with weights_only=True alone.
"""

from __future__ import annotations

import io
import pickle
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oscc import tensors
from oscc.checks import nearest
from oscc.errors import RequestError
from oscc.state_dicts import (
    Raw,
    Unread,
    find_state_dict,
    known_keys,
    pick_copy,
    strip_prefixes,
)
from oscc.tensor_values import Fault, Float32, value_of

_IMAGES = {b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF"}


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Arrays by name in float32, the file's metadata, notes on what was done.

    `faults` are those of single tensors, which are not in `arrays` where they have no
    usable values; `masks` are causal masks that the file keeps beside the weights.
    """

    arrays: Mapping[str, Float32]
    metadata: Mapping[str, str]
    notes: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    masks: Mapping[str, Float32] = field(default_factory=dict)


def read_weights(path: Path, key: str | None = None, *, strict: bool = True) -> Weights:
    """Weights of a checkpoint file of any container we read.

    Args:
        path: A safetensors file, or a torch.save file of a state dict or of a
            mapping that holds one.
        key: Which one to take where the file holds several, such as `ema`.
        strict: Refuse the file if one of its tensors cannot be used or holds values
            that are not finite; else these are in `faults`.

    Raises:
        RequestError: missing, empty, truncated, foreign, in need of unpickling,
            ambiguous without a key; a tensor that cannot be used, if strict.
    """
    data = _read(path)
    rest: str | None
    if _is_safetensors(path, data):
        raw, rest = _from_safetensors(path, data), key
    else:
        raw, rest = find_state_dict(path, _load_torch(path, data), key)
    raw, rest = pick_copy(path, raw, rest)
    if rest is not None:
        raise RequestError(
            f"`{path}` holds nothing under the key `{key}`."
            f"{nearest(str(key), known_keys(raw))}"
        )
    weights = _cast(strip_prefixes(raw))
    if strict and weights.faults:
        raise RequestError(_first(weights.faults))
    return weights


def _first(faults: tuple[Fault, ...]) -> str:
    more = len({fault.tensor for fault in faults[1:]} - {faults[0].tensor})
    others = f" {more} more at fault: oscc doctor names all." if more else ""
    return f"{faults[0]}{others}"


def _from_safetensors(path: Path, data: bytes) -> Raw:
    arrays, metadata, unread = tensors.decode_known(data, where=str(path))
    content: dict[str, Any] = dict(arrays)
    content |= {name: Unread(*entry) for name, entry in unread.items()}
    return Raw(content, metadata, (), tensors.stored_types(data, where=str(path)))


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise RequestError(
            f"`{path}` is a folder, not a checkpoint file. Name a file in it."
        )
    if not path.exists():
        folder = path.parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        close = nearest(path.name, [n for n in names if not n.endswith(".json")])
        hint = close.replace("`", f"`{folder.as_posix()}/", 1) if close else ""
        raise RequestError(f"`{path}` does not exist.{hint}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RequestError(
            f"`{path}` cannot be read: {error.strerror or error}."
        ) from error
    if not data:
        raise RequestError(f"`{path}` is empty. Train again, or take another file.")
    return data


def _is_safetensors(path: Path, data: bytes) -> bool:
    return data[8:9] == b"{" or path.suffix == ".safetensors"


def _load_torch(path: Path, data: bytes) -> Any:
    """Content of a torch.save file, by the loader that runs no code."""
    import torch

    for magic, kind in _IMAGES.items():
        if data.startswith(magic):
            raise RequestError(f"`{path}` is a {kind} image, not a checkpoint.")
    if not data.startswith((b"PK", b"\x80")):
        raise RequestError(
            f"`{path}` is neither a safetensors nor a torch.save file "
            f"(it begins with {data[:4].hex(' ')}). Name a checkpoint."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise RequestError(_unpickling_message(path, str(error))) from error
    except (RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RequestError(
            f"`{path}` is not a whole torch.save file: {first[:120]}. "
            "Copy it again, or take another file."
        ) from error


def _unpickling_message(path: Path, text: str) -> str:
    found = re.search(r"GLOBAL (\S+)", text)
    if found is None:
        return (
            f"`{path}` is not a file that torch.save wrote, or it is damaged. "
            f'Save it with: torch.save(model.state_dict(), "{path.name}")'
        )
    return (
        f"`{path}` needs unpickling (global `{found.group(1)}`), which runs code "
        f'and is refused. Save it with: torch.save(model.state_dict(), "{path.name}")'
    )


def _cast(raw: Raw) -> Weights:
    """Float32 copies of all tensors, contiguous, each with its own memory."""
    arrays: dict[str, Float32] = {}
    masks: dict[str, Float32] = {}
    faults: list[Fault] = []
    cast: dict[str, int] = {}
    for name in raw.content:
        found = value_of(name, raw.content[name], raw.types.get(name, ""))
        faults += found.faults
        if found.array is None:
            continue
        (masks if found.mask else arrays)[name] = found.array
        if found.kind != "float32":
            cast[found.kind] = cast.get(found.kind, 0) + 1
    notes = [
        f"{n} tensors stored as {kind}, cast to float32" for kind, n in cast.items()
    ]
    ordered = tuple(sorted(faults, key=lambda fault: fault.tensor))
    return Weights(arrays, raw.metadata, (*raw.notes, *notes), ordered, masks)
