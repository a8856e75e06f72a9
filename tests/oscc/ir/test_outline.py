"""Outline of a program: plain YAML for people, without arrays."""

from __future__ import annotations

import numpy as np
import yaml

from oscc.ir.outline import outline, outline_yaml
from oscc.ir.views import coupled_pairs, pair_terms
from oscc.testing.tiny import tiny_program, tiny_stage


def test_text_is_yaml_that_a_plain_loader_reads_back() -> None:
    program = tiny_program(notes=("changed as asked: ü",), provenance={"seed": 3})
    assert yaml.safe_load(outline_yaml(program)) == outline(program)


def test_numbers_are_those_of_the_program() -> None:
    program = tiny_program(tiny_stage(scheme="plain", substeps=2, dwell_periods=7))
    found = outline(program)
    stage = found["stages"][0]
    assert found["digest"] == program.digest()
    assert found["device"] == "vo2-two-state-6k"
    assert stage["periods_in_all"] == 14
    assert stage["coupled_pairs"] == coupled_pairs(program.stages[0])
    assert stage["pair_terms"] == pair_terms(program.stages[0])
    assert stage["targets"] == {"tokens": 4, "coordinates": 4}


def test_size_does_not_grow_with_the_arrays() -> None:
    small = len(outline_yaml(tiny_program()))
    large = tiny_stage(tokens=40, coordinates=8)
    stage = tiny_program().stages[0]
    grown = tiny_program().replace(stages=(large,), tokens=np.arange(40))
    assert len(outline_yaml(grown)) < small + 100
    assert stage.name in outline_yaml(grown)
