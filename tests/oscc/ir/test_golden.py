"""Golden files: every version ever written reads as the content it had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oscc.files import sha256_file
from oscc.ir.codec import encode, load
from oscc.ir.upgrade import FORMAT
from oscc.testing.golden import PROGRAMS, write_missing

GOLDEN = Path(__file__).parents[2] / "data" / "golden"

# Hash of the file as it was first written, digest of the program it holds.
VERSION_1 = {
    "flow": (
        "2da4e4222881056452154acb141ef9758efb392b11ada09d131c971320ace4ac",
        "a1ab6dd313307a9e79d798dd3b1f449e81699b49a495a741aa4b8a3ffc9f0e93",
    ),
    "probe": (
        "586f0accb58d337561fdc51f8bc71a882e0e8f4fdb1cfc89ef063351d3add076",
        "4dbba0e0ff14fc2e947ba036245e8e7d0e35af20e9b9a2d990cb85c23a72fe49",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_version_1_reads_as_the_content_it_had(name: str) -> None:
    path = GOLDEN / "program-1" / f"{name}.safetensors"
    file_hash, digest = VERSION_1[name]
    assert sha256_file(path) == file_hash
    program = load(path)
    assert program.digest() == digest
    assert program == PROGRAMS[name]()
    assert FORMAT == "oscc.program/1"
    assert encode(program) == path.read_bytes()


def test_version_1_arrays_are_where_the_equation_wants_them() -> None:
    program = load(GOLDEN / "program-1" / "flow.safetensors")
    stage = program.stages[0]
    assert stage.theta_rad.tolist() == [[0.125, -3.5], [9.25, 0.0]]
    assert stage.gain_rad.tolist() == [[2.0, -1.5], [0.0, 4.0]]
    assert [c.route for c in stage.couplings] == ["present", "successor"]
    assert stage.couplings[0].weights.tolist() == [[[1.0, 0.0], [0.25, 0.75]]]
    assert stage.couplings[1].gamma.tolist() == [[-1.0, 0.5], [-0.25, -0.125]]
    assert stage.couplings[0].alpha_rad.tolist() == [[0.0, 0.5], [-1.5, 2.0]]
    assert not np.signbit(stage.digital_rad[1, 1])
    assert program.device["parameters"] == {"c_F": 1e-10, "vdd_V": 5}
    assert program.tokens.tolist() == [34, 97]
    assert program.provenance == {"version": "golden", "passes": [{"name": "none"}]}


def test_writing_golden_files_never_touches_one_that_is_there(tmp_path: Path) -> None:
    assert len(write_missing(tmp_path)) == len(PROGRAMS)
    kept = tmp_path / "program-1" / "flow.safetensors"
    kept.write_bytes(b"kept")
    assert write_missing(tmp_path) == []
    assert kept.read_bytes() == b"kept"
