"""What does a lock cell read, in each engine, and how far is it from the ideal?

One cell of the default design after one default dwell, x from 0 to 1.2: phase
dynamics, exact circuit, gnucap and ngspice, each with a run at half the step. Beside
it the settled law error of the circuit over couplings, the error of the read-out over
dwells, the mean cosine of slipping cells, and the odd pull against the averaged one.

    python benchmarks/lock_table.py [--out FILE] [--jobs N]
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy

from oscc.arrays import FloatArray
from oscc.device import Card, load_card
from oscc.device.lock_cell import (
    LOCK_CARD,
    PERIODS,
    QUALITY,
    RATE,
    LockCell,
    lock_cell,
    odd_pull,
    odd_series,
    slip_bias,
)
from oscc.device.lock_law import x_settled, x_slipped
from oscc.device.lock_readout import phase_difference_at
from oscc.errors import ToolError
from oscc.files import dump_json, write_atomic
from oscc.ir.lock import LockReading
from oscc.testing.flat import cells_stage
from oscc_backends.artefact import LockProblem
from oscc_backends.lock import problem
from oscc_netlists.settings import DIALECTS
from oscc_sims import lock_circuit, lock_phase, lock_spice
from oscc_sims.simulator import version

OUT = Path(__file__).parent / "results" / "lock_table.json"
RATIOS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 1.0, 1.05, 1.2)
LOCKED = (0.3, 0.6, 0.9, 0.95)
SLIPPING = (1.05, 1.2)
RATES = (0.01, 0.02, 0.03)  # at .06 the trim of the cards ends below x = 1
DESIGNS = (("vo2-two-state-5k5", 2.0), ("vo2-two-state-6k", 2.0))
DWELLS = (50, 100, 150, 200)


def cells(ratio: Any, periods: int) -> LockProblem:
    """Pair cells of the default coupling over a dwell."""
    lock_rad = 2 * np.pi * RATE * periods
    return problem(cells_stage(ratio, gain_rad=lock_rad, dwell_periods=periods))


def ideal(ratio: FloatArray) -> FloatArray:
    """Coherence of a settled pair: sqrt(1 - x^2), 0 where it slips."""
    return np.sqrt(np.maximum(0.0, 1.0 - ratio**2))


def listed(seen: LockReading) -> dict[str, Any]:
    """A read-out as lists."""
    return {
        "locked": seen.locked.tolist(),
        "coherence": seen.coherence.tolist(),
        "margin": seen.margin.tolist(),
    }


def by_engine(card: Card, jobs: int) -> dict[str, Any]:
    """The default dwell in every engine, cell by cell."""
    found = cells(RATIOS, PERIODS)
    circuit = lock_circuit.solve(card, found, energy=True)
    assert circuit.energy_J is not None
    rows: dict[str, Any] = {
        "phase": listed(lock_phase.solve(found)),
        "circuit": listed(circuit.reading)
        | {"supply_J": circuit.energy_J[:, 0].tolist()},
    }
    for dialect in DIALECTS:
        try:
            said = version(dialect)
            seen = lock_spice.run(
                card, found, range(len(RATIOS)), dialect, gate=True, jobs=jobs
            )
        except ToolError as error:
            rows[dialect] = {"failed": str(error)}
            continue
        rows[dialect] = listed(seen.reading) | {
            "version": said,
            "supply_J": seen.supply_J.tolist(),
            "half_step_change": seen.change.tolist(),
        }
    return {"ratio": RATIOS, "periods": PERIODS, "engines": rows}


def traces(cell: LockCell, ratio: Any, periods: float) -> list[FloatArray]:
    """Crossings of oscillator 1 in base phase, and psi there, shape (2, N) a cell."""
    out = []
    for pair in lock_circuit.follow(cell, np.asarray(ratio), periods).crossing:
        first, second = (times[np.isfinite(times)] for times in pair)
        psi = phase_difference_at(first, second)
        kept = np.isfinite(psi)
        out.append(np.stack([first[kept], psi[kept]]))
    return out


def whole_slips(time: FloatArray, psi: FloatArray, rate: float) -> tuple[float, float]:
    """Beat over the lock range and mean cosine, over whole slips at the end."""
    turns = psi / (2 * np.pi)
    count = int(turns[-1]) - 1
    begin = float(np.interp(turns[-1] - count, turns, time))
    grid = np.linspace(begin, time[-1], 20001)
    beat = 2 * np.pi * count / (time[-1] - begin) / rate
    return beat, float(np.cos(np.interp(grid, time, psi)).mean())


def law(name: str, quality: float, rate: float) -> dict[str, Any]:
    """Settled law error, slipping means and odd pull of one design."""
    cell = lock_cell(load_card(name), rate, quality=quality)
    settled = [psi for _, psi in traces(cell, LOCKED, 8 / rate)]
    cosine = np.array([np.cos(psi[-psi.size // 10 :].mean()) for psi in settled])
    slips = [whole_slips(*t, rate) for t in traces(cell, SLIPPING, 8 / rate)]
    grid = np.linspace(0.05, 0.93, 23)
    ends = np.array([psi[-15:].mean() for _, psi in traces(cell, grid, 5 / rate)])
    pull = np.abs(grid - odd_pull(cell, ends))
    return {
        "card": name,
        "quality": quality,
        "rate": rate,
        "odd_second_third": odd_series(cell, 3)[1:].tolist(),
        "error": (cosine - ideal(np.array(LOCKED))).tolist(),
        "slipping_mean": [mean for _, mean in slips],
        "slipping_mean_predicted": slip_bias(cell, SLIPPING).tolist(),
        "beat": [beat for beat, _ in slips],
        "odd_pull_error_max": float(pull.max()),
    }


def dwell(card: Card, periods: int) -> dict[str, Any]:
    """Error of the read-out over x of 0 to 1.6, in phase dynamics and circuit."""
    ratio = np.linspace(0, 1.6, 321)
    found = cells(ratio, periods)
    seen = {
        "phase": lock_phase.solve(found),
        "circuit": lock_circuit.solve(card, found).reading,
    }
    row: dict[str, Any] = {
        "periods": periods,
        "lock_rad": found.lock_rad,
        "settled_below": x_settled(found.lock_rad),
        "slipping_above": x_slipped(found.lock_rad),
    }
    for name, reading in seen.items():
        error = reading.coherence - ideal(ratio)
        sure = reading.locked >= 0
        row[name] = {
            "max": float(np.abs(error).max()),
            "rms": rms(error),
            "rms_below_0.9": rms(error[ratio < 0.9]),
            "rms_decided": rms(error[sure]),
            "undecided_share": float(1 - sure.mean()),
        }
    return row


def rms(error: FloatArray) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(error**2)))


def table(record: dict[str, Any]) -> str:
    """Text for a person."""
    engines = record["default"]["engines"]
    told = [name for name, row in engines.items() if "failed" not in row]
    out = ["x      ideal    " + "  ".join(f"{name:>9s}" for name in told)]
    for place, ratio in enumerate(RATIOS):
        values = "  ".join(f"{engines[n]['coherence'][place]:9.5f}" for n in told)
        out.append(f"{ratio:<6g} {float(ideal(np.array(ratio))):8.5f} {values}")
    for row in record["law"]:
        errors = " ".join(f"{e:+.4f}" for e in row["error"])
        means = " ".join(f"{m:+.4f}" for m in row["slipping_mean"])
        out.append(
            f"{row['card']} Q {row['quality']:g} K/w0 {row['rate']:g}: {errors} | "
            f"slipping {means} | odd pull {row['odd_pull_error_max']:.4f}"
        )
    for row in record["dwell"]:
        circuit = row["circuit"]
        out.append(
            f"P {row['periods']}: settled below {row['settled_below']:.3f}, slipping "
            f"above {row['slipping_above']:.3f}, circuit rms {circuit['rms']:.4f}, "
            f"decided {circuit['rms_decided']:.4f}, undecided "
            f"{circuit['undecided_share']:.3f}"
        )
    return "\n".join(out)


def main() -> None:
    """Run everything, write the record, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    card = load_card(LOCK_CARD)
    record = {
        "format": "oscc.benchmark/1",
        "question": "what a lock cell reads, engine by engine",
        "card": LOCK_CARD,
        "quality": QUALITY,
        "rate": RATE,
        "default": by_engine(card, options.jobs),
        "law": [law(*design, rate) for design in DESIGNS for rate in RATES],
        "dwell": [dwell(card, periods) for periods in DWELLS],
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "scipy": scipy.__version__,
        },
    }
    write_atomic(options.out, dump_json(record))
    print(table(record))


if __name__ == "__main__":
    main()
