"""Closed forms against plain time stepping, as a check of an installation."""

from __future__ import annotations

import math

from oscc.device.card import Card
from oscc.errors import ToolError

_STEPS = 20_000


def lock_phase(coupling: float, detuning: float) -> float:
    """Phase difference of two coupled oscillators after a long time, stepped.

        phi' = detuning - 2 coupling sin(phi)

    Args:
        coupling: Strength each way.
        detuning: Difference of their frequencies.

    Example:
        >>> round(lock_phase(0.5, 0.6), 6)
        0.643501
    """
    phi, step = 0.0, 0.01
    for _ in range(_STEPS // 4):
        first = detuning - 2 * coupling * math.sin(phi)
        middle = detuning - 2 * coupling * math.sin(phi + step * first / 2)
        phi += step * middle
    return phi


def stepped_period_s(card: Card) -> float:
    """Free period of a two-state cell by the implicit midpoint rule, [s].

    Args:
        card: A card whose cell oscillates.
    """
    step = 1e-4 * card.r_series_ohm * card.c_F
    drive = card.vdd_V / (card.r_series_ohm * card.c_F)
    v, time, insulating, ups = card.v_mit_V, 0.0, True, []
    for _ in range(100 * _STEPS):
        resistance = card.r_ins_ohm if insulating else card.r_met_ohm
        rate = (1 / card.r_series_ohm + 1 / resistance) / card.c_F
        fresh = (v * (1 - step * rate / 2) + step * drive) / (1 + step * rate / 2)
        level = card.v_imt_V if insulating else card.v_mit_V
        if (fresh >= level) == insulating:
            # the event lies within the step: go there and change the state
            time += step * (level - v) / (fresh - v)
            v, insulating = level, not insulating
            ups += [] if insulating else [time]
        else:
            time, v = time + step, fresh
        if len(ups) == 3:
            return ups[2] - ups[1]
    raise ToolError(f"the cell of {card.name} does not oscillate when stepped")


def closed_forms() -> str:
    """Compare the closed forms with the stepped ones; a line that says what held.

    Raises:
        ToolError: one does not hold.

    Example:
        >>> closed_forms().startswith("closed forms")
        True
    """
    from oscc.device import load_card
    from oscc.device.piecewise import period_s

    if abs(lock_phase(0.5, 0.6) - math.asin(0.6)) > 1e-6:
        raise ToolError(f"two oscillators lock at {lock_phase(0.5, 0.6):.6f} rad")
    card = load_card("vo2-two-state-20k")
    closed, stepped = period_s(card), stepped_period_s(card)
    # second order: a straight line within the step of an event, (step/tau)^2/8 each,
    # with the metallic time constant r_met C, far below r_series C
    ratio = 1e-4 * card.r_series_ohm / card.r_met_ohm
    limit = ratio**2 * card.r_series_ohm * card.c_F
    if abs(closed - stepped) > limit:
        raise ToolError(f"period {closed:.6e} s in closed form, {stepped:.6e} stepped")
    return "closed forms: lock phase of two oscillators, period of a cell"
