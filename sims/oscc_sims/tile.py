"""Runs a tile of real cells in gnucap and measures its gap to the `pairwise` decks.

Both fidelities run the same dwell from the same phases in the same simulator, so the
gap is what real sources, writes, buffers, loads and shapers cost. The supply is
integrated over the whole deck, split at the opening and closing of the gate.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.device.card import Card
from oscc.device.coupler import injection_A
from oscc.device.cycle_energy import energy_per_period_J
from oscc.device.piecewise import INSULATING, omega, phase_of
from oscc.errors import ToolError
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.phases import TURN, wrap
from oscc_backends.circuit import drive
from oscc_backends.spice import Prepared, prepare
from oscc_backends.tile import Tile, TileOptions, build_tile
from oscc_netlists.circuit import ideal_elements
from oscc_netlists.settings import Settings
from oscc_netlists.tile import (
    CALIBRATION_PERIODS,
    CLAMP_MODEL,
    HOLD_OF_V_MIT,
    REFERENCE,
    TileDeck,
    WriteTiming,
    calibration_deck,
)
from oscc_netlists.timing import level_V
from oscc_sims.calibration import calibrate
from oscc_sims.circuit_dwell import run_dwell
from oscc_sims.crossings import upward
from oscc_sims.process import Children
from oscc_sims.rawfile import Plot
from oscc_sims.simulator import Simulator, SimulatorFault, open_simulator
from oscc_sims.spice_jobs import Bench, Job, run_all

TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, eq=False)
class TileResult:
    """What a tile did, beside the `pairwise` decks and the circuit engine.

    Args:
        tile: The tile.
        moved_rad: Increment of each target, shape (N,).
        pairwise_rad: The same from the `pairwise` decks, shape (N,).
        circuit_rad: The same from the circuit engine, shape (N,).
        write_error_rad: Phase of each source at the opening of the gate less what was
            written, shape (M,).
        supply_J: Energy from the supply while cells are held and settle, in the dwell,
            and while they are read.
        closed_form_J: The same from closed forms of held and free cells.
        wall_s: Time of the tile's own run.
    """

    tile: Tile
    moved_rad: FloatArray
    pairwise_rad: FloatArray
    circuit_rad: FloatArray
    write_error_rad: FloatArray
    supply_J: Mapping[str, float]
    closed_form_J: float
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        """Facts that repeat exactly, for verify.json, energy.json and the report."""
        spec, circuit = self.tile.spec, self.tile.deck.circuit
        total = sum(self.supply_J.values())
        matrices = [np.abs(weights) for weights in spec.weights.values()]
        gap = self.moved_rad - self.pairwise_rad
        exact = self.moved_rad - self.circuit_rad
        return {
            "engine": "gnucap",
            "fidelity": "oscillators",
            "reference": "pairwise",
            "stage": self.tile.stage,
            "coordinate": self.tile.coordinate,
            "sources": int(spec.theta_rad.size),
            "targets": int(spec.phi0_rad.size),
            "pairs": int(np.count_nonzero(np.sum(matrices, axis=0))),
            "pair_weights": int(np.count_nonzero(matrices)),
            "periods": spec.periods,
            "settle_periods": spec.settle,
            "rms_rad": _rms(gap),
            "median_rad": float(np.median(np.abs(gap))),
            "max_rad": float(np.abs(gap).max()),
            "circuit_rms_rad": _rms(exact),
            "circuit_max_rad": float(np.abs(exact).max()),
            "largest_move_rad": float(np.abs(self.moved_rad).max()),
            "write_rms_rad": _rms(self.write_error_rad),
            "elements": sum(1 for _ in circuit.elements()),
            "ideal_elements": ideal_elements(circuit),
            "supply_J": total,
            "supply_parts_J": dict(self.supply_J),
            "closed_form_J": self.closed_form_J,
            "over_closed_form": total / self.closed_form_J,
        }


def run_tile(
    program: Program,
    stage_name: str,
    coordinate: int | None = None,
    *,
    options: TileOptions | None = None,
    jobs: int = 1,
    timeout_s: float = TIMEOUT_S,
) -> TileResult:
    """Run the tile of a stage, the `pairwise` decks of its targets, and the circuit.

    Args:
        program: The program.
        stage_name: Stage of the tile.
        coordinate: Coordinate of the tile; None for the one of the strongest drive.
        options: How the tile is built.
        jobs: `pairwise` decks that run side by side.
        timeout_s: Time limit of one deck.

    Raises:
        ToolError: gnucap is missing or failed.
        RequestError: the stage cannot be a tile.
    """
    chosen = options or TileOptions()
    simulator = open_simulator("gnucap")
    prepared = prepare(program)
    timing = calibrate_write(
        prepared.card, chosen.settings, simulator, timeout_s=timeout_s
    )
    tile = build_tile(prepared, stage_name, coordinate, timing, chosen)
    began = clock.monotonic()
    try:
        with Children() as children:
            plot = simulator.run(children, tile.deck, timeout_s)
        moved = increments_rad(prepared.card, tile.deck, plot, timing)
        written = _write_errors_rad(prepared.card, tile.deck, plot, timing)
    except SimulatorFault as fault:
        raise ToolError(
            f"gnucap failed on the tile of {stage_name}/{tile.coordinate}: {fault}. "
            "No phase is reported."
        ) from fault
    wall = clock.monotonic() - began
    return TileResult(
        tile,
        moved,
        _pairwise_rad(prepared, tile, chosen.settings, simulator, (jobs, timeout_s)),
        _circuit_rad(prepared.card, prepared.program.stage(stage_name), tile),
        written,
        _supply_J(prepared.card, tile.deck, plot),
        _closed_form_J(prepared.card, tile.deck),
        wall,
    )


def calibrate_write(
    card: Card,
    settings: Settings,
    simulator: Simulator | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
) -> WriteTiming:
    """Free run of one written cell: period, and phase when it is let go.

    Raises:
        ToolError: gnucap is missing, or the cell does not run steadily.
    """
    tool = simulator or open_simulator("gnucap")
    circuit, text, release = calibration_deck(card, settings)
    deck = _Plain(circuit, text, "gnucap")
    with Children() as children:
        try:
            plot = tool.run(children, deck, timeout_s)
        except SimulatorFault as fault:
            raise ToolError(f"gnucap on the written reference: {fault}.") from fault
    times = _crossings(card, plot, REFERENCE)
    times = times[times > release]
    if times.size < CALIBRATION_PERIODS:
        raise ToolError(f"The written reference crossed {times.size} times only.")
    count = np.arange(times.size)
    period, first = np.polyfit(count[1:], times[1:], 1)
    at_level = float(phase_of(card, level_V(card), INSULATING))
    phase = at_level - TURN * (first - release) / period
    return WriteTiming(settings, float(period), float(phase))


@dataclass(frozen=True, slots=True, eq=False)
class _Plain:
    circuit: Any
    text: str
    dialect: str


def increments_rad(
    card: Card, deck: TileDeck, plot: Plot, timing: WriteTiming
) -> FloatArray:
    """Unwrapped increment of each target over the dwell, shape (N,).

    Target and reference are let go from one point, so crossings count turns since
    then; the difference of the two leaves what the pull added.

    Raises:
        SimulatorFault: a cell did not cross after the gate closed.
    """
    leads = [
        _lead(card, deck, plot, timing, node) for node in (REFERENCE, *deck.targets)
    ]
    return np.array(leads[1:]) - leads[0]


def _lead(
    card: Card, deck: TileDeck, plot: Plot, timing: WriteTiming, node: str
) -> float:
    release = deck.release_s[node]
    times = _crossings(card, plot, node)
    times = times[times > release]
    late = np.nonzero(times > deck.window.close_s)[0]
    if late.size < 2:
        raise SimulatorFault(f"cell {node} crossed {late.size} times after the gate")
    return float(np.mean(TURN * late - timing.omega * (times[late] - release)))


def _write_errors_rad(
    card: Card, deck: TileDeck, plot: Plot, timing: WriteTiming
) -> FloatArray:
    """Phase of each source at the opening of the gate less what was written."""
    at_level = float(phase_of(card, level_V(card), INSULATING))
    out = []
    for node, wanted in zip(deck.sources, deck.written_rad, strict=True):
        times = _crossings(card, plot, node)
        near = times[np.argsort(np.abs(times - deck.window.open_s))[:4]]
        phase = at_level - timing.omega * (near - deck.window.open_s)
        out.append(float(np.mean(wrap(phase - wanted))))
    return np.array(out)


def _crossings(card: Card, plot: Plot, node: str) -> FloatArray:
    return upward(plot.column("time"), plot.column(f"v({node})"), level_V(card))


def _pairwise_rad(
    prepared: Prepared,
    tile: Tile,
    settings: Settings,
    simulator: Simulator,
    run: tuple[int, float],
) -> FloatArray:
    """Increments of the same targets and dwell from their `pairwise` decks.

    Args:
        run: Decks that run side by side, and the time limit of one.
    """
    jobs, timeout_s = run
    timing = calibrate(prepared.card, settings, simulator, timeout_s=timeout_s)
    bench = Bench(
        prepared, "gnucap", simulator, {False: timing}, "pairwise", timeout_s, None
    )
    starts, first = tile.spec.phi0_rad, prepared.program.stage(tile.stage).begins
    place = (tile.dwell, tile.coordinate)
    work = [
        Job(tile.stage, k, 0, place[0], first + k, place[1], float(start), finer=False)
        for k, start in enumerate(starts)
    ]
    ends = [reading.end_rad for reading in run_all(bench, work, jobs)]
    return np.array(ends) - starts


def _circuit_rad(card: Card, stage: Stage, tile: Tile) -> FloatArray:
    """Increments of the same targets and dwell from the circuit engine."""
    starts = tile.spec.phi0_rad
    pull = drive(stage).reshape(*stage.grid, -1)
    pull = pull[: starts.size, tile.coordinate] * tile.dwell.gain
    current = injection_A(card, pull, stage.harmonics, tile.dwell.periods)
    seen = run_dwell(card, current, starts, tile.dwell.periods)
    return np.asarray(seen.lead_rad - starts)


def _supply_J(card: Card, deck: TileDeck, plot: Plot) -> dict[str, float]:
    """Energy from the supply, split where the gate opens and closes."""
    time, kept = np.unique(plot.column("time"), return_index=True)
    power = -card.vdd_V * plot.column("i(v_supply)")[kept]
    # the first sample of a current under `uic` is no current of the circuit
    power[0] = power[1]
    ends = [0.0, deck.window.open_s, deck.window.close_s, float(time[-1])]
    out = {}
    for name, begin, end in zip(
        ("settle", "dwell", "read"), ends[:-1], ends[1:], strict=True
    ):
        grid = np.concatenate([[begin], time[(time > begin) & (time < end)], [end]])
        out[name] = float(np.trapezoid(np.interp(grid, time, power), grid))
    return out


def _closed_form_J(card: Card, deck: TileDeck) -> float:
    """Held cells draw a constant current, free ones their energy per period."""
    leak = 1 / card.r_series_ohm + 1 / card.r_ins_ohm
    clamp = 1 / CLAMP_MODEL.on_ohm
    hold = HOLD_OF_V_MIT * card.v_mit_V
    held_V = (card.vdd_V / card.r_series_ohm + hold * clamp) / (leak + clamp)
    held_W = card.vdd_V * (card.vdd_V - held_V) / card.r_series_ohm
    free_W = energy_per_period_J(card).supply_J * omega(card) / TURN
    stop = deck.circuit.transient.stop_s
    return sum(
        held_W * time + free_W * (stop - time) for time in deck.release_s.values()
    )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
