"""Write docs/reference/study.md: families compared, headlines of the articles judged.

    python scripts/study_page.py

From the runs that benchmarks/models_study.py has finished; every table says how many
seeds it rests on.
"""

from __future__ import annotations

import sys
from pathlib import Path

from study_headlines import headlines
from study_tables import (
    BASE,
    DEPTHS,
    Study,
    Value,
    copy_depth,
    order,
    spread,
    table,
    validation,
)

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "benchmarks" / "results" / "models-study"
TEMPLATE = ROOT / "benchmarks" / "study.md.in"
PAGE = ROOT / "docs" / "reference" / "study.md"
FAMILIES = (
    *(BASE, "kuramoto-euler", "kuramoto-flow", "fsn-euler", "fsn-flow"),
    *("fsn-no-phase-euler", "fsn-no-phase-flow", "fsn-mf-euler", "fsn-mf-flow"),
    *("ssa-trainable", "ssa-published"),
)
ABLATIONS = (
    ("kuramoto-no-gates", "kuramoto-euler", "no gates in the score"),
    ("kuramoto-no-feed-forward", "kuramoto-euler", "no feed-forward"),
    ("kuramoto-learned-values", "kuramoto-euler", "learned value projection"),
    ("fsn-no-phase-euler", "fsn-euler", "FSN without offsets (Euler)"),
    ("fsn-no-phase-flow", "fsn-flow", "FSN without offsets (flow)"),
    *((f"kuramoto-flow-{b}", "kuramoto-flow", f"bound {b}") for b in ("B0", "B2")),
    *((f"kuramoto-flow-{b}", "kuramoto-flow", f"bound {b}") for b in ("B3", "B4")),
    ("fsn-flow-noise", "fsn-flow", "trained with 0.05 rad of phase noise"),
)


def bits(study: Study) -> str:
    """Table of validation bits."""
    rows = [
        [
            f"`{name}`",
            _numbers(study, name),
            str(len(study.runs[name])),
            spread(study.values(name, validation)),
            "" if name == BASE else _above(study, name, validation),
        ]
        for name in study.rows(FAMILIES)
    ]
    head = ("model", "numbers", "seeds", "bits per character", "above the transformer")
    return table(head, rows)


def _above(study: Study, name: str, value: Value) -> str:
    return spread(study.differences(name, BASE, value), signed=True)


def depths(study: Study) -> str:
    """Table of copy depth less the transformer's."""
    first = next(iter(study.runs[BASE].values()))["copy_depth"]
    rows = [["events", *(str(row["events"]) for row in first)]]
    places = range(len(DEPTHS))
    rows.append(
        [
            f"`{BASE}`, bits",
            *(spread(study.values(BASE, copy_depth(i))) for i in places),
        ]
    )
    for name in study.rows(FAMILIES[1:]):
        rows.append(
            [f"`{name}`", *(_above(study, name, copy_depth(i)) for i in places)]
        )
    return table(("copy depth", *DEPTHS), rows)


def orders(study: Study) -> str:
    """Table of order parameters by layer."""
    rows = []
    for name in study.rows(FAMILIES[1:]):
        for layer in range(len(next(iter(study.runs[name].values())).get("order", []))):
            cells = [
                spread(study.values(name, order(layer, kind)), 2)
                for kind in ("global", "local", "local_other")
            ]
            rows.append([f"`{name}`", str(layer), *cells])
    head = ("model", "layer", "global", "local", "local, without the token itself")
    return table(head, rows)


def kernels(study: Study) -> str:
    """Table of what the couplings learned."""
    rows = []
    for name in study.rows([n for n in FAMILIES if n.startswith("fsn")]):
        for layer, part in enumerate(next(iter(study.runs[name].values()))["kernel"]):
            for route in part["routes"]:
                rows.append(_kernel(study, name, layer, route))
    head = ("model", "layer", "route", "drift, mean [rad]", "γ₁, mean", "γ₂, mean")
    return table((*head, "γ₂, rms", "α₁, rms [rad]", "α₂, rms [rad]"), rows)


def _kernel(study: Study, name: str, layer: int, route: str) -> list[str]:
    def of(key: str, order: int) -> str:
        return spread(
            study.values(
                name, lambda run: run["kernel"][layer]["routes"][route][key][order]
            ),
            2,
        )

    drift = study.values(name, lambda run: run["kernel"][layer]["drift_mean_rad"])
    figures = [of("gamma_mean", 0), of("gamma_mean", 1), of("gamma_rms", 1)]
    offsets = [of("alpha_rms_rad", 0), of("alpha_rms_rad", 1)]
    return [f"`{name}`", str(layer), route, spread(drift, 2), *figures, *offsets]


def locks(study: Study) -> str:
    """Table of lock fractions by head."""
    rows = []
    for name in study.rows(("ssa-trainable", "ssa-published")):
        layers = next(iter(study.runs[name].values()))["locked"]
        for i, heads in enumerate(layers):
            cells = [
                spread(study.values(name, lambda r, i=i, h=h: r["locked"][i][h]), 2)
                for h in range(len(heads))
            ]
            rows.append([f"`{name}`", str(i), *cells])
    return table(("model", "block", *(f"head {h}" for h in range(4))), rows)


def ablations(study: Study) -> str:
    """Table of what leaving something out costs."""
    rows = [
        [
            text,
            f"`{base}`",
            _numbers(study, name),
            str(len(study.differences(name, base, validation))),
            spread(study.differences(name, base, validation), signed=True),
        ]
        for name, base, text in ABLATIONS
        if name in study.runs and base in study.runs
    ]
    return table(("change", "against", "numbers", "seeds", "bits per character"), rows)


def _numbers(study: Study, name: str) -> str:
    count = next(iter(study.runs[name].values()))["parameters"]
    return f"{count:,}".replace(",", " ")


def noise(study: Study) -> str:
    """Table of what phase noise costs."""
    names = [n for n in study.runs if "noise" in next(iter(study.runs[n].values()))]
    sizes = ("0.01", "0.03", "0.1", "0.2")
    rows = []
    for name in sorted(names):
        cells = [
            spread(
                study.values(name, lambda r, s=s: r["noise"][s] - r["noise"]["0.0"]),
                signed=True,
            )
            for s in sizes
        ]
        rows.append([f"`{name}`", *cells])
    return table(("model", *(f"{size} rad" for size in sizes)), rows)


TABLES = {
    "bits": bits,
    "depths": depths,
    "orders": orders,
    "kernels": kernels,
    "locks": locks,
    "ablations": ablations,
    "noise": noise,
    "headlines": headlines,
}


def page(study: Study) -> str:
    """The whole page."""
    one = next(iter(study.runs[BASE].values()))
    text = TEMPLATE.read_text("utf-8")
    text = text.replace("{{symbols}}", f"{one['symbols_seen'] / 1e6:.1f}")
    text = text.replace("{{numbers}}", f"{one['parameters'] / 1000:.0f}")
    for name, make in TABLES.items():
        text = text.replace("{{" + name + "}}\n", make(study))
    return text


def main() -> None:
    """Write the page."""
    study = Study.read(RUNS)
    if BASE not in study.runs:
        sys.exit(
            "No run of the transformer yet: python benchmarks/models_study.py --run"
        )
    PAGE.write_text(page(study), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
