"""What does one oscillator-period cost in the exact circuit engine?

Every method runs the same targets of one cell under a drive as trained layers have it,
on one thread, in CPU time: median of interleaved repeats. The error of each is its
largest phase difference against DOP853 with events at 1e-13 and short steps. SPICE
programs, where they are installed, run two of these targets over a longer dwell, start
of the program included; their error is against the engine.

    python benchmarks/circuit_engine.py [--out FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
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
from scipy.integrate import solve_ivp

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.device import Card, load_card
from oscc.device.coupler import injection_A, injection_ratio
from oscc.device.piecewise import omega, period_s, phase_of, waveform_V
from oscc.errors import ToolError
from oscc.files import dump_json, write_atomic
from oscc.seeds import stream
from oscc_netlists.couplers import Pull, RouteTerms
from oscc_netlists.deck import Deck, target_deck
from oscc_netlists.settings import DIALECTS, Settings, default_settings
from oscc_netlists.timing import Timing
from oscc_sims.calibration import calibrate
from oscc_sims.circuit_dwell import run_dwell
from oscc_sims.process import Children
from oscc_sims.readout import increment_rad
from oscc_sims.schemes import run_scheme
from oscc_sims.simulator import SimulatorFault, program_path, run_deck, version

OUT = Path(__file__).parent / "results" / "circuit_engine.json"
CARD = "vo2-two-state-6k"
LANES = 8192
PERIODS = 20
REPEATS = 7
FEW = 2  # targets of the slow methods
HARMONICS = (1, 2, 3)
SPICE_PERIODS, SPICE_REPEATS = 200, 3
TURN = 2 * np.pi


def problem(card: Card, count: int) -> tuple[ComplexArray, ComplexArray, FloatArray]:
    """Drives with the quantiles of trained layers, their injection, start phases."""
    rng = stream(0, "circuit benchmark", count)
    quantiles = ((0.0, 0.05, 0.5, 0.95, 0.99), (0.01, 0.16, 1.5, 5.2, 7.2))
    strength = np.interp(rng.uniform(0, 0.99, LANES), *quantiles)
    angle = rng.uniform(0, TURN, (LANES, count))
    drive = np.exp(1j * angle) * 0.3 ** np.arange(count) * strength[:, None]
    orders = np.arange(1, count + 1)
    current = injection_A(card, drive, orders, PERIODS)
    return drive, current, rng.uniform(0, TURN, LANES)


def by_solver(
    card: Card, current: ComplexArray, phi0: float, solver: tuple[str, float]
) -> float:
    """Lead of one target by solve_ivp with events, from the node equation.

    In base phase, as scipy finds events to an absolute 1e-15. The oracle takes short
    steps: the interpolant that holds the events is of lower order than the method.
    """
    method, tolerance = solver
    step = TURN / 200 if tolerance < 1e-12 else np.inf
    resistance = (card.r_met_ohm, card.r_ins_ohm)
    target = (card.v_mit_V, card.v_imt_V)
    orders, scale = np.arange(current.size), card.c_F * omega(card)
    v, state = float(waveform_V(card, phi0)), int(phi0 >= float(_switch(card)))
    x, end, ups = 0.0, PERIODS * TURN, 0
    while x < end:

        def slope(x: float, y: FloatArray, state: int = state) -> FloatArray:
            inject = np.real(current * np.exp(1j * orders * x)).sum()
            drawn = (card.vdd_V - y) / card.r_series_ohm - y / resistance[state]
            out: FloatArray = (drawn + inject) / scale
            return out

        def event(_: float, y: FloatArray, state: int = state) -> float:
            return float(y[0]) - target[state]

        event.terminal, event.direction = True, (-1, 1)[state]  # type: ignore[attr-defined]
        seen = solve_ivp(
            slope,
            (x, end),
            [v],
            method=method,
            rtol=tolerance,
            atol=tolerance * 1e-1,
            events=event,
            max_step=step,
        )
        x, v = float(seen.t[-1]), float(seen.y[0, -1])
        if seen.status == 1:
            ups += state
            v, state = target[state], 1 - state
    return float(phase_of(card, v, state)) + TURN * (ups - PERIODS)


def _switch(card: Card) -> FloatArray:
    return phase_of(card, card.v_mit_V, 1)


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, with what it returned."""
    begin = time.process_time()
    seen = run()
    return time.process_time() - begin, seen


Methods = dict[str, tuple[Callable[[], Any], float]]


def methods_of(
    card: Card, count: int, few: IntArray
) -> tuple[Methods, ComplexArray, FloatArray]:
    """What is timed: each method with its oscillator-periods."""
    drive, current, phi0 = problem(card, count)

    def engine(kernel: str) -> Callable[[], Any]:
        return lambda: run_dwell(card, current, phi0, PERIODS, kernel=kernel)

    def solver(name: str, tolerance: float) -> Callable[[], Any]:
        return lambda: np.array(
            [by_solver(card, current[i], phi0[i], (name, tolerance)) for i in few]
        )

    def scheme() -> Any:
        orders = np.arange(1, count + 1)
        plan = {"scheme": "extrapolated", "substeps": 4, "dwell_periods": 6}
        return run_scheme(card, drive, orders, phi0, **plan)

    methods: Methods = {
        "lanes": (engine("lanes"), LANES * PERIODS),
        "scalar": (engine("scalar"), LANES * PERIODS),
        "scheme 4 x 6": (scheme, LANES * 72),
        "solve_ivp RK45 1e-6": (solver("RK45", 1e-6), FEW * PERIODS),
        "solve_ivp DOP853 1e-8": (solver("DOP853", 1e-8), FEW * PERIODS),
        "solve_ivp DOP853 1e-10": (solver("DOP853", 1e-10), FEW * PERIODS),
    }
    return methods, current, phi0


def measure(card: Card, count: int) -> dict[str, Any]:
    """All methods for one number of harmonics."""
    drive = problem(card, count)[0]
    few = np.argsort(np.abs(drive[:, 0]))[[LANES // 2, LANES - 1]]
    methods, current, phi0 = methods_of(card, count, few)
    exact = [by_solver(card, current[i], phi0[i], ("DOP853", 1e-13)) for i in few]
    times: dict[str, list[float]] = {name: [] for name in methods}
    results = {name: run() for name, (run, _) in methods.items()}  # compiles
    for _ in range(REPEATS):
        for name, (run, periods) in methods.items():
            seconds, results[name] = cpu(run)
            times[name].append(seconds / periods * 1e9)
    lanes, scalar = results["lanes"].lead_rad, results["scalar"].lead_rad
    errors = {"lanes": lanes[few] - exact, "scalar": scalar[few] - exact}
    errors |= {n: results[n] - exact for n in methods if n.startswith("solve_ivp")}
    spent = {name: statistics.median(seen) for name, seen in times.items()}
    return {
        "harmonics": count,
        "ns_per_oscillator_period": spent,
        "ratio_to_lanes": {name: spent[name] / spent["lanes"] for name in spent},
        "error_rad": {name: float(np.abs(e).max()) for name, e in errors.items()},
        "lanes_against_scalar_rad": float(np.abs(lanes - scalar).max()),
        "fallback_lanes": int(results["lanes"].fallback.sum()),
        "evaluations_per_period": results["lanes"].evaluations / PERIODS,
        "injection_ratio": float(injection_ratio(card, current).max()),
    }


def spice_deck(card: Card, current: ComplexArray, phi0: float, timing: Timing) -> Deck:
    """One target under a current that the host has summed."""
    orders = np.arange(1, current.size)
    # the simulator's own period is what its carriers are built on
    scale = period_s(card) / timing.period_s
    terms = RouteTerms(
        "present", np.zeros(1, np.int64), np.ones(1), orders, current[1:] * scale
    )
    pull = Pull(np.zeros(1), (terms,))
    return target_deck(card, pull, timing, SPICE_PERIODS, phi0, fidelity="summed")


def children_cpu() -> float:
    """CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_spice(card: Card) -> list[dict[str, Any]]:
    """Engine, then each SPICE program at several settings, on the same targets."""
    drive, current, phi0 = problem(card, 2)
    current = current * (PERIODS / SPICE_PERIODS)
    few = np.argsort(np.abs(drive[:, 0]))[[LANES // 2, int(0.95 * LANES)]]

    def engine() -> Any:
        return run_dwell(card, current, phi0, SPICE_PERIODS)

    engine()
    spent = [cpu(engine) for _ in range(SPICE_REPEATS)]
    base = statistics.median(t for t, _ in spent) / (LANES * SPICE_PERIODS) * 1e9
    lead = spent[0][1].lead_rad[few]
    targets = list(zip(current[few], phi0[few], lead, strict=True))
    rows = [{"method": "lanes", "ns_per_oscillator_period": base, "ratio": 1.0}]
    for dialect in DIALECTS:
        plain = default_settings(dialect)
        coarse, middle = (
            dataclasses.replace(plain, steps_per_period=steps, reltol=reltol)
            for steps, reltol in ((50, 1e-4), (100, 1e-5))
        )
        for settings in (coarse, middle, plain, plain.finer()):
            name = f"{dialect} {settings.steps_per_period} steps a period"
            row = {"method": name, "reltol": settings.reltol}
            try:
                row |= by_spice(card, settings, targets)
            except (ToolError, SimulatorFault) as fault:
                row["failed"] = str(fault)
            else:
                row["ratio"] = row["ns_per_oscillator_period"] / base
            rows.append(row)
    return rows


def by_spice(
    card: Card,
    settings: Settings,
    targets: list[tuple[ComplexArray, float, float]],
) -> dict[str, Any]:
    """Cost and error of a SPICE program at one setting."""
    said = version(settings.dialect)
    timing = calibrate(card, settings)
    times, errors = [], []
    for current, start, exact in targets * SPICE_REPEATS:
        deck = spice_deck(card, current, start, timing)
        before = children_cpu()
        with Children() as children:
            program = str(program_path(settings.dialect))
            plot = run_deck(children, deck, program, timeout_s=120)
        periods = deck.circuit.transient.stop_s / timing.period_s
        times.append((children_cpu() - before) / periods * 1e9)
        moved = increment_rad(card, deck, plot, 20.0)
        errors.append(abs(start + moved - exact))
    return {
        "version": said,
        "ns_per_oscillator_period": statistics.median(times),
        "error_rad": max(errors),
    }


def spice_table(rows: list[dict[str, Any]]) -> str:
    """Text for a person."""
    out = [f"2 harmonics over {SPICE_PERIODS} periods, against SPICE"]
    for row in rows:
        if "failed" in row:
            out.append(f"  {row['method']:28s} no number: {row['failed'][:90]}")
            continue
        error = f"   error {row['error_rad']:.1e} rad" if "error_rad" in row else ""
        out.append(
            f"  {row['method']:28s}{row['ns_per_oscillator_period']:12.1f} ns"
            f"  {row['ratio']:10.0f} x{error}"
        )
    return "\n".join(out)


def table(rows: list[dict[str, Any]]) -> str:
    """Text for a person: cost, ratio and error of each method."""
    out = []
    for row in rows:
        out.append(
            f"{row['harmonics']} harmonics: {row['evaluations_per_period']:.2f} "
            f"evaluations a period, {row['fallback_lanes']} of {LANES} lanes fell back,"
            f" lanes against scalar {row['lanes_against_scalar_rad']:.1e} rad"
        )
        for name, spent in row["ns_per_oscillator_period"].items():
            error = row["error_rad"].get(name)
            out.append(
                f"  {name:24s}{spent:14.1f} ns  {row['ratio_to_lanes'][name]:12.1f} x"
                + ("" if error is None else f"   error {error:.1e} rad")
            )
    return "\n".join(out)


def main() -> None:
    """Run all methods, write the record, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    card = load_card(CARD)
    rows = [measure(card, count) for count in HARMONICS]
    spice = measure_spice(card)
    record = {
        "format": "oscc.benchmark/1",
        "question": "cost of an oscillator-period in the circuit engine, one thread",
        "card": CARD,
        "lanes": LANES,
        "periods": PERIODS,
        "repeats": REPEATS,
        "rows": rows,
        "spice": spice,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "scipy": scipy.__version__,
        },
        "machine": platform.processor() or platform.machine(),
    }
    write_atomic(options.out, dump_json(record))
    print(table(rows))
    print(spice_table(spice))


if __name__ == "__main__":
    main()
