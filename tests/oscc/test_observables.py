"""Observables: read-only, finite, exact through their file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oscc import tensors
from oscc.errors import RequestError, ToolError
from oscc.observables import Observables, load, save


def some(**arrays: object) -> Observables:
    named = {f"layer.0.coupling.{k}": np.array(v) for k, v in arrays.items()}
    return Observables("circuit", "d" * 64, named, {"version": "x", "decks": 3})


def test_a_file_round_trips_exactly(tmp_path: Path) -> None:
    seen = some(
        phase=[[0.1, -9.5], [np.pi, 0.0]], index=[[0, 1]], supply_J=[1e-9, 5e-324]
    )
    path = tmp_path / "sim" / "circuit" / "observables.safetensors"
    save(seen, path)
    found = load(path)
    assert (found.engine, found.program) == (seen.engine, seen.program)
    assert found.facts == seen.facts
    assert found.arrays.keys() == seen.arrays.keys()
    for name, array in seen.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].tobytes() == array.tobytes()
    save(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_layout_and_order_do_not_change_the_bytes(tmp_path: Path) -> None:
    phase = np.arange(6.0).reshape(2, 3)
    one = Observables("phase", "d", {"a.phase": phase, "b.phase": phase}, {})
    turned = {"b.phase": np.asfortranarray(phase), "a.phase": phase.T.copy().T}
    save(one, tmp_path / "one")
    save(Observables("phase", "d", turned, {}), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_arrays_cannot_be_written_and_are_copies() -> None:
    phase = np.zeros((2, 2))
    seen = Observables("phase", "d", {"a.phase": phase}, {})
    phase[0, 0] = 1.0
    assert seen.phase("a")[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        seen.phase("a")[0, 0] = 2.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_no_observable(value: float) -> None:
    with pytest.raises(ToolError) as caught:
        some(phase=[[0.0, 1.0], [value, value]])
    assert str(caught.value) == (
        "The circuit run gave 2 values of `layer.0.coupling.phase` that are not "
        "finite, first at (1, 0): no number is offered."
    )


def test_stages_are_those_with_phases() -> None:
    arrays = {
        "layer.1.coupling.phase": np.zeros(2),
        "layer.0.coupling.phase": np.zeros(2),
        "layer.2.coupling.raw.end_rad": np.zeros(2),
    }
    seen = Observables("ngspice", "d", arrays, {})
    assert seen.stages == ("layer.0.coupling", "layer.1.coupling")
    with pytest.raises(RequestError) as caught:
        seen.phase("layer.2.coupling")
    assert str(caught.value) == "The ngspice run holds no `layer.2.coupling.phase`."


def test_index_of_all_targets_runs_token_by_token() -> None:
    seen = some(phase=np.zeros((2, 3)))
    assert seen.index("layer.0.coupling", (2, 3)).tolist() == [
        [t, j] for t in range(2) for j in range(3)
    ]
    sampled = some(phase=[0.0], index=[[1, 2]])
    assert sampled.index("layer.0.coupling", (2, 3)).tolist() == [[1, 2]]


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "o"
    tensors.save(path, {}, {"format": "oscc.program/1"})
    with pytest.raises(RequestError) as caught:
        load(path)
    assert str(caught.value) == (
        f"`{path}` has format 'oscc.program/1', but this version reads "
        "'oscc.observables/1'."
    )
    tensors.save(path, {}, {"format": "oscc.observables/1", "facts": "{"})
    with pytest.raises(RequestError, match="has malformed facts"):
        load(path)
    path.write_bytes(b"half")
    with pytest.raises(RequestError, match="is not a whole safetensors file"):
        load(path)
