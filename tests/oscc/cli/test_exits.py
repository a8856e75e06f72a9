"""Exit statuses: one number and one sentence for whatever happens."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import oscc.verbs.inspect
from oscc.cli.exits import status_of
from oscc.errors import RequestError, ToolError, UndecidedError

Call = Callable[..., Any]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RequestError("x"), 2),
        (ToolError("x"), 3),
        (UndecidedError("x"), 4),
        (click.UsageError("x"), 2),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (ValueError("x"), 70),
        (AssertionError(), 70),
    ],
)
def test_status_of_an_exception(error: BaseException, status: int) -> None:
    assert status_of(error) == status


def raising(error: BaseException) -> Callable[..., Any]:
    def verb(*_: object, **__: object) -> Any:
        raise error

    return verb


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (RequestError("no such pair."), 2, "oscc inspect: no such pair.\n"),
        (ToolError("disk full."), 3, "oscc inspect: disk full.\n"),
        (UndecidedError("not settled."), 4, "oscc inspect: not settled.\n"),
        (MemoryError(), 3, "oscc inspect: the machine has not enough memory"),
        (OSError(28, "No space left on device"), 3, "No space left on device"),
        (PermissionError(13, "no", "x.yaml"), 2, "`x.yaml` is closed to you (uid"),
        (KeyboardInterrupt(), 130, "oscc inspect: interrupted; what was finished"),
        (ZeroDivisionError("by zero"), 70, "a fault of ours: ZeroDivisionError: by"),
    ],
)
def test_one_line_with_the_verb_in_front(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    words: str,
) -> None:
    monkeypatch.setattr(oscc.verbs.inspect, "inspect", raising(error))
    found = call("inspect", "--cards")
    assert found.status == status
    assert words in found.err
    # click ends the line of ^C first
    assert found.err.strip().count("\n") == 0
    assert "Traceback" not in found.err
    assert found.out == ""


def test_a_fault_of_ours_leaves_its_traceback_in_a_file(
    call: Call, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    monkeypatch.setattr(oscc.verbs.inspect, "inspect", raising(KeyError("lost")))
    found = call("inspect", "--cards")
    path = Path(found.err.strip().rpartition(" ")[2])
    assert path.parent == own_cache / "logs"
    assert "KeyError: 'lost'" in path.read_text(encoding="utf-8")


def test_debug_shows_the_traceback(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oscc.verbs.inspect, "inspect", raising(RequestError("no.")))
    found = call("inspect", "--cards", "--debug")
    assert found.status == 2
    assert "Traceback" in found.err
    assert found.err.endswith("oscc inspect: no.\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["conpile"], "there is no verb `conpile`. Did you mean `compile`?"),
        (["inspect", "--card"], "no such option '--card'"),
        (["inspect", "--pair"], "requires an argument"),
        (["config", "shw"], "'shw' is not one of 'show', 'schema'"),
        (["simulate"], "missing argument 'BUILD'"),
    ],
)
def test_usage_errors_are_status_2(
    call: Call, arguments: list[str], words: str
) -> None:
    found = call(*arguments)
    assert found.status == 2
    assert words in found.err
    assert "--help`" in found.err


def test_no_verb_is_help(call: Call) -> None:
    found = call()
    assert found.status == 0
    assert found.out == call("--help").out


def child(*arguments: str, **rest: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oscc", *arguments],
        text=True,
        timeout=60,
        check=False,
        **rest,
    )


def test_python_m_oscc_is_the_same_command() -> None:
    done = child("config", "schema", capture_output=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["$defs"]
    assert child("nope", capture_output=True).returncode == 2


@pytest.mark.parametrize("verb", [["config", "schema"], ["--help"], ["config", "show"]])
def test_a_reader_that_leaves_is_no_error(verb: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = child(*verb, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_under_standard_output_is_status_3() -> None:
    with Path("/dev/full").open("w") as full:
        done = child("config", "schema", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
