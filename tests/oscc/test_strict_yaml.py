"""The YAML reader: what the usual loader gets wrong, and hostile files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.errors import RequestError
from oscc.strict_yaml import LIMIT_BYTES, load_marked, load_value, load_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-9", 1e-9),
        ("1e3", 1000.0),
        ("-1.5E+2", -150.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("3", 3),
        ("-0", 0),
        ("+7", 7),
        ("on", "on"),
        ("no", "no"),
        ("True", "True"),
        ("true", True),
        ("null", None),
        ("", None),
        ("2026-01-02", "2026-01-02"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("20k", "20k"),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("'012'", "012"),
        ('"true"', "true"),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    found = load_yaml(f"key: {text}", "x.yaml")["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 012", "x.yaml:1: `012` starts with a zero"),
        ("a: 00.5", "starts with a zero"),
        ("a: 1e999", "beyond the range"),
        ("a: " + "9" * 50, "has 50 digits"),
        ("a: 1\n\na: 2", "x.yaml:3: key `a` is given twice; first on line 1"),
        ("a: &x 1\nb: *x", "x.yaml:2: aliases (`*x`) are refused"),
        ("b:\n  <<: {a: 1}", "x.yaml:2: merge keys"),
        ("a: !!python/object/apply:os.system [ls]", "x.yaml:1: tags"),
        ("a: !!int '3'", "tags"),
        ("? [a]\n: 3", "a key must be a single word"),
        ("- a", "x.yaml:1: the file must hold `key: value` lines"),
        ("a: [1", "x.yaml:1: not valid YAML"),
        ("a: 1\n---\nb: 2", "x.yaml:2: not valid YAML"),
        ("a: 'x\x00'", "not valid YAML"),
        ("a: " + "[" * 100, "nested deeper than 40 levels"),
        ("#" + "x" * LIMIT_BYTES, "above the limit"),
    ],
)
def test_what_is_refused_says_where(text: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        load_yaml(text, "x.yaml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("x.yaml")


def test_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    with pytest.raises(RequestError, match="aliases"):
        load_yaml("\n".join(lines), "bomb.yaml")


def test_lines_of_nested_keys() -> None:
    marked = load_marked("a: 1\nb:\n  c:\n    - x\n  d: {e: 5}\n", "x.yaml")
    assert marked.values == {"a": 1, "b": {"c": ["x"], "d": {"e": 5}}}
    assert marked.place("b", "c") == "x.yaml:3"
    assert marked.place("b", "d", "e") == "x.yaml:5"
    assert marked.place("b", "missing") == "x.yaml:2"
    assert marked.place("missing") == "x.yaml"


def test_single_value() -> None:
    assert load_value("-1e-3", "--set") == -0.001
    assert load_value("[0, 1]", "--set") == [0, 1]


_text = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=12)
_plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner),
    max_leaves=12,
)


@given(st.dictionaries(_text, _plain, max_size=4))
def test_reads_json_as_json(values: dict[str, object]) -> None:
    assert load_yaml(json.dumps(values, ensure_ascii=False), "x.yaml") == values


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_reads_back_exactly(number: float) -> None:
    assert load_value(repr(number), "x") == number


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    message = "x.yaml: read"
    try:
        load_yaml(text, "x.yaml")
    except RequestError as error:
        message = str(error)
    assert message.startswith("x.yaml")
