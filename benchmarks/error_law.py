"""How does the error of a dwell scheme fall with periods, and grow with the drive?

The exact circuit of two cards against the wanted flow, two harmonics, drive strengths
s = |g C| up to 12 as trained layers have them, a third of the gains negative. The flow
is integrated by scipy, independent of every engine.

    python benchmarks/error_law.py [--out FILE] [--plot FILE]
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import scipy
from scipy.integrate import solve_ivp

from oscc.arrays import ComplexArray, FloatArray
from oscc.device import Card, load_card
from oscc.errors import RequestError, UndecidedError
from oscc.files import dump_json, write_atomic
from oscc.seeds import stream
from oscc_sims.schemes import run_scheme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parent.parent
OUT = ROOT / "benchmarks" / "results" / "error_law.json"
PLOT = ROOT / "docs" / "reference" / "error-law.svg"
CARDS = ("vo2-two-state-6k", "vo2-two-state-20k")
STRENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0)
TARGETS = 1000
HARMONICS = (1, 2)
SLIP = np.pi / 2
PLANS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "plain": tuple(("plain", 1, p) for p in (6, 12, 18, 36, 72, 144, 288, 576)),
    "extrapolated, S = 1": tuple(
        ("extrapolated", 1, p) for p in (2, 4, 6, 12, 24, 48, 96, 192)
    ),
    "extrapolated, S = 4": tuple(
        ("extrapolated", 4, p) for p in (1, 2, 3, 6, 12, 24, 48)
    ),
    "extrapolated, S = 8": tuple(("extrapolated", 8, p) for p in (1, 2, 3, 6, 12, 24)),
    "corrected (host-assisted)": tuple(
        ("corrected", 1, p) for p in (6, 12, 18, 36, 72, 144, 288, 576)
    ),
}


def targets(strength: float) -> tuple[FloatArray, ComplexArray, FloatArray]:
    """Start phases, drives and phases after the wanted flow, of one drive strength."""
    rng = stream(0, "error law", round(1000 * strength))
    angle = rng.uniform(0, 2 * np.pi, (TARGETS, 2))
    drive = strength * np.exp(1j * angle) * np.array([1.0, 0.2])
    phi0 = angle[:, 0] + rng.normal(0, 0.35, TARGETS)
    # a negative gain: the target starts near the repeller
    phi0 += np.pi * (rng.uniform(size=TARGETS) < 1 / 3)
    order = np.array(HARMONICS)

    def rate(_: float, phi: FloatArray) -> FloatArray:
        pulled: FloatArray = np.imag(np.exp(-1j * phi[:, None] * order) * drive)
        return pulled.sum(axis=1)

    flow = solve_ivp(rate, (0, 1), phi0, method="DOP853", rtol=1e-10, atol=1e-11)
    return phi0, drive, flow.y[:, -1]


def figures(
    card: Card,
    plan: tuple[str, int, int],
    problem: tuple[FloatArray, ComplexArray, FloatArray],
) -> dict[str, Any]:
    """Error statistics of one scheme, or why it cannot run."""
    scheme, substeps, periods = plan
    phi0, drive, want = problem
    out: dict[str, Any] = {
        "scheme": scheme,
        "substeps": substeps,
        "dwell_periods": periods,
    }
    try:
        seen = run_scheme(
            card,
            drive,
            HARMONICS,
            phi0,
            scheme=scheme,
            substeps=substeps,
            dwell_periods=periods,
        )
    except (RequestError, UndecidedError) as error:
        return {**out, "refused": str(error)}
    error = np.abs(seen.phase_rad - want)
    return {
        **out,
        "periods": seen.periods,
        "rms_rad": float(np.sqrt(np.mean(error**2))),
        "median_rad": float(np.median(error)),
        "p99_rad": float(np.quantile(error, 0.99)),
        "max_rad": float(error.max()),
        "slips": int((error > SLIP).sum()),
        "injection_ratio": float(seen.injection_ratio.max()),
        "fallback_lanes": seen.fallback_lanes,
    }


def measure() -> list[dict[str, Any]]:
    """One row for each card, drive strength and plan."""
    rows = []
    for strength in STRENGTHS:
        problem = targets(strength)
        for name in CARDS:
            for label, plans in PLANS.items():
                for plan in plans:
                    row = figures(load_card(name), plan, problem)
                    rows.append(
                        {"card": name, "drive": strength, "label": label, **row}
                    )
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Error against periods: a row of panels for each card, a line for each drive."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style = {"svg.hashsalt": "oscc", "svg.fonttype": "none", "font.size": 8}
    with mpl.rc_context(style):
        picture = Figure(figsize=(13, 5.6), layout="constrained")
        axes = picture.subplots(len(CARDS), len(PLANS), sharex=True, sharey=True)
        for row, name in enumerate(CARDS):
            for column, label in enumerate(PLANS):
                panel = axes[row, column]
                chosen = [r for r in rows if (r["card"], r["label"]) == (name, label)]
                lines(panel, chosen)
                panel.set_title(f"{name.removeprefix('vo2-two-state-')}: {label}")
                if row == len(CARDS) - 1:
                    panel.set_xlabel("oscillator periods in all")
                if column == 0:
                    panel.set_ylabel("error [mrad]")
        axes[0, -1].legend(title="drive s", fontsize=7, ncol=2)
        picture.suptitle(
            "Error of one stage against the wanted flow: "
            "solid rms, dotted median, dashed 99 %; missing points need more injection "
            "than the card allows"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.savefig(path, format="svg", metadata={"Date": None})


def lines(panel: Axes, rows: list[dict[str, Any]]) -> None:
    """Three lines a drive strength: rms, median, 99 % quantile."""
    from matplotlib import colormaps

    colours = colormaps["viridis"](np.linspace(0, 0.92, len(STRENGTHS)))
    for strength, colour in zip(STRENGTHS, colours, strict=True):
        seen = [r for r in rows if r["drive"] == strength and "rms_rad" in r]
        periods = [r["periods"] for r in seen]
        for key, style, width in (
            ("rms_rad", "-", 1.4),
            ("median_rad", ":", 0.8),
            ("p99_rad", "--", 0.8),
        ):
            panel.loglog(
                periods,
                [1e3 * r[key] for r in seen],
                style,
                color=colour,
                linewidth=width,
                marker="." if key == "rms_rad" else None,
                markersize=3,
                label=f"{strength:g}" if key == "rms_rad" else None,
            )
    panel.axhline(10, color="0.6", linewidth=0.8)
    panel.set_ylim(1e-4, 1e4)
    panel.grid(alpha=0.25, linewidth=0.5)


def table(rows: list[dict[str, Any]]) -> str:
    """Rms [mrad] of a few plans, by drive strength."""
    shown = (("plain", 1, 72), ("extrapolated", 4, 6), ("extrapolated", 8, 12))
    shown = (*shown, ("corrected", 1, 72))
    out = []
    for name in CARDS:
        for plan in shown:
            keys = ("scheme", "substeps", "dwell_periods")
            chosen = {
                r["drive"]: r
                for r in rows
                if r["card"] == name and tuple(r[k] for k in keys) == plan
            }
            cells = [
                f"{1e3 * chosen[s]['rms_rad']:9.3f}"
                if "rms_rad" in chosen[s]
                else "  refused"
                for s in STRENGTHS
            ]
            label = f"{plan[0]} {plan[1]} x {plan[2]}"
            out.append(f"{name:20s} {label:22s}" + "".join(cells))
    head = "rms [mrad] at drive strength".ljust(43)
    return "\n".join([head + "".join(f"{s:9g}" for s in STRENGTHS), *out])


def main() -> None:
    """Run all plans, write the record and the plot, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--plot", type=Path, default=PLOT)
    options = parser.parse_args()
    begin = time.perf_counter()
    rows = measure()
    seconds = time.perf_counter() - begin
    record = {
        "format": "oscc.benchmark/1",
        "question": "error of dwell schemes against periods and drive strength",
        "targets": TARGETS,
        "harmonics": HARMONICS,
        "rows": rows,
        "seconds": round(seconds, 1),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "scipy": scipy.__version__,
        },
        "machine": platform.processor() or platform.machine(),
    }
    write_atomic(options.out, dump_json(record))
    draw(rows, options.plot)
    print(table(rows))
    print(f"{len(rows)} runs of {TARGETS} targets in {seconds:.0f} s")


if __name__ == "__main__":
    main()
