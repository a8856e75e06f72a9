"""Named weights out of files of any container: ours, torch.save, wrapped by training.

Files are never unpickled: torch.load runs with weights_only=True alone.
"""

from __future__ import annotations

import io
import pickle
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc import tensors
from oscc.checks import nearest
from oscc.errors import RequestError

_PREFIXES = ("_orig_mod.", "module.")
_PLAIN_NAMES = ("state_dict", "model", "model_state_dict")
_AVERAGED_NAMES = ("ema", "ema_state_dict", "model_ema", "ema_model")
_OTHER_NAMES = ("optim", "optimizer", "scheduler", "scaler", "amp")
_AVERAGED_PREFIX, _TRAINED_PREFIX = "ema_model.", "online_model."
_COUNTERS = ("initted", "step", "n_averaged", "num_updates")
DIVERGED = (
    "A model that has diverged can't be lowered; train again or take an earlier "
    "checkpoint."
)
_IMAGES = {b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF"}


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Arrays by name in float32, the file's metadata, notes on what was done."""

    arrays: Mapping[str, npt.NDArray[np.float32]]
    metadata: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    """Tensors by name before casting; numpy arrays or torch tensors."""

    content: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)


def read_weights(path: Path, key: str | None = None, *, finite: bool = True) -> Weights:
    """Weights of a checkpoint file of any container we read.

    Args:
        path: A safetensors file, or a torch.save file of a state dict or of a
            mapping that holds one.
        key: Which one to take where the file holds several, such as `ema`.
        finite: Refuse values that are not finite.

    Raises:
        RequestError: missing, empty, truncated, foreign, in need of unpickling,
            ambiguous without a key, or holding values that are not finite.
    """
    data = _read(path)
    if _is_safetensors(path, data):
        arrays, metadata = tensors.decode(data, where=str(path))
        types = tensors.stored_types(data, where=str(path))
        raw, used = _Raw(arrays, metadata, (), types), False
    else:
        found = _load_torch(path, data)
        raw, used = _state_dict(path, found, key)
    raw, used = _pick_average(raw, key, used)
    if key is not None and not used:
        raise RequestError(
            f"`{path}` holds nothing under the key `{key}`."
            f"{nearest(key, _known_keys(raw))}"
        )
    weights = _cast(path, _strip_prefixes(raw))
    if finite:
        _require_finite(weights.arrays)
    return weights


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


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor | np.ndarray)


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, Mapping) and any(_is_tensor(v) for v in value.values())


def _state_dict(path: Path, found: Any, key: str | None) -> tuple[_Raw, bool]:
    """The state dict in what torch.load gave, and whether the key chose it."""
    if not isinstance(found, Mapping):
        kind = type(found).__name__
        raise RequestError(f"`{path}` holds a {kind}, not named weights.")
    inner = {str(k): v for k, v in found.items() if _holds_tensors(v)}
    inner = {k: v for k, v in inner.items() if not k.startswith(_OTHER_NAMES)}
    if key in inner:
        return _Raw(inner[key], notes=(f"weights found under `{key}`",)), True
    if not inner:
        if not _holds_tensors(found):
            raise RequestError(f"`{path}` holds no tensors.")
        return _Raw({str(k): v for k, v in found.items()}), False
    names = [k for k in inner if k in (*_PLAIN_NAMES, *_AVERAGED_NAMES)] or list(inner)
    if len(names) > 1:
        listed = " and ".join(f"`{name}`" for name in names)
        fault = "" if key is None else f", none under the key `{key}`"
        hint = nearest(key, names) if key is not None else ""
        raise RequestError(
            f"`{path}` holds weights under {listed}{fault}.{hint} "
            f"Choose with --key {names[0]}."
        )
    name = names[0]
    return _Raw(inner[name], notes=(f"weights found under `{name}`",)), False


def _pick_average(raw: _Raw, key: str | None, used: bool) -> tuple[_Raw, bool]:
    """Averaged copy of a file that holds `ema_model.*` beside `online_model.*`."""
    prefixes = [
        prefix
        for prefix in (_AVERAGED_PREFIX, _TRAINED_PREFIX)
        if any(name.startswith(prefix) for name in raw.content)
    ]
    if not prefixes:
        return raw, used
    wanted = f"{key.rsplit('.', 1)[-1]}." if key is not None else prefixes[0]
    if wanted in prefixes:
        used = used or key is not None
    else:
        wanted = prefixes[0]
    rest = [n for n in raw.content if not n.startswith(tuple(prefixes))]
    ignored = [n for n in rest if n in _COUNTERS]
    kept = {
        name.removeprefix(wanted): value
        for name, value in raw.content.items()
        if name.startswith(wanted) or (name in rest and name not in ignored)
    }
    notes = [f"took the copy `{wanted}*`"]
    others = [p for p in prefixes if p != wanted]
    if others:
        notes[0] += f"; --key {others[0][:-1]} takes the other"
    if ignored:
        notes.append("counters ignored: " + ", ".join(sorted(ignored)))
    types = {name.removeprefix(wanted): kind for name, kind in raw.types.items()}
    return replace(raw, content=kept, notes=(*raw.notes, *notes), types=types), used


def _known_keys(raw: _Raw) -> list[str]:
    return [*_PLAIN_NAMES, *_AVERAGED_NAMES, *{n.split(".")[0] for n in raw.content}]


def _strip_prefixes(raw: _Raw) -> _Raw:
    """Remove wrapper prefixes that every name has, never of some names only."""
    content, types, notes = dict(raw.content), dict(raw.types), list(raw.notes)
    stripped = True
    while stripped:
        stripped = False
        for prefix in _PREFIXES:
            if content and all(name.startswith(prefix) for name in content):
                content = {k.removeprefix(prefix): v for k, v in content.items()}
                types = {k.removeprefix(prefix): v for k, v in types.items()}
                notes.append(f"prefix `{prefix}` removed from every name")
                stripped = True
    return replace(raw, content=content, types=types, notes=tuple(notes))


def _cast(path: Path, raw: _Raw) -> Weights:
    """Float32 copies of all tensors, contiguous, each with its own memory."""
    arrays: dict[str, npt.NDArray[np.float32]] = {}
    cast: dict[str, int] = {}
    for name, value in raw.content.items():
        if not _is_tensor(value):
            kind = type(value).__name__
            raise RequestError(f"`{path}`: `{name}` is a {kind}, not a tensor.")
        array, kind = _as_float32(path, name, value, raw.types.get(name, ""))
        if kind != "float32":
            cast[kind] = cast.get(kind, 0) + 1
        arrays[name] = array
    notes = [
        f"{n} tensors stored as {kind}, cast to float32" for kind, n in cast.items()
    ]
    return Weights(arrays, raw.metadata, (*raw.notes, *notes))


def _as_float32(
    path: Path, name: str, value: Any, stored: str
) -> tuple[npt.NDArray[np.float32], str]:
    import torch

    tensor = value if isinstance(value, torch.Tensor) else torch.from_numpy(value)
    if not tensor.dtype.is_floating_point:
        raise RequestError(
            f"`{path}`: tensor `{name}` holds {str(tensor.dtype).split('.')[-1]}, "
            "but weights are floating-point numbers."
        )
    kind = "bfloat16" if stored == "BF16" else str(tensor.dtype).split(".")[-1]
    array = tensor.detach().to(torch.float32).numpy()
    return np.array(array, np.float32, order="C", copy=True), kind


def _require_finite(arrays: Mapping[str, npt.NDArray[np.float32]]) -> None:
    for name, array in arrays.items():
        if fault := non_finite(name, array):
            raise RequestError(f"{fault}. {DIVERGED}")


def non_finite(name: str, array: npt.NDArray[np.float32]) -> str:
    """What a tensor holds that is not finite, and where first; empty if nothing.

    Example:
        >>> non_finite("beta", np.array([1.0, np.nan], np.float32))
        'tensor `beta` holds 1 NaN, first at (1,)'
    """
    bad = ~np.isfinite(array)
    if not bad.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    nan = bool(np.isnan(array[first]))
    word = "NaN" if nan else "infinite values"
    count = int(np.isnan(array).sum() if nan else np.isinf(array).sum())
    return f"tensor `{name}` holds {count} {word}, first at {first}"
