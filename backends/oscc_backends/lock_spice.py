"""Backend `spice` of lock stages: one deck a pair cell, both oscillators real.

Oscillator 1 is that of the token, oscillator 2 that of its partner; where x > 0 the
former is the faster one.
"""

from __future__ import annotations

from typing import Any

from oscc.device.card import Card
from oscc.device.lock_cell import QUALITY, lock_cell
from oscc.errors import RequestError
from oscc_backends.artefact import LockProblem
from oscc_netlists.circuit import ideal_elements
from oscc_netlists.lock import FIDELITY, LockDeck, lock_deck
from oscc_netlists.names import safe_name
from oscc_netlists.settings import Settings

_PLACE = ("head", "token", "partner")


def build_deck(
    card: Card,
    problem: LockProblem,
    row: int,
    settings: Settings,
    *,
    quality: float = QUALITY,
    program: str = "",
) -> LockDeck:
    """Deck of one pair cell of a lock stage.

    Args:
        card: Device card.
        problem: The pair cells.
        row: Which of them.
        settings: Simulator and how it steps.
        quality: Q of the tanks.
        program: Digest of the program, for the header.

    Raises:
        RequestError: no such cell, or one that the card cannot do.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.flat import cells_stage
        >>> from oscc_backends.lock import problem
        >>> from oscc_netlists.settings import default_settings
        >>> cells = problem(cells_stage(dwell_periods=100))
        >>> card = load_card("vo2-two-state-5k5")
        >>> build_deck(card, cells, 1, default_settings("gnucap")).facts["token"]
        1
    """
    count = problem.ratio.size
    where = f"stage {problem.stage}"
    if not 0 <= row < count:
        raise RequestError(f"{where} has no cell {row}: it has {count} cells.")
    place = dict(zip(_PLACE, (int(n) for n in problem.index[row]), strict=True))
    facts = {"program": program, "stage": problem.stage, "cell": int(row), **place}
    if not program:
        del facts["program"]
    ratio = float(problem.ratio[row])
    try:
        cell = lock_cell(card, problem.rate, quality=quality)
        return lock_deck(cell, ratio, problem.periods, settings, facts=facts)
    except RequestError as error:
        raise RequestError(f"{where} / cell {row}: {error}") from error


def deck_name(deck: LockDeck, *, stem: str = "", finer: bool = False) -> str:
    """File name of a deck: stage, head, token, partner.

    Args:
        deck: The deck.
        stem: Safe name of the stage; found from its name without it.
        finer: Whether it belongs to the convergence run.
    """
    facts = deck.facts
    place = f"h{facts['head']}_t{facts['token']}_p{facts['partner']}"
    return f"{stem or safe_name(facts['stage'])}_{place}{'_finer' if finer else ''}.cir"


def index_row(deck: LockDeck, name: str) -> dict[str, Any]:
    """What a deck is of, for `index.json`; a pair has no coordinate."""
    return {
        "file": name,
        "dialect": deck.dialect,
        **_place(deck),
        "cell": deck.facts["cell"],
        "calibrated": True,
        "ratio": float(deck.ratio),
        "lock_range": float(deck.cell.rate),
        "elements": sum(1 for _ in deck.circuit.elements()),
        "ideal_elements": ideal_elements(deck.circuit),
    }


def _place(deck: LockDeck) -> dict[str, Any]:
    facts = deck.facts
    return {
        "stage": facts["stage"],
        "head": facts["head"],
        "token": facts["token"],
        "partner": facts["partner"],
        "coordinate": None,
        "fidelity": FIDELITY,
    }


def origin_entry(deck: LockDeck) -> dict[str, Any]:
    """Entry of a deck in `origin.json`: role of each element, and whom it hears."""
    token, partner = deck.facts["token"], deck.facts["partner"]
    elements: dict[str, dict[str, Any]] = {}
    for name, role in deck.circuit.roles.items():
        elements[name] = {"role": role}
        if role == "weight":
            heard = partner if name == "g_1_2" else token
            elements[name] |= {"harmonic": 1, "sources": [heard]}
    return {**_place(deck), "elements": elements}
