"""Program to bytes and back: safetensors with a JSON header, exact both ways."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc import tensors
from oscc.errors import RequestError
from oscc.ir.coupling import Coupling
from oscc.ir.program import CONVENTIONS, HostOperation, Program
from oscc.ir.stage import Stage
from oscc.ir.upgrade import FORMAT, upgrade

Arrays = dict[str, npt.NDArray[Any]]

_STAGE_ARRAYS = ("theta_rad", "phi0_rad", "gain_rad", "detuning_rad", "digital_rad")
_STAGE_WORDS = (
    "name",
    "update",
    "model_update",
    "probe_epsilon",
    "scheme",
    "substeps",
    "dwell_periods",
    "readout",
    "causal",
    "fidelity",
)
_PROGRAM_WORDS = ("family", "accuracy_rad", "coupler", "deck_targets", "seed")


def _stage_parts(stage: Stage, key: str, arrays: Arrays) -> dict[str, Any]:
    for name in _STAGE_ARRAYS:
        arrays[f"{key}.{name}"] = getattr(stage, name)
    couplings = []
    for coupling in stage.couplings:
        stem = f"{key}.{coupling.route}"
        arrays[f"{stem}.weights"] = coupling.weights
        arrays[f"{stem}.gamma"] = coupling.gamma
        arrays[f"{stem}.alpha_rad"] = coupling.alpha_rad
        couplings.append(
            {"route": coupling.route, "harmonics": coupling.harmonics.tolist()}
        )
    return {word: getattr(stage, word) for word in _STAGE_WORDS} | {
        "couplings": couplings
    }


def to_parts(program: Program) -> tuple[Arrays, dict[str, Any]]:
    """Arrays by name and the header without provenance."""
    arrays: Arrays = {"tokens": program.tokens}
    header: dict[str, Any] = {word: getattr(program, word) for word in _PROGRAM_WORDS}
    header |= {
        "format": FORMAT,
        "conventions": dict(CONVENTIONS),
        "device": program.device,
        "notes": list(program.notes),
        "host_operations": [dataclasses.asdict(o) for o in program.host_operations],
        "stages": [
            _stage_parts(stage, f"stages.{number}", arrays)
            for number, stage in enumerate(program.stages)
        ],
    }
    return arrays, header


def _canonical(content: Any) -> str:
    return json.dumps(
        content,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def content_digest(program: Program) -> str:
    """SHA-256 over the header and every array in fixed byte order."""
    arrays, header = to_parts(program)
    found = hashlib.sha256(_canonical(header).encode())
    for name, array in sorted(arrays.items()):
        kind = "<i8" if array.dtype.kind == "i" else "<f8"
        found.update(f"{name}{array.shape}{kind}".encode())
        found.update(np.asarray(array, dtype=kind, order="C").tobytes())
    return found.hexdigest()


def encode(program: Program) -> bytes:
    """Bytes of `program.safetensors`."""
    arrays, header = to_parts(program)
    metadata = {
        "format": FORMAT,
        "program": _canonical(header),
        "provenance": _canonical(program.provenance),
        "digest": content_digest(program),
    }
    return tensors.encode(arrays, metadata)


def decode(data: bytes, *, where: str = "program.safetensors") -> Program:
    """Program of a file's bytes: format, version and digest are checked in turn.

    Raises:
        RequestError: another format, a newer version, a missing field or array, or
            content that does not match its digest.
    """
    arrays, metadata = tensors.decode(data, where=where)
    if not metadata.get("format", "").startswith("oscc.program/"):
        raise RequestError(
            f"`{where}` has format {metadata.get('format')!r}, not an oscc program."
        )
    try:
        header = upgrade(json.loads(metadata["program"]), arrays, where=where)
        provenance = json.loads(metadata.get("provenance", "{}"))
        program = _from_parts(arrays, header, provenance)
    except KeyError as error:
        raise RequestError(f"`{where}` lacks the field {error}.") from error
    except (json.JSONDecodeError, TypeError, AttributeError) as error:
        raise RequestError(f"`{where}` has a malformed header: {error}.") from error
    if metadata["format"] == FORMAT and metadata.get("digest") != program.digest():
        raise RequestError(
            f"`{where}` does not match its own digest: it was changed after writing. "
            "Compile it again."
        )
    return program


def _from_parts(
    arrays: Arrays, header: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Program:
    known = {
        *_PROGRAM_WORDS,
        *("format", "conventions", "device", "notes", "host_operations", "stages"),
    }
    unknown = sorted(set(header) - known)
    if unknown:
        raise RequestError(
            f"The program's header has the unknown field `{unknown[0]}`."
        )
    stages = tuple(
        _stage_from(arrays, f"stages.{number}", dict(content))
        for number, content in enumerate(header["stages"])
    )
    return Program(
        stages=stages,
        host_operations=tuple(HostOperation(**o) for o in header["host_operations"]),
        device=dict(header["device"]),
        tokens=arrays["tokens"],
        notes=tuple(header["notes"]),
        provenance=dict(provenance),
        **{word: header[word] for word in _PROGRAM_WORDS},
    )


def _stage_from(arrays: Arrays, key: str, content: dict[str, Any]) -> Stage:
    couplings = tuple(
        Coupling(
            route=entry["route"],
            harmonics=np.asarray(entry["harmonics"], dtype=np.int64),
            weights=arrays[f"{key}.{entry['route']}.weights"],
            gamma=arrays[f"{key}.{entry['route']}.gamma"],
            alpha_rad=arrays[f"{key}.{entry['route']}.alpha_rad"],
        )
        for entry in content.pop("couplings")
    )
    unknown = sorted(set(content) - set(_STAGE_WORDS))
    if unknown:
        raise RequestError(f"{key} has the unknown field `{unknown[0]}`.")
    values: dict[str, Any] = {n: arrays[f"{key}.{n}"] for n in _STAGE_ARRAYS}
    values |= {word: content[word] for word in _STAGE_WORDS}
    return Stage(couplings=couplings, **values)


def save(program: Program, path: Path) -> None:
    """Write `program.safetensors` atomically.

    Raises:
        ToolError: the file could not be written.
    """
    from oscc.files import write_atomic

    write_atomic(path, encode(program))


def load(path: Path) -> Program:
    """Read a program file of any version.

    Raises:
        RequestError: missing, damaged, newer than this version, or foreign.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RequestError(
            f"`{path}` cannot be read: {error.strerror or error}. "
            "Is this a build folder of `oscc compile`?"
        ) from error
    return decode(data, where=str(path))
