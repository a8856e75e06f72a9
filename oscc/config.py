"""Configuration: option before `--set` before file before default, with origins.

Environment variables are read here and nowhere else, and set nothing but where tools
and caches are.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from oscc.checks import nearest
from oscc.errors import RequestError
from oscc.schema import Config, keys, wanted
from oscc.strict_yaml import load_marked, load_value, load_yaml

__all__ = [
    "ENVIRONMENT",
    "Config",
    "Environment",
    "Settings",
    "child_environment",
    "environment",
    "load_yaml",
    "resolve",
    "schema_json",
]

ENVIRONMENT = {
    "OSCC_NGSPICE": "path of the ngspice program",
    "OSCC_GNUCAP": "path of the gnucap program",
    "OSCC_CACHE": "folder of caches and logs (default: ~/.cache/oscc)",
    "NGSPICE_LIBRARY_PATH": "path of libngspice, for the optional PySpice engine",
    "XDG_CACHE_HOME": "folder that holds the cache folder, where OSCC_CACHE is not set",
    "NO_COLOR": "any value: no colour on the terminal",
}


@dataclass(frozen=True, slots=True)
class Environment:
    """Where tools and caches are, as the environment says."""

    ngspice: str
    gnucap: str
    ngspice_library: str
    cache: Path
    no_color: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one run; `origins` says where each given key came from.

    A key that is missing from `origins` has its default.
    """

    config: Config
    origins: Mapping[str, str]

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """Every key with its value and its origin, in the order of the schema."""
        for key in _all_keys(self.config):
            yield key, _get(self.config, key), self.origins.get(key, "default")


def environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Tools and caches that the environment names.

    Args:
        variables: Instead of the process environment, for tests.

    Example:
        >>> environment({"OSCC_NGSPICE": "/opt/ngspice"}).ngspice
        '/opt/ngspice'
    """
    given = os.environ if variables is None else variables
    home = given.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    cache = given.get("OSCC_CACHE") or str(Path(home) / "oscc")
    return Environment(
        ngspice=given.get("OSCC_NGSPICE") or "ngspice",
        gnucap=given.get("OSCC_GNUCAP") or "gnucap",
        ngspice_library=given.get("NGSPICE_LIBRARY_PATH") or "libngspice.so.0",
        cache=Path(cache),
        no_color=bool(given.get("NO_COLOR")),
    )


def child_environment(**changes: str) -> dict[str, str]:
    """Environment for a child process: ours, in the C locale, with changes.

    Example:
        >>> child_environment(HOME="/x")["LC_ALL"]
        'C'
    """
    return {**os.environ, "LC_ALL": "C", **changes}


def resolve(
    file: Path | None = None,
    sets: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Settings:
    """Configuration from a file, `--set a.b=c` texts and options.

    Args:
        file: YAML file, or None.
        sets: Texts of the form `a.b=c`; a later one wins.
        options: Dotted key to value; a value of None was not given.
        flags: Name of the option by key, for messages.

    Raises:
        RequestError: an unknown key (the nearest is named) or a value of another kind.

    Example:
        >>> resolve(sets=["compile.periods=72"]).config.compile.periods
        72
    """
    given: dict[str, tuple[Any, str]] = {}
    if file is not None:
        for key, found in _from_file(file):
            if key in given:
                raise RequestError(
                    f"{found[1]}: key `{key}` is given twice; first at {given[key][1]}."
                )
            given[key] = found
    for text in sets:
        given.update(_from_set(text))
    for key, value in (options or {}).items():
        if value is not None:
            given[key] = (value, (flags or {}).get(key, "option"))
    return _build(given)


def schema_json() -> dict[str, Any]:
    """JSON Schema of a configuration file.

    Example:
        >>> "$defs" in schema_json()
        True
    """
    return msgspec.json.schema(Config)


def _from_file(file: Path) -> Iterator[tuple[str, tuple[Any, str]]]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RequestError(f"`{file}` does not exist.{_sibling(file)}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise RequestError(f"`{file}` cannot be read: {reason}.") from error
    marked = load_marked(text, str(file))
    for path, value in _leaves(marked.values, ()):
        yield ".".join(path), (value, marked.place(*path))


def _sibling(file: Path) -> str:
    if not file.parent.is_dir():
        return ""
    return nearest(str(file), [str(other) for other in file.parent.iterdir()])


def _from_set(text: str) -> Iterator[tuple[str, tuple[Any, str]]]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise RequestError(f"--set {text}: must have the form a.b=c.")
    content = load_value(value, f"--set {key}")
    for path, leaf in _leaves(content, (key.strip(),)):
        yield ".".join(path), (leaf, f"--set {key}")


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    whole = ".".join(path) in _mappings()
    if isinstance(value, dict) and (value or not path) and not whole:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _build(given: Mapping[str, tuple[Any, str]]) -> Settings:
    kinds = {key: kind for key, kind, _ in keys()}
    open_keys = [key for key, kind in kinds.items() if _is_open(kind)]
    content: dict[str, Any] = {}
    for key, (value, origin) in given.items():
        parent = key.rpartition(".")[0]
        if key in kinds:
            _check(key, value, kinds[key], origin)
        elif parent in open_keys:
            _check(key, value, kinds[parent].__args__[1], origin)
        elif not (value is None or value == {}) or not _is_section(key, kinds):
            raise _unknown(key, value, origin, kinds)
        else:
            continue
        _put(content, key, value)
    origins = {key: origin for key, (_, origin) in given.items()}
    return Settings(msgspec.convert(content, Config), origins)


@functools.cache
def _mappings() -> frozenset[str]:
    """Keys one of whose values is a mapping, which is taken as a whole."""
    return frozenset(
        key
        for key, kind, _ in keys()
        if any(get_origin(one) is dict for one in get_args(kind))
    )


def _is_open(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is dict


def _is_section(key: str, kinds: Mapping[str, Any]) -> bool:
    return any(known.startswith(f"{key}.") for known in kinds)


def _unknown(
    key: str, value: Any, origin: str, kinds: Mapping[str, Any]
) -> RequestError:
    if _is_section(key, kinds):
        return RequestError(
            f"{origin}: `{key}` is a section and takes `key: value` lines, "
            f"but is {_shown(value)}."
        )
    return RequestError(f"{origin}: unknown key `{key}`.{_near(key, kinds)}")


def _near(key: str, kinds: Mapping[str, Any]) -> str:
    """Sentence with the full name of the nearest key; a last part alone counts too."""
    from oscc.account.assumptions import known_names

    whole = [*kinds, *(f"energy.assumptions.{name}" for name in known_names())]
    last = key.rpartition(".")[2]
    same = [known for known in whole if known.rpartition(".")[2] == last]
    if same:
        return nearest(key, same) or f" Did you mean `{same[0]}`?"
    found = nearest(key, whole)
    if found or "." in key:
        return found
    ends = {known.rpartition(".")[2]: known for known in whole}
    close = nearest(key, list(ends))
    return f" Did you mean `{ends[close.split('`')[1]]}`?" if close else ""


def _check(key: str, value: Any, kind: Any, origin: str) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        near = nearest(value, _choices(kind)) if isinstance(value, str) else ""
        name = f"{origin}: `{key}`"
        if origin == "option" or (origin.startswith("--") and " " not in origin):
            name = f"`{key}`" if origin == "option" else f"`{origin}`"
        raise RequestError(
            f"{name} must be {wanted(kind)}, but is {_shown(value)}.{near}"
        ) from error


def _choices(kind: Any) -> list[str]:
    info = msgspec.inspect.type_info(kind)
    parts = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return [
        str(value)
        for part in parts
        if isinstance(part, msgspec.inspect.LiteralType)
        for value in part.values
    ]


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"`{value}` (text)"
    if isinstance(value, bool) or value is None:
        return f"`{str(value).lower().replace('none', 'null')}`"
    return f"`{value}`"


def _put(content: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    for name in parents:
        content = content.setdefault(name, {})
    content[last] = value


def _get(config: Any, key: str) -> Any:
    for name in key.split("."):
        config = config[name] if isinstance(config, dict) else getattr(config, name)
    return config


def _all_keys(config: Config) -> Iterator[str]:
    for key, kind, _ in keys():
        if _is_open(kind):
            yield from (f"{key}.{name}" for name in _get(config, key))
        else:
            yield key
