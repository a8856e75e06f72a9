"""Backend `spice`: a program to decks, one target and one dwell each.

The netlist layer knows elements; here the pair terms of a target are taken from the
IR and turned into currents by the device card, route by route:

    conj(Gamma_n) I_{n,r} = -i kappa g c_{n,r},   kappa = 1 / (P T_ref)

with c_{n,r} the complex coefficient of a harmonic and route, g the gain of the dwell,
and T_ref the simulator's own free period.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscc.arrays import IntArray
from oscc.checks import require_choice
from oscc.device.card import Card
from oscc.device.card_file import card_from_mapping
from oscc.device.coupler import require_injection, unit_injection_A
from oscc.device.ppv import ppv_series
from oscc.errors import RequestError
from oscc.ir.plan import Dwell
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ir.views import edges_of
from oscc_netlists.couplers import Pull, RouteTerms
from oscc_netlists.deck import FIDELITIES, Deck, target_deck
from oscc_netlists.names import unique_names
from oscc_netlists.settings import default_settings
from oscc_netlists.timing import Timing, closed_form

SCHEMES = ("plain", "extrapolated")


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What every deck of a program shares.

    Args:
        program: The program.
        digest: Its digest, computed once.
        card: Its device card.
        names: Safe name of each stage, for files.
    """

    program: Program
    digest: str
    card: Card
    names: Mapping[str, str]


def why_no_deck(program: Program) -> str:
    """Why a program has no decks, empty where it has: its scheme or its read-out."""
    for stage in program.stages:
        where = f"stage {stage.name}"
        if stage.readout != "phase":
            return f"{where}: decks read phases, not {stage.readout}."
        if stage.scheme not in SCHEMES:
            return (
                f"{where}: the scheme `{stage.scheme}` needs currents that the host "
                f"computes for each target; decks hold {' or '.join(SCHEMES)}."
            )
    return ""


def prepare(program: Program) -> Prepared:
    """Card, digest and safe names of a program.

    Raises:
        RequestError: the device card is wrong, or a stage has a scheme, a read-out or
            a fidelity that no deck of one dwell can hold.
    """
    refusal = why_no_deck(program)
    if refusal:
        raise RequestError(refusal)
    card = card_from_mapping(dict(program.device), "the program's device card")
    names = unique_names(stage.name for stage in program.stages)
    return Prepared(program, program.digest(), card, names)


def pull_of(
    card: Card,
    stage: Stage,
    target: tuple[int, int],
    dwell: Dwell,
    period_s: float,
) -> Pull:
    """All that pulls one target during one dwell; weights of zero are left out.

    Args:
        target: Token and coordinate.
        period_s: Free period that carriers and gate are built on.
    """
    (row,), dwell_s = stage.rows_of([target]), dwell.periods * period_s
    gain = float(stage.gain_rad.flat[row]) * dwell.gain
    offset = float(stage.detuning_rad.flat[row]) * dwell.gain
    direct = offset / (dwell_s * float(ppv_series(card, 0).real))
    if stage.flat:
        listed = _listed_terms(card, stage, edges_of(stage, row), gain, dwell_s)
        return Pull(stage.theta_rad, listed, direct)
    coordinate, routes = target[1], []
    for coupling in stage.factored:
        head = int(coupling.head_of_coordinate[coordinate])
        received = coupling.weights[head, row // stage.grid[1]]
        source = np.flatnonzero(received)
        coefficient = coupling.coefficients[:, coordinate]
        unit = unit_injection_A(card, coupling.harmonics, dwell_s) * gain * coefficient
        kept = np.flatnonzero(unit) if gain else np.arange(0)
        terms = RouteTerms(
            coupling.route,
            source,
            received[source],
            coupling.harmonics[kept],
            unit[kept],
        )
        routes.append(terms)
    return Pull(stage.theta_rad[:, coordinate], tuple(routes), direct)


def _listed_terms(
    card: Card, stage: Stage, mine: IntArray, gain: float, dwell_s: float
) -> tuple[RouteTerms, ...]:
    """Listed pairs as terms, one group a harmonic: each pair has its own offset."""
    edges, out = stage.edges, []
    for order in stage.harmonics if gain else ():
        part = mine[edges.harmonic[mine] == order]
        orders = np.array([order])
        out.append(
            RouteTerms(
                "edges",
                edges.source[part],
                edges.gamma[part],
                orders,
                unit_injection_A(card, orders, dwell_s) * gain,
                edges.alpha_rad[part],
            )
        )
    return tuple(out)


def largest_move_rad(stage: Stage, token: int, coordinate: int, dwell: Dwell) -> float:
    """Bound of the phase that a dwell can add: the sum of all pulls, [rad]."""
    (row,), size = stage.rows_of([(token, coordinate)]), 0.0
    if stage.flat:
        size = float(np.abs(stage.edges.gamma[edges_of(stage, row)]).sum())
    for coupling in () if stage.flat else stage.factored:
        head = int(coupling.head_of_coordinate[coordinate])
        received = coupling.weights[head, row // stage.grid[1]]
        strength = float(np.abs(coupling.gamma[:, coordinate]).sum())
        size += float(np.abs(received).sum()) * strength
    size *= abs(float(stage.gain_rad.flat[row]))
    size += abs(float(stage.detuning_rad.flat[row]))
    return size * abs(dwell.gain)


def build_deck(
    program: Program | Prepared,
    stage: str,
    token: int,
    coordinate: int,
    dwell: Dwell,
    *,
    phi0_rad: float,
    fidelity: str = "pairwise",
    dialect: str = "ngspice",
    timing: Timing | None = None,
    energy: bool = False,
) -> Deck:
    """Deck of one target and one dwell.

    Args:
        program: The program, or what `prepare` made of it.
        phi0_rad: Phase of the target when the gate opens.
        fidelity: `pairwise` or `summed`.
        timing: Free run of the simulator; None takes the closed form, and the deck's
            header then says `calibrated: no`.
        energy: Also keep what the energies are integrated from (ngspice).

    Raises:
        RequestError: no such stage or target, an unknown fidelity or dialect, or an
            injection beyond the limit of the card.
    """
    shared = program if isinstance(program, Prepared) else prepare(program)
    require_choice("fidelity", fidelity, FIDELITIES)
    place = shared.program.stage(stage)
    given = _timing(shared.card, timing, dialect)
    pull = pull_of(shared.card, place, (token, coordinate), dwell, given.period_s)
    where = f"stage {stage} / target {token}/{coordinate}"
    _require_injection(shared.card, pull, where)
    return target_deck(
        shared.card,
        pull,
        given,
        dwell.periods,
        phi0_rad,
        fidelity=fidelity,
        energy=energy,
        facts={
            "fidelity": fidelity,
            "program": shared.digest,
            "stage": stage,
            "token": token,
            "coordinate": coordinate,
            **_dwell_facts(dwell),
            "start_rad": repr(float(phi0_rad)),
        },
    )


def _timing(card: Card, given: Timing | None, dialect: str) -> Timing:
    timing = given or closed_form(card, default_settings(dialect))
    if timing.settings.dialect != dialect:
        raise RequestError(
            f"Argument `timing` is of {timing.settings.dialect}, but the deck is for "
            f"{dialect}: each simulator has a free period of its own."
        )
    return timing


def _dwell_facts(dwell: Dwell) -> dict[str, Any]:
    return {
        "run": dwell.run,
        "substep": dwell.substep,
        "periods": dwell.periods,
        "gain": repr(float(dwell.gain)),
    }


def deck_name(prepared: Prepared, deck: Deck, *, finer: bool = False) -> str:
    """File name of a deck: stage, token, coordinate, run, substep, periods."""
    facts = deck.facts
    stem = prepared.names[str(facts["stage"])]
    target = f"t{facts['token']}_k{facts['coordinate']}"
    dwell = f"r{facts['run']}_s{facts['substep']}_p{facts['periods']}"
    return f"{stem}_{target}_{dwell}{'_finer' if finer else ''}.cir"


def _require_injection(card: Card, pull: Pull, where: str) -> None:
    phasors = pull.phasors_A()
    width = max(phasors, default=0) + 1
    current = np.zeros((1, width), dtype=np.complex128)
    for order, value in phasors.items():
        current[0, order] = value
    current[0, 0] = pull.offset_A
    require_injection(card, current, where=where)
