"""Windows of held-out text that a model is evaluated on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oscc.corpus import Symbols
from oscc.errors import RequestError

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint

CALIBRATION_WINDOWS = 16


def symbols_of(
    model: LoadedCheckpoint, text: Path | None, tokens: int, unknown: str
) -> tuple[list[Symbols], list[Symbols], str]:
    """Calibration windows, held-out windows, digest of the corpus.

    Args:
        model: Its vocabulary and context are used.
        text: Text file or folder, used whole; None takes the held-out part of the
            standard library.
        tokens: Fewest tokens over all windows of the latter.
        unknown: `error` or `other`, for characters outside the vocabulary.

    Raises:
        RequestError: a text that cannot be used, or is needed and not given.
    """
    from oscc.corpus import standard_library, windows

    context, corpus = model.config.context, standard_library()
    ours = model.vocabulary == corpus.vocabulary
    training = [windows(corpus.train, context, CALIBRATION_WINDOWS * context)]
    if text is None:
        if not ours:
            raise RequestError(
                "The checkpoint's vocabulary is not that of the standard library's "
                "sources. Give a text of its own with --text PATH."
            )
        held_out = windows(corpus.held_out, context, tokens)
        return training, [held_out], corpus.digest
    symbols, digest = _given_text(model, text, unknown)
    every = whole_windows(symbols, context)
    return training if ours else every, every, digest


def _given_text(
    model: LoadedCheckpoint, text: Path, unknown: str
) -> tuple[Symbols, str]:
    """Symbols of a text file, or of all files of a folder one after the other."""
    from oscc.corpus import read_symbols
    from oscc.files import sha256_bytes

    files = sorted(p for p in text.rglob("*") if p.is_file()) if text.is_dir() else []
    parts = [read_symbols(path, model.vocabulary, unknown) for path in files or [text]]
    content = b"".join(part for _, part in parts)
    return np.concatenate([symbols for symbols, _ in parts]), sha256_bytes(content)


def whole_windows(symbols: Symbols, context: int) -> list[Symbols]:
    """A text cut into windows without overlap, nothing left over.

    Args:
        symbols: Symbol numbers, shape (symbols,).
        context: Tokens T of a window.

    Returns:
        Windows of T inputs and each one's next symbol, shape (windows, T + 1), and
        what is left of the text as one shorter window.

    Raises:
        RequestError: the text has no next symbol to predict.

    Example:
        >>> [w.tolist() for w in whole_windows(np.arange(6, dtype=np.uint8), 2)]
        [[[0, 1, 2], [2, 3, 4]], [[4, 5]]]
    """
    positions = len(symbols) - 1
    if positions < 1:
        raise RequestError(
            f"The text has {len(symbols)} symbols, evaluation needs 2. "
            "Give a longer text."
        )
    count, rest = divmod(positions, context)
    starts = context * np.arange(count)
    full = [symbols[i : i + context + 1] for i in starts]
    tail = [symbols[count * context :][None]] if rest else []
    return ([np.stack(full)] if full else []) + tail
