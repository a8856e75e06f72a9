"""The simulator's own free period and crossing phase, from one reference deck."""

from __future__ import annotations

from oscc.device.card import Card
from oscc.device.card_file import card_from_mapping
from oscc.errors import ToolError
from oscc.ir.program import Program
from oscc_netlists.deck import reference_deck
from oscc_netlists.settings import DIALECTS, Settings, default_settings
from oscc_netlists.timing import Timing
from oscc_sims.process import Children
from oscc_sims.readout import free_timing
from oscc_sims.simulator import (
    Simulator,
    SimulatorFault,
    open_simulator,
    version,
)

TIMEOUT_S = 60.0


def calibrate(
    card: Card,
    settings: Settings,
    simulator: Simulator | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
) -> Timing:
    """Timing of a card in a simulator.

    Args:
        settings: Their dialect is what the simulator reads.
        simulator: The program of the dialect without it.

    Raises:
        ToolError: the simulator is missing, or its free run is no steady oscillation.
    """
    tool = simulator or open_simulator(settings.dialect)
    deck = reference_deck(card, settings)
    with Children() as children:
        try:
            return free_timing(card, deck, tool.run(children, deck, timeout_s))
        except SimulatorFault as fault:
            raise ToolError(
                f"{tool.name} on the free reference of {card.name}: {fault}. "
                "Run `oscc doctor` to test the installation."
            ) from fault


def free_timings(program: Program) -> dict[str, Timing | None]:
    """Timing of the program's card in each simulator, None where it is missing.

    Raises:
        ToolError: a simulator is there, but its free run is no steady oscillation.
    """
    card = card_from_mapping(dict(program.device), "the program's device card")
    out: dict[str, Timing | None] = {}
    for dialect in DIALECTS:
        settings = default_settings(dialect)
        out[dialect] = calibrate(card, settings) if _usable(dialect) else None
    return out


def _usable(dialect: str) -> bool:
    try:
        return bool(version(dialect))
    except ToolError:
        return False
