"""Text corpora as symbol numbers: train and held-out parts, windows.

The default corpus is the sources of the standard library of the running interpreter.
A file belongs to the held-out part by a hash of its path, so the split is the same
on every machine with that interpreter.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from oscc.checks import require_choice
from oscc.errors import RequestError
from oscc.vocabulary import ASCII, BYTES, Symbols, Vocabulary

__all__ = [
    "ASCII",
    "BYTES",
    "HELD_OUT_TAIL",
    "Corpus",
    "Symbols",
    "Vocabulary",
    "read_symbols",
    "read_text",
    "standard_library",
    "text_corpus",
    "windows",
]

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
HELD_OUT_TAIL = 0.06  # share of a single text
_BYTE_SPLIT = (90_000_000, 5_000_000, 5_000_000)  # of enwik8
_MOST_OTHER = 0.05  # share of characters beyond ASCII, above which bytes are taken


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Symbols of a corpus in two parts, or three.

    `digest` is a hash over the paths and bytes of all files; `train`, `held_out` and
    `test` (empty but for a file split as enwik8) are symbol numbers, shape (symbols,).
    `not_ascii` is the share of the characters that ASCII lacks; `not_text` and
    `too_short` count files of a folder that were left out, because they are not UTF-8
    or shorter than 256 bytes.
    """

    name: str
    digest: str
    files: int
    vocabulary: Vocabulary
    train: Symbols
    held_out: Symbols
    test: Symbols = field(default_factory=lambda: np.zeros(0, np.uint8))
    not_ascii: float = 0.0
    not_text: int = 0
    too_short: int = 0

    @property
    def other_share(self) -> float:
        """Share of the symbols that stand for any other character."""
        parts = (self.train, self.held_out, self.test)
        count = sum(len(part) for part in parts)
        if not self.vocabulary.other or not count:
            return 0.0
        return sum(int((part == 0).sum()) for part in parts) / count


class _File(NamedTuple):
    name: str
    content: bytes

    def plain(self) -> bytes:
        return self.content.replace(b"\r", b"")

    def text(self) -> str:
        return self.plain().decode("utf-8", errors="replace")


def standard_library(
    root: Path | None = None, vocabulary: str | Vocabulary = "ascii"
) -> Corpus:
    """Sources of the interpreter's standard library, tests and data left out.

    Args:
        root: Folder of the library; the running interpreter's by default.
        vocabulary: As for `text_corpus`.

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
        _File(name, path.read_bytes())
        for name, path in sorted(found)
        if not any(part in name for part in _SKIPPED)
    ]
    return _of_files("standard library", kept, vocabulary)


def text_corpus(path: Path, vocabulary: str | Vocabulary = "auto") -> Corpus:
    """Corpus of a text file, or of all UTF-8 text files below a folder.

    The files of a folder are split by the hash of their path; the last 6 % of a
    single file are held out. A file of 100 000 000 bytes, the size of enwik8, is read
    as bytes and split as is usual for it: 90, 5 and 5 million to train, held out, test.

    Args:
        path: The file or folder.
        vocabulary: `ascii`, `bytes`, a vocabulary, or `auto`: ASCII where at most 5 %
            of the characters would be its symbol for others, else bytes. Characters
            are read from UTF-8 text with carriage returns dropped, bytes as they are;
            a single file need not be text then.

    Raises:
        RequestError: missing, not text, too short to be split, or with a character
            that the vocabulary lacks.
    """
    if path.is_dir():
        corpus = _folder_corpus(path, vocabulary)
        whole = len(corpus.train) and len(corpus.held_out)
        return corpus if whole else _tail_split(corpus)
    size = path.stat().st_size if path.is_file() else 0
    if vocabulary in ("bytes", BYTES) or (vocabulary, size) == (
        "auto",
        sum(_BYTE_SPLIT),
    ):
        return _byte_corpus(path)
    text = read_text(path, "Save it as UTF-8, or give --set train.vocabulary=bytes.")
    file = _File(path.name, text.encode())
    chosen, beyond = _chosen([file], vocabulary)
    if chosen == BYTES:
        return replace(_byte_corpus(path), not_ascii=beyond)
    symbols = _symbols(file, chosen)
    digest = hashlib.sha256(file.content).hexdigest()
    corpus = Corpus(path.name, digest, 1, chosen, symbols, symbols[:0])
    return _tail_split(replace(corpus, not_ascii=beyond))


def read_text(path: Path, mend: str = "Save it as UTF-8.") -> str:
    """Text of a UTF-8 file, with carriage returns dropped.

    Args:
        path: The file.
        mend: What to do about a file that is not UTF-8, for the message.

    Raises:
        RequestError: missing, a folder, not UTF-8, or empty.
    """
    try:
        text = _content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"`{path}` is not UTF-8 text (byte {error.start}). {mend}"
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


def _folder_corpus(folder: Path, vocabulary: str | Vocabulary) -> Corpus:
    found = [(path.relative_to(folder).as_posix(), path) for path in folder.rglob("*")]
    paths = [(name, path) for name, path in sorted(found) if path.is_file()]
    read = [(name, _utf8(path)) for name, path in paths]
    files = [_File(name, content) for name, content in read if content is not None]
    return _of_files(folder.name, files, vocabulary, not_text=len(read) - len(files))


def _utf8(path: Path) -> bytes | None:
    """Bytes of a file of UTF-8 text, None if it is none or closed to us."""
    try:
        content = path.read_bytes()
        content.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return content


def _of_files(
    name: str, files: list[_File], vocabulary: str | Vocabulary, not_text: int = 0
) -> Corpus:
    kept = [f for f in files if len(f.plain()) >= _SMALLEST_FILE]
    short = len(files) - len(kept)
    if not kept:
        raise RequestError(_nothing(name, short, not_text))
    chosen, beyond = _chosen(kept, vocabulary)
    digest = hashlib.sha256()
    parts: dict[bool, list[Symbols]] = {False: [], True: []}
    for file in kept:
        content = file.content if chosen == BYTES else file.plain()
        digest.update(file.name.encode() + b"\0" + content)
        held_out = hashlib.sha256(file.name.encode()).digest()[0] < _HELD_OUT_OF_256
        parts[held_out].append(_symbols(file, chosen))
    train, rest = (
        np.concatenate([*parts[key], np.zeros(0, np.uint8)]) for key in (False, True)
    )
    return Corpus(
        name,
        digest.hexdigest(),
        len(kept),
        chosen,
        train,
        rest,
        not_ascii=beyond,
        not_text=not_text,
        too_short=short,
    )


def _nothing(name: str, short: int, not_text: int) -> str:
    """Why a folder gives no corpus, and what to do about it."""
    why, mend = [], ["Give a folder of text files"]
    if not_text:
        why.append(f"{not_text} files are not UTF-8 text")
        mend = ["save them as UTF-8"]
    if short:
        why.append(f"{short} files are shorter")
        mend = ["Join short files into a longer one", *mend[: bool(not_text)]]
    said = "; ".join(why) or "it has no files"
    advice = ", ".join(mend)
    return (
        f"No text of {_SMALLEST_FILE} bytes or more in `{name}`: {said}. "
        f"{advice[:1].upper()}{advice[1:]}."
    )


def _chosen(
    files: Sequence[_File], vocabulary: str | Vocabulary
) -> tuple[Vocabulary, float]:
    """The vocabulary, and the share of the characters that ASCII lacks."""
    counts = [(len(text), _beyond(text)) for text in (f.text() for f in files)]
    share = sum(n for _, n in counts) / max(1, sum(n for n, _ in counts))
    if isinstance(vocabulary, Vocabulary):
        return vocabulary, share
    require_choice("vocabulary", vocabulary, ("auto", "ascii", "bytes"))
    if vocabulary == "auto":
        vocabulary = "bytes" if share > _MOST_OTHER else "ascii"
    return {"ascii": ASCII, "bytes": BYTES}[vocabulary], share


def _beyond(text: str) -> int:
    return int((ASCII.encode(text, unknown="other") == 0).sum())


def _share_beyond(content: Symbols) -> float:
    """Share of the characters that ASCII lacks, from UTF-8 bytes, without decoding."""
    counts = np.bincount(content, minlength=256)
    known = counts[9] + counts[10] + counts[32:127].sum()
    first = counts[:128].sum() + counts[0xC0:].sum()  # bytes that begin a character
    return float(1 - known / max(1, first))


def _symbols(file: _File, vocabulary: Vocabulary) -> Symbols:
    if vocabulary == BYTES:
        return np.frombuffer(file.content, np.uint8)
    unknown = "other" if vocabulary.other else "error"
    return vocabulary.encode(
        file.text(), unknown=unknown, where=file.name, owner="`model.vocabulary`"
    )


def _byte_corpus(path: Path) -> Corpus:
    content = _content(path)
    symbols: Symbols = np.frombuffer(content, np.uint8)
    digest = hashlib.sha256(content).hexdigest()
    corpus = Corpus(path.name, digest, 1, BYTES, symbols, symbols[:0])
    corpus = replace(corpus, not_ascii=_share_beyond(symbols))
    if len(content) != sum(_BYTE_SPLIT):
        return _tail_split(corpus)
    first, second, _ = _BYTE_SPLIT
    train, held_out, test = np.split(symbols, (first, first + second))
    return replace(corpus, train=train, held_out=held_out, test=test)


def _tail_split(corpus: Corpus) -> Corpus:
    whole = np.concatenate([corpus.train, corpus.held_out])
    cut = len(whole) - int(HELD_OUT_TAIL * len(whole))
    return replace(corpus, train=whole[:cut], held_out=whole[cut:])
