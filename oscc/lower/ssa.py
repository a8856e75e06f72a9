"""Lowering of SSA: one cell of two mutually coupled oscillators a pair that can lock.

    dpsi/dtau = Omega - g gamma sin psi,  psi(0) = 0
    gamma = K r J,  g gamma = 2 pi P (K / omega0) for every cell,  Omega = x g gamma

with x = Delta / (K r J): all cells have the same coupling K / omega0 and share one
dwell of P periods; the detuning alone differs. Read is the coherence, cos psi at the
end, 0 if psi ever passed pi/2; the host multiplies it by J. A token and itself always
lock: no cell. Pairs beyond the limit in x are unlocked by the closed form, and get none
either.

Where a head has one frequency a token (`native`), every pair of different tokens has a
cell, of the oscillators of the two tokens: Omega = (w_i - w_j)/(K r J) g gamma, signed,
up to what the trim of the card reaches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oscc.arrays import BoolArray, FloatArray, IntArray
from oscc.checks import require_positive
from oscc.device.lock_cell import PERIODS, RATE
from oscc.errors import RequestError
from oscc.ir.edges import Edges
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ir.views import pair_macs
from oscc.lower.decode import last_token
from oscc.lower.host import host_operations
from oscc.lower.program import chosen_layers

if TYPE_CHECKING:
    from oscc.lock_trace import LockedTrace, LockTrace


class LockPlan(NamedTuple):
    """How all cells of a program are run.

    `coupling` K / omega0; `periods` P of the dwell; `limit`: largest x of a pair that
    gets a cell; `step`: that detunings are set in, in units of the lock range, 0 for
    exact ones; `mode`: `host` or `native`, see the module; `reach`: largest |x| that
    the trim of the card reaches, for `native`.
    """

    coupling: float = RATE
    periods: int = PERIODS
    limit: float = 1.05
    step: float = 0.0
    mode: str = "host"
    reach: float = np.inf

    @property
    def pull_rad(self) -> float:
        """K t, the pull over the dwell [rad].

        Example:
            >>> round(LockPlan().pull_rad, 2)
            12.57
        """
        return float(2 * np.pi * self.periods * self.coupling)


DEFAULT_PLAN = LockPlan()


def visible(layer: LockTrace) -> BoolArray:
    """Pairs of different tokens that have a lock of their own, shape (H, T, T).

    Under a causal mask the partner j of row i is an earlier token. Without a mask a
    pair is symmetric, in Delta, J and r alike: it stands once, with j < i.
    """
    return np.broadcast_to(np.tri(layer.ratio.shape[-1], k=-1), layer.ratio.shape) > 0


def cells(layer: LockTrace, limit: float) -> IntArray:
    """Head, token and partner of every pair that gets a cell, shape (pairs, 3).

    Args:
        layer: Traced block.
        limit: Largest x of a pair that gets a cell.
    """
    near = visible(layer) & (layer.ratio <= limit)
    return np.argwhere(near).astype(np.int64)


def lock_stage(
    layer: LockTrace, plan: LockPlan = DEFAULT_PLAN, **settings: Any
) -> Stage | None:
    """The lock stage of one traced block; None where no pair gets a cell.

    Args:
        layer: Traced block.
        plan: Coupling, dwell and limit of all cells.
        settings: Further fields of the stage, such as `fidelity`.

    Raises:
        RequestError: the coupling or the limit is not above zero; or `native` without
            a reach, or of a head with several frequencies a token.
    """
    require_positive("coupling", plan.coupling)
    require_positive("limit", plan.limit)
    if plan.mode == "native" and not np.isfinite(plan.reach):
        raise RequestError("Lock mode `native` needs the `reach` of the card's trim.")
    native = plan.mode == "native"
    index = cells(layer, np.inf if native else plan.limit)
    if not len(index):
        return None
    place = tuple(index.T)
    ratio, gamma = layer.ratio[place], layer.strength[place]
    locked = ratio < 1.0
    if native:
        ratio, gamma = _own_frequencies(layer, index, plan)
    row, zero = np.arange(len(index)), np.zeros(len(index))
    return Stage(
        name=layer.name,
        theta_rad=zero,
        phi0_rad=zero,
        gain_rad=plan.pull_rad / gamma,
        detuning_rad=plan.pull_rad * _set(ratio, plan),
        couplings=(Edges(row, row, np.ones_like(row), gamma, zero),),
        digital_rad=np.where(locked, np.arcsin(np.clip(ratio, -1.0, 1.0)), 0.0),
        digital_coherence=layer.coherence[place],
        index=index,
        source_index=index,
        scheme="plain",
        substeps=1,
        dwell_periods=plan.periods,
        readout="coherence",
        causal=layer.causal,
        lock_mode=plan.mode,
        **settings,
    )


def _differences(layer: LockTrace, index: IntArray) -> FloatArray:
    """w_i - w_j of every cell, signed, shape (pairs,).

    Raises:
        RequestError: a head has more than one frequency a token.
    """
    width = layer.frequency.shape[-1]
    if width != 1:
        raise RequestError(
            f"{layer.name}: lock mode `native` needs one natural frequency a token and "
            f"head, but a head has {width} dimensions. Leave it out, or train with as "
            "many heads as coordinates."
        )
    head, token, partner = index.T
    own = layer.frequency[..., 0]
    return np.asarray(own[head, token] - own[head, partner])


def _own_frequencies(
    layer: LockTrace, index: IntArray, plan: LockPlan
) -> tuple[FloatArray, FloatArray]:
    """Signed x and strength of cells of the tokens' own oscillators, (pairs,) each.

    A pair beyond the reach of the trim is set to it, as it slips all the same: to that
    x belongs the strength |Delta|/reach.
    """
    delta = _differences(layer, index)
    strength = layer.strength[tuple(index.T)]
    far = np.abs(delta) > plan.reach * strength
    strength = np.where(far, np.abs(delta) / plan.reach, strength)
    return np.where(far, np.copysign(plan.reach, delta), delta / strength), strength


def beyond_reach(layer: LockTrace, plan: LockPlan, first: int = 0) -> int:
    """Pairs of the tokens from the first on that are detuned beyond the trim."""
    index = cells(layer, np.inf)
    index = index[index[:, 1] >= first]
    strength = layer.strength[tuple(index.T)]
    far = np.abs(_differences(layer, index)) > plan.reach * strength
    return int(np.count_nonzero(far))


def _set(ratio: FloatArray, plan: LockPlan) -> FloatArray:
    """Detunings as the cells are given them, none beyond the reach."""
    if plan.step == 0.0:
        return ratio
    return np.clip(np.round(ratio / plan.step) * plan.step, -plan.reach, plan.reach)


def coherence_of_pairs(
    layer: LockTrace, index: IntArray, coherence: FloatArray
) -> FloatArray:
    """Coherence of every pair of a block from that of its cells, shape (H, T, T).

    A token and itself have 1, a pair without a cell 0; without a mask a cell serves
    both of its rows.

    Args:
        layer: Traced block.
        index: Head, token and partner of each cell, shape (pairs, 3).
        coherence: What each cell reads, shape (pairs,).
    """
    out = np.zeros_like(layer.ratio)
    head, token, partner = index.T
    out[head, token, partner] = coherence
    if not layer.causal:
        out[head, partner, token] = coherence
    places = np.arange(out.shape[-1])
    out[:, places, places] = 1.0
    return out


def proved_unlocked(layer: LockTrace, limit: float, first: int = 0) -> int:
    """Pairs of different tokens without a cell, unlocked by the closed form.

    Args:
        layer: Traced block.
        limit: Largest x of a pair that gets a cell.
        first: First token whose pairs count.
    """
    every = int(np.count_nonzero(visible(layer)[:, first:]))
    return every - int((cells(layer, limit)[:, 1] >= first).sum())


def lower_locks(
    trace: LockedTrace,
    device: Mapping[str, Any],
    *,
    plan: LockPlan = DEFAULT_PLAN,
    layers: Collection[int] | None = None,
    fidelity: str = "oscillators",
    **settings: Any,
) -> Program:
    """Program of a traced SSA model: a lock stage a block, host operations, card.

    Args:
        trace: What the digital model did on the input; of mode `decode` the program
            has the cells of its last token alone.
        device: Content of a device card.
        plan: Coupling, dwell and limit of all cells.
        layers: Blocks to lower; None takes all. The roots of the others are host
            operations.
        fidelity: What a netlist of the stages holds.
        settings: Further fields of the program, such as `seed`.

    Raises:
        RequestError: a layer does not exist, or no pair of the input can lock.
    """
    chosen = chosen_layers(len(trace.layers), layers)
    first = trace.tokens.size - 1 if trace.mode == "decode" else 0
    stages: list[Stage] = []
    digital: dict[int, int] = {}
    for number, layer in enumerate(trace.layers):
        stage = lock_stage(layer, plan, fidelity=fidelity)
        if first and stage is not None:
            stage = last_token(stage, first) if _has_cells(stage, first) else None
        if number not in chosen:
            digital[number] = 0 if stage is None else pair_macs(stage)
        elif stage is not None:
            stages.append(stage)
    if not stages:
        which = f"of token {first} and another one" if first else "of different tokens"
        raise RequestError(
            f"No pair {which} can lock on this text: there is nothing for "
            "oscillators to do. Give a longer text."
        )
    notes = [_note(trace.layers[number], plan, first) for number in chosen]
    return Program(
        family=trace.family,
        stages=tuple(stages),
        host_operations=host_operations(trace, digital=digital),
        device=device,
        tokens=trace.tokens,
        notes=(*notes, *([_decode_note(first)] if first else [])),
        **settings,
    )


def _has_cells(stage: Stage, token: int) -> bool:
    assert stage.index is not None
    return bool((stage.index[:, 1] == token).any())


def _decode_note(last: int) -> str:
    return (
        f"Decode: this program computes token {last} alone, the newest, from the cells "
        "of its own pairs; the vectors of earlier tokens are the digital layers' own, "
        "and the host is counted with cached projections."
    )


def _note(layer: LockTrace, plan: LockPlan, first: int = 0) -> str:
    """How many pairs get a cell, of the tokens from the first on."""
    every = int(np.count_nonzero(visible(layer)[:, first:]))
    if plan.mode == "native":
        far = beyond_reach(layer, plan, first)
        return (
            f"{layer.name}: each of {every} pairs of different tokens gets a cell, "
            "of the tokens' own oscillators, detuned by the difference of their "
            "frequencies against the pair's strength K r J, which the host sets; "
            f"{far} are detuned by more than {plan.reach:.3g} lock ranges, what the "
            "trim reaches, and are set to that."
        )
    far = proved_unlocked(layer, plan.limit, first)
    return (
        f"{layer.name}: {every - far} of {every} pairs of different tokens get a cell; "
        f"{far} are detuned by more than {plan.limit:g} of their lock range, and are "
        "unlocked by the closed form."
    )
