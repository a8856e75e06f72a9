"""Reading and writing of device cards: package cards, YAML files, plain mappings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from oscc.checks import near_file, nearest
from oscc.device.card import UNITS, Card, ParameterSource, Trim
from oscc.errors import RequestError
from oscc.strict_yaml import MarkedYaml, load_marked

FORMAT = "oscc.card/1"
TOPOLOGY = "series-resistor-to-supply"
CARDS_FOLDER = Path(__file__).with_name("cards")

_KEYS = (
    "format",
    "name",
    "topology",
    "description",
    "parameters",
    "f_max_Hz",
    "trim",
)
_PARAMETER_KEYS = ("value", "unit", "source", "measured")
_TRIM_KEYS = tuple(field.name for field in fields(Trim))


def card_names() -> tuple[str, ...]:
    """Names of the cards that come with the package, sorted.

    Example:
        >>> "vo2-two-state-6k" in card_names()
        True
    """
    return tuple(sorted(path.stem for path in CARDS_FOLDER.glob("*.yaml")))


def load_card(name_or_path: str | Path) -> Card:
    """Card of the package by its name, or of the user by its file.

    Args:
        name_or_path: A name of `card_names()`, or the path of a YAML file.

    Raises:
        RequestError: no such card, or its content is wrong (with file and line).

    Example:
        >>> load_card("vo2-two-state-20k").r_series_ohm
        20000.0
    """
    name = str(name_or_path)
    is_file = isinstance(name_or_path, Path) or "/" in name
    if not is_file and not name.endswith((".yaml", ".yml")):
        if name not in card_names():
            raise RequestError(
                f"There is no device card `{name}`.{nearest(name, card_names())} "
                f"Cards: {', '.join(card_names())}; or give the path of a YAML file."
            )
        text = (CARDS_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
        return _read(load_marked(text, f"{name}.yaml"))
    path = Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RequestError(
            f"Device card `{path}` does not exist.{near_file(path)} "
            f"Shipped cards: {', '.join(card_names())}."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"Device card `{path}` cannot be read: {error}.") from error
    return _read(load_marked(text, name))


def card_from_mapping(mapping: Mapping[str, Any], where: str = "device card") -> Card:
    """Card of a plain mapping, as `card_to_mapping` writes it.

    Args:
        mapping: Keys as in a card file; a parameter may be a bare number.
        where: Name of the source, for messages.

    Raises:
        RequestError: a key is missing, unknown or of the wrong kind, or the card
            would not oscillate.

    Example:
        >>> card = load_card("vo2-two-state-6k")
        >>> card_from_mapping(card_to_mapping(card)) == card
        True
    """
    return _read(MarkedYaml(where, dict(mapping), {}))


def card_to_mapping(card: Card) -> dict[str, Any]:
    """Plain mapping of a card, for YAML and for the program file.

    Example:
        >>> card_to_mapping(load_card("vo2-two-state-6k"))["parameters"]["c_F"]["unit"]
        'F'
    """
    sources = {entry.name: entry for entry in card.sources}
    parameters: dict[str, Any] = {}
    for name, unit in UNITS.items():
        entry: dict[str, Any] = {"value": float(getattr(card, name)), "unit": unit}
        if name in sources:
            entry["source"] = sources[name].source
            entry["measured"] = sources[name].measured
        parameters[name] = entry
    out: dict[str, Any] = {
        "format": FORMAT,
        "name": card.name,
        "topology": TOPOLOGY,
        "parameters": parameters,
    }
    if card.description:
        out["description"] = card.description
    if card.f_max_Hz is not None:
        out["f_max_Hz"] = card.f_max_Hz
    if card.trim is not None:
        out["trim"] = {name: getattr(card.trim, name) for name in _TRIM_KEYS}
    return out


def _read(content: MarkedYaml) -> Card:
    values = content.values
    _require_keys(content, (), _KEYS, ("format", "name", "parameters"))
    for key, wanted in (("format", FORMAT), ("topology", TOPOLOGY)):
        found = values.get(key, wanted)
        if found != wanted:
            raise _fault(content, (key,), f"must be `{wanted}`, but is {found!r}.")
    _require_keys(content, ("parameters",), tuple(UNITS), tuple(UNITS))
    pairs = [_parameter(content, name) for name in UNITS]
    f_max = values.get("f_max_Hz")
    return Card(
        name=_text(content, ("name",)),
        **{name: value for name, (value, _) in zip(UNITS, pairs, strict=True)},
        f_max_Hz=None if f_max is None else _number(content, ("f_max_Hz",), "Hz"),
        trim=_trim(content) if values.get("trim") is not None else None,
        sources=tuple(source for _, source in pairs if source is not None),
        description=_text(content, ("description",), default=""),
    )


def _parameter(content: MarkedYaml, name: str) -> tuple[float, ParameterSource | None]:
    path, unit = ("parameters", name), UNITS[name]
    entry = content.values["parameters"][name]
    if not isinstance(entry, Mapping):
        return _number(content, path, unit), None
    _require_keys(content, path, _PARAMETER_KEYS, ("value",))
    if entry.get("unit", unit) != unit:
        raise _fault(
            content,
            (*path, "unit"),
            f"must be `{unit}`, but is {entry['unit']!r}. Convert the value.",
        )
    value = _number(content, (*path, "value"), unit)
    if "source" not in entry:
        return value, None
    source = _text(content, (*path, "source"))
    return value, ParameterSource(name, source, _flag(content, (*path, "measured")))


def _trim(content: MarkedYaml) -> Trim:
    _require_keys(content, ("trim",), _TRIM_KEYS, ("parameter", "range_relative"))
    parameter = _text(content, ("trim", "parameter"))
    if parameter not in UNITS:
        raise _fault(
            content,
            ("trim", "parameter"),
            f"must be one of {', '.join(UNITS)}, but is {parameter!r}."
            f"{nearest(parameter, UNITS)}",
        )
    bits = _number(content, ("trim", "bits"), "")
    if bits != int(bits) or bits < 1:
        raise _fault(
            content, ("trim", "bits"), f"must be a whole number >= 1, but is {bits:g}."
        )
    span = _number(content, ("trim", "range_relative"), "")
    if not 0 < span < 1:
        raise _fault(
            content, ("trim", "range_relative"), f"must lie in (0, 1), but is {span:g}."
        )
    return Trim(
        parameter=parameter,
        range_relative=span,
        bits=int(bits),
        source=_text(content, ("trim", "source"), default="not stated"),
        measured=_flag(content, ("trim", "measured")),
    )


def _get(content: MarkedYaml, path: tuple[str, ...]) -> Any:
    value: Any = content.values
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _require_keys(
    content: MarkedYaml,
    path: tuple[str, ...],
    known: Collection[str],
    needed: Collection[str],
) -> None:
    entry = _get(content, path) if path else content.values
    if not isinstance(entry, Mapping):
        raise _fault(content, path, f"must be a mapping, but is {entry!r}.")
    for key in entry:
        if key not in known:
            raise RequestError(
                f"{content.place(*path, str(key))}: "
                f"unknown key `{'.'.join((*path, str(key)))}`."
                f"{nearest(str(key), known)}"
            )
    for key in needed:
        if key not in entry:
            raise RequestError(
                f"{content.place(*path)}: key `{'.'.join((*path, key))}` is missing."
            )


def _number(content: MarkedYaml, path: tuple[str, ...], unit: str) -> float:
    value = _get(content, path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted = f"a plain number{f' in {unit}' if unit else ''}, such as 1e-10"
        kind = " (text)" if isinstance(value, str) else ""
        shown = "missing" if value is None else f"`{value}`{kind}"
        raise _fault(content, path, f"must be {wanted}, but is {shown}.")
    return float(value)


def _text(
    content: MarkedYaml, path: tuple[str, ...], default: str | None = None
) -> str:
    value = _get(content, path)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or not value:
        raise _fault(content, path, f"must be text, but is {value!r}.")
    return value


def _flag(content: MarkedYaml, path: tuple[str, ...]) -> bool:
    value = _get(content, path)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _fault(content, path, f"must be true or false, but is {value!r}.")
    return value


def _fault(content: MarkedYaml, path: tuple[str, ...], message: str) -> RequestError:
    return RequestError(f"{content.place(*path)}: `{'.'.join(path)}` {message}")
