"""Bytes of a program: exact both ways; damage, tampering and foreign files refused."""

from __future__ import annotations

import json
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from oscc import tensors
from oscc.errors import RequestError
from oscc.ir import Program
from oscc.ir.codec import decode, encode, load, parts_digest, save, to_parts
from oscc.testing.strategies import programs
from oscc.testing.tiny import tiny_program, tiny_stage


@settings(max_examples=25)
@given(programs())
def test_decode_inverts_encode_byte_for_byte(program: Program) -> None:
    data = encode(program)
    back = decode(data)
    assert back == program
    assert encode(back) == data
    assert back.provenance == program.provenance
    assert back.digest() == program.digest()
    for stage, other in zip(program.stages, back.stages, strict=True):
        for name in ("theta_rad", "phi0_rad", "gain_rad", "digital_rad"):
            assert getattr(stage, name).tobytes() == getattr(other, name).tobytes()


def test_equal_programs_are_equal_bytes_whatever_the_layout() -> None:
    program = tiny_program()
    stage = program.stages[0]
    couplings = tuple(
        replace(c, weights=np.asfortranarray(c.weights)) for c in stage.couplings[::-1]
    )
    again = replace(stage, couplings=couplings, gain_rad=stage.gain_rad.T.copy().T)
    assert encode(program.replace(stages=(again,))) == encode(program)


def test_a_file_round_trips(tmp_path: Path) -> None:
    path = tmp_path / "Run 1 Ü" / "program.safetensors"
    save(tiny_program(), path)
    assert load(path) == tiny_program()


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="Is this a build folder of `oscc compile`"):
        load(tmp_path / "none.safetensors")


def repacked(
    *,
    header: dict[str, Any] | None = None,
    arrays: dict[str, Any] | None = None,
    honest: bool = True,
    **metadata: str,
) -> bytes:
    """The tiny program with parts replaced; `honest` makes its digest fit."""
    parts, words = to_parts(tiny_program())
    words = words | (header or {})
    parts = parts | (arrays or {})
    stored = {
        "format": words["format"],
        "program": json.dumps(words, sort_keys=True, ensure_ascii=False),
        "provenance": "{}",
        "digest": parts_digest(parts, words) if honest else tiny_program().digest(),
    }
    return tensors.encode(parts, stored | metadata)


def refusal(data: bytes) -> str:
    with pytest.raises(RequestError) as caught:
        decode(data, where="p")
    return str(caught.value)


TAMPERED = "`p` does not match its own digest: it was changed after writing. " + (
    "Compile it again."
)


def test_repacked_unchanged_is_read() -> None:
    assert decode(repacked()) == tiny_program()


@pytest.mark.parametrize(
    "change",
    [
        {"header": {"accuracy_rad": 0.02}},
        {"header": {"notes": ["x"]}},
        {"arrays": {"tokens": np.array([0, 1, 2, 4])}},
        {"arrays": {"tokens": np.array([0, 1, 2, 3]).astype(complex)}},
        {"arrays": {"spare": np.zeros(1)}},
        {"format": "oscc.program/01"},
        {"digest": ""},
    ],
)
def test_tampering_is_detected(change: dict[str, Any]) -> None:
    found = refusal(repacked(honest=False, **change))
    assert found == TAMPERED


def test_one_flipped_bit_of_an_array_is_detected() -> None:
    data = bytearray(encode(tiny_program()))
    data[-3] ^= 1
    assert refusal(bytes(data)) == TAMPERED


def test_a_newer_version_names_both() -> None:
    data = repacked(header={"format": "oscc.program/2"})
    assert refusal(data) == (
        "`p` has format 'oscc.program/2', but this version reads up to "
        "'oscc.program/1'. Use a newer oscc."
    )


def test_a_newer_version_is_refused_before_its_digest_is_looked_at() -> None:
    data = repacked(header={"format": "oscc.program/2"}, digest="?")
    assert "Use a newer oscc" in refusal(data)


def test_another_format_is_named() -> None:
    data = repacked(format="oscc.checkpoint/1")
    assert refusal(data) == "`p` has format 'oscc.checkpoint/1', not an oscc program."


def test_unknown_fields_are_named_with_the_nearest() -> None:
    data = repacked(header={"accuracy": 0.01})
    assert refusal(data) == (
        "`p` has the unknown field `accuracy`. Did you mean `accuracy_rad`?"
    )
    stage = to_parts(tiny_program())[1]["stages"][0]
    data = repacked(header={"stages": [stage | {"damping": 1.0}]})
    assert refusal(data) == "`p / stages.0` has the unknown field `damping`."
    routes = [entry | {"delay": 1} for entry in stage["couplings"]]
    data = repacked(header={"stages": [stage | {"couplings": routes}]})
    assert "`p / stages.0.couplings` has the unknown field `delay`." in refusal(data)


def test_an_unknown_array_is_named() -> None:
    data = repacked(arrays={"stages.0.noise": np.zeros(1)})
    assert refusal(data) == "`p` has the unknown array `stages.0.noise`."


def test_missing_fields_and_arrays_are_named() -> None:
    parts, words = to_parts(tiny_program())
    del words["device"]
    data = tensors.encode(
        parts,
        {
            "format": "oscc.program/1",
            "program": json.dumps(words),
            "digest": parts_digest(parts, words),
        },
    )
    assert refusal(data) == "`p` lacks the field 'device'."
    parts, words = to_parts(tiny_program())
    del parts["stages.0.gain_rad"]
    data = tensors.encode(
        parts,
        {
            "format": "oscc.program/1",
            "program": json.dumps(words),
            "digest": parts_digest(parts, words),
        },
    )
    assert refusal(data) == "`p` lacks the field 'stages.0.gain_rad'."


def test_other_conventions_are_refused() -> None:
    data = repacked(header={"conventions": {"phase_zero": "downward crossing"}})
    assert "states other conventions" in refusal(data)


def test_content_that_breaks_a_law_is_refused_though_its_digest_fits() -> None:
    weights = np.ones((2, 4, 4))
    data = repacked(arrays={"stages.0.present.weights": weights})
    assert "receives from the later token" in refusal(data)


@pytest.mark.parametrize("words", ["[]", "{", "3", '{"format": "oscc.program/1"}'])
def test_a_malformed_header_is_one_message(words: str) -> None:
    assert refusal(repacked(program=words)).startswith("`p` ")


@pytest.mark.parametrize("keep", [0, 7, 8, 100, -1])
def test_a_truncated_file_is_one_message(keep: int) -> None:
    data = encode(tiny_program())
    assert "is not a whole safetensors file" in refusal(data[:keep])


def test_an_image_is_one_message() -> None:
    assert "safetensors file" in refusal(b"\x89PNG\r\n\x1a\n" + bytes(64))


def claiming(nodes: int) -> bytes:
    """File of 2 kB whose header claims arrays of that many rows."""
    data = encode(tiny_program())
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    begin = header["stages.0.theta_rad"]["data_offsets"][0]
    header["stages.0.theta_rad"]["shape"] = [nodes, 4]
    header["stages.0.theta_rad"]["data_offsets"] = [begin, begin + 32 * nodes]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


@pytest.mark.parametrize(
    "data",
    [
        claiming(10**9),
        struct.pack("<Q", 10**12) + b"{}",
        repacked(header={"stages": [{"substeps": 10**12}]}),
    ],
)
def test_huge_claims_are_refused_before_memory_is_taken(data: bytes) -> None:
    refusal(data)  # imports and first uses
    tracemalloc.start()
    try:
        refusal(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_claimed_order_of_a_billion_is_refused() -> None:
    stage = to_parts(tiny_program())[1]["stages"][0]
    routes = [entry | {"harmonics": [1, 10**9]} for entry in stage["couplings"]]
    data = repacked(header={"stages": [stage | {"couplings": routes}]})
    assert "the largest order is 64" in refusal(data)


def test_a_stage_of_each_word_survives() -> None:
    stage = tiny_stage(
        update="probe",
        model_update="euler",
        probe_epsilon=0.005,
        scheme="corrected",
        causal=False,
        fidelity="oscillators",
    )
    back = decode(encode(tiny_program(stage))).stages[0]
    for word in ("update", "model_update", "probe_epsilon", "scheme", "readout"):
        assert getattr(back, word) == getattr(stage, word)
    assert (back.causal, back.fidelity) == (False, "oscillators")
