"""Measured energy: from a waveform, and from what an engine put in its observables.

supply + injected work = series resistor + VO2 device + change on the capacitor
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oscc.arrays import FloatArray
from oscc.checks import require_finite, require_shape
from oscc.device import Card
from oscc.device.cycle_energy import energy_per_period_J
from oscc.errors import RequestError, UndecidedError
from oscc.ir.plan import total_periods
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.observables import Observables
from oscc.units import grouped

LIMIT = 0.01
"""Largest relative error of a balance."""

PARTS = ("r_series_J", "vo2_J", "capacitor_J")


def delivered_energy_J(
    time_s: FloatArray,
    voltage_V: FloatArray,
    branch_current_A: FloatArray,
    *,
    period_s: float,
) -> float:
    """Energy that a voltage source delivers, from its waveform by the trapezoid rule.

    SPICE counts a branch current into the positive node, so a source that delivers has
    a negative current; the energy delivered is counted positive.

    Args:
        time_s: Ascending times, shape (N,).
        voltage_V: Voltage of the source, shape (N,).
        branch_current_A: Current as SPICE prints it, shape (N,).
        period_s: Period of the oscillator that is supplied.

    Raises:
        RequestError: shapes differ, a value is not finite, or times do not ascend.
        UndecidedError: the window is shorter than one period.

    Example:
        >>> t = np.array([0.0, 1e-6])
        >>> current = np.array([-1e-3, -1e-3])
        >>> round(delivered_energy_J(t, np.ones(2), current, period_s=1e-7) * 1e9, 9)
        1.0
    """
    for name, array in (
        ("time_s", time_s),
        ("voltage_V", voltage_V),
        ("branch_current_A", branch_current_A),
    ):
        require_shape(name, array, np.asarray(time_s).shape, axes="(N,), as `time_s`")
        require_finite(name, array)
    if (np.diff(time_s) < 0).any():
        raise RequestError("Argument `time_s` must ascend.")
    window = float(time_s[-1] - time_s[0]) if time_s.size else 0.0
    if window < period_s * (1.0 - 1e-9):
        raise UndecidedError(
            f"The window of {window:.3g} s holds 0 periods of {period_s:.3g} s: no "
            "energy is offered. Simulate at least one whole period."
        )
    return -float(np.trapezoid(voltage_V * branch_current_A, time_s))


def measured(
    program: Program, seen: Mapping[str, Observables], card: Card
) -> list[dict[str, Any]]:
    """An entry for every engine that measured energy, in order of its name.

    Only the coupled intervals of the simulated targets are in an engine's figures:
    sources, writes, waits for a read and the reference are not.

    Raises:
        RequestError: observables belong to another program.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.energy import two_token_program
        >>> measured(two_token_program(), {}, load_card("vo2-two-state-6k"))
        []
    """
    digest = program.digest()
    out = []
    for engine in sorted(seen):
        if seen[engine].program != digest:
            raise RequestError(
                f"The observables of {engine} were made from program "
                f"{seen[engine].program[:8]}, not from {digest[:8]}. "
                f"Run: oscc simulate BUILD --engine {engine}"
            )
        entry = _entry(program, seen[engine], card, seen.get("circuit"))
        if entry is not None:
            out.append(entry)
    return out


def _entry(
    program: Program, seen: Observables, card: Card, circuit: Observables | None
) -> dict[str, Any] | None:
    stages = _with_energy(program, seen)
    if not stages:
        return None
    supply = [_per_target(seen, f"{s.name}.supply_J") for s in stages]
    cells = all(stage.readout == "coherence" for stage in stages)
    alone = cells and f"{stages[0].name}.injected_J" not in seen.arrays
    injected = [
        np.zeros_like(given) if alone else _per_target(seen, f"{s.name}.injected_J")
        for s, given in zip(stages, supply, strict=True)
    ]
    parts = [_parts(seen, s.name) for s in stages]
    sizes = [found.size for found in supply]
    whole = sum(stage.targets for stage in program.stages)
    closed = (2 if cells else 1) * _free_supply_J(stages, sizes, card)
    total = float(sum(found.sum() for found in supply))
    error, reason = _balance(supply, injected, parts)
    return {
        "engine": seen.engine,
        "scope": _scope(sum(sizes), whole, cells=cells),
        "stages": [stage.name for stage in stages],
        "targets": sum(sizes),
        "periods": sum(total_periods(stage) for stage in stages),
        "supplies": ["vdd"],
        "tag": "simulated",
        "supply_J": total,
        "injected_J": None if alone else float(sum(found.sum() for found in injected)),
        "parts_J": _added(parts),
        "balance_error": error,
        "balanced": reason is None if any(parts) else None,
        "reason": reason,
        "closed_form_J": closed,
        "over_closed_form": total / closed if closed > 0 else None,
        "over_circuit": _over_circuit(stages, seen, circuit),
    }


def _free_supply_J(stages: list[Stage], sizes: list[int], card: Card) -> float:
    """Supply of free oscillators for as long as their stage runs."""
    periods = [
        size * total_periods(stage) for stage, size in zip(stages, sizes, strict=True)
    ]
    return energy_per_period_J(card).supply_J * sum(periods)


def _scope(targets: int, whole: int, *, cells: bool) -> str:
    if cells:
        return (
            f"{grouped(targets)} of {grouped(whole)} pair cells, both oscillators over "
            "the dwell; couplers, writes and reads are not in it"
        )
    return (
        f"{grouped(targets)} of {grouped(whole)} targets, coupled intervals "
        "of every dwell; sources, reference, writes and reads are not in it"
    )


def _with_energy(program: Program, seen: Observables) -> list[Stage]:
    return [s for s in program.stages if f"{s.name}.supply_J" in seen.arrays]


def _over_circuit(
    stages: list[Stage], seen: Observables, circuit: Observables | None
) -> float | None:
    """Supply energy over that of the circuit engine at the same targets."""
    if circuit is None or circuit is seen:
        return None
    here = there = 0.0
    for stage in stages:
        name = f"{stage.name}.supply_J"
        if name not in circuit.arrays or circuit.arrays[name].shape[0] != stage.targets:
            return None
        if stage.readout == "coherence":
            rows = seen.arrays.get(f"{stage.name}.cells", np.arange(stage.targets))
        else:
            rows = stage.rows_of(seen.index(stage.name, stage.grid, stage.begins))
        here += float(_per_target(seen, name).sum())
        there += float(_per_target(circuit, name)[rows].sum())
    return here / there


def _per_target(seen: Observables, name: str) -> FloatArray:
    """Energy of each target, dwells added up, shape (M,)."""
    if name not in seen.arrays:
        raise RequestError(f"The {seen.engine} run holds no `{name}`.")
    array = np.asarray(seen.arrays[name], dtype=np.float64)
    require_finite(name, array, where=f"engine {seen.engine}")
    return np.asarray(array.reshape(array.shape[0], -1).sum(axis=1))


def _parts(seen: Observables, stage: str) -> dict[str, FloatArray]:
    """Energy by part and target, from one table or from one array for each part."""
    name = f"{stage}.parts_J"
    if name not in seen.arrays:
        return {
            part: _per_target(seen, f"{stage}.{part}")
            for part in PARTS
            if f"{stage}.{part}" in seen.arrays
        }
    table = np.asarray(seen.arrays[name], dtype=np.float64)
    require_finite(name, table, where=f"engine {seen.engine}")
    words = [str(word) for word in seen.facts.get("energy_parts", PARTS)]
    require_shape(name, table, (-1,) * (table.ndim - 1) + (len(words),))
    table = table.reshape(table.shape[0], -1, len(words)).sum(axis=1)
    return {word: table[:, number] for number, word in enumerate(words)}


def _added(parts: list[dict[str, FloatArray]]) -> dict[str, float] | None:
    words = sorted({word for found in parts for word in found})
    return {w: float(sum(p[w].sum() for p in parts if w in p)) for w in words} or None


def _balance(
    supply: list[FloatArray],
    injected: list[FloatArray],
    parts: list[dict[str, FloatArray]],
) -> tuple[float | None, str | None]:
    """Largest relative error over the targets, and what is wrong, if anything."""
    if any((found <= 0).any() for found in supply):
        return None, (
            "the supply energy of a target is not positive: the sign of the source "
            "current is wrong"
        )
    if not all(parts):
        return None, "the run holds no energy by part, so no balance can be drawn"
    worst = 0.0
    for given, pushed, taken in zip(supply, injected, parts, strict=True):
        used = np.sum(list(taken.values()), axis=0)
        if given.size:
            worst = max(worst, float(np.abs((used - given - pushed) / given).max()))
    if worst > LIMIT:
        return worst, (
            f"the parts miss supply plus injected work by {worst:.2%} at one target, "
            f"{LIMIT:.0%} is allowed"
        )
    return worst, None
