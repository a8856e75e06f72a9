"""Families of models trained alike and compared.

    python benchmarks/models_study.py --run [--seeds 0,1,2] [--only NAME,…] [--jobs 2]
    python benchmarks/models_study.py            # the tables of what has been run

Runs are those of examples/train/, at context 256, with other updates and ablations.
Checkpoints are kept in build/models-study, and the figures of every finished run in
benchmarks/results/models-study/, one file a run. An interrupted run goes on where it
was; a finished one is not repeated (remove its file for that). Every worker has one
thread. The table says how many seeds each row has. Results are written when all runs
that were asked for are there; to their usual place only when those are all variants
with at least three seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from oscc.files import dump_json, read_json, write_atomic
from oscc.verbs.train import METRICS_FORMAT

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "build" / "models-study"
FIGURES = ROOT / "benchmarks" / "results" / "models-study"
OUT = ROOT / "benchmarks" / "results" / "models_study.json"
RECIPES = ROOT / "examples" / "train"
FORMAT = "oscc.study-run/1"
SEEDS = (0, 1, 2)
CONTEXT = 256
SYMBOLS = 3_100_000  # a run; the steps follow from batch and context
DEPTH_BATCHES = 96  # windows by 16: 393 216 positions
ORDER_BATCHES, NOISE_BATCHES = 4, 6
NOISE_RAD = (0.0, 0.01, 0.03, 0.1, 0.2)
BASE = "transformer"

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "transformer": ("transformer", {}),
    "kuramoto-flow": ("kuramoto", {}),
    "kuramoto-euler": ("kuramoto", {"update": "euler"}),
    "fsn-flow": ("fsn", {}),
    "fsn-euler": ("fsn", {"update": "euler"}),
    "fsn-no-phase-flow": ("fsn-no-phase", {}),
    "fsn-no-phase-euler": ("fsn-no-phase", {"update": "euler"}),
    "fsn-mf-flow": ("fsn-mf", {}),
    "fsn-mf-euler": ("fsn-mf", {"update": "euler"}),
    "ssa-trainable": ("ssa", {}),
    "ssa-published": ("ssa", {"arm": "published"}),
    "kuramoto-no-gates": ("kuramoto", {"update": "euler", "gates": "none"}),
    "kuramoto-no-feed-forward": (
        "kuramoto",
        {"update": "euler", "feed_forward": "none"},
    ),
    "kuramoto-learned-values": ("kuramoto", {"update": "euler", "values": "projected"}),
    "fsn-flow-noise": ("fsn", {"phase_noise_rad": 0.05}),
    **{
        f"kuramoto-flow-{bound}": ("kuramoto", {"bound": bound})
        for bound in ("B0", "B2", "B3", "B4")
    },
}


def recipe(name: str) -> tuple[str, dict[str, Any]]:
    """Family and overrides of a variant: its training file, then what differs."""
    import msgspec

    from oscc.config import resolve

    family, changes = VARIANTS[name]
    found = resolve(RECIPES / f"{family}.yaml").config
    fields = {
        **msgspec.structs.asdict(found.model),
        **msgspec.structs.asdict(found.train),
    }
    left_out = ("family", "vocabulary", "resume", "device", "plot")
    chosen = {k: v for k, v in fields.items() if v is not None and k not in left_out}
    steps = round(SYMBOLS / (chosen["batch"] * CONTEXT))
    return family, {**chosen, "context": CONTEXT, "steps": steps, **changes}


def run_one(name: str, seed: int) -> Path:
    """Train and measure one variant; the result's path. Done work is not repeated."""
    import torch

    from oscc.verbs.train import train

    torch.set_num_threads(1)
    path = FIGURES / f"{name}-s{seed}.json"
    if path.exists():
        return path
    checkpoint = RUNS / f"{name}-s{seed}.safetensors"
    if not checkpoint.with_suffix(".metrics.json").exists():
        family, overrides = recipe(name)
        update = overrides.pop("update", "")
        train(
            family,
            update,
            out=RUNS,
            name=checkpoint.stem,
            seed=seed,
            overrides=overrides,
            force=True,
        )
    write_atomic(path, dump_json(measured(checkpoint, name, seed)))
    return path


def measured(checkpoint: Path, name: str, seed: int) -> dict[str, Any]:
    """Every figure of one trained model."""
    from oscc.checkpoint import load_checkpoint
    from oscc.corpus import standard_library
    from oscc.models.disturbance import Disturbance
    from oscc.models.measures import (
        bits_by_copy_depth,
        bits_under,
        lock_fractions,
        order_parameters,
    )
    from oscc.models.phase import PhaseModel
    from oscc.verbs.coupling_function import coupling_layers

    loaded = load_checkpoint(checkpoint)
    text = standard_library().held_out
    metrics = read_json(checkpoint.with_suffix(".metrics.json"), METRICS_FORMAT)
    model, config = loaded.model, loaded.config
    out: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "seed": seed,
        "steps": metrics["steps"],
        "steps_skipped": len(metrics["steps_skipped"]),
        "symbols_seen": metrics["symbols_seen"],
        "parameters": metrics["parameters"],
        "corpus_sha256": metrics["corpus"]["sha256"],
        "bits": metrics["bits_per_character"],
        "integrator_gap": metrics["integrator_gap"]["bits_per_character"],
        "copy_depth": bits_by_copy_depth(model, config, text, DEPTH_BATCHES),
    }
    if isinstance(model, PhaseModel):
        noises = [Disturbance(phase_noise_rad=size) for size in NOISE_RAD]
        bits = bits_under(noises, model, config, text, batches=NOISE_BATCHES)
        out["noise"] = dict(zip(map(str, NOISE_RAD), bits, strict=True))
        out["order"] = order_parameters(model, config, text, ORDER_BATCHES)
        out["kernel"] = [summary(layer) for layer in coupling_layers(loaded)]
    elif config.family == "ssa":
        out["locked"] = lock_fractions(model, config, text, ORDER_BATCHES)
    return out


def summary(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Learned drift, strengths, offsets of a layer by route, harmonic, coordinate."""
    routes = {}
    for name, parts in layer["routes"].items():
        gamma, alpha = np.array(parts["gamma"]), np.array(parts["alpha_rad"])
        routes[name] = {
            "gamma_mean": gamma.mean(axis=1).tolist(),
            "gamma_rms": np.sqrt((gamma**2).mean(axis=1)).tolist(),
            "alpha_rms_rad": np.sqrt((alpha**2).mean(axis=1)).tolist(),
            "gamma": gamma.round(4).tolist(),
            "alpha_rad": alpha.round(4).tolist(),
        }
    drift = np.abs(layer["drift_rad"])
    return {
        "drift_mean_rad": float(drift.mean()),
        "drift_max_rad": float(drift.max()),
        "routes": routes,
    }


def run_all(names: Sequence[str], seeds: Sequence[int], jobs: int) -> None:
    """Every run that is not there yet, in worker processes of one thread each."""
    for folder in (RUNS, FIGURES):
        folder.mkdir(parents=True, exist_ok=True)
    work = [(name, seed) for seed in seeds for name in names]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run_one, n, s): f"{n}, seed {s}" for n, s in work}
        for done in as_completed(waiting):
            print(f"{waiting[done]}: {done.result().name}", flush=True)


def mean_sd(values: Sequence[float]) -> dict[str, Any]:
    """Mean and standard deviation over seeds (None for a single one)."""
    several = len(values) > 1
    return {
        "mean": float(np.mean(values)),
        "sd": float(np.std(values, ddof=1)) if several else None,
        "n": len(values),
    }


def table(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows by variant: bits, copy depth less that of the transformer, robustness."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        by_name.setdefault(run["name"], []).append(run)
    base = {run["seed"]: run for run in by_name.get(BASE, [])}
    rows = {}
    for name, mine in by_name.items():
        row: dict[str, Any] = {
            "parameters": mine[0]["parameters"],
            "validation": mean_sd([run["bits"]["validation"] for run in mine]),
            "copy_depth": depth_rows(mine, base),
        }
        for key in ("order", "kernel", "locked"):
            if key in mine[0]:
                row[key] = [run[key] for run in mine]
        if "noise" in mine[0]:
            row["noise"] = {
                size: mean_sd(
                    [run["noise"][size] - run["noise"]["0.0"] for run in mine]
                )
                for size in mine[0]["noise"]
            }
        rows[name] = row
    return rows


def depth_rows(
    mine: Sequence[Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Bins of copy depth: events, bits, and those above the transformer of a seed."""
    out = []
    for i, first in enumerate(mine[0]["copy_depth"]):
        bits = {run["seed"]: run["copy_depth"][i]["bits"] for run in mine}
        bits = {seed: value for seed, value in bits.items() if value is not None}
        above = [
            value - base[seed]["copy_depth"][i]["bits"]
            for seed, value in bits.items()
            if seed in base
        ]
        row = {"from_depth": first["from_depth"], "events": first["events"]}
        row["bits"] = mean_sd(list(bits.values())) if bits else None
        row["above_transformer"] = mean_sd(above) if above else None
        out.append(row)
    return out


def show(rows: Mapping[str, Any]) -> None:
    """Print validation bits and the copy depth table."""
    print(f"{'model':26} {'validation':>16}  above the transformer by copy depth")
    for name, row in sorted(rows.items(), key=lambda r: r[1]["validation"]["mean"]):
        bits = row["validation"]
        spread = "" if bits["sd"] is None else f" +- {bits['sd']:.3f}"
        bins = [b["above_transformer"] for b in row["copy_depth"]]
        shown = " ".join("   -  " if b is None else f"{b['mean']:+.3f}" for b in bins)
        print(f"{name:26} {bits['mean']:.3f}{spread:9} ({bits['n']})  {shown}")


def main() -> None:
    """Run what was asked for, then print and, if complete, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--only", default=",".join(VARIANTS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    names, seeds = given.only.split(","), [int(s) for s in given.seeds.split(",")]
    if given.run:
        run_all(names, seeds, given.jobs)
    whole = set(names) == set(VARIANTS) and len(seeds) >= len(SEEDS)
    wanted = [FIGURES / f"{name}-s{seed}.json" for name in names for seed in seeds]
    there = [read_json(path, FORMAT) for path in wanted if path.exists()]
    if not there:
        print(f"No run in {FIGURES.relative_to(ROOT)} yet; --run does them.")
        return
    rows = table(there)
    show(rows)
    missing = sorted(path.stem for path in wanted if not path.exists())
    print(f"{len(there)} of {len(wanted)} runs." if missing else "Complete.")
    if not missing and (whole or given.out != OUT):
        write_atomic(given.out, dump_json({"format": "oscc.bench/1", "models": rows}))


if __name__ == "__main__":
    main()
