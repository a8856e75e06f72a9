"""The only YAML reader: numbers are numbers, words are words, faults have a line.

What the usual loader gets wrong and this one does not: `1e-9` is a number, `on`, `no`
and dates stay text, `012` is refused, an equal second key is refused, aliases and merge
keys are refused, and so is any file above 1 MB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from oscc.errors import RequestError

LIMIT_BYTES = 1_000_000
LIMIT_DEPTH = 40

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(rf"^[-+]?{_NUMBER}$")
_LEADING_ZERO = re.compile(r"^[-+]?0[0-9]")
_BOOL = re.compile(r"^(?:true|false)$")
_NULL = re.compile(r"^(?:~|null|)$")

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MarkedYaml:
    """Content of a YAML text with the line of every key.

    `values` holds plain dicts, lists, text, numbers, bools and None; `lines` maps the
    path of a key, such as `("compile", "device")`, to its line, counted from 1.
    """

    where: str
    values: dict[str, Any]
    lines: dict[KeyPath, int]

    def place(self, *path: str) -> str:
        r"""`file:line` of a key, or of the nearest parent that has a line.

        Example:
            >>> load_marked("a:\n  b: 1", "x.yaml").place("a", "b")
            'x.yaml:2'
        """
        while path:
            if path in self.lines:
                return f"{self.where}:{self.lines[path]}"
            path = path[:-1]
        return self.where


def load_yaml(text: str, where: str) -> dict[str, Any]:
    """Plain values of a YAML text whose top level is a mapping.

    Args:
        text: The file's content.
        where: Name of the file, for messages.

    Raises:
        RequestError: not YAML, or one of the forms that this reader refuses; the
            message starts with `where:line`.

    Example:
        >>> load_yaml("{step: 1e-9, mode: on}", "x.yaml")
        {'step': 1e-09, 'mode': 'on'}
    """
    return load_marked(text, where).values


def load_marked(text: str, where: str) -> MarkedYaml:
    """Plain values with the line of every key, for messages about the content.

    Raises:
        RequestError: as `load_yaml`.

    Example:
        >>> load_marked("a: 1", "x.yaml").values
        {'a': 1}
    """
    root = _compose(text, where)
    if root is None:
        return MarkedYaml(where, {}, {})
    if not isinstance(root, MappingNode):
        raise RequestError(
            f"{where}:{_line(root)}: the file must hold `key: value` lines."
        )
    lines: dict[KeyPath, int] = {}
    values = _Reader(where, lines).mapping(root, ())
    return MarkedYaml(where, values, lines)


def load_value(text: str, where: str) -> Any:
    """Value of a YAML text that may be a single word, number or list.

    Raises:
        RequestError: as `load_yaml`.

    Example:
        >>> load_value("[0, 1e3]", "--set")
        [0, 1000.0]
    """
    root = _compose(text, where)
    return None if root is None else _Reader(where, {}).value(root, ())


def _compose(text: str, where: str) -> Node | None:
    size = len(text.encode("utf-8", errors="surrogatepass"))
    if size > LIMIT_BYTES:
        raise RequestError(
            f"{where}: the file has {size} bytes, above the limit of {LIMIT_BYTES}."
        )
    try:
        loader = _Loader(text)
        loader.where = where
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        parts = (getattr(error, "context", None), getattr(error, "problem", None))
        problem = " ".join(filter(None, parts)) or str(error).splitlines()[0]
        raise RequestError(f"{place}: not valid YAML: {problem}.") from error


class _Loader(yaml.SafeLoader):
    """Composer that refuses aliases and deep nesting; no implicit types but ours."""

    where = ""
    depth = 0
    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise self.fault(
                event, f"aliases (`*{event.anchor}`) are refused. Write the value out."
            )
        if event.tag is not None:
            raise self.fault(event, f"tags (`{event.tag}`) are refused.")
        self.depth += 1
        if self.depth > LIMIT_DEPTH:
            raise self.fault(event, f"nested deeper than {LIMIT_DEPTH} levels.")
        node: Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def fault(self, event: Any, message: str) -> RequestError:
        return RequestError(f"{self.where}:{event.start_mark.line + 1}: {message}")


class _Reader:
    """Turns composed nodes into plain values, noting the line of every key."""

    def __init__(self, where: str, lines: dict[KeyPath, int]) -> None:
        self.where = where
        self.lines = lines

    def value(self, node: Node, path: KeyPath) -> Any:
        if isinstance(node, MappingNode):
            return self.mapping(node, path)
        if isinstance(node, SequenceNode):
            return [
                self.value(item, (*path, str(number)))
                for number, item in enumerate(node.value)
            ]
        assert isinstance(node, ScalarNode)
        return self.scalar(node)

    def mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        out: dict[str, Any] = {}
        seen: dict[Hashable, int] = {}
        for key, line, value in self.items(node):
            if key in seen:
                raise self.fault(
                    value, f"key `{key}` is given twice; first on line {seen[key]}."
                )
            seen[key] = line
            self.lines[(*path, key)] = line
            out[key] = self.value(value, (*path, key))
        return out

    def items(self, node: MappingNode) -> Iterator[tuple[str, int, Node]]:
        for key_node, value in node.value:
            if not isinstance(key_node, ScalarNode):
                raise self.fault(key_node, "a key must be a single word.")
            if key_node.value == "<<" and key_node.style is None:
                raise self.fault(
                    key_node, "merge keys (`<<`) are refused. Write the keys out."
                )
            yield key_node.value, _line(key_node), value

    def scalar(self, node: ScalarNode) -> Any:
        text = node.value
        if node.style is not None:
            return text
        if _NULL.match(text):
            return None
        if _BOOL.match(text):
            return text == "true"
        if _FLOAT.match(text):
            return self.number(node, text)
        return text

    def number(self, node: ScalarNode, text: str) -> int | float:
        if _LEADING_ZERO.match(text):
            raise self.fault(
                node, f"`{text}` starts with a zero. Drop it, or quote it as text."
            )
        if _INT.match(text):
            if len(text) > 40:
                raise self.fault(node, f"`{text[:20]}…` has {len(text)} digits.")
            return int(text)
        value = float(text)
        if not math.isfinite(value):
            raise self.fault(node, f"`{text}` is beyond the range of a number.")
        return value

    def fault(self, node: Node, message: str) -> RequestError:
        return RequestError(f"{self.where}:{_line(node)}: {message}")


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
