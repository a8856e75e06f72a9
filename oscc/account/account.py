"""The account of a program: closed form for the whole, beside what engines measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from oscc.account.assumptions import assumptions
from oscc.account.balance import measured
from oscc.account.break_even import break_even
from oscc.account.correlations import all_energies, correlations_spent
from oscc.account.digital import (
    HostWork,
    bound_note,
    digital_energy_J,
    host_assisted,
    host_work,
)
from oscc.account.energy_account import CAUSES, EnergyAccount
from oscc.account.noise import noise_of
from oscc.account.stages import HARDWARE_CAUSES, StageEnergy
from oscc.device import Card, card_from_mapping
from oscc.device.piecewise import period_s
from oscc.host_counts import ONLY_HARDWARE
from oscc.ir.program import Program
from oscc.ir.views import CELL_MACS
from oscc.observables import Observables

_OMITTED = (
    "clock distribution and gate timing",
    "weight converters",
    "memory and data movement, on both sides",
    "frequency trim and temperature control",
    "leakage and supply conversion",
)

_OMITTED_CELLS = (
    "buffers between nodes and tanks: ideal in the decks",
    "matching the two oscillators of a cell, about 1e-4 of frequency",
)

_OMITTED_BY_FIDELITY = {
    "summed": "carriers: the sources of this fidelity are ideal",
    "pairwise": "making and turning the harmonics of a source: ideal in this fidelity",
    "oscillators": "buffers of the sources and of the gates: ideal in this fidelity",
}


_DECODE_NOTE = (
    "Decode: all figures are for one generated token. Written for it, in each layer: "
    "its own phases into the bank of sources, its targets at every dwell, and one row "
    "of weights. The bank of all earlier tokens runs during every dwell and is counted "
    "whole; how much of it is written anew is the assumption `source_refresh`."
)


_DECODE_CELLS_NOTE = (
    "Decode: all figures are for one generated token: the cells of its own pairs, "
    "whose oscillators are written, run and read anew."
)


_CELL_NOTE = (
    "A pair cell finds sqrt(1 - x^2) of an x that the host has formed from distance, "
    "lock factor and order parameter: what it replaces is one square root, counted as "
    f"{CELL_MACS} multiply-accumulates."
)


_CORRELATION_NOTE = (
    "Scores and logits are correlations of banks of their own, written for them; their "
    "energy is in the causes above and their products are in the digital figure."
)

_OMITTED_CORRELATIONS = "buffers, tanks and integrators of correlations: ideal"

_NATIVE_NOTE = (
    "One oscillator a token and head visits its partners in rounds: the difference of "
    "two frequencies is there without a number for it. The lock factor J, a function "
    "of that same difference, and the strength of each pair stay the host's; where J "
    "is not constant the host has the detuning in hand all the same. What a cell "
    f"replaces is one square root, counted as {CELL_MACS} multiply-accumulates."
)


def exact_parts(parts: Mapping[str, float]) -> tuple[dict[str, float], float]:
    """Parts rounded to one grid, so that their sum is exact in any order.

    The grid is 2^-50 of the sum: every partial sum then fits a double.

    Returns:
        The parts, each moved by at most 2^-51 of the sum, and their sum.

    Example:
        >>> parts, total = exact_parts({"a": 0.1, "b": 0.2, "c": 0.3})
        >>> parts["a"] + parts["b"] + parts["c"] == parts["c"] + parts["b"] + parts["a"]
        True
    """
    whole = math.fsum(parts.values())
    if whole == 0.0:
        return dict(parts), 0.0
    step = 2.0 ** (math.frexp(whole)[1] - 50)
    out = {name: round(value / step) * step for name, value in parts.items()}
    return out, math.fsum(out.values())


def account(
    program: Program,
    seen: Mapping[str, Observables],
    *,
    overrides: Mapping[str, float] | None = None,
    ideal_elements: Mapping[str, int] | None = None,
    tile: Mapping[str, Any] | None = None,
) -> EnergyAccount:
    """Energy account of a program.

    Args:
        seen: Observables by engine; those that hold energies are measured entries.
        overrides: Values of assumptions by name, in the unit of the assumption.
        ideal_elements: Count by SPICE letter, from the netlist index.
        tile: Measured entry of a tile of real cells, if one was run.

    Raises:
        RequestError: an override is not known, or observables are of another program.

    Example:
        >>> from oscc.testing.energy import two_token_program
        >>> found = account(two_token_program(), {})
        >>> sum(found.causes_J.values()) == found.total_J
        True
    """
    card = card_from_mapping(program.device)
    fidelities = {stage.fidelity for stage in program.stages}
    kinds = _kinds(program, fidelities)
    known = assumptions(card, kinds, overrides, decoding=_holds_bank(program))
    stages = all_energies(program, card, known)
    host = host_work(program, known)
    causes, total = exact_parts(_causes(stages, host))
    digital = digital_energy_J(program, known)
    return EnergyAccount(
        program=program.digest(),
        fidelity="+".join(sorted(fidelities)),
        ideal_elements=ideal_elements,
        **_coupled(stages),
        **_per_token(program, card, stages),
        causes_J=causes,
        total_J=total,
        host_parts_J=_host_parts(host),
        stages=tuple(_stage_entry(stage) for stage in stages),
        assumptions=tuple(entry.to_json() for entry in known.values()),
        measured=(*measured(program, seen, card), *([dict(tile)] if tile else [])),
        digital_J=digital,
        hardware_over_digital=_ratios(causes, host, digital),
        break_even=break_even(program, card, known, digital, _only_hardware(host)),
        host_assisted=host_assisted(program),
        noise=noise_of(program, card, known["temperature_K"].value),
        notes=_notes(program),
        omitted=_omitted(program),
        correlations=correlations_spent(program, card, known),
    )


def _kinds(program: Program, fidelities: set[str]) -> set[str]:
    """What the assumptions must hold figures for."""
    formed = {"correlations"} if program.correlations else set()
    return ({"cells"} if program.of_cells else fidelities) | formed


def _coupled(stages: list[StageEnergy]) -> dict[str, Any]:
    """Coupled pairs, their terms, and what one more pair costs."""
    pairs = sum(stage.counts.pairs for stage in stages)
    return {
        "pairs": pairs,
        "pair_terms": sum(stage.counts.pair_terms for stage in stages),
        "marginal_J": sum(stage.pair_J for stage in stages) / pairs if pairs else None,
    }


def _per_token(
    program: Program, card: Card, stages: list[StageEnergy]
) -> dict[str, Any]:
    """Which tokens are computed, and how long one is on its way."""
    periods = sum(stage.periods for stage in stages)
    return {
        "tokens": program.computed_tokens,
        "mode": "decode" if program.decodes else "prefill",
        "periods": periods,
        "seconds_per_token": period_s(card) * periods,
    }


def _holds_bank(program: Program) -> bool:
    """Whether a bank of sources is held for a new token; cells have none."""
    return program.decodes and not program.of_cells


def _causes(stages: list[StageEnergy], host: tuple[HostWork, ...]) -> dict[str, float]:
    out = {
        name: math.fsum(stage.causes_J[name] for stage in stages)
        for name in HARDWARE_CAUSES
    }
    return out | {"host": math.fsum(work.energy_J for work in host)}


def _host_parts(host: tuple[HostWork, ...]) -> dict[str, float]:
    out: dict[str, float] = {}
    for work in host:
        out[work.name] = out.get(work.name, 0.0) + work.energy_J
    return out


def _ratios(
    causes: Mapping[str, float],
    host: tuple[HostWork, ...],
    digital: Mapping[str, float],
) -> dict[str, float | None]:
    """Hardware over digital for the coupling; the model's host work is in neither."""
    hardware = math.fsum(causes[name] for name in CAUSES if name != "host")
    hardware += _only_hardware(host)
    return {
        name: hardware / value if value > 0 else None for name, value in digital.items()
    }


def _only_hardware(host: tuple[HostWork, ...]) -> float:
    """Host work that a digital layer would not have, [J].

    The products of the bound are in it: a digital layer has its field already.
    """
    only = [w for w in host if w.added or w.name in ONLY_HARDWARE]
    return math.fsum(work.energy_J for work in only)


def _stage_entry(stage: StageEnergy) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "pairs": stage.counts.pairs,
        "pair_terms": stage.counts.pair_terms,
        "targets": stage.counts.targets,
        "sources": stage.counts.sources,
        "periods": stage.periods,
        "dwells": stage.dwells,
        "duration_s": stage.duration_s,
        "causes_J": dict(stage.causes_J),
    }


def _notes(program: Program) -> tuple[str, ...]:
    out = []
    if program.decodes:
        out.append(_DECODE_CELLS_NOTE if program.of_cells else _DECODE_NOTE)
    if program.of_cells:
        native = any(stage.lock_mode == "native" for stage in program.stages)
        out.append(_NATIVE_NOTE if native else _CELL_NOTE)
    if program.correlations:
        out.append(_CORRELATION_NOTE)
    bound = bound_note(program)
    if bound is not None:
        out.append(bound)
    if any(stage.scheme == "corrected" for stage in program.stages):
        out.append(
            "Host-assisted: the scheme `corrected` needs the field of every target on "
            "the host, the very products the coupling is there to save; they are "
            "counted in host_parts_J as `field` and `second_order`."
        )
    if any(stage.fidelity == "summed" for stage in program.stages):
        out.append(
            "Host-assisted: in the fidelity `summed` the host adds up the pairs; no "
            "claim about pairs may rest on these figures."
        )
    return tuple(out)


def _omitted(program: Program) -> tuple[str, ...]:
    if program.of_cells:
        return (*_OMITTED_CELLS, *_OMITTED)
    words = {stage.fidelity for stage in program.stages}
    out = [_OMITTED_BY_FIDELITY[w] for w in sorted(words) if w in _OMITTED_BY_FIDELITY]
    out += [_OMITTED_CORRELATIONS] if program.correlations else []
    return (*out, *_OMITTED)
