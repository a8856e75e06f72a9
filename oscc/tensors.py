"""The only writer and reader of safetensors files.

Two traps of the format's own writer are mended here: arrays that are not C-ordered
are scrambled in silence, and the header's key order is random with two or more
metadata keys. Complex arrays are stored as NAME.re and NAME.im.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.errors import RequestError
from oscc.files import write_atomic

Arrays = dict[str, npt.NDArray[Any]]

_LIMIT_HEADER = 100_000_000
_AGAIN = "Copy or save the file again."
CAST = "Cast it to float32 or bfloat16 before it is saved."


def encode(
    arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]
) -> bytes:
    """Bytes of a safetensors file; equal content is equal bytes.

    Args:
        arrays: Named arrays of any layout, shape (...); complex ones are split.
        metadata: Text by key, written with sorted keys.

    Raises:
        RequestError: a name is used twice once complex arrays are split.

    Example:
        >>> encode({}, {"b": "1", "a": "2"}) == encode({}, {"a": "2", "b": "1"})
        True
    """
    from safetensors.numpy import save

    plain: Arrays = {}
    for name, array in sorted(arrays.items()):
        parts = {name: array}
        if np.iscomplexobj(array):
            parts = {f"{name}.re": array.real, f"{name}.im": array.imag}
        for key, part in parts.items():
            if key in plain:
                raise RequestError(f"Two arrays would both be stored as `{key}`.")
            # asarray keeps shape (), where ascontiguousarray would make it (1,)
            plain[key] = np.asarray(part, order="C")
    for name in arrays:
        if name.endswith(".re") and f"{name[:-3]}.im" in arrays:
            raise RequestError(
                f"`{name}` and its `.im` would be read as `{name[:-3]}`."
            )
    return _sorted_header(save(plain, dict(metadata)))


def _sorted_header(data: bytes) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    text = json.dumps(
        header, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def save(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file atomically.

    Raises:
        ToolError: the file could not be written.
    """
    write_atomic(path, encode(arrays, metadata))


def decode(data: bytes, *, where: str) -> tuple[Arrays, dict[str, str]]:
    """Arrays and metadata of a safetensors file's bytes.

    Arrays of bfloat16, which numpy lacks, come back in float32.

    Args:
        where: Name of the file, for messages.

    Raises:
        RequestError: truncated, foreign or inconsistent content, or an element type
            that is not read, such as F8_E4M3.

    Example:
        >>> decode(encode({"x": np.ones(2)}, {}), where="x")[0]["x"].tolist()
        [1.0, 1.0]
    """
    arrays, metadata, unread = decode_known(data, where=where)
    for name, (kind, shape) in unread.items():
        raise RequestError(
            f"`{where}`: tensor `{name}` {shape} holds {kind}, an element type that "
            f"is not read. {CAST}"
        )
    return arrays, metadata


def decode_known(
    data: bytes, *, where: str
) -> tuple[Arrays, dict[str, str], dict[str, tuple[str, tuple[int, ...]]]]:
    """As `decode`, with the tensors of element types that are not read set apart.

    Returns:
        Arrays, metadata, and element type and shape of the others by name.

    Raises:
        RequestError: truncated, foreign or inconsistent content.

    Example:
        >>> decode_known(encode({"x": np.ones(2)}, {}), where="x")[2]
        {}
    """
    from safetensors import SafetensorError, deserialize

    metadata = _metadata(data, where)
    arrays: Arrays = {}
    unread = {}
    try:
        for name, part in deserialize(data):  # type: ignore[no-untyped-call]
            if part["dtype"] in _TYPES:
                arrays[name] = _array(part)
            else:
                unread[name] = part["dtype"], tuple(part["shape"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise RequestError(
            f"`{where}` is not a whole safetensors file: {error}. {_AGAIN}"
        ) from error
    return _joined(arrays), metadata, unread


def stored_types(data: bytes, *, where: str) -> dict[str, str]:
    """Element type of every array as the file names it, such as `BF16`.

    Raises:
        RequestError: truncated or foreign content.

    Example:
        >>> stored_types(encode({"x": np.ones(2)}, {}), where="x")
        {'x': 'F64'}
    """
    header = _header(data, where)
    entries = {k: v for k, v in header.items() if k != "__metadata__"}
    return {
        str(name): str(entry.get("dtype")) if isinstance(entry, dict) else ""
        for name, entry in entries.items()
    }


_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "C64": "<c8",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
    "BOOL": "?",
}


def _array(part: Any) -> npt.NDArray[Any]:
    """Array of one stored tensor; bfloat16 is the upper half of a float32."""
    flat = np.frombuffer(part["data"], _TYPES[part["dtype"]])
    if part["dtype"] == "BF16":
        flat = (flat.astype("<u4") << 16).view("<f4")
    return flat.reshape(part["shape"])


def _metadata(data: bytes, where: str) -> dict[str, str]:
    found = _header(data, where).get("__metadata__", {})
    if not isinstance(found, dict):
        raise RequestError(
            f"`{where}` is not a whole safetensors file: its metadata is no mapping. "
            f"{_AGAIN}"
        )
    return {str(key): str(value) for key, value in found.items()}


def _header(data: bytes, where: str) -> dict[str, Any]:
    if len(data) < 8:
        raise RequestError(
            f"`{where}` is not a whole safetensors file: {len(data)} bytes. {_AGAIN}"
        )
    length = struct.unpack("<Q", data[:8])[0]
    if length > min(len(data) - 8, _LIMIT_HEADER):
        raise RequestError(
            f"`{where}` is not a whole safetensors file: its header is cut off. "
            f"{_AGAIN}"
        )
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"`{where}` is not a safetensors file: {error}. {_AGAIN}"
        ) from error
    return header if isinstance(header, dict) else {}


def _joined(arrays: Arrays) -> Arrays:
    out = dict(arrays)
    for name in arrays:
        stem = name.removesuffix(".re")
        if stem != name and f"{stem}.im" in arrays:
            # not re + 1j * im, which turns an infinite part into NaN
            joined = np.empty(arrays[name].shape, np.complex128)
            joined.real, joined.imag = out.pop(name), out.pop(f"{stem}.im")
            out[stem] = joined
    return out


def load(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Arrays and metadata of a safetensors file.

    Raises:
        RequestError: missing, a folder, truncated or foreign.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise RequestError(f"`{path}` does not exist.") from error
    except OSError as error:
        raise RequestError(
            f"`{path}` cannot be read: {error.strerror or error}."
        ) from error
    return decode(data, where=str(path))
