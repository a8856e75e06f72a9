"""Compile families whose layers lock pairs of oscillators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from oscc.checks import require_choice
from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.ir.stage import LOCK_MODES
from oscc.lower.program import LOCK_FAMILIES

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.device.card import Card
    from oscc.lower.ssa import LockPlan
    from oscc.models.config import ModelConfig
    from oscc.verbs.compile import CompileRequest
    from oscc.verbs.lock_coupling import Coupling


def lowered_locks(
    model: LoadedCheckpoint,
    tokens: Any,
    device: Mapping[str, Any],
    request: CompileRequest,
    settings: Mapping[str, Any],
) -> Program:
    """Program of a model whose pairs lock, on the tokens of a text.

    Raises:
        RequestError: a setting is for phases that are read, or no pair can lock.
    """
    from oscc.device.card_file import card_from_mapping
    from oscc.lock_trace import trace_locks
    from oscc.lower.ssa import lower_locks
    from oscc.passes.record import record
    from oscc.verbs.lock_coupling import SHARE

    _require_for_cells(model.config.family, request)
    card = card_from_mapping(device)
    coupling = chosen_coupling(request, card)
    plan = lock_plan(replace(request, lock_coupling=coupling.rate), card)
    settings = {**settings, "fidelity": "oscillators"}
    traced = trace_locks(cast("Any", model.model), tokens, mode=request.mode)
    program = lower_locks(traced, device, plan=plan, **settings)
    if coupling.law_error is None:
        return program
    numbers = {
        "coupling": coupling.rate,
        "law_error": coupling.law_error,
        "allowed": SHARE * program.accuracy_rad,
    }
    return record(program, "choose_coupling", numbers)


def _require_for_cells(family: str, request: CompileRequest) -> None:
    """Refuse what is for stages that read phases."""
    for name in ("update", "substeps"):
        if getattr(request, name) is not None:
            raise RequestError(
                f"`{name}` is for phases that are read; the cells of family "
                f"`{family}` lock or slip in one dwell. Leave it out."
            )
    if request.scheme not in ("auto", "plain"):
        raise RequestError(
            f"Scheme `{request.scheme}` is for phases that are read; cells run `plain`."
        )
    if request.fidelity == "summed":
        raise RequestError(
            "Fidelity `summed` is for sums of pairs; a cell is one pair of "
            "oscillators. Leave it out."
        )


def lock_plan(request: CompileRequest, card: Card) -> LockPlan:
    """Coupling, dwell, limit and mode of the cells of a request.

    Raises:
        RequestError: `native` on a card that cannot trim its capacitor.
    """
    from oscc.device.lock_cell import largest_ratio
    from oscc.lower.ssa import LockPlan

    coupling = chosen_coupling(request, card).rate
    periods = request.periods or LockPlan().periods
    plan = LockPlan(coupling, periods, 1.0 + request.lock_margin)
    if request.lock_mode == "host":
        return plan
    reach = largest_ratio(card, coupling)
    return plan._replace(mode=request.lock_mode, reach=reach)


def chosen_coupling(request: CompileRequest, card: Card) -> Coupling:
    """K/w0 of a request, as given or as its accuracy allows.

    The accuracy of a phase in rad is asked of a cosine: it moves by no more.

    Raises:
        RequestError: no coupling reaches the accuracy.
    """
    from oscc.verbs.lock_coupling import Coupling, choose_coupling

    if request.lock_coupling is not None:
        return Coupling(request.lock_coupling, None)
    return choose_coupling(
        card,
        1e-3 * request.accuracy_mrad,
        1.0 + request.lock_margin,
        threads=request.threads,
    )


def require_lock_mode(config: ModelConfig, mode: str) -> None:
    """Refuse oscillators for tokens that have no natural frequency of their own.

    Raises:
        RequestError: an unknown mode, or `native` of a model that it does not fit.
    """
    require_choice("lock_mode", mode, LOCK_MODES)
    if mode == "host":
        return
    if config.family not in LOCK_FAMILIES:
        raise RequestError(
            f"Family `{config.family}` locks no pairs; leave `lock_mode` out."
        )
    if config.k != config.heads or config.arm != "published":
        raise RequestError(
            "Lock mode `native` needs one natural frequency a token and head and no "
            f"position term: arm `published` with as many heads as coordinates. This "
            f"is arm `{config.arm}` with {config.heads} heads of "
            f"{config.k // config.heads} dimensions. Leave `lock_mode` out."
        )


def rounds_notes(program: Program) -> Iterator[str]:
    """How long the rounds of each stage take, where oscillators are the tokens' own."""
    from oscc.device.card_file import card_from_mapping
    from oscc.device.piecewise import period_s
    from oscc.ir.rounds import oscillators, rounds
    from oscc.units import si_text

    for stage in program.stages:
        if stage.lock_mode != "native":
            continue
        turns, periods = rounds(stage), stage.dwell_periods
        seconds = turns * periods * period_s(card_from_mapping(program.device))
        yield (
            f"{stage.name}: {oscillators(stage)} oscillators, one a token and head, "
            f"visit each other in {turns} rounds of {periods} periods: "
            f"{si_text(seconds, 's')} of coupled time."
        )
