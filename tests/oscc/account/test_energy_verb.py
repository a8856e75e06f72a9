"""The verb: a build folder in, energy.json out, nothing mixed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscc.account.energy_account import energy_table
from oscc.build import new_build, outputs
from oscc.errors import RequestError
from oscc.ir.codec import save
from oscc.ir.program import Program
from oscc.observables import Observables
from oscc.observables import save as save_observables
from oscc.testing.energy import two_token_program
from oscc.verbs.energy import energy, energy_folder

FREE_J = 20 * 0.9025388528782835e-9
STAGE = "layer.0.coupling"


def _circuit(program: Program) -> Observables:
    arrays: dict[str, Any] = {
        "phase": [[0.4], [1.1]],
        "supply_J": [FREE_J, FREE_J],
        "injected_J": [0.0, 0.0],
        "r_series_J": [0.7 * FREE_J, 0.7 * FREE_J],
        "vo2_J": [0.3 * FREE_J, 0.3 * FREE_J],
        "capacitor_J": [0.0, 0.0],
    }
    named = {f"{STAGE}.{name}": np.array(value) for name, value in arrays.items()}
    return Observables("circuit", program.digest(), named, {})


@pytest.fixture
def build(tmp_path: Path) -> Path:
    program = two_token_program()
    out = tmp_path / "build"
    with new_build(out, force=False, version="0", seed=0, inputs={}) as folder:
        save(program, folder / "program.safetensors")
    seen = out / "sim" / "circuit" / "observables.safetensors"
    save_observables(_circuit(program), seen)
    return out


def test_folder_gets_its_account_and_lists_it(build: Path) -> None:
    found = energy_folder(build)
    content = json.loads((build / "energy.json").read_text())
    assert content == found.to_json()
    assert [entry["engine"] for entry in content["measured"]] == ["circuit"]
    assert content["measured"][0]["balanced"]
    manifest = json.loads((build / "manifest.json").read_text())
    assert manifest["outputs"] == outputs(build)
    assert "energy.json" in manifest["outputs"]


def test_twice_is_the_same_bytes(build: Path) -> None:
    energy_folder(build)
    first = (build / "energy.json").read_bytes()
    energy_folder(build)
    assert (build / "energy.json").read_bytes() == first


def test_overrides_reach_the_file(build: Path) -> None:
    energy_folder(build, overrides={"weight_write_J": 1e-9})
    content = json.loads((build / "energy.json").read_text())
    values = {entry["name"]: entry["value"] for entry in content["assumptions"]}
    assert values["weight_write_J"] == 1e-9


def test_observables_of_another_program_are_refused_and_nothing_is_written(
    build: Path,
) -> None:
    stale = dataclasses.replace(_circuit(two_token_program()), program="0" * 64)
    save_observables(stale, build / "sim" / "circuit" / "observables.safetensors")
    with pytest.raises(
        RequestError, match="sim/circuit was made from program 00000000"
    ):
        energy_folder(build)
    assert not (build / "energy.json").exists()


def test_a_folder_that_is_no_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="not a build folder"):
        energy_folder(tmp_path)


def test_a_tile_of_real_cells_is_a_measured_entry(build: Path) -> None:
    program = two_token_program()
    gap = {"engine": "gnucap", "sources": 16, "targets": 16, "supply_J": 3.6e-7}
    verdict = {
        "format": "oscc.verify/1",
        "program": program.digest(),
        "fidelity_gap": gap,
    }
    (build / "verify.json").write_text(json.dumps(verdict))
    account = energy_folder(build)
    measured = account.measured
    assert [entry["engine"] for entry in measured] == ["circuit", "gnucap"]
    assert "gnucap 360 nJ (tile of real cells, 16 targets, no balance" in str(account)
    assert measured[1]["supply_J"] == 3.6e-7
    assert "16 sources x 16 targets" in measured[1]["scope"]
    assert measured[1]["balanced"] is None


def test_python_verb_takes_one_run_or_several() -> None:
    program = two_token_program()
    one = energy(program, _circuit(program))
    several = energy(program, [_circuit(program)])
    assert one.to_json() == several.to_json()
    assert one.measured[0]["supply_J"] == pytest.approx(2 * FREE_J, rel=1e-12)


def test_ideal_elements_come_from_the_decks_that_ran() -> None:
    program = two_token_program()
    deck = Observables(
        "ngspice", program.digest(), {}, {"ideal_elements": {"V": 4, "B": 2}}
    )
    assert energy(program, deck).ideal_elements == {"V": 4, "B": 2}
    assert energy(program).ideal_elements is None


def test_the_table_marks_what_the_user_replaced(build: Path) -> None:
    own = str(energy_folder(build))
    assert "replaced" not in own
    found = energy_folder(build, overrides={"read_out_J": 2e-12})
    marked = [line for line in str(found).splitlines() if line.startswith("replaced")]
    assert len(marked) == 1
    assert "read_out_J = 2e-12 J: given by the user in place of 1e-12" in marked[0]
    assert "1 replaced by you" in str(found)
    place = energy_table(found.to_json(), {"read_out_J": "mine.yaml:3"})
    assert "in place of 1e-12 (mine.yaml:3)" in place
    entries = json.loads((build / "energy.json").read_text())["assumptions"]
    assert [one["name"] for one in entries if one["replaced"]] == ["read_out_J"]
