"""Options: every verb's, those of the configuration, help that is right."""

import json
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from oscc.cli.main import VERBS, group
from oscc.cli.options import GROUPS
from oscc.cli.pages import pages

Call = Callable[..., Any]
COMMON = {
    "--config",
    "--set",
    "--out",
    "--seed",
    "--jobs",
    "--timeout",
    "--force",
    "--json",
    "--quiet",
    "--verbose",
    "--debug",
}
ROOT = Path(__file__).parents[3]


def command(verb: str) -> click.Command:
    found = import_module(VERBS[verb][0]).command
    assert isinstance(found, click.Command)
    return found


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_the_common_options(verb: str) -> None:
    flags = {
        flag
        for parameter in command(verb).params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
    }
    assert flags >= COMMON | {"-o", "-q", "-v"}
    assert command(verb).name == verb


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_option_is_explained_under_a_heading(verb: str) -> None:
    for parameter in command(verb).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert getattr(parameter, "group", "") in GROUPS, parameter.name


@pytest.mark.parametrize("verb", list(VERBS))
def test_help_has_example_status_and_page(call: Call, verb: str) -> None:
    found = call(verb, "--help")
    assert found.status == 0
    text = " ".join(found.out.split())
    assert "Example: oscc " in text
    assert "Exit status: 0 done" in text
    assert f"docs/reference/cli.md, section {verb}" in text


@pytest.mark.parametrize("verb", list(VERBS))
def test_the_example_of_the_help_parses(verb: str) -> None:
    line = (command(verb).epilog or "").splitlines()[0].removeprefix("Example: ")
    words = shlex.split(line)
    assert words[:2] == ["oscc", verb]
    command(verb).make_context(verb, words[2:], parent=click.Context(group))


@pytest.mark.parametrize("verb", ["inspect", "config", "completion"])
def test_the_quick_examples_run(call: Call, verb: str) -> None:
    line = (command(verb).epilog or "").splitlines()[0].removeprefix("Example: oscc ")
    found = call(*shlex.split(line))
    assert (found.status, found.err) == (0, "")
    assert found.out


def test_the_made_pages_are_up_to_date() -> None:
    for name, text in pages().items():
        path = ROOT / "docs" / name
        assert path.read_text(encoding="utf-8") == text, "run: make reference"


def settings(call: Call, *arguments: object) -> dict[str, Any]:
    found = call("config", "show", "--json", *arguments)
    assert found.status == 0, found.err
    content: dict[str, Any] = json.loads(found.out)
    return content


def test_option_before_set_before_file(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("seed: 1\njobs: 1\ntimeout_s: 1\n")
    found = settings(
        call, "--config", file, "--set", "seed=2", "--set", "jobs=2", "--seed", 3
    )
    assert found["seed"] == {"value": 3, "from": "--seed"}
    assert found["jobs"] == {"value": 2, "from": "--set jobs"}
    assert found["timeout_s"] == {"value": 1, "from": f"{file}:3"}


@pytest.mark.parametrize("form", [["--set", "model.gate_std=-1e-3"]])
def test_a_negative_value_is_no_option(call: Call, form: list[str]) -> None:
    assert settings(call, *form)["model.gate_std"]["value"] == -0.001


@pytest.mark.parametrize(
    "form", [["--accuracy-mrad", "-1e-3"], ["--accuracy-mrad=-0.001"]]
)
def test_a_negative_option_value_reaches_its_check(call: Call, form: list[str]) -> None:
    found = call("compile", "x", "--text", "a", *form)
    assert found.status == 2
    assert found.err == (
        "oscc compile: `--accuracy-mrad` must be a number above 0, but is `-0.001`.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--periods", "20k"], "`--periods` must be a whole number ≥ 1, but is `20k`"),
        (["--scheme", "extra"], "Did you mean `extrapolated`?"),
        (["--layers", "0,x"], "`--layers` must be a list, each item a whole number"),
        (["--set", "compile.devise=x"], "Did you mean `compile.device`?"),
        (["--config", "none.yaml"], "`none.yaml` does not exist."),
        (["--seed", "-1"], "`--seed` must be a whole number ≥ 0"),
        (["--periods", "3", "--accuracy-mrad", "3"], "exclude each other"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_read(
    call: Call, arguments: list[str], words: str, tiny: Path, tmp_path: Path
) -> None:
    found = call("compile", tiny, "--text", "a", "-o", tmp_path / "out", *arguments)
    assert found.status == 2
    assert words in found.err
    assert found.out == ""
    assert not (tmp_path / "out").exists()


def test_lists_of_options(call: Call, build: Path) -> None:
    found = call("verify", build, "--levels", "ir,phase", "--json")
    assert found.status == 0, found.err
    assert [x["level"] for x in json.loads(found.out)["levels"]] == ["ir", "phase"]


def test_versions(call: Call) -> None:
    line = call("--version")
    assert line.status == 0
    assert line.out.startswith("oscc ")
    found = json.loads(call("--version", "--json").out)
    assert set(found["versions"]) >= {"oscc", "python", "torch", "ngspice", "gnucap"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_our_variable(call: Call, shell: str) -> None:
    found = call("completion", shell)
    assert found.status == 0
    assert "_OSCC_COMPLETE" in found.out
