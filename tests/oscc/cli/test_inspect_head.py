"""The head of `oscc inspect`: what a build computes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = Callable[..., Any]


def test_a_decode_build_says_so_in_text_and_json(
    call: Call, tiny: Path, tmp_path: Path
) -> None:
    plan = ["--scheme", "plain", "--periods", "20"]
    out = tmp_path / "one"
    words = [tiny, "--text", "abc", *plan, "--mode", "decode", "-o", out]
    assert call("compile", *words).status == 0
    head = call("inspect", out).out.splitlines()[0]
    assert "decode: new token 2 alone, of 3 tokens; phases of the earlier" in head
    program = json.loads(call("inspect", out, "--json").out)["program"]
    assert (program["mode"], program["computed_tokens"]) == ("decode", 1)


def test_a_window_of_one_token_is_one_token(
    call: Call, tiny: Path, tmp_path: Path
) -> None:
    out = tmp_path / "short"
    words = ["--text", "a", "--scheme", "plain", "--periods", "20", "-o", out]
    assert " 1 token " in call("compile", tiny, *words).out
    head = call("inspect", out).out.splitlines()[0]
    assert " 1 token " in head
    assert "decode" not in head
    program = json.loads(call("inspect", out, "--json").out)["program"]
    assert program["mode"] == "prefill"
