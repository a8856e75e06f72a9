"""What does a training step cost, family by family, and how does memory grow with T?

CPU time of one thread, forward, backward and AdamW, families in turns within a round
and the median over rounds, so that the load of the machine meets all alike. Memory is
the peak of a child process above what it held before the step (Linux alone says it).

    python benchmarks/training_step.py [--out FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from oscc.files import dump_json, write_atomic
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.models.host import lift

ROOT = Path(__file__).parent.parent
OUT = ROOT / "benchmarks" / "results" / "training_step.json"
FAMILIES: dict[str, dict[str, Any]] = {
    "transformer": {"family": "transformer"},
    "kuramoto, euler": {"family": "kuramoto", "update": "euler"},
    "kuramoto, flow": {"family": "kuramoto", "update": "flow"},
    "fsn, euler": {"family": "fsn", "update": "euler"},
    "fsn, flow": {"family": "fsn", "update": "flow"},
    "fsn-mf, euler": {"family": "fsn-mf", "update": "euler", "modes": 70},
    "fsn-mf, flow": {"family": "fsn-mf", "update": "flow", "modes": 70},
    "ssa, trainable": {"family": "ssa", "hidden": 212},
    "ssa, published": {"family": "ssa", "hidden": 212, "arm": "published"},
    "ssa, trainable, no mask": {"family": "ssa", "hidden": 212, "mask": "none"},
    "ssa, published, no mask": {
        **{"family": "ssa", "hidden": 212, "arm": "published"},
        "mask": "none",
    },
}
CONTEXTS = {128: 8, 512: 2}  # tokens to windows: the same number of symbols
WAYS: dict[str, dict[str, Any]] = {
    "fused": {"family": "fsn", "update": "euler"},
    "explicit": {"family": "fsn", "update": "euler"},
    "flow": {"family": "fsn", "update": "flow"},
    "modes": {"family": "fsn-mf", "update": "euler"},
    "ssa": {"family": "ssa"},
    "ssa, no mask": {"family": "ssa", "mask": "none"},
}
MEMORY_TOKENS = (128, 256, 512, 1024, 2048)
COUPLING = {"batch": 1, "tokens": 256, "k": 128}  # engines.md section 6


def stepper(config: ModelConfig, batch: int) -> Callable[[], None]:
    """A function that does one training step of a fresh model."""
    model = build_model(config)
    optimiser = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=1e-3
    )
    generator = torch.Generator().manual_seed(0)
    shape = (batch, config.context)
    tokens = torch.randint(0, config.symbols, shape, generator=generator)

    def step() -> None:
        loss = functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def timed(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each, in turns; the first round warms up and is left out."""
    out: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            start = time.process_time()
            step()
            if number:
                out[name].append(time.process_time() - start)
    return out


def families(rounds: int) -> list[dict[str, Any]]:
    """Step of every family at both contexts, and its ratio to the transformer's."""
    rows = []
    for context, batch in CONTEXTS.items():
        steps = {
            name: stepper(ModelConfig(context=context, **fields), batch)
            for name, fields in FAMILIES.items()
        }
        seconds = timed(steps, rounds)
        base = np.array(seconds["transformer"])
        for name, values in seconds.items():
            ratio = float(np.median(np.array(values) / base))
            rows.append(
                {
                    "model": name,
                    "tokens": context,
                    "batch": batch,
                    "median_s": float(np.median(values)),
                    "ratio_to_transformer": ratio,
                }
            )
    return rows


def coupling(harmonics: int, update: str) -> Callable[[], None]:
    """Forward and backward of one coupling step: softmax, products, update."""
    family = "kuramoto" if harmonics == 1 else "fsn"
    config = ModelConfig(
        family, update, k=COUPLING["k"], layers=1, harmonics=harmonics, hidden=8
    )
    layer = build_model(config).coupling_layers()[0]  # type: ignore[operator]
    generator = torch.Generator().manual_seed(0)
    shape = (COUPLING["batch"], COUPLING["tokens"], COUPLING["k"])
    theta = 0.5 * torch.randn(shape, generator=generator)
    theta.requires_grad_()

    def step() -> None:
        theta.grad = None
        layer.couple(layer.state(theta, False)).square().sum().backward()

    return step


def updates(rounds: int) -> list[dict[str, Any]]:
    """Flow against Euler of the same coupling step, one and three harmonics."""
    rows = []
    for harmonics in (1, 3):
        steps = {update: coupling(harmonics, update) for update in ("euler", "flow")}
        seconds = {k: np.array(v) for k, v in timed(steps, rounds).items()}
        rows.append(
            {
                "harmonics": harmonics,
                **COUPLING,
                "euler_s": float(np.median(seconds["euler"])),
                "flow_s": float(np.median(seconds["flow"])),
                "ratio": float(np.median(seconds["flow"] / seconds["euler"])),
            }
        )
    return rows


def memory() -> list[dict[str, Any]]:
    """Peak memory of a training step of one layer against the tokens."""
    rows = []
    for tokens in MEMORY_TOKENS:
        for way in WAYS:
            words = [sys.executable, __file__, "--peak", way, str(tokens)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout))
    return rows


def peak(way: str, tokens: int) -> dict[str, Any]:
    """Peak memory of one step in this process, above what it held before."""
    config = ModelConfig(**WAYS[way], layers=1, context=tokens)
    model = build_model(config)
    _one(model, torch.randn(1, 8, config.k), way)  # loads what torch loads once
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
    before = _held("VmRSS")
    _one(model, torch.randn(1, tokens, config.k), way)
    return {
        "way": way,
        "tokens": tokens,
        "peak_MB": (_held("VmHWM") - before) / 1024,
        "tokens_tokens_k_MB": 4e-6 * tokens**2 * config.k,
        "largest_difference": _difference(model, tokens) if way == "fused" else None,
    }


def _held(name: str) -> int:
    """Memory of this process by its name in the kernel's table [kB]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _one(model: Any, x: torch.Tensor, way: str) -> None:
    """Forward and backward of one layer: its coupling steps, or its block."""
    out = x.requires_grad_()
    if WAYS[way]["family"] == "ssa":
        out = model.blocks[0](out)
    else:
        layer = model.coupling_layers()[0]
        for stage in layer.stages():
            out = layer.couple(stage(out, way == "explicit"))
    out.square().sum().backward()


def _difference(model: Any, tokens: int) -> float:
    """Largest difference of the fused from the explicit fields (float32)."""
    layer = model.coupling_layers()[0]
    theta = 0.5 * torch.randn(1, min(tokens, 512), layer.config.k)
    with torch.no_grad():
        features = lift(theta)
        wanted = layer.fields(layer.score(theta, features), theta)[0]
        projections = layer.score.projections(theta, features)
        found = layer.fused_fields(*projections, features)[0]
    return float((wanted - found).abs().max())


def main() -> None:
    """Run everything, print the tables, write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.peak:
        print(json.dumps(peak(given.peak[0], int(given.peak[1]))))
        return
    found = {
        "format": "oscc.bench/1",
        "families": families(given.rounds),
        "updates": updates(2 * given.rounds),
        "memory": memory(),
        "machine": platform.machine(),
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }
    for name in ("families", "updates", "memory"):
        for row in found[name]:
            print(
                *(f"{k} {v:.4g}" if isinstance(v, float) else v for k, v in row.items())
            )
    write_atomic(given.out, dump_json(found))


if __name__ == "__main__":
    main()
