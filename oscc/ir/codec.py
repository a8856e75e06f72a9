"""Program to bytes and back: safetensors with a JSON header, exact both ways."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc import tensors
from oscc.checks import nearest
from oscc.errors import RequestError
from oscc.ir.correlation_codec import correlation_from, correlation_parts
from oscc.ir.coupling import Coupling
from oscc.ir.edges import Edges
from oscc.ir.modes import MODE_ARRAYS, Modes
from oscc.ir.program import CONVENTIONS, HostOperation, Program
from oscc.ir.stage import Stage
from oscc.ir.upgrade import FORMAT, require_known, upgrade

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
# Younger than the format: written only where they say something, so that a program
# of before is still the same bytes.
_LATER_ARRAYS = ("index", "source_index", "digital_coherence")
_LATER_WORDS = {"first_token": 0, "readers": 1, "lock_mode": "host"}
_LATER_PARTS = ("modes",)
_EDGE_ARRAYS = ("target", "source", "harmonic", "gamma", "alpha_rad")
_PROGRAM_WORDS = ("family", "accuracy_rad", "coupler", "deck_targets", "seed")
# Element types on disk; a foreign file may hold others, and then has another digest.
_STORED = {"i": "<i8", "f": "<f8"}
_COUPLING_WORDS = ("route", "harmonics")
_PROGRAM_PARTS = (
    "format",
    "conventions",
    "device",
    "notes",
    "host_operations",
    "stages",
)


def _stage_parts(stage: Stage, key: str, arrays: Arrays) -> dict[str, Any]:
    for name in (*_STAGE_ARRAYS, *_LATER_ARRAYS):
        if getattr(stage, name) is not None:
            arrays[f"{key}.{name}"] = getattr(stage, name)
    words = {word: getattr(stage, word) for word in _STAGE_WORDS}
    for word, default in _LATER_WORDS.items():
        if getattr(stage, word) != default:
            words[word] = getattr(stage, word)
    if stage.modes is not None:
        for name in MODE_ARRAYS:
            arrays[f"{key}.modes.{name}"] = getattr(stage.modes, name)
        words["modes"] = {"response": stage.modes.response}
    if stage.flat:
        for name in _EDGE_ARRAYS:
            arrays[f"{key}.edges.{name}"] = getattr(stage.edges, name)
        return words | {"couplings": [{"form": "edges"}]}
    couplings = []
    for coupling in stage.factored:
        stem = f"{key}.{coupling.route}"
        arrays[f"{stem}.weights"] = coupling.weights
        arrays[f"{stem}.gamma"] = coupling.gamma
        arrays[f"{stem}.alpha_rad"] = coupling.alpha_rad
        couplings.append(
            {"route": coupling.route, "harmonics": coupling.harmonics.tolist()}
        )
    return words | {"couplings": couplings}


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
    if program.correlations:
        header["correlations"] = [
            correlation_parts(one, f"correlations.{number}", arrays)
            for number, one in enumerate(program.correlations)
        ]
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
    return parts_digest(*to_parts(program))


def parts_digest(arrays: Mapping[str, npt.NDArray[Any]], header: Any) -> str:
    """Digest of a file's parts as they stand, whatever their version."""
    found = hashlib.sha256(_canonical(header).encode())
    for name, array in sorted(arrays.items()):
        kind = _STORED.get(array.dtype.kind, array.dtype.str)
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
        stored = json.loads(metadata["program"])
        require_known(metadata["format"], where=where)
        _require_whole(arrays, stored, metadata, where)
        header = upgrade(stored, arrays, where=where)
        provenance = json.loads(metadata.get("provenance", "{}"))
        return _from_parts(arrays, header, provenance, where)
    except KeyError as error:
        raise RequestError(f"`{where}` lacks the field {error}.") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise RequestError(f"`{where}` has a malformed header: {error}.") from error


def _require_whole(
    arrays: Arrays, header: Any, metadata: Mapping[str, str], where: str
) -> None:
    """Refuse content that is not what was written."""
    same_format = header.get("format") == metadata["format"]
    if not same_format or metadata.get("digest") != parts_digest(arrays, header):
        raise RequestError(
            f"`{where}` does not match its own digest: it was changed after writing. "
            "Compile it again."
        )


def _from_parts(
    arrays: Arrays,
    header: Mapping[str, Any],
    provenance: Mapping[str, Any],
    where: str,
) -> Program:
    _require_fields(header, (*_PROGRAM_WORDS, *_PROGRAM_PARTS, "correlations"), where)
    if header["conventions"] != dict(CONVENTIONS):
        raise RequestError(
            f"`{where}` states other conventions than this version knows: "
            f"{header['conventions']}."
        )
    stages = tuple(
        _stage_from(arrays, f"stages.{number}", dict(content), where)
        for number, content in enumerate(header["stages"])
    )
    program = Program(
        stages=stages,
        host_operations=tuple(HostOperation(**o) for o in header["host_operations"]),
        device=dict(header["device"]),
        tokens=arrays["tokens"],
        notes=tuple(header["notes"]),
        provenance=dict(provenance),
        correlations=tuple(
            correlation_from(arrays, f"correlations.{number}", content, where)
            for number, content in enumerate(header.get("correlations", ()))
        ),
        **{word: header[word] for word in _PROGRAM_WORDS},
    )
    spare = sorted(set(arrays) - set(to_parts(program)[0]))
    if spare:
        raise RequestError(f"`{where}` has the unknown array `{spare[0]}`.")
    return program


def _require_fields(
    header: Mapping[str, Any], known: Collection[str], where: str
) -> None:
    unknown = sorted(set(header) - set(known))
    if unknown:
        raise RequestError(
            f"`{where}` has the unknown field `{unknown[0]}`."
            f"{nearest(unknown[0], known)}"
        )


def _stage_from(arrays: Arrays, key: str, content: dict[str, Any], where: str) -> Stage:
    entries = content.pop("couplings")
    known = (*_STAGE_WORDS, *_LATER_WORDS, *_LATER_PARTS)
    _require_fields(content, known, f"{where} / {key}")
    couplings: list[Coupling | Edges] = []
    for entry in entries:
        if entry == {"form": "edges"}:
            edges = {n: arrays[f"{key}.edges.{n}"] for n in _EDGE_ARRAYS}
            couplings.append(Edges(**edges))
            continue
        _require_fields(entry, _COUPLING_WORDS, f"{where} / {key}.couplings")
        stem = f"{key}.{entry['route']}"
        couplings.append(
            Coupling(
                route=entry["route"],
                harmonics=np.asarray(entry["harmonics"]),
                weights=arrays[f"{stem}.weights"],
                gamma=arrays[f"{stem}.gamma"],
                alpha_rad=arrays[f"{stem}.alpha_rad"],
            )
        )
    values: dict[str, Any] = {n: arrays[f"{key}.{n}"] for n in _STAGE_ARRAYS}
    values |= {n: arrays[f"{key}.{n}"] for n in _LATER_ARRAYS if f"{key}.{n}" in arrays}
    values |= {word: content[word] for word in _STAGE_WORDS}
    values |= {word: content[word] for word in _LATER_WORDS if word in content}
    if "modes" in content:
        _require_fields(content["modes"], ("response",), f"{where} / {key}.modes")
        parts: dict[str, Any] = dict(content["modes"])
        parts |= {name: arrays[f"{key}.modes.{name}"] for name in MODE_ARRAYS}
        values["modes"] = Modes(**parts)
    return Stage(couplings=tuple(couplings), **values)


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
