"""Random streams: named, independent, the same everywhere."""

import subprocess
import sys

import numpy as np

from oscc.seeds import stream


def test_same_name_same_draws_other_name_others() -> None:
    first = stream(3, "deck sample", 1).random(4).tolist()
    assert stream(3, "deck sample", 1).random(4).tolist() == first
    others = [stream(4, "deck sample", 1), stream(3, "noise", 1), stream(3, "", 1)]
    others += [stream(3, "deck sample", 2)]
    assert all(other.random(4).tolist() != first for other in others)


def test_eight_samples_of_one_seed_are_eight_draws() -> None:
    draws = {tuple(stream(0, "mismatch", n).random(3)) for n in range(8)}
    assert len(draws) == 8


def test_streams_do_not_correlate() -> None:
    rows = np.stack([stream(0, "noise", n).standard_normal(4000) for n in range(6)])
    off = np.corrcoef(rows)[np.triu_indices(6, 1)]
    # 15 correlations of 4000 normal numbers: standard deviation 1/sqrt(4000), 5 sigma
    assert np.abs(off).max() < 5 / np.sqrt(4000)


def test_draws_do_not_depend_on_the_process() -> None:
    code = "from oscc.seeds import stream; print(stream(7, 'x', 2).integers(10**9))"
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] == f"{stream(7, 'x', 2).integers(10**9)}\n"
