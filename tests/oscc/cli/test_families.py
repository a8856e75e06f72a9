"""What the command line says of families that have no lowering."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["transformer"])
def test_a_family_without_lowering_is_refused_in_one_sentence(
    name: str, call: Call, tmp_path: Path
) -> None:
    checkpoint = ROOT / "checkpoints" / f"{name}.safetensors"
    out = tmp_path / "build"
    found = call("compile", checkpoint, "--text", "import os", "-o", out)
    assert found.status == 2
    assert found.err.strip() == (
        f"oscc compile: Family `{name}` cannot be lowered yet; "
        "kuramoto, fsn, fsn-no-phase, fsn-mf, ssa can."
    )
    assert not out.exists()
    sound = call("doctor", checkpoint)
    assert sound.status == 0
    assert "cannot be lowered yet" in sound.out
    assert "cannot be lowered yet" in call("inspect", checkpoint).out


def test_the_arm_of_ssa_names_the_checkpoint(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("abcabd" * 4000)
    sizes = ["k=8", "heads=2", "layers=1", "hidden=8", "context=8"]
    words = [word for size in sizes for word in ("--set", f"model.{size}")]
    words += ["--text", path, "--steps", 2, "-o", tmp_path / "out", "--plot"]
    found = call("train", "--family", "ssa", "--arm", "published", *words)
    assert found.status == 0, found.err
    made = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert made == [
        f"ssa-published-k08.{end}"
        for end in ("curve.jsonl", "curve.svg", "metrics.json", "safetensors")
    ]
    (line,) = (tmp_path / "out" / made[0]).read_text().splitlines()
    assert json.loads(line)["step"] == 2
    wrong = call("train", "--family", "transformer", "--update", "flow", *words)
    assert wrong.status == 2
    assert "`update` must be none for family transformer" in wrong.err
