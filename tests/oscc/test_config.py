"""Configuration: precedence, origins, messages, environment."""

import ast
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest

from oscc.config import (
    ENVIRONMENT,
    child_environment,
    environment,
    resolve,
    schema_json,
)
from oscc.errors import RequestError
from oscc.models.config import ModelConfig
from oscc.models.training import TrainingConfig
from oscc.schema import keys
from oscc.verbs.compile import CompileRequest

SOURCES = Path(__file__).parents[2]


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(
    path: Path | None, *sets: str, options: Mapping[str, object] | None = None
) -> str:
    with pytest.raises(RequestError) as caught:
        resolve(path, sets, options)
    return str(caught.value)


def test_option_before_set_before_file_before_default(tmp_path: Path) -> None:
    path = write(tmp_path, "compile:\n  device: a\n  scheme: plain\n  periods: 20\n")
    settings = resolve(
        path, ["compile.device=b", "compile.scheme=corrected"], {"compile.device": "c"}
    )
    rows = {key: (value, origin) for key, value, origin in settings.rows()}
    assert rows["compile.device"] == ("c", "option")
    assert rows["compile.scheme"] == ("corrected", "--set compile.scheme")
    assert rows["compile.periods"] == (20, f"{path}:4")
    assert rows["compile.accuracy_mrad"] == (10.0, "default")
    assert next(iter(rows)) == "seed"


def test_option_that_was_not_given_sets_nothing() -> None:
    assert resolve(options={"seed": None}).origins == {}
    assert resolve(options={"seed": 3}).config.seed == 3


def test_later_set_wins() -> None:
    found = resolve(sets=["seed=1", "seed=2"])
    assert found.config.seed == 2


def test_section_may_be_given_whole(tmp_path: Path) -> None:
    path = write(tmp_path, "verify:\n  tolerance_rad: {circuit: 1e-2}\ncompile:\n")
    settings = resolve(path, ["compile={device: x, layers: [0, 1]}"])
    assert settings.config.verify.tolerance_rad.circuit == 0.01
    assert settings.config.compile.layers == (0, 1)


def test_time_step_written_as_power_of_ten_is_a_number(tmp_path: Path) -> None:
    path = write(tmp_path, "energy:\n  assumptions:\n    weight_write_J: 1e-12\n")
    settings = resolve(path)
    assert settings.config.energy.assumptions == {"weight_write_J": 1e-12}
    assert ("energy.assumptions.weight_write_J", 1e-12, f"{path}:3") in list(
        settings.rows()
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "seed: 1\ncompile:\n  acuracy_mrad: 3\n",
            3,
            "unknown key `compile.acuracy_mrad`. Did you mean `compile.accuracy_mrad`?",
        ),
        (
            "compile:\n  periods: 20k\n",
            2,
            "`compile.periods` must be a whole number ≥ 1, but is `20k` (text).",
        ),
        ("compile:\n  periods: 0\n", 2, "a whole number ≥ 1, but is `0`."),
        ("compile:\n  accuracy_mrad: 0\n", 2, "a number above 0, but is `0`."),
        ("seed: 1.5\n", 1, "a whole number ≥ 0, but is `1.5`."),
        ("seed: true\n", 1, "a whole number ≥ 0, but is `true`."),
        (
            "compile:\n  scheme: extrapolate\n",
            2,
            "must be one of auto, corrected, extrapolated, plain, but is"
            " `extrapolate` (text). Did you mean `extrapolated`?",
        ),
        ("compile: 3\n", 1, "`compile` is a section and takes `key: value` lines"),
        ("verify:\n  tolerance_rad:\n    circus: 1\n", 3, ".circuit`?"),
        ("energy:\n  assumptions:\n    x: y\n", 3, "a number ≥ 0, but is `y`"),
        ("seed: 1\nseed: 2\n", 2, "given twice; first on line 1"),
        ("seed: 1\ncompile.device: x\ncompile:\n  device: y\n", 4, "given twice"),
        ("compile:\n  layers: 1\n", 2, "a list, each item a whole number ≥ 0"),
    ],
)
def test_message_names_file_line_and_what_is_wanted(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = write(tmp_path, text)
    message = refused(path)
    assert message.startswith(f"{path}:{line}: ")
    assert words in message
    assert message.count("\n") <= 2


def test_faults_outside_a_file(tmp_path: Path) -> None:
    assert refused(None, "compile.devise=x").startswith("--set compile.devise: unknown")
    assert "must have the form a.b=c" in refused(None, "compile")
    option = refused(None, options={"compile.periods": -1})
    assert option == "`compile.periods` must be a whole number ≥ 1, but is `-1`."
    with pytest.raises(RequestError, match=r"^`--periods` must be a whole number ≥ 1"):
        resolve(options={"compile.periods": -1}, flags={"compile.periods": "--periods"})
    write(tmp_path, "seed: 1")
    missing = refused(tmp_path / "rum.yaml")
    assert "does not exist" in missing
    assert "run.yaml`?" in missing
    assert "cannot be read" in refused(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"seed: \xe9")
    assert "not UTF-8" in refused(tmp_path / "latin.yaml")


def test_a_mapping_is_one_value_where_a_key_takes_one(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text('model:\n  vocabulary: {characters: "ab", other: true}\n')
    found = resolve(file).config.model.vocabulary
    assert found == {"characters": "ab", "other": True}
    found = resolve(sets=["model.vocabulary={unit: byte}"]).config.model.vocabulary
    assert found == {"unit": "byte"}
    with pytest.raises(RequestError, match=r"must be text or a mapping, but is `\[1"):
        resolve(sets=["model.vocabulary=[1]"])


def test_bounds_on_both_sides_are_said() -> None:
    with pytest.raises(RequestError, match="a whole number from 0 to 24, but is"):
        resolve(sets=["train.weight_bits=2000"])


def test_every_default_is_of_its_own_kind() -> None:
    for key, _, default in keys():
        if default is not None and default != {}:
            resolve(options={key: default})


def test_sections_hold_the_fields_of_the_classes_they_configure() -> None:
    model = {key.removeprefix("model.") for key, *_ in keys() if key[:6] == "model."}
    assert model - {"vocabulary"} == {f.name for f in fields(ModelConfig)}
    train = {key.removeprefix("train.") for key, *_ in keys() if key[:6] == "train."}
    assert train - {"resume", "plot", "device", "vocabulary"} == {
        f.name for f in fields(TrainingConfig)
    }
    compiled = {key.removeprefix("compile.") for key, *_ in keys() if "compile." in key}
    own = {f.name for f in fields(CompileRequest)} - {"seed", "threads", "digests"}
    assert compiled - {"key"} == own


def test_defaults_are_those_of_the_functions() -> None:
    request = CompileRequest()
    for key, _, default in keys():
        section, _, name = key.rpartition(".")
        if section == "compile" and name != "key":
            assert getattr(request, name) == default, key


def test_schema_accepts_what_we_accept() -> None:
    schema = schema_json()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"compile": {"layers": [0]}, "seed": 1}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"compile": {"devise": "x"}}, schema)


def test_environment_names_tools_and_caches_only() -> None:
    plain = environment({"HOME": "/home/x"})
    assert (plain.ngspice, plain.gnucap, plain.no_color) == ("ngspice", "gnucap", False)
    assert plain.cache.name == "oscc"
    given = environment({"OSCC_CACHE": "/c", "OSCC_GNUCAP": "/g", "NO_COLOR": "1"})
    assert (str(given.cache), given.gnucap, given.no_color) == ("/c", "/g", True)


def test_child_sees_dots_as_decimal_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    child = child_environment(SPICE_ASCIIRAWFILE="0")
    assert (child["LC_ALL"], child["SPICE_ASCIIRAWFILE"]) == ("C", "0")
    assert child["PATH"]


def test_environment_is_read_in_one_place_and_each_variable_is_listed() -> None:
    readers, named = set(), set()
    for root in ("oscc", "netlists", "backends", "sims"):
        for path in sorted((SOURCES / root).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr == "getenv":
                    readers.add(path.name)
                if isinstance(node, ast.Attribute) and node.attr == "environ":
                    readers.add(path.name)
                if isinstance(node, ast.Constant) and str(node.value).startswith(
                    "OSCC_"
                ):
                    named.add(str(node.value))
    # process.py hands PATH on to a child; it takes no setting from the environment
    assert readers <= {"config.py", "process.py"}
    assert named <= set(ENVIRONMENT)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("ir", "verify.tolerance_rad.ir"),
        ("read_out_J", "energy.assumptions.read_out_J"),
        ("energy.read_out_J", "energy.assumptions.read_out_J"),
        ("compile.tile", "verify.tile"),
        ("plott", "train.plot"),
    ],
)
def test_an_unknown_key_is_hinted_at_by_its_full_name(key: str, meant: str) -> None:
    with pytest.raises(RequestError, match=f"Did you mean `{meant}`"):
        resolve(sets=[f"{key}=1"])
