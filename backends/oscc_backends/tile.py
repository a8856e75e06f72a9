"""A tile of real cells from a program: one coordinate, its first targets, one dwell."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oscc.arrays import ComplexArray
from oscc.device.coupler import unit_injection_A
from oscc.errors import RequestError
from oscc.ir.plan import Dwell, dwells
from oscc.ir.stage import Stage
from oscc_backends.spice import Prepared
from oscc_netlists.settings import Settings, default_settings
from oscc_netlists.shaper import Load, ShaperPlan, channels_of, design
from oscc_netlists.tile import TileDeck, TileSpec, WriteTiming, tile_deck


@dataclass(frozen=True, slots=True)
class TileOptions:
    """How a tile is built.

    Args:
        tokens: First target tokens of the stage; sources are all tokens up to them.
        quality: Q of every biquad.
        settle: Periods that the sources run before the gate opens.
        out_ohm: Output resistance of every weight, infinite for an ideal one.
        out_farad: Output capacitance of every weight.
        settings: gnucap's settings.
    """

    tokens: int = 16
    quality: float = 3.0
    settle: int = 12
    out_ohm: float = 1e7
    out_farad: float = 1e-15
    settings: Settings = field(default_factory=lambda: default_settings("gnucap"))


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """A tile with what it is of.

    Args:
        stage: Name of the stage.
        coordinate: The coordinate.
        dwell: The dwell.
        spec: Phases, gains and weights.
        plan: The shaper.
        deck: The deck.
    """

    stage: str
    coordinate: int
    dwell: Dwell
    spec: TileSpec
    plan: ShaperPlan
    deck: TileDeck


def strongest_coordinate(stage: Stage) -> int:
    """Coordinate of the largest mean drive: the hardest case for a tile.

    The drive is bounded by gain times the sum of its strengths.
    """
    size = sum(np.abs(c.gamma).sum(axis=0) for c in stage.factored)
    return int(np.argmax(np.abs(stage.gain_rad).mean(axis=0) * size))


def tile_spec(
    stage: Stage, coordinate: int, dwell: Dwell, options: TileOptions
) -> TileSpec:
    """Phases, gains and weights of the first tokens.

    Raises:
        RequestError: no such coordinate, or targets that receive from other tokens.
    """
    rows = min(options.tokens, stage.grid[0])
    tokens = min(stage.begins + rows, stage.theta_rad.shape[0])
    if not 0 <= coordinate < stage.grid[1]:
        raise RequestError(f"stage {stage.name} has no coordinate {coordinate}.")
    weights = {}
    for coupling in stage.factored:
        head = int(coupling.head_of_coordinate[coordinate])
        if coupling.weights[head, :rows, tokens:].any():
            raise RequestError(
                f"stage {stage.name}: the first {rows} targets receive from later "
                "tokens, so they are no tile of their own."
            )
        weights[coupling.route] = coupling.weights[head, :rows, :tokens]
    return TileSpec(
        theta_rad=stage.theta_rad[:tokens, coordinate],
        phi0_rad=stage.phi0_rad[:rows, coordinate],
        gain=stage.gain_rad[:rows, coordinate] * dwell.gain,
        weights=weights,
        periods=dwell.periods,
        settle=options.settle,
    )


def unit_currents_A(
    prepared: Prepared, stage: Stage, coordinate: int, dwell_s: float
) -> dict[str, ComplexArray]:
    """Current for a unit of field and gain, harmonics 1..K by route, shape (K,).

    Args:
        dwell_s: Length of the dwell.
    """
    width = channels_of(stage.harmonics)
    out = {}
    for coupling in stage.factored:
        unit = np.zeros(width, dtype=np.complex128)
        one = unit_injection_A(prepared.card, coupling.harmonics, dwell_s)
        unit[coupling.harmonics - 1] = one * coupling.coefficients[:, coordinate]
        out[coupling.route] = unit
    return out


def build_tile(
    prepared: Prepared,
    stage_name: str,
    coordinate: int | None,
    timing: WriteTiming,
    options: TileOptions | None = None,
) -> Tile:
    """Deck of a tile, for the first dwell of a stage.

    Args:
        prepared: The program with its card.
        stage_name: Stage of the tile.
        coordinate: Coordinate, or None for the strongest.
        timing: Free run of a written cell in gnucap.
        options: How the tile is built.

    Raises:
        RequestError: a detuning, or what `tile_spec` refuses.
    """
    chosen = options or TileOptions()
    stage = prepared.program.stage(stage_name)
    where = strongest_coordinate(stage) if coordinate is None else coordinate
    dwell = dwells(stage)[0]
    spec = tile_spec(stage, where, dwell, chosen)
    if stage.detuning_rad.any():
        raise RequestError(f"stage {stage.name}: a tile has no detuned targets.")
    load = Load(
        chosen.out_ohm / spec.theta_rad.size, chosen.out_farad * spec.theta_rad.size
    )
    units = unit_currents_A(prepared, stage, where, spec.periods * timing.period_s)
    plan = design(prepared.card, timing.omega, units, quality=chosen.quality, load=load)
    header = {
        "program": prepared.digest,
        "stage": stage_name,
        "coordinate": where,
        "sources": spec.theta_rad.size,
        "targets": spec.phi0_rad.size,
        "periods": dwell.periods,
        "gain": repr(float(dwell.gain)),
        "settle_periods": spec.settle,
        "quality": repr(float(plan.quality)),
        "weight_output": f"{chosen.out_ohm!r} ohm, {chosen.out_farad!r} F each",
    }
    deck = tile_deck(prepared.card, spec, plan, timing, header)
    return Tile(stage_name, where, dwell, spec, plan, deck)
