"""Vocabularies: which symbols a model knows, and the numbers they have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from oscc.checks import require_choice
from oscc.errors import RequestError

Symbols: TypeAlias = npt.NDArray[np.uint8]

_BYTES = "".join(chr(i) for i in range(256))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Characters a model knows, in order; symbol 0 may stand for any other one.

    With `unit` `byte` the symbols are the 256 bytes, `characters` is the character of
    each one's number, and a text is its UTF-8 bytes.

    Raises:
        RequestError: a character twice, no symbols or over 256, or bytes that are not
            the 256 in order.

    Example:
        >>> v = Vocabulary("ab", other=True)
        >>> v.encode("ba").tolist(), v.size
        ([2, 1], 3)
    """

    characters: str
    other: bool = True
    unit: str = "character"

    def __post_init__(self) -> None:
        require_choice("unit", self.unit, ("character", "byte"))
        if self.unit == "byte" and (self.characters, self.other) != (_BYTES, False):
            raise RequestError(
                "A vocabulary of bytes must list the 256 characters of U+0000 to "
                "U+00FF in order, and none for others."
            )
        if len(set(self.characters)) != len(self.characters):
            raise RequestError("The vocabulary lists a character twice.")
        if not 1 <= self.size <= 256:
            raise RequestError(
                f"The vocabulary must have 1 to 256 symbols, but has {self.size}."
            )

    @property
    def size(self) -> int:
        """Number of symbols V, the one for other characters included."""
        return len(self.characters) + self.other

    @property
    def name(self) -> str:
        """`ascii`, `bytes`, or `given` for any other one.

        Example:
            >>> ASCII.name, Vocabulary("ab").name
            ('ascii', 'given')
        """
        return {ASCII: "ascii", BYTES: "bytes"}.get(self, "given")

    def encode(
        self,
        text: str,
        *,
        unknown: str = "error",
        where: str = "the text",
        limit: int | None = None,
        owner: str = "",
    ) -> Symbols:
        """Symbol numbers of a text.

        Args:
            text: Any text.
            unknown: `error` refuses characters the vocabulary lacks, `other` maps
                them to symbol 0.
            where: Name of the text, for messages.
            limit: Most symbols, from the start of the text; all by default. What
                comes after is not looked at.
            owner: What the vocabulary was given as, for messages; a checkpoint's by
                default.

        Returns:
            Shape (symbols,).

        Raises:
            RequestError: a character is unknown (named with its code, its position
                and line, both counted from 1), or there is no symbol for others.

        Example:
            >>> Vocabulary("ab").encode("a!", unknown="other").tolist()
            [1, 0]
        """
        require_choice("unknown", unknown, ("error", "other"))
        if unknown == "other" and not self.other:
            raise RequestError(
                "This vocabulary has no symbol for other characters: "
                "`--unknown other` cannot be used."
            )
        text = text[:limit]
        if self.unit == "byte":
            return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)[
                :limit
            ]
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        known = np.array([ord(c) for c in self.characters], np.int64)
        table = np.full(int(max(known.max(initial=0), 0)) + 2, -1, np.int64)
        table[known] = np.arange(len(known)) + self.other
        found = table[np.minimum(points, len(table) - 1)]
        missing = np.flatnonzero(found < 0)
        if len(missing) and unknown == "error":
            place = self._place(text, int(missing[0]), where)
            raise RequestError(f"{place} is not in {self._whose(owner)}")
        return np.where(found < 0, 0, found).astype(np.uint8)

    def _place(self, text: str, position: int, where: str) -> str:
        character = text[position]
        line = text.count("\n", 0, position) + 1
        return (
            f"character {character!r} (U+{ord(character):04X}) at position "
            f"{position + 1}, line {line} of {where}"
        )

    def _whose(self, owner: str) -> str:
        count = len(self.characters)
        if owner:
            return (
                f"the {count} characters of {owner}. Add it to them, or leave it out "
                "of the text."
            )
        mend = ", or --unknown other." if self.other else "."
        return (
            f"the checkpoint's {count} characters. Use text of these characters "
            f"(oscc inspect CHECKPOINT lists them){mend}"
        )

    def decode(self, symbols: npt.ArrayLike) -> str:
        """Text of symbol numbers, U+FFFD where there is no character for one.

        Example:
            >>> Vocabulary("ab").decode([1, 2, 1])
            'aba'
        """
        if self.unit == "byte":
            return np.asarray(symbols, np.uint8).tobytes().decode("utf-8", "replace")
        alphabet = ("\ufffd" if self.other else "") + self.characters
        return "".join(alphabet[int(i)] for i in np.asarray(symbols).ravel())

    def to_json(self) -> str:
        """JSON text, as stored in a checkpoint.

        Example:
            >>> Vocabulary("ab").to_json()
            '{"characters":"ab","other":true}'
        """
        content = {"characters": self.characters, "other": self.other}
        if self.unit != "character":  # younger than the format: older files stay equal
            content["unit"] = self.unit
        return json.dumps(content, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Vocabulary:
        """Vocabulary from JSON text.

        Raises:
            RequestError: not such a text.

        Example:
            >>> Vocabulary.from_json('{"characters":"ab","other":false}').size
            2
        """
        try:
            content = json.loads(text)
            characters, other = str(content["characters"]), bool(content["other"])
            return Vocabulary(characters, other, str(content.get("unit", "character")))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise RequestError(
                "The vocabulary must be a JSON mapping of `characters` (text) and "
                f"`other` (true or false), but is {text[:60]!r}."
            ) from error


ASCII = Vocabulary("\t\n" + "".join(chr(i) for i in range(32, 127)), other=True)
"""Tab, newline, ASCII 32 to 126, one symbol for all other characters: 98 symbols."""


BYTES = Vocabulary(_BYTES, other=False, unit="byte")
"""Every byte: 256 symbols."""


def vocabulary_of(given: Any) -> Vocabulary:
    """Vocabulary that the key `model.vocabulary` of a configuration stands for.

    Args:
        given: The characters in the order of their numbers, or a mapping of
            `characters` and `other` (false without it), or `unit: byte`.

    Raises:
        RequestError: neither of these.

    Example:
        >>> vocabulary_of("ab").size, vocabulary_of({"unit": "byte"}).size
        (2, 256)
    """
    if isinstance(given, str):
        return Vocabulary(given, other=False)
    if isinstance(given, Mapping) and set(given) <= {"characters", "other", "unit"}:
        unit, other = given.get("unit", "character"), given.get("other", False)
        characters = given.get("characters", _BYTES if unit == "byte" else None)
        texts = isinstance(characters, str) and isinstance(unit, str)
        if texts and isinstance(other, bool):
            return Vocabulary(characters, other, unit)
    raise RequestError(
        "`model.vocabulary` must be the characters as text, a mapping of "
        f"`characters` and `other`, or `unit: byte`, but is {given!r}."
    )
