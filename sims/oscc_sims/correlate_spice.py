"""Correlations from the waveform of one branch in a SPICE program.

The tank voltage U of the deck is a function of the time since its cell was let go. A
cell of written phase theta was let go m = (theta - psi) / w before the banks' time
zero, m within one period, with psi the phase of release, so that

    s_htu = sum_j a_tj b_uj <U(m_tj + s) U(m_uj + s)> / unit

over whole periods of the simulator's own clock, whose period and phase of release are
read from the crossings of the same run, and unit = 2 |U_1|^2 from its last period.
Mixers, gates and integrator are ideal, as in the exact circuit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.device.correlator import settling_periods
from oscc.device.piecewise import INSULATING, omega, segments
from oscc.errors import ToolError
from oscc.files import write_atomic
from oscc.ir.correlation import Correlation
from oscc.phases import TURN
from oscc_netlists.correlator import NODE, TANK, CorrelatorDeck, correlator_deck
from oscc_netlists.settings import default_settings
from oscc_sims.crossings import upward
from oscc_sims.process import Children, side_by_side
from oscc_sims.rawfile import Plot
from oscc_sims.simulator import Simulator, SimulatorFault

SAMPLES = 64
_SPARE = 3  # the last release, the periods before the first crossing, a margin
_SETTLED = 1e-5  # share of a transient that may be left where the unit is taken
_CALIBRATION = 4  # periods that the unit is taken from


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Tank voltage of a simulator against the base phase since release.

    Attributes:
        phase_rad: Base phase since release, rising, shape (points,), [rad].
        voltage_V: Tank voltage there, shape (points,), [V].
        unit: 2 |U_1|^2 of the settled tank, [V^2].
    """

    phase_rad: FloatArray
    voltage_V: FloatArray
    unit: float


def read_branch(deck: CorrelatorDeck, plot: Plot) -> Branch:
    """The branch of a run, its period from its own crossings.

    Raises:
        SimulatorFault: the cell crossed too seldom, or at uneven times.
    """
    time, kept = np.unique(plot.column("time"), return_index=True)
    node, tank = (plot.column(f"v({name})")[kept] for name in (NODE, TANK))
    crossing = upward(time, node, deck.level_V)
    if crossing.size < _CALIBRATION + 2:
        raise SimulatorFault(f"the cell crossed {crossing.size} times: too few")
    periods = np.diff(crossing)
    period = float(periods[1:].mean())
    if float(np.abs(periods[1:] / period - 1.0).max()) > 1e-2:
        raise SimulatorFault("its periods differ by more than a hundredth")
    phase = TURN * time / period
    end = TURN * np.floor(phase[-1] / TURN)
    at = end - TURN * _CALIBRATION * (1 - (np.arange(_CALIBRATION * 512) / 2048))
    first = np.mean(np.interp(at, phase, tank) * np.exp(-1j * at))
    return Branch(phase, tank, 2.0 * float(np.abs(first) ** 2))


def solve(card: Card, one: Correlation, branch: Branch) -> FloatArray:
    """Sums of every head from a branch, shape (H, T, S), [nat]."""
    count = SAMPLES * one.periods
    s = TURN * (one.settle_periods + (np.arange(count) + 0.5) / SAMPLES)
    release = float(omega(card) * segments(card).begin_s[INSULATING])
    banks = []
    for phases, gains in (
        (one.query_rad, one.query_gain),
        (one.key_rad, one.key_gain),
    ):
        gone = np.mod(phases - release, TURN)[..., None] + s
        voltage = np.interp(gone, branch.phase_rad, branch.voltage_V)
        banks.append(voltage * gains[..., None])
    out = np.zeros(one.digital.shape)
    for head in range(one.heads):
        query, key = (
            bank[:, one.columns(head)].reshape(len(bank), -1) for bank in banks
        )
        # no BLAS: its sums depend on the number of threads
        whole = np.einsum("ta,ua->tu", query, key) / (count * branch.unit)
        out[head] = np.where(one.visible, whole, 0.0)
    return out


def run(
    card: Card,
    correlations: Sequence[Correlation],
    simulator: Simulator,
    dialect: str,
    *,
    gate: bool = True,
    jobs: int = 1,
    timeout_s: float = 300.0,
    decks_dir: Path | None = None,
) -> dict[str, FloatArray]:
    """Arrays of all correlations: sums, and those at half the step.

    Correlations of one quality share a deck.

    Args:
        card: Device card.
        correlations: What to run.
        simulator: What runs the decks.
        dialect: What the decks are written in.
        gate: Also run every deck with finer settings.
        jobs: Decks that run side by side.
        timeout_s: Time limit of one deck, [s].
        decks_dir: Folder that takes every deck.

    Raises:
        ToolError: a deck failed.
    """
    plain = default_settings(dialect)
    kinds = {"": plain, ".half": plain.finer()} if gate else {"": plain}
    longest: dict[float, int] = {}
    for one in correlations:
        calm = settling_periods(one.quality, _SETTLED) + _CALIBRATION
        needed = max(one.periods_in_all, calm) + _SPARE
        longest[one.quality] = max(longest.get(one.quality, 0), needed)
    keys = [(quality, kind) for quality in longest for kind in kinds]
    work = [
        partial(
            _branch,
            correlator_deck(card, quality, longest[quality], kinds[kind]),
            simulator,
            timeout_s,
            None if decks_dir is None else decks_dir / f"tank-{quality:g}{kind}.cir",
        )
        for quality, kind in keys
    ]
    found = dict(zip(keys, side_by_side(work, jobs), strict=True))
    out: dict[str, FloatArray] = {}
    for one in correlations:
        out[f"{one.name}.correlation"] = solve(card, one, found[one.quality, ""])
        if gate:
            finer = solve(card, one, found[one.quality, ".half"])
            out[f"{one.name}.raw.half_step_correlation"] = finer
    return out


def _branch(
    deck: CorrelatorDeck,
    simulator: Simulator,
    timeout_s: float,
    path: Path | None,
    children: Children,
) -> Branch:
    if path is not None:
        write_atomic(path, deck.text)
    try:
        return read_branch(deck, simulator.run(children, deck, timeout_s))
    except SimulatorFault as fault:
        raise ToolError(
            f"{simulator.name} failed for the branch of a correlator: {fault.reason}. "
            "No score is reported."
        ) from fault
