"""Files: atomic writes, content hashes, strict JSON."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from oscc.errors import RequestError, ToolError


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write beside the target, then rename: the old file or the whole new one.

    Raises:
        ToolError: the disk is full or the folder cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            if temporary:
                Path(temporary).unlink()
        raise ToolError(
            f"`{path}` could not be written: {error.strerror or error}. "
            "The earlier file, if there was one, is unchanged."
        ) from error


def require_writable(out: Path) -> None:
    """Refuse an output folder that is a file, or that cannot be made or written.

    Raises:
        RequestError: it is a file or below one, or is not writable.

    Example:
        >>> require_writable(Path("build/anything"))
    """
    try:
        place = out if out.exists() else _nearest_folder(out)
        is_file = not place.is_dir()
        writable = os.access(place, os.W_OK | os.X_OK)
    except PermissionError:  # below a folder that may not even be searched
        place, is_file, writable = out, False, False
    except OSError as error:
        raise RequestError(
            f"`{out}` cannot be a folder: {error.strerror or error}. Choose another -o."
        ) from error
    if is_file:
        raise RequestError(f"`{place}` is a file, not a folder. Choose another -o.")
    if not writable:
        raise RequestError(
            f"`{out}` is not writable by you (uid {os.getuid()}). Choose another -o."
        )


def _nearest_folder(path: Path) -> Path:
    for parent in path.absolute().parents:
        if parent.exists():
            return parent
    return Path.cwd()


def sha256_bytes(data: bytes) -> str:
    """Hexadecimal SHA-256 of the bytes.

    Example:
        >>> sha256_bytes(b"")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    return sha256_bytes(path.read_bytes())


def dump_json(content: Any) -> str:
    """Strict JSON text: sorted keys, UTF-8, no NaN, two spaces, final newline.

    Raises:
        ValueError: a number is not finite (write None instead).

    Example:
        >>> dump_json({"b": 1, "a": None}).split()
        ['{', '"a":', 'null,', '"b":', '1', '}']
    """
    return (
        json.dumps(
            content, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False
        )
        + "\n"
    )


def read_json(path: Path, expected_format: str) -> dict[str, Any]:
    """Content of one of our JSON files, its `format` key checked first.

    Raises:
        RequestError: missing, not JSON, or of another format.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RequestError(f"`{path}` does not exist.") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RequestError(f"`{path}` is not readable JSON: {error}.") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != expected_format:
        raise RequestError(
            f"`{path}` has format {found!r}, "
            f"but this version reads {expected_format!r}."
        )
    return dict(content)
