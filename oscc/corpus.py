"""Text corpora as symbol numbers: vocabulary, train and held-out parts, windows.

The default corpus is the sources of the standard library of the running interpreter.
A file belongs to the held-out part by a hash of its path, so the split is the same
on every machine with that interpreter.
"""

from __future__ import annotations

import hashlib
import json
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from oscc.checks import require_choice
from oscc.errors import RequestError

Symbols: TypeAlias = npt.NDArray[np.uint8]

_SKIPPED = (
    "site-packages",
    "dist-packages",
    "test/",
    "tests/",
    "idle_test",
    "encodings/",
    "pydoc_data",
)
_SMALLEST_FILE = 256  # bytes
_HELD_OUT_OF_256 = 20  # share of files, by the first byte of their hash
_HELD_OUT_TAIL = 0.06  # share of a single text
_BYTE_SPLIT = (90_000_000, 5_000_000, 5_000_000)  # of enwik8
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

    def encode(
        self,
        text: str,
        *,
        unknown: str = "error",
        where: str = "the text",
        limit: int | None = None,
    ) -> Symbols:
        """Symbol numbers of a text.

        Args:
            text: Any text.
            unknown: `error` refuses characters the vocabulary lacks, `other` maps
                them to symbol 0.
            where: Name of the text, for messages.
            limit: Most symbols, from the start of the text; all by default. What
                comes after is not looked at.

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
            raise RequestError(self._unknown_message(text, int(missing[0]), where))
        return np.where(found < 0, 0, found).astype(np.uint8)

    def _unknown_message(self, text: str, position: int, where: str) -> str:
        character = text[position]
        line = text.count("\n", 0, position) + 1
        mend = ", or --unknown other." if self.other else "."
        return (
            f"character {character!r} (U+{ord(character):04X}) at position "
            f"{position + 1}, line {line} of {where} is not in the checkpoint's "
            f"{len(self.characters)} characters. Use text of these characters "
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


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Symbols of a corpus in two parts.

    `digest` is a hash over the paths and bytes of all files; `train`, `held_out` and
    `test` (empty but for a byte corpus) are symbol numbers, shape (symbols,).
    """

    name: str
    digest: str
    files: int
    vocabulary: Vocabulary
    train: Symbols
    held_out: Symbols
    test: Symbols = field(default_factory=lambda: np.zeros(0, np.uint8))


def standard_library(root: Path | None = None) -> Corpus:
    """Sources of the interpreter's standard library, tests and data left out.

    Args:
        root: Folder of the library; the running interpreter's by default.

    Raises:
        RequestError: the folder holds no sources.

    Example:
        >>> standard_library().vocabulary.size
        98
    """
    folder = Path(sysconfig.get_paths()["stdlib"]) if root is None else root
    found = [
        (path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py")
    ]
    kept = [
        (name, path)
        for name, path in sorted(found)
        if not any(part in name for part in _SKIPPED)
    ]
    return _from_files("standard library", kept)


def text_corpus(path: Path) -> Corpus:
    """Corpus of a text file, or of all UTF-8 text files below a folder.

    The files of a folder are split by the hash of their path; the last 6 % of a
    single file are held out. A file of 100 000 000 bytes, the size of enwik8, is read
    as bytes and split as is usual for it: 90, 5 and 5 million to train, held out, test.

    Raises:
        RequestError: missing, not text, or too short to be split.
    """
    if path.is_dir():
        found = [(p.relative_to(path).as_posix(), p) for p in path.rglob("*")]
        files = [(name, p) for name, p in sorted(found) if p.is_file() and _is_text(p)]
        corpus = _from_files(path.name, files)
        if len(corpus.train) and len(corpus.held_out):
            return corpus
        return _tail_split(corpus)
    if path.is_file() and path.stat().st_size == sum(_BYTE_SPLIT):
        return _byte_corpus(path)
    return _tail_split(_from_text(path.name, read_text(path)))


def read_text(path: Path) -> str:
    """Text of a UTF-8 file, with carriage returns dropped.

    Raises:
        RequestError: missing, a folder, not UTF-8, or empty.
    """
    try:
        text = _content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"`{path}` is not UTF-8 text (byte {error.start}). Save it as UTF-8."
        ) from error
    return text.replace("\r", "")


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise RequestError(f"`{path}` does not exist.") from error
    except OSError as error:
        raise RequestError(
            f"`{path}` cannot be read: {error.strerror or error}."
        ) from error
    if not content:
        raise RequestError(f"`{path}` is empty. Give a text of one token or more.")
    return content


def read_symbols(
    path: Path, vocabulary: Vocabulary, unknown: str = "error"
) -> tuple[Symbols, bytes]:
    """Symbols of a file, and the bytes they stand for.

    A vocabulary of characters reads UTF-8 text with carriage returns dropped, one of
    bytes reads any file as it is.

    Raises:
        RequestError: missing, a folder, empty, not text where it must be, or with a
            character that the vocabulary lacks.
    """
    if vocabulary.unit == "byte":
        content = _content(path)
        return np.frombuffer(content, np.uint8), content
    text = read_text(path)
    return vocabulary.encode(text, unknown=unknown, where=str(path)), text.encode()


def windows(symbols: Symbols, context: int, tokens: int) -> Symbols:
    """Windows without overlap, spread evenly over a part of a corpus.

    Args:
        symbols: Symbol numbers, shape (symbols,).
        context: Tokens T of a window.
        tokens: Fewest tokens over all windows; all there are if that is less.

    Returns:
        Shape (windows, T + 1): T inputs, and each one's next symbol.

    Raises:
        RequestError: the part is shorter than one window and its next symbol.

    Example:
        >>> windows(np.arange(9, dtype=np.uint8), 2, 4).tolist()
        [[0, 1, 2], [4, 5, 6]]
    """
    available = (len(symbols) - 1) // context
    if available < 1:
        raise RequestError(
            f"The text has {len(symbols)} symbols, one window needs {context + 1}. "
            "Give a longer text."
        )
    count = min(available, -(-tokens // context))
    starts = (np.arange(count) * available // count) * context
    return np.stack([symbols[i : i + context + 1] for i in starts])


def _from_files(name: str, files: Iterable[tuple[str, Path]]) -> Corpus:
    digest, count = hashlib.sha256(), 0
    parts: dict[bool, list[Symbols]] = {False: [], True: []}
    for relative, path in files:
        content = path.read_bytes().replace(b"\r", b"")
        if len(content) < _SMALLEST_FILE:
            continue
        count += 1
        digest.update(relative.encode() + b"\0" + content)
        held_out = hashlib.sha256(relative.encode()).digest()[0] < _HELD_OUT_OF_256
        text = content.decode("utf-8", errors="replace")
        parts[held_out].append(ASCII.encode(text, unknown="other"))
    if not count:
        raise RequestError(f"No text of {_SMALLEST_FILE} bytes or more in {name}.")
    train, rest = (
        np.concatenate([*parts[key], np.zeros(0, np.uint8)]) for key in (False, True)
    )
    return Corpus(name, digest.hexdigest(), count, ASCII, train, rest)


def _from_text(name: str, text: str) -> Corpus:
    digest = hashlib.sha256(text.encode()).hexdigest()
    symbols = ASCII.encode(text, unknown="other")
    return Corpus(name, digest, 1, ASCII, symbols, symbols[:0])


def _byte_corpus(path: Path) -> Corpus:
    content = path.read_bytes()
    first, second, _ = _BYTE_SPLIT
    symbols: Symbols = np.frombuffer(content, np.uint8)
    train, held_out, test = np.split(symbols, (first, first + second))
    digest = hashlib.sha256(content).hexdigest()
    return Corpus(path.name, digest, 1, BYTES, train, held_out, test)


def _tail_split(corpus: Corpus) -> Corpus:
    whole = np.concatenate([corpus.train, corpus.held_out])
    cut = len(whole) - int(_HELD_OUT_TAIL * len(whole))
    return Corpus(
        corpus.name,
        corpus.digest,
        corpus.files,
        corpus.vocabulary,
        whole[:cut],
        whole[cut:],
    )


def _is_text(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return True
