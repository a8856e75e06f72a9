"""How well do n-grams predict the corpus the shipped models are trained on?

Witten-Bell smoothed n-grams on the training part of the standard library's sources,
measured on the held-out part: the same vocabulary and the same 24 fixed batches as
the models, and the whole part.

    p_n(s | h) = (c(h s) + T(h) p_{n-1}(s | h')) / (c(h) + T(h))

T(h) is the number of different symbols seen after h, h' is h without its oldest
symbol, p_0 = 1 / V. Source: Witten and Bell 1991, method C.

    python benchmarks/ngram_baseline.py [--out FILE]
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray
from oscc.corpus import standard_library
from oscc.files import dump_json, write_atomic
from oscc.models.training import VALIDATION_BATCHES, VALIDATION_ROWS, batch_of
from oscc.seeds import stream

CONTEXT = 128
OUT = Path(__file__).parent / "results" / "ngram_baseline.json"
Codes = npt.NDArray[np.int64]


def codes(symbols: npt.NDArray[np.uint8], size: int, order: int) -> Codes:
    """Number of the n-gram that ends at each position from order - 1 on."""
    count = len(symbols) - order + 1
    out = np.zeros(count, np.int64)
    for i in range(order):
        out = out * size + symbols[i : i + count]
    return out


def lookup(keys: Codes, values: Codes, wanted: Codes) -> Codes:
    """Value of each wanted key, 0 where it is not there."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


class WittenBell:
    """Counts of all orders up to the largest, and their interpolation."""

    def __init__(self, symbols: npt.NDArray[np.uint8], size: int, order: int) -> None:
        self.size, self.order = size, order
        self.grams, self.histories = [], []
        for n in range(1, order + 1):
            keys, counts = np.unique(codes(symbols, size, n), return_counts=True)
            self.grams.append((keys, counts))
            first = keys // size
            starts = np.flatnonzero(np.append(True, first[1:] != first[:-1]))
            kinds = np.diff(np.append(starts, len(keys)))
            totals = np.add.reduceat(counts, starts)
            self.histories.append((first[starts], totals, kinds))

    def probability(self, gram: Codes, order: int) -> FloatArray:
        """Probability of the last symbol of each gram of that order."""
        if order == 0:
            return np.full(len(gram), 1.0 / self.size)
        shorter = gram % self.size ** (order - 1)
        lower = self.probability(shorter, order - 1)
        count = lookup(*self.grams[order - 1], gram)
        keys, totals, kinds = self.histories[order - 1]
        total = lookup(keys, totals, gram // self.size)
        kind = lookup(keys, kinds, gram // self.size)
        seen = total > 0
        mixed = (count + kind * lower) / np.where(seen, total + kind, 1)
        return np.where(seen, mixed, lower)

    def bits(self, symbols: npt.NDArray[np.uint8], order: int) -> FloatArray:
        """Bits of every symbol but the first, with the symbols before it in the row."""
        rows = np.atleast_2d(symbols)
        parts = []
        for n in range(2, order):  # the first symbols have a shorter history
            head = np.concatenate([codes(row[:n], self.size, n) for row in rows])
            parts.append(self.probability(head, n))
        body = np.concatenate([codes(row, self.size, order) for row in rows])
        parts.append(self.probability(body, order))
        return np.asarray(-np.log2(np.concatenate(parts)))


def main() -> None:
    """Measure orders 2 to 5 and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    corpus = standard_library()
    size, highest = corpus.vocabulary.size, 5
    table = WittenBell(corpus.train, size, highest)
    batches = [
        batch_of(
            corpus.held_out, CONTEXT, VALIDATION_ROWS, stream(0, "validation batch", i)
        )
        for i in range(VALIDATION_BATCHES)
    ]
    rows = np.concatenate(
        [np.concatenate([x.numpy(), y.numpy()[:, -1:]], 1) for x, y in batches]
    ).astype(np.uint8)
    orders = {}
    for order in range(2, highest + 1):
        orders[str(order)] = {
            "validation_batches": float(table.bits(rows, order).mean()),
            "held_out": float(table.bits(corpus.held_out, order).mean()),
        }
        print(order, orders[str(order)])
    content = {
        "format": "oscc.benchmark/1",
        "question": "bits per character of Witten-Bell n-grams",
        "bits_per_character": orders,
        "corpus_sha256": corpus.digest,
        "train_symbols": len(corpus.train),
        "held_out_symbols": len(corpus.held_out),
        "vocabulary": size,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }
    write_atomic(out, dump_json(content))


if __name__ == "__main__":
    main()
