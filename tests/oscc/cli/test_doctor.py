"""`oscc doctor`: the installation, simulators that lie, files that are wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscc.device.card_file import card_names
from oscc.verbs.selftest import closed_forms, lock_phase, stepped_period_s

Call = Callable[..., Any]
ROOT = Path(__file__).parents[3]


def answers(call: Call, *arguments: object) -> tuple[int, dict[str, Any]]:
    found = call("doctor", "--json", *arguments)
    return found.status, json.loads(found.out)


def stub(folder: Path, text: str) -> Path:
    path = folder / "simulator"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.ngspice
@pytest.mark.gnucap
def test_a_sound_installation(call: Call) -> None:
    status, found = answers(call)
    assert status == 0, found
    assert found["format"] == "oscc.doctor/1"
    assert found["levels"] == {
        "ir": True,
        "phase": True,
        "circuit": True,
        "spice:ngspice": True,
        "spice:gnucap": True,
    }
    assert all(set(c) == {"name", "ok", "detail", "mend"} for c in found["checks"])
    text = call("doctor")
    assert "known deck, period off by" in text.out
    assert text.out.endswith("all is sound\n")


@pytest.mark.parametrize("tool", ["ngspice", "gnucap"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "not found"),
        ("exit 0", "does not run a known deck"),
        ("echo 'ngspice-14'; echo 'Gnucap : version 0.2'; exit 1", "known deck"),
        ("echo nan nan; exit 0", "does not run a known deck"),
    ],
    ids=["missing", "silent", "old", "nonsense"],
)
def test_a_simulator_is_judged_by_what_it_computes(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    text: str | None,
    words: str,
) -> None:
    path = tmp_path / "none" if text is None else stub(tmp_path, text)
    monkeypatch.setenv(f"OSCC_{tool.upper()}", str(path))
    status, found = answers(call)
    assert status == 3
    check = next(c for c in found["checks"] if c["name"] == tool)
    assert not check["ok"]
    assert words in check["detail"]
    assert "apt-get install" in check["mend"]
    assert found["levels"][f"spice:{tool}"] is False
    assert found["levels"]["circuit"] is True


@pytest.mark.ngspice
def test_a_simulator_that_computes_something_else_is_seen(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper that makes every capacitor of the deck 1 % larger."""
    real = shutil.which("ngspice")
    edit = r"sed -i -E 's/^(c[^ ]* [^ ]+ [^ ]+) ([0-9.eE+-]+)/\1 {1.01*\2}/I' deck.cir"
    path = stub(tmp_path, f'[ -f deck.cir ] && {edit}\nexec {real} "$@"')
    monkeypatch.setenv("OSCC_NGSPICE", str(path))
    status, found = answers(call)
    check = next(c for c in found["checks"] if c["name"] == "ngspice")
    assert (status, check["ok"]) == (3, False), check


def test_simulate_with_a_simulator_that_says_nothing_is_status_3(
    call: Call, build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (None, "exit 0"):
        path = tmp_path / "none" if text is None else stub(tmp_path, text)
        monkeypatch.setenv("OSCC_NGSPICE", str(path))
        found = call("simulate", build, "--engine", "ngspice")
        assert found.status == 3
        assert "ngspice" in found.err
        assert not (build / "sim" / "ngspice" / "observables.safetensors").exists()
        found = call("verify", build, "--levels", "spice:ngspice", "--json")
        assert found.status == 3
        level = json.loads(found.out)["levels"][0]
        assert (level["passed"], bool(level["reason"])) == (None, True)


@pytest.mark.parametrize("name", card_names())
def test_shipped_cards_are_sound(call: Call, name: str) -> None:
    found = call("doctor", name)
    assert found.status == 0
    assert f"{name} oscillates: period" in found.out


def test_a_wrong_card(call: Call, tmp_path: Path) -> None:
    text = (ROOT / "oscc/device/cards/vo2-two-state-6k.yaml").read_text("utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert call("doctor", path).status == 0
    path.write_text(text + "\nr_sries: 3\n")
    found = call("doctor", path)
    assert found.status == 2
    assert "r_sries" in found.out


def test_shipped_checkpoints_are_sound(call: Call) -> None:
    for path in sorted((ROOT / "checkpoints").glob("*.safetensors")):
        if "state" not in path.suffixes:
            found = call("doctor", path)
            assert found.status == 0, found.out


def test_lock_phase_and_period_by_stepping_and_by_formula() -> None:
    from oscc.device import load_card
    from oscc.device.piecewise import period_s

    # asin(0.6), the two-oscillator case of the handed list
    assert lock_phase(0.5, 0.6) == pytest.approx(0.643501, abs=1e-6)
    for name in card_names():
        card = load_card(name)
        # second-order stepping: (1e-4 r_series / r_met)^2 of r_series C, as in there
        limit = (1e-4 * card.r_series_ohm / card.r_met_ohm) ** 2
        limit *= card.r_series_ohm * card.c_F / period_s(card)
        assert stepped_period_s(card) == pytest.approx(period_s(card), rel=limit)
    assert closed_forms().startswith("closed forms")


def test_what_cannot_be_lowered_is_a_note(call: Call) -> None:
    found = call("doctor", ROOT / "checkpoints" / "transformer.safetensors")
    assert found.status == 0
    for number in (0, 1):
        assert (
            f"note  layer {number}: cannot be lowered attention; on the h" in found.out
        )
    assert "Family `transformer` cannot be lowered yet" in found.out
    assert "note  nothing of this checkpoint can be compiled" in found.out
    assert found.out.rstrip().endswith("but nothing of it can be compiled")
    sound = call("doctor", ROOT / "checkpoints" / "fsn-flow.safetensors")
    assert sound.out.rstrip().endswith("all is sound")


def test_a_missing_card_is_not_one_to_correct(call: Call, tmp_path: Path) -> None:
    found = call("doctor", tmp_path / "none.yaml")
    assert found.status == 2
    assert "does not exist   Shipped cards: vo2-" in found.out
