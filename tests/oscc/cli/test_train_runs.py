"""Runs of `oscc train` that are repeated, stopped, and gone on with."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscc.cli.exits import status_of

Call = Callable[..., Any]
NAME = "kuramoto-flow-k04"
SIZES = [
    *("--set", "model.k=4", "--set", "model.heads=2", "--set", "model.layers=1"),
    *("--set", "model.hidden=8", "--set", "model.context=8"),
    *("--set", "train.batch=2", "--set", "train.save_every=20"),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("abcabd" * 4000)
    return path


def words(corpus: Path, steps: int, out: Path) -> list[str]:
    command = ["train", "--family", "kuramoto", *SIZES, "--text", str(corpus)]
    return [*command, "--steps", str(steps), "-o", str(out)]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_run_that_was_stopped_goes_on_to_the_same_files(
    call: Call, corpus: Path, tmp_path: Path
) -> None:
    out, steps = tmp_path / "out", 200
    state = out / f"{NAME}.state.safetensors"
    command = [sys.executable, "-m", "oscc", *words(corpus, steps, out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 120
        while not state.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert child.poll() is None, "the run ended before it could be stopped"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert errors.strip().startswith("oscc train: interrupted; step ")
    step = int(errors.split("step ")[1].split()[0])
    assert 20 <= step < steps
    assert errors.strip().endswith(
        f"step {step} of {steps} is saved in `{state}`. The same command goes on from "
        "there (without --no-resume)."
    )
    assert set(files(out)) == {state.name, f"{NAME}.curve.jsonl"}
    assert call(*words(corpus, steps, out)).status == 0
    whole = tmp_path / "whole"
    assert call(*words(corpus, steps, whole)).status == 0
    assert files(out) == files(whole)


def test_steps_that_are_done_are_kept_while_the_figures_are_measured(
    call: Call, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("oscc.verbs.train.metrics_of", interrupted)
        found = call(*words(corpus, 5, out))
    assert found.status == 130
    assert "interrupted; step 5 of 5 is saved in `" in found.err
    with monkeypatch.context() as patch:  # no step is done again
        patch.setattr("oscc.models.training.Trainer._step", interrupted)
        assert call(*words(corpus, 5, out)).status == 0
    assert call(*words(corpus, 5, tmp_path / "whole")).status == 0
    assert files(out) == files(tmp_path / "whole")


def test_a_second_request_to_stop_is_obeyed_at_once() -> None:
    from oscc.interrupts import stop_noted

    def ask_twice() -> None:
        with stop_noted() as stopped:
            assert not stopped()
            os.kill(os.getpid(), signal.SIGINT)
            assert stopped()
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ask_twice()
    before = signal.getsignal(signal.SIGTERM)
    with stop_noted() as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped()
    assert signal.getsignal(signal.SIGTERM) is before


def test_memory_that_torch_does_not_get_is_the_machines_fault() -> None:
    assert status_of(RuntimeError("can't allocate memory: you tried to allocate")) == 3
    assert status_of(RuntimeError("shapes differ")) == 70


def test_the_recorded_command_repeats_the_run(
    call: Call, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = ["--name", "my run", "--set", "model.query_offset=true"]
    more += ["--set", 'model.vocabulary={characters: "dcba\\u0085"}', "--seed", "3"]
    first = tmp_path / "first"
    assert call(*words(corpus, 3, first), *more).status == 0
    metrics = json.loads((first / "my run.metrics.json").read_text())
    assert str(tmp_path) not in json.dumps(metrics)
    monkeypatch.chdir(corpus.parent)
    command = shlex.split(metrics["command"])
    assert command[0] == "oscc"
    found = call(*command[1:], "-o", tmp_path / "second")
    assert found.status == 0, found.err
    assert files(tmp_path / "second") == files(first)


def test_vocabulary_and_what_is_left_out_are_said(
    call: Call, corpus: Path, tmp_path: Path
) -> None:
    corpus.write_text("абв где\n" * 400)
    found = call(*words(corpus, 2, tmp_path / "a"))
    assert "bits per byte" in found.out
    assert (
        "vocabulary bytes, 256 symbols · 75 % of the characters are not ASCII"
        in found.out
    )
    ascii_only = ["--set", "train.vocabulary=ascii"]
    found = call(*words(corpus, 2, tmp_path / "b"), *ascii_only)
    assert "vocabulary ascii, 98 symbols · 75 % of the symbols stand for" in found.out
    metrics = json.loads((tmp_path / "b" / f"{NAME}.metrics.json").read_text())
    assert metrics["corpus"]["other_share"] == 0.75
    corpus.write_text("abcabd" * 400)
    found = call(*words(corpus, 2, tmp_path / "c"))
    assert "vocabulary ascii, 98 symbols\n" in found.out
    both = [*ascii_only, "--set", "model.vocabulary=abcd"]
    found = call(*words(corpus, 2, tmp_path / "d"), *both)
    assert (found.status, "are both given" in found.err) == (2, True)
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(40):
        (folder / f"{i}.txt").write_text("abcabd" * 60)
    (folder / "latin.txt").write_bytes(b"caf\xe9" * 100)
    (folder / "short.txt").write_text("x")
    found = call(*words(folder, 2, tmp_path / "e"))
    assert (
        "1 file left out, not UTF-8 text · 1 file left out, shorter than 256 bytes"
        in found.out
    )


@pytest.mark.parametrize(
    ("size", "part", "words_"),
    [
        (30, "train part of the corpus has 29 of its 30", ""),
        (2000, "held-out part of the corpus has 120 of its 2000 symbols", "118 (--set"),
        (10, "held-out part of the corpus has 0 of its 10", "2167 symbols or more."),
    ],
)
def test_a_short_text_is_refused_with_what_would_do(
    call: Call, tmp_path: Path, size: int, part: str, words_: str
) -> None:
    path = tmp_path / "short.txt"
    path.write_text("x" * size)
    found = call("train", "--family", "fsn", "--text", path, "-o", tmp_path / "out")
    assert found.status == 2
    if size == 30:  # one symbol held out
        part = "held-out part of the corpus has 1 of its 30"
        words_ = "3900 symbols or more."
    assert part in found.err
    assert words_ in found.err
    assert not (tmp_path / "out").exists()
