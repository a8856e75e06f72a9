"""Assumptions of the energy account: every figure that no equation gives.

Each has a unit, the place it comes from, and whether it was measured. A user may
replace any of them by name; none is zero by default where hardware would spend energy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from oscc.checks import nearest
from oscc.device import Card
from oscc.errors import RequestError

HOROWITZ = (
    "Horowitz, ISSCC 2014, 45 nm, arithmetic without memory [seen in secondary texts]"
)
SRAM = "64-bit access to an 8 KB SRAM 10 pJ, Horowitz 2014 [seen in secondary texts]"
SRAM_WORD_BIT_J = 10e-12 / 64
WEIGHT_BITS, DELAY_BITS = 8, 12


@dataclass(frozen=True, slots=True)
class Assumption:
    """One figure: `measured` says whether its source measured it.

    `replaced` says that the user gave it in the place of the account's own.
    """

    name: str
    value: float
    unit: str
    source: str
    measured: bool = False
    replaced: bool = False

    def to_json(self) -> dict[str, Any]:
        """The entry of `energy.json`."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "source": self.source,
            "measured": self.measured,
            "replaced": self.replaced,
        }


_ALWAYS = (
    Assumption(
        "read_out_J",
        1e-12,
        "J",
        "conversion of one crossing time to a number; assumed "
        "(docs/reference/energy.md), dominates below about 100 fF",
    ),
    Assumption(
        "phase_word_J",
        DELAY_BITS * SRAM_WORD_BIT_J,
        "J",
        f"{DELAY_BITS}-bit release delay of one phase write, scaled from: {SRAM}",
    ),
    Assumption(
        "weight_write_J",
        WEIGHT_BITS * SRAM_WORD_BIT_J,
        "J",
        f"{WEIGHT_BITS}-bit weight of one pair term, converter left out, scaled from: "
        f"{SRAM}",
    ),
    Assumption(
        "reference_oscillators",
        1.0,
        "1",
        "free oscillator that reads are timed against, running with every dwell",
    ),
    Assumption(
        "bias_over_peak",
        1.0,
        "1",
        "class A transconductors: supply current equals the peak of the current they "
        "inject, follows the programmed strength, and flows while the gate is open; a "
        "fixed full scale would cost about 64 times as much",
    ),
    Assumption(
        "host_mac_J",
        4.6e-12,
        "J",
        f"fp32 multiply 3.7 pJ plus add 0.9 pJ, the precision that was verified; "
        f"{HOROWITZ}",
    ),
    Assumption(
        "host_exp_J",
        36.8e-12,
        "J",
        "one exponential as 8 fp32 multiply-accumulates; assumed",
    ),
    Assumption(
        "host_sincos_J",
        73.6e-12,
        "J",
        "sine and cosine of one angle as 16 fp32 multiply-accumulates; assumed",
    ),
    Assumption(
        "host_read_J",
        5e-12,
        "J",
        f"one 32-bit parameter, half of: {SRAM}",
    ),
    Assumption(
        "digital_int4_mac_J",
        0.065e-12,
        "J",
        "int8 scaled to 4 bits: multiply 0.2 pJ / 4 plus add 0.03 pJ / 2; assumed",
    ),
    Assumption(
        "digital_int8_mac_J",
        0.23e-12,
        "J",
        f"multiply 0.2 pJ plus add 0.03 pJ; {HOROWITZ}",
    ),
    Assumption(
        "digital_fp32_mac_J",
        4.6e-12,
        "J",
        f"multiply 3.7 pJ plus add 0.9 pJ; {HOROWITZ}",
    ),
    Assumption("temperature_K", 300.0, "K", "for thermal jitter; assumed"),
)

_TURNAROUND = {
    "hold_periods": "a cell is held at V_MIT until its programmed release; all cells "
    "of a write are released within this many periods",
    "settle_periods": "periods between the release and the opening of the gate",
    "read_periods": "periods until the crossing after the gate has closed",
}

_BANK = (
    Assumption(
        "source_refresh",
        1.0,
        "1",
        "share of the source cells that are written anew at every dwell, from words "
        "stored beside them: 1 refreshes the whole bank, 0 holds it, so that the "
        "newest token's cells alone are written, once a layer, and the others run on "
        "through the writes; free cells drift, so 0 takes cells that do not; assumed",
    ),
)

_SHAPER = (
    Assumption(
        "weight_S",
        1e-4,
        "S",
        "transconductance of a weight element of strength one, as in the deck",
    ),
    Assumption(
        "shaper_S",
        14e-4,
        "S",
        "transconductance of one shaper channel: two biquads of quality 3 at 10 kohm, "
        "2 (1 + 2 x 3) / 10 kohm, as in the deck",
    ),
)


_CELLS = (
    Assumption(
        "detuning_word_J",
        DELAY_BITS * SRAM_WORD_BIT_J,
        "J",
        f"{DELAY_BITS}-bit word of the capacitors of one pair cell, converter left "
        f"out, scaled from: {SRAM}",
    ),
)


_CORRELATIONS = (
    Assumption(
        "mixer_S",
        1e-4,
        "S",
        "transconductance of a mixer of strength one, that of a weight element; "
        "assumed",
    ),
    Assumption(
        "integrator_read_J",
        1e-12,
        "J",
        "conversion of one integrated product to a number; assumed like that of a "
        "crossing time",
    ),
)


def _turnaround(fidelity: str) -> tuple[Assumption, ...]:
    if fidelity == "cells":
        values = {"hold_periods": 1.0, "settle_periods": 0.0, "read_periods": 1.0}
        place = "the tanks of a pair cell settle within its dwell"
        notes = {name: "" for name in values} | {"settle_periods": f"; {place}"}
    elif fidelity == "oscillators":
        values = {"hold_periods": 2.0, "settle_periods": 12.0, "read_periods": 4.0}
        place = "as the decks of this fidelity run"
        notes = {name: f"; {place}" for name in values}
    else:
        values = {"hold_periods": 1.0, "settle_periods": 0.0, "read_periods": 1.0}
        place = "no shaper to settle: the sources of this fidelity are ideal"
        notes = {name: "" for name in values} | {"settle_periods": f"; {place}"}
    return tuple(
        Assumption(name, value, "1", _TURNAROUND[name] + notes[name])
        for name, value in values.items()
    )


def known_names() -> tuple[str, ...]:
    """Names of all assumptions that can be set, whatever is accounted for.

    Example:
        >>> "read_out_J" in known_names()
        True
    """
    groups = (_ALWAYS, _turnaround("pairwise"), _SHAPER, _CELLS, _BANK, _CORRELATIONS)
    return tuple(entry.name for group in groups for entry in group)


def _card(card: Card) -> tuple[Assumption, ...]:
    from oscc.device.card import UNITS

    known = {entry.name: entry for entry in card.sources}
    return tuple(
        Assumption(
            f"card.{name}",
            float(getattr(card, name)),
            unit,
            known[name].source if name in known else "stated by no source",
            known[name].measured if name in known else False,
        )
        for name, unit in UNITS.items()
    )


def assumptions(
    card: Card,
    fidelities: Collection[str],
    overrides: Mapping[str, float] | None = None,
    *,
    decoding: bool = False,
) -> dict[str, Assumption]:
    """All assumptions of an account by name, the user's values put in.

    Args:
        card: Device card; its parameters are listed, but are changed in the card.
        fidelities: Of the stages; `oscillators` adds its shapers and settling, `cells`
            stands for stages of pair cells, `correlations` for scores and logits.
        overrides: Values by name, in the unit of the assumption.
        decoding: Whether a bank of earlier tokens is read, which has to be kept.

    Raises:
        RequestError: a name is not known, or a value is negative or not finite.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> assumptions(card, ["pairwise"], {"read_out_J": 2e-12})["read_out_J"].value
        2e-12
    """
    real, cells = "oscillators" in fidelities, "cells" in fidelities
    kind = "cells" if cells else "oscillators" if real else "pairwise"
    listed = [*_ALWAYS, *_turnaround(kind)]
    listed += (_SHAPER if real else ()) + (_CELLS if cells else ())
    listed += _BANK if decoding else ()
    listed += _CORRELATIONS if "correlations" in fidelities else ()
    found = {entry.name: entry for entry in listed}
    for name, value in (overrides or {}).items():
        if name not in found:
            raise RequestError(
                f"There is no assumption `{name}`.{nearest(name, tuple(found))} "
                f"Known: {', '.join(sorted(found))}."
            )
        if not (math.isfinite(value) and value >= 0):
            raise RequestError(
                f"Assumption `{name}` must be a number >= 0 {found[name].unit}, "
                f"but is {value!r}."
            )
        found[name] = replace(
            found[name],
            value=float(value),
            source=f"given by the user in place of {found[name].value:g}",
            measured=False,
            replaced=True,
        )
    return found | {entry.name: entry for entry in _card(card)}
