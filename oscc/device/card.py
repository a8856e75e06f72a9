"""Device cards: the parameters of one two-state oscillator cell, with their sources.

Circuit: Vdd through the series resistor to a node; capacitor and VO2 device from the
node to ground. The device is r_ins while the node rises to V_IMT, then r_met while it
falls to V_MIT. A `Card` always oscillates: one that would not is refused when made.
"""

from __future__ import annotations

from dataclasses import dataclass

from oscc.checks import require_positive
from oscc.errors import RequestError

UNITS = {
    "vdd_V": "V",
    "r_series_ohm": "ohm",
    "c_F": "F",
    "r_ins_ohm": "ohm",
    "r_met_ohm": "ohm",
    "v_imt_V": "V",
    "v_mit_V": "V",
}
"""Parameters of a card in the order in which they are written, with their units."""


@dataclass(frozen=True, slots=True)
class ParameterSource:
    """Where the value of one parameter comes from."""

    name: str
    source: str
    measured: bool


@dataclass(frozen=True, slots=True)
class Trim:
    """The knob that brings the frequency of one oscillator to the reference.

    Attributes:
        parameter: Card parameter the knob turns, such as `c_F`.
        range_relative: Largest change to either side, relative to the value.
        bits: Resolution of the knob over its whole range.
        source: Where the figures come from.
        measured: False if they are assumed.
    """

    parameter: str
    range_relative: float
    bits: int
    source: str
    measured: bool


@dataclass(frozen=True, slots=True)
class Card:
    """One oscillator cell; checked on construction, so every card oscillates.

    Raises:
        RequestError: a value is not above zero, the thresholds are in the wrong order,
            the series resistor lies outside the oscillation window, or the frequency
            is above `f_max_Hz`.

    Example:
        >>> import dataclasses
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> dataclasses.replace(card, r_series_ohm=20e3).r_series_ohm
        20000.0
    """

    name: str
    vdd_V: float
    r_series_ohm: float
    c_F: float
    r_ins_ohm: float
    r_met_ohm: float
    v_imt_V: float
    v_mit_V: float
    f_max_Hz: float | None = None
    trim: Trim | None = None
    sources: tuple[ParameterSource, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        where = f"card {self.name}"
        for name, unit in UNITS.items():
            require_positive(name, getattr(self, name), unit=unit, where=where)
        if self.f_max_Hz is not None:
            require_positive("f_max_Hz", self.f_max_Hz, unit="Hz", where=where)
        _require_thresholds(self, where)
        _require_oscillation(self, where)


def _require_thresholds(card: Card, where: str) -> None:
    if card.v_mit_V >= card.v_imt_V:
        raise RequestError(
            f"{where}: `v_mit_V` must be below `v_imt_V` ({card.v_imt_V:g} V), "
            f"but is {card.v_mit_V:g} V."
        )
    if card.r_met_ohm >= card.r_ins_ohm:
        raise RequestError(
            f"{where}: `r_met_ohm` must be below `r_ins_ohm` ({card.r_ins_ohm:g} ohm), "
            f"but is {card.r_met_ohm:g} ohm."
        )


def series_resistor_range_ohm(card: Card) -> tuple[float, float]:
    """Open interval of the series resistor in which the cell oscillates.

        r_met (Vdd - V_MIT) / V_MIT  <  r_series  <  r_ins (Vdd - V_IMT) / V_IMT

    Returns:
        Lower and upper end, [ohm]; lower >= upper if no resistor makes it oscillate.

    Source: the node must pass both thresholds; docs/reference/physics.md.

    Example:
        >>> from oscc.device import load_card
        >>> low, high = series_resistor_range_ohm(load_card("vo2-two-state-6k"))
        >>> round(low), round(high)
        (4000, 150000)
    """
    low = card.r_met_ohm * (card.vdd_V - card.v_mit_V) / card.v_mit_V
    return low, card.r_ins_ohm * (card.vdd_V - card.v_imt_V) / card.v_imt_V


def _require_oscillation(card: Card, where: str) -> None:
    low, high = series_resistor_range_ohm(card)
    if not low < card.r_series_ohm < high:
        allowed = (
            f"allowed is {low:.6g} to {high:.6g} ohm."
            if low < high
            else "no series resistor makes this cell oscillate; raise `vdd_V`."
        )
        raise RequestError(
            f"{where} does not oscillate: `r_series_ohm` is {card.r_series_ohm:.6g}, "
            f"{allowed}"
        )
    if card.f_max_Hz is not None:
        from oscc.device.piecewise import period_s

        freq = 1.0 / period_s(card)
        if freq > card.f_max_Hz:
            raise RequestError(
                f"{where} oscillates at {freq:.6g} Hz, above its `f_max_Hz` "
                f"{card.f_max_Hz:.6g} Hz. Raise `c_F`."
            )
