"""The digital side: host operations of the program, the rival for the same coupling.

One pair term is a real weight times a phasor: two multiply-accumulates; four where the
pair has an offset of its own (`oscc.ir.views.pair_macs`). Memory and data movement are
left out on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oscc.account.assumptions import Assumption
from oscc.checks import require_choice
from oscc.ir.plan import dwells
from oscc.ir.program import HostOperation, Program
from oscc.ir.stage import Stage
from oscc.ir.views import pair_macs
from oscc.units import grouped

PRECISIONS = ("int4", "int8", "fp32")
HOST_UNITS = ("mac", "exp", "sincos", "read")


@dataclass(frozen=True, slots=True)
class HostWork:
    """One kind of work on the host: `added` if a scheme needs it, not the model."""

    name: str
    count: int
    unit: str
    energy_J: float
    added: bool


def coupling_macs(program: Program) -> int:
    """Multiply-accumulates of the coupling alone, all stages.

    Example:
        >>> from oscc.testing.energy import two_token_program
        >>> coupling_macs(two_token_program())
        6
    """
    return sum(map(pair_macs, program.stages))


def digital_energy_J(
    program: Program, known: Mapping[str, Assumption]
) -> dict[str, float]:
    """Energy of the coupling as multiply-accumulates, by precision, [J].

    Scores and logits count where oscillators form them; else the host does on both
    sides.

    Source: figures of the assumptions `digital_*_mac_J`.

    Example:
        >>> from oscc.account.assumptions import assumptions
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_program
        >>> known = assumptions(load_card("vo2-two-state-6k"), ())
        >>> round(digital_energy_J(two_token_program(), known)["int8"] * 1e12, 6)
        1.38
    """
    macs = coupling_macs(program)
    macs += sum(one.macs for one in program.correlations)
    return {name: macs * known[f"digital_{name}_mac_J"].value for name in PRECISIONS}


def _needs_products(stage: Stage) -> bool:
    """Whether the host must form the field itself to run this stage."""
    return stage.scheme == "corrected" or stage.fidelity == "summed"


def host_assisted(program: Program) -> bool:
    """Whether the host forms the field of every target for the hardware to run.

    True for the scheme `corrected` and the fidelity `summed`.

    Example:
        >>> from oscc.testing.energy import two_token_program
        >>> host_assisted(two_token_program())
        False
    """
    return any(map(_needs_products, program.stages))


def bound_note(program: Program) -> str | None:
    """What the bound of a model costs beside what its coupling saves, if it has one.

    Example:
        >>> from oscc.testing.energy import two_token_program
        >>> bound_note(two_token_program())
        'The bound of the layers needs the field of every target on the host: 6 \
multiply-accumulates there, where the coupling saves 6. With this bound the coupling \
on oscillators replaces no digital work; its energy stands in host_parts_J as `bound`.'
    """
    macs = sum(o.count for o in program.host_operations if o.name == "bound")
    saved = coupling_macs(program)
    if macs == 0:
        return None
    verdict = (
        "With this bound the coupling on oscillators replaces no digital work"
        if macs >= saved
        else "The coupling on oscillators replaces the rest"
    )
    return (
        "The bound of the layers needs the field of every target on the host: "
        f"{grouped(macs)} multiply-accumulates there, where the coupling saves "
        f"{grouped(saved)}. {verdict}; its energy stands in host_parts_J as `bound`."
    )


def _added(program: Program) -> list[HostOperation]:
    """Work that schemes and fidelities put on the host beside the model's own."""
    out = []
    for number, stage in enumerate(program.stages):
        plan = len(dwells(stage))
        writes = stage.targets * plan
        if stage.readout == "coherence":
            # capacitors of both oscillators from x: C / (1 +- x K / 2 omega0)
            out.append(HostOperation("detunings", number, 2 * writes))
            continue
        # One product per target and dwell sets the current for its gain and length.
        out.append(HostOperation("target_gains", number, writes))
        if stage.scheme == "extrapolated":
            out.append(HostOperation("extrapolation", number, writes))
        if _needs_products(stage):
            out.append(HostOperation("field", number, pair_macs(stage)))
        if stage.scheme == "corrected":
            # Second order: (4H + 1) drifts of 2H complex products, 4 real ones each.
            top = max(stage.harmonics)
            products = 4 * (4 * top + 1) * 2 * top
            out.append(HostOperation("second_order", number, writes * products))
    return out


def host_work(
    program: Program, known: Mapping[str, Assumption]
) -> tuple[HostWork, ...]:
    """Host operations by name, layers added up, with their energy.

    Raises:
        RequestError: an operation counts in a unit that has no price.

    Example:
        >>> from oscc.account.assumptions import assumptions
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_program
        >>> known = assumptions(load_card("vo2-two-state-6k"), ())
        >>> [work.name for work in host_work(two_token_program(), known)]
        ['score', 'softmax', 'bound', 'target_gains']
    """
    return _merged(program.host_operations, known, added=False) + _merged(
        _added(program), known, added=True
    )


def _merged(
    operations: Sequence[HostOperation],
    known: Mapping[str, Assumption],
    *,
    added: bool,
) -> tuple[HostWork, ...]:
    counts: dict[tuple[str, str], int] = {}
    for operation in operations:
        require_choice("unit", operation.unit, HOST_UNITS, where=operation.name)
        key = (operation.name, operation.unit)
        counts[key] = counts.get(key, 0) + operation.count
    return tuple(
        HostWork(name, count, unit, count * known[f"host_{unit}_J"].value, added)
        for (name, unit), count in counts.items()
    )
