"""How well can a bank of oscillators give the collective modes of FSN-MF?

    Z_m = sum_j c_mj exp(i n_m theta_j)

On held-out text through the shipped model: a mode oscillator that settles on arg(Z)
during its dwell while the host knows |Z|; and 2, 3 or 4 readers of known starts, whose
increments give both by least squares. What counts is the error that they make in the
stage of the modes after them, against the exact flow of that stage.

    python benchmarks/mode_bank.py [--out FILE]
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

from oscc.arrays import ComplexArray, FloatArray
from oscc.checkpoint import load_checkpoint
from oscc.corpus import standard_library, windows
from oscc.device import Card, card_to_mapping, load_card
from oscc.files import dump_json, write_atomic
from oscc.ir import Modes, Stage
from oscc.lower.modes import fields, modes_of
from oscc.seeds import stream
from oscc.trace import ModesTrace, trace
from oscc_backends import phase
from oscc_sims.phase import solve
from oscc_sims.schemes import run_scheme

ROOT = Path(__file__).parent.parent
OUT = ROOT / "benchmarks" / "results" / "mode_bank.json"
CHECKPOINT = ROOT / "checkpoints" / "fsn-mf-flow.safetensors"
CARD = "vo2-two-state-6k"
WINDOWS = 3
SETTLES = (2.0, 4.0, 8.0, 12.0, 24.0)
READERS = ((2, 1.0), (2, 0.5), (3, 0.5), (3, 1.0), (3, 1.5), (4, 1.0))
PLANS = ((1, 6), (2, 3), (2, 6))
NOISES_RAD = (1e-3, 1e-2)
SHARED = (
    ("fsn-flow", "host"),
    ("fsn-mf-flow", "host"),
    ("fsn-mf-flow", "oscillators"),
)


def rms(values: Any) -> float:
    """Root mean square of real or complex values."""
    return float(np.sqrt(np.mean(np.abs(values) ** 2)))


def steps() -> list[ModesTrace]:
    """Couplings to modes of both layers on held-out windows."""
    loaded = load_checkpoint(CHECKPOINT)
    context = loaded.config.context
    held = windows(standard_library().held_out, context, WINDOWS * context)
    traced = [trace(loaded.model, window[:-1]).layers for window in held[:WINDOWS]]
    return [one for layers in traced for one in layers if isinstance(one, ModesTrace)]


def after(step: ModesTrace, sums: ComplexArray | None = None) -> FloatArray:
    """Phases after the exact flow of the stage of the modes, (T K,)."""
    return solve(phase.problem(Stage(name="modes", **fields(step, sums))))


def settled(modes: Modes, sums: ComplexArray, gain_rad: float) -> ComplexArray:
    """Modes of known size whose oscillator was written at 0 and pulled for a dwell.

    x = n phi - arg Z:  tan(x(1) / 2) = tan(x(0) / 2) exp(-n g |Z|), gain n g.
    """
    start = -np.angle(sums)
    left = 2 * np.arctan(np.tan(start / 2) * np.exp(-gain_rad * np.abs(sums)))
    return np.asarray(sums * np.exp(1j * left))


class Readers:
    """So many readers for every mode, n g = factor / norm of c.

    Args:
        modes: Coefficients.
        count: Readers of a mode: two a quarter turn apart, more evenly spread.
        factor: On the gain.
    """

    def __init__(self, modes: Modes, count: int, factor: float) -> None:
        self.order = modes.order
        apart = np.pi / 2 if count == 2 else 2 * np.pi / count
        self.starts = apart * np.arange(count)
        self.gain = factor / np.sqrt((modes.into_gamma**2).sum(axis=1))

    def increments(self, sums: ComplexArray) -> FloatArray:
        """Increment of n phi of every reader after the exact flow, (T, M, R)."""
        share = np.tanh(self.gain * np.abs(sums) / 2)
        turned = (share * np.exp(1j * np.angle(sums)))[..., None]
        turned = turned * np.exp(-1j * self.starts)
        return np.asarray(2 * np.arctan2(turned.imag, 1 + turned.real))

    def on_circuit(
        self, card: Card, sums: ComplexArray, substeps: int, periods: int
    ) -> FloatArray:
        """As `increments`, by extrapolated dwells of the circuit."""
        shape = (*sums.shape, self.starts.size)
        orders = np.unique(self.order)
        drive = np.zeros((*shape, orders.size), complex)
        for m, order in enumerate(self.order):
            pull = self.gain[m] / order * sums[:, m, None]
            drive[:, m, :, np.searchsorted(orders, order)] = pull
        start = np.broadcast_to(self.starts / self.order[:, None], shape)
        found = run_scheme(
            card,
            drive.reshape(-1, orders.size),
            orders,
            start.ravel(),
            scheme="extrapolated",
            substeps=substeps,
            dwell_periods=periods,
        ).phase_rad.reshape(shape)
        return np.asarray(self.order[:, None] * (found - start))

    def read(self, moved: FloatArray) -> ComplexArray:
        """The modes by least squares of Im(w exp(-i b)) = sin(d / 2), b = s + d / 2."""
        angle = self.starts + moved / 2
        rows = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
        left = np.einsum("tmri,tmrj->tmij", rows, rows)
        right = np.einsum("tmri,tmr->tmi", rows, np.sin(moved / 2))
        x, y = np.moveaxis(np.linalg.solve(left, right[..., None])[..., 0], -1, 0)
        size = np.minimum(np.hypot(x, y), np.tanh(6.0))
        return np.asarray(
            2 * np.arctanh(size) / self.gain * np.exp(1j * np.angle(x + 1j * y))
        )


def judged(kept: list[tuple[ModesTrace, ComplexArray, ComplexArray]]) -> dict[str, Any]:
    """Error of the modes and of the stage after them."""
    errors = [after(step, found) - after(step) for step, _, found in kept]
    every = np.abs(np.concatenate(errors))
    sums = np.concatenate([wanted.ravel() for _, wanted, _ in kept])
    found = np.concatenate([got.ravel() for *_, got in kept])
    return {
        "modes_relative": rms(found - sums) / rms(sums),
        "stage_rms_rad": rms(every),
        "stage_max_rad": float(every.max()),
        "slips": int((every > np.pi / 2).sum()),
    }


def size_quantiles(sums: list[ComplexArray]) -> list[float]:
    """Smallest, 5 %, median, 95 % and largest size of all modes."""
    sizes = np.concatenate([np.abs(z).ravel() for z in sums])
    return [float(q) for q in np.quantile(sizes, [0, 0.05, 0.5, 0.95, 1])]


def measured_layer(part: list[ModesTrace], card: Card) -> dict[str, Any]:
    """All three ways on the steps of one layer."""
    known = [(step, modes_of(step)) for step in part]
    sums = [modes.sums(step.theta_rad) for step, modes in known]

    def collect(make: Any) -> dict[str, Any]:
        triples = zip(known, sums, strict=True)
        return judged([(step, z, make(modes, z)) for (step, modes), z in triples])

    sizes = np.concatenate([np.abs(z).ravel() for z in sums])
    out: dict[str, Any] = {
        "size_quantiles": np.quantile(sizes, [0, 0.05, 0.5, 0.95, 1]).tolist(),
        "settling": [
            {"gain_rad": gain, **collect(lambda m, z, g=gain: settled(m, z, g))}
            for gain in SETTLES
        ],
    }
    readers = [row for pair in READERS for row in _reader_rows(pair, collect, card)]
    return out | {"readers": readers}


def _reader_rows(
    pair: tuple[int, float], collect: Any, card: Card
) -> list[dict[str, Any]]:
    """One number of readers and factor: with noise, and on the circuit."""
    count, factor = pair
    random = stream(0, "mode bank", 100 * count + round(10 * factor))

    def noisy(m: Modes, z: ComplexArray, size: float) -> ComplexArray:
        bank = Readers(m, count, factor)
        exact = bank.increments(z)
        noise = size * m.order[:, None] * random.normal(size=exact.shape)
        return bank.read(exact + noise)

    def pulled(m: Modes, z: ComplexArray, plan: tuple[int, int]) -> ComplexArray:
        bank = Readers(m, count, factor)
        return bank.read(bank.on_circuit(card, z, *plan))

    facts = {"readers": count, "factor": factor}
    rows = [
        facts | {"noise_rad": size} | collect(lambda m, z, s=size: noisy(m, z, s))
        for size in NOISES_RAD
    ]
    return rows + [
        facts
        | {"substeps": s, "periods": 3 * s * p}
        | collect(lambda m, z, plan=(s, p): pulled(m, z, plan))
        for s, p in PLANS
    ]


def shares() -> dict[str, Any]:
    """Share of multiply-accumulates on oscillators by family, for a whole window.

    Of the first layer, and of all; who forms the modes of FSN-MF behind its name.
    """
    from oscc.lower import lower
    from oscc.verbs.inspect import coverage

    device, out = card_to_mapping(load_card(CARD)), {}
    for name, who in SHARED:
        loaded = load_checkpoint(ROOT / "checkpoints" / f"{name}.safetensors")
        context = loaded.config.context
        window = windows(standard_library().held_out, context, context)[0]
        program = lower(trace(loaded.model, window[:-1]), device, mean_field=who)
        found = coverage(program)
        word = "share_on_oscillators"
        key = name if name == "fsn-flow" else f"{name}, {who}"
        layer = found["layers"][0]
        out[key] = {
            "tokens": context,
            "layer_0": layer[word],
            "layer_0_macs": {"host": layer["host_macs"], **layer["stages"]},
            "in_all": found[word],
        }
    return out


def measured() -> dict[str, Any]:
    """Content of the results file."""
    began, found = time.perf_counter(), steps()
    card = load_card(CARD)
    layers = {
        str(number): measured_layer([s for s in found if s.layer == number], card)
        for number in sorted({step.layer for step in found})
    }
    return {
        "checkpoint": CHECKPOINT.name,
        "card": CARD,
        "windows": WINDOWS,
        "layers": layers,
        "shares": shares(),
        "seconds": round(time.perf_counter() - began, 1),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }


def main() -> None:
    """Measure, and print the errors of the stage of the modes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    content = measured()
    write_atomic(parser.parse_args().out, dump_json(content))
    for name, row in content["shares"].items():
        print(f"{name}: {100 * row['in_all']:.1f} % on oscillators")
    for number, layer in content["layers"].items():
        for row in layer["settling"]:
            print(number, f"settling, gain {row['gain_rad']:4.0f} rad", _text(row))
        for row in layer["readers"]:
            how = f"{row['periods']} periods" if "periods" in row else ""
            how = how or f"noise {1e3 * row['noise_rad']:g} mrad"
            words = f"{row['readers']} readers, factor {row['factor']}, {how}"
            print(number, words, _text(row))


def _text(row: dict[str, Any]) -> str:
    return (
        f"modes {row['modes_relative']:.4f}, stage "
        f"{1e3 * row['stage_rms_rad']:.2f} mrad rms, {row['slips']} slips"
    )


if __name__ == "__main__":
    main()
