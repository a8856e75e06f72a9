"""What does a period of a lock cell cost in the exact circuit engine?

Cells of the default design, on one thread, in CPU time: median of interleaved repeats.
The error of each method is its largest difference of psi over a run from the engine's;
the engine's own is against DOP853 with events at 1e-12 and short steps. SPICE programs,
where they are installed, run the same cells, start of the program included.

    python benchmarks/lock_engine.py [--out FILE]
"""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy

from oscc.arrays import FloatArray
from oscc.device import load_card
from oscc.device.lock_cell import LOCK_CARD, LockCell, lock_cell
from oscc.device.lock_readout import phase_difference_at
from oscc.device.piecewise import omega
from oscc.errors import ToolError
from oscc.files import dump_json, write_atomic
from oscc.testing.independent_lock import lock_crossings
from oscc_netlists.lock import NODES, lock_deck
from oscc_netlists.settings import DIALECTS, Settings, default_settings
from oscc_sims.crossings import upward
from oscc_sims.lock_circuit import follow
from oscc_sims.process import Children
from oscc_sims.simulator import SimulatorFault, open_simulator

OUT = Path(__file__).parent / "results" / "lock_engine.json"
CELLS, PERIODS, REPEATS = 2048, 100, 7
FEW = (0.6, 1.2)  # cells of the slow methods
SHORT = 20  # their periods in an integrator
SPICE_REPEATS = 3


def psi_of(first: FloatArray, second: FloatArray) -> FloatArray:
    """Phase difference at the crossings of oscillator 1, from their times."""
    kept = [times[np.isfinite(times)] for times in (first, second)]
    return phase_difference_at(*kept)


def largest(found: FloatArray, wanted: FloatArray) -> float:
    """Largest difference of psi at crossings that both have, [rad]."""
    count = min(found.size, wanted.size)
    return float(np.nanmax(np.abs(found[:count] - wanted[:count])))


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, with what it returned."""
    begin = time.process_time()
    seen = run()
    return time.process_time() - begin, seen


Methods = dict[str, tuple[Callable[[], Any], int]]


def solver(cell: LockCell, method: str, tolerance: float) -> Callable[[], Any]:
    """The few cells in an integrator with events."""
    return lambda: [
        lock_crossings(cell, x, SHORT, method=method, tolerance=tolerance) for x in FEW
    ]


def measure(cell: LockCell) -> dict[str, Any]:
    """Engine and integrators, interleaved."""
    ratio = np.linspace(0.0, 1.6, CELLS)
    short = SHORT * len(FEW)
    methods: Methods = {
        "engine": (lambda: follow(cell, ratio, PERIODS), CELLS * PERIODS),
        "engine with energies": (
            lambda: follow(cell, ratio, PERIODS, energy=True),
            CELLS * PERIODS,
        ),
        "solve_ivp RK45 1e-6": (solver(cell, "RK45", 1e-6), short),
        "solve_ivp DOP853 1e-8": (solver(cell, "DOP853", 1e-8), short),
        "solve_ivp DOP853 1e-10": (solver(cell, "DOP853", 1e-10), short),
    }
    results = {name: run() for name, (run, _) in methods.items()}  # compiles
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(REPEATS):
        for name, (run, periods) in methods.items():
            seconds, results[name] = cpu(run)
            times[name].append(seconds / periods * 1e9)
    spent = {name: statistics.median(seen) for name, seen in times.items()}
    oracle = solver(cell, "DOP853", 1e-12)()
    mine = follow(cell, np.array(FEW), SHORT).crossing
    errors = {"engine": _errors(mine, oracle)}
    for name, seen in results.items():
        if name.startswith("solve_ivp"):
            errors[name] = _errors(mine, seen)
    return {
        "ns_per_cell_period": spent,
        "ratio_to_engine": {n: spent[n] / spent["engine"] for n in spent},
        "error_rad": errors,
        "evaluations_per_period": results["engine"].evaluations / (CELLS * PERIODS),
    }


def _errors(mine: FloatArray, others: list[Any]) -> float:
    pairs = zip(mine, others, strict=True)
    return max(
        largest(psi_of(other.first_s, other.second_s), psi_of(*own))
        for own, other in pairs
    )


def children_cpu() -> float:
    """CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_spice(cell: LockCell, settings: Settings) -> dict[str, Any]:
    """Cost and error of a SPICE program at one setting."""
    tool = open_simulator(settings.dialect)
    exact = follow(cell, np.array(FEW), PERIODS).crossing
    times, errors = [], {x: 0.0 for x in FEW}
    for x, own in [*zip(FEW, exact, strict=True)] * SPICE_REPEATS:
        deck = lock_deck(cell, x, PERIODS, settings)
        before = children_cpu()
        with Children() as children:
            plot = tool.run(children, deck, 300.0)
        stop = deck.circuit.transient.stop_s * omega(cell.card) / (2 * np.pi)
        times.append((children_cpu() - before) / stop * 1e9)
        pair = [
            upward(plot.column("time"), plot.column(f"v({node})"), deck.level_V)
            for node in NODES
        ]
        psi = psi_of(*pair)[:PERIODS]
        errors[x] = max(errors[x], largest(psi, psi_of(*own)))
    return {
        "version": tool.version,
        "ns_per_cell_period": statistics.median(times),
        "error_rad": {str(x): error for x, error in errors.items()},
    }


def measure_spice(cell: LockCell, base: float) -> list[dict[str, Any]]:
    """Each SPICE program at several settings."""
    rows = []
    for dialect in DIALECTS:
        plain = default_settings(dialect)
        every = [plain, plain.finer()]
        if dialect == "gnucap":
            every.insert(0, Settings("gnucap", 100, 1e-5))
        for settings in every:
            name = f"{dialect} {settings.steps_per_period} steps a period"
            row: dict[str, Any] = {"method": name, "reltol": settings.reltol}
            try:
                row |= by_spice(cell, settings)
                row["ratio"] = row["ns_per_cell_period"] / base
            except (ToolError, SimulatorFault) as fault:
                row["failed"] = str(fault)
            rows.append(row)
    return rows


def table(record: dict[str, Any]) -> str:
    """Text for a person."""
    seen, out = record["circuit"], []
    for name, spent in seen["ns_per_cell_period"].items():
        error = seen["error_rad"].get(name)
        out.append(
            f"{name:28s}{spent:14.0f} ns {seen['ratio_to_engine'][name]:12.1f} x"
            + ("" if error is None else f"   error {error:.1e} rad")
        )
    for row in record["spice"]:
        if "failed" in row:
            out.append(f"{row['method']:28s} no number: {row['failed'][:80]}")
            continue
        errors = ", ".join(f"{e:.1e} at x {x}" for x, e in row["error_rad"].items())
        out.append(
            f"{row['method']:28s}{row['ns_per_cell_period']:14.0f} ns "
            f"{row['ratio']:12.0f} x   error {errors} rad"
        )
    return "\n".join(out)


def main() -> None:
    """Run all methods, write the record, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    cell = lock_cell(load_card(LOCK_CARD))
    circuit = measure(cell)
    record = {
        "format": "oscc.benchmark/1",
        "question": "cost of a period of a lock cell in the circuit, one thread",
        "card": LOCK_CARD,
        "cells": CELLS,
        "periods": PERIODS,
        "repeats": REPEATS,
        "circuit": circuit,
        "spice": measure_spice(cell, circuit["ns_per_cell_period"]["engine"]),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "scipy": scipy.__version__,
        },
        "machine": platform.processor() or platform.machine(),
    }
    write_atomic(options.out, dump_json(record))
    print(table(record))


if __name__ == "__main__":
    main()
