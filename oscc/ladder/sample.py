"""Sample of targets for the expensive engines, stratified over drive and tokens."""

from __future__ import annotations

import numpy as np

from oscc.arrays import BoolArray, IntArray
from oscc.ir.stage import Stage
from oscc.ladder.levels import drive_strength

_STRONG = 0.95
_LARGE_INCREMENT_RAD = 2.0


def stratified(stage: Stage, count: int, random: np.random.Generator) -> IntArray:
    """Targets of a stage for decks.

    Three places are kept for what breaks first, where the stage has it: a drive above
    the 95 % quantile, a negative gain, an increment above 2 rad. The others lie one in
    each band of drive strength, and each is drawn from a token that is not yet taken
    as long as there are enough tokens.

    Args:
        stage: Stage to sample.
        count: Targets wanted; all of them if the stage has fewer.
        random: Stream of the draw.

    Returns:
        Token and coordinate of each target, ascending, shape (M, 2).
    """
    drive = drive_strength(stage).ravel()
    shape = stage.grid
    count = min(count, drive.size)
    moved = np.abs(stage.digital_rad - stage.phi0_rad).ravel()
    special = (
        drive > np.quantile(drive, _STRONG),
        stage.gain_rad.ravel() < 0,
        moved > _LARGE_INCREMENT_RAD,
    )
    chosen: list[int] = []
    for wanted in special:
        if len(chosen) < count and not wanted[chosen].any() and wanted.any():
            chosen.append(_draw(wanted, chosen, shape[1], random))
    order = np.argsort(drive, kind="stable")
    free = count - len(chosen)
    for band in np.array_split(order, free) if free else []:
        inside = np.zeros(drive.size, dtype=bool)
        inside[band] = True
        inside[chosen] = False
        if not inside.any():
            inside = np.ones(drive.size, dtype=bool)
            inside[chosen] = False
        chosen.append(_draw(inside, chosen, shape[1], random))
    return np.asarray(stage.target_index[np.sort(np.array(chosen, dtype=np.int64))])


def _draw(
    allowed: BoolArray, chosen: list[int], coordinates: int, random: np.random.Generator
) -> int:
    """One allowed target, of a token that is not yet taken if there is one."""
    places = np.flatnonzero(allowed)
    taken = np.array([k // coordinates for k in chosen], dtype=np.int64)
    fresh = places[~np.isin(places // coordinates, taken)]
    return int(random.choice(fresh if fresh.size else places))
