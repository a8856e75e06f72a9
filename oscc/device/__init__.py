"""Device cards, with what follows from them in closed form."""

from oscc.device.card import Card, ParameterSource, Trim, series_resistor_range_ohm
from oscc.device.card_file import (
    card_from_mapping,
    card_names,
    card_to_mapping,
    load_card,
)

__all__ = [
    "Card",
    "ParameterSource",
    "Trim",
    "card_from_mapping",
    "card_names",
    "card_to_mapping",
    "load_card",
    "series_resistor_range_ohm",
]
