"""Lowering of a whole trace: one stage a coupling step, and the host's work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import ComplexArray
from oscc.checks import require_choice
from oscc.errors import RequestError
from oscc.ir.correlation import Correlation
from oscc.ir.coupling import Coupling
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ir.views import pair_macs
from oscc.lower.correlate import SCORED_BY, correlations, without_replaced
from oscc.lower.decode import last_token
from oscc.lower.host import host_operations

if TYPE_CHECKING:
    from oscc.trace import LayerTrace, ModesTrace, Step, Trace

LOWERINGS = {
    "kuramoto": "oscc.lower.kuramoto:couplings",
    "fsn": "oscc.lower.fsn:couplings",
    "fsn-no-phase": "oscc.lower.fsn:couplings",
    "fsn-mf": "oscc.lower.fsn:couplings",
}

LOCK_FAMILIES = ("ssa",)
"""Families whose layers lock pairs of oscillators; `oscc.lower.ssa` lowers them."""

MATCHING = {"flow": "flow", "euler": "probe"}
"""What the hardware runs for what a layer was trained with."""

FORMED_BY = ("host", "oscillators")
"""Who forms the collective modes."""

MODE_DRIVE = "mode_drive"
"""Last word of the name of a stage that reads modes."""


Lowering = Callable[["LayerTrace", str], tuple[Coupling, ...]]


def require_lowering(family: str, values: str = "phases") -> None:
    """Refuse what has no lowering to targets that are read as phases.

    Args:
        family: Model family.
        values: Of ModelConfig; learned projections are no pair coefficients.

    Raises:
        RequestError: the family, or its values, cannot be lowered.

    Example:
        >>> require_lowering("fsn")
    """
    if family in LOCK_FAMILIES:
        raise RequestError(
            f"Family `{family}` locks pairs and has no phases to trace; its pairs are "
            "those of oscc.lock_trace."
        )
    if family not in LOWERINGS:
        known = ", ".join((*LOWERINGS, *LOCK_FAMILIES))
        raise RequestError(f"Family `{family}` cannot be lowered yet; {known} can.")
    if values != "phases":
        raise RequestError(
            "A model with learned values cannot be lowered: what it sums are not "
            "phases of oscillators."
        )


def require_mean_field(family: str, mean_field: str) -> None:
    """Refuse oscillators for modes that a family has not.

    Args:
        family: Model family.
        mean_field: `host` or `oscillators`.

    Raises:
        RequestError: an unknown word, or the family has no collective modes.

    Example:
        >>> require_mean_field("fsn-mf", "oscillators")
    """
    require_choice("mean_field", mean_field, FORMED_BY)
    if mean_field == "oscillators" and family != "fsn-mf":
        raise RequestError(
            f"Family `{family}` has no collective modes for oscillators to form; "
            "leave --mean-field out."
        )


def require_scored_by(family: str, score: str) -> None:
    """Refuse correlations for scores that a family has not.

    Args:
        family: Model family.
        score: `host` or `hardware`.

    Raises:
        RequestError: an unknown word, or the family has no score of phases.

    Example:
        >>> require_scored_by("fsn", "hardware")
    """
    require_choice("score", score, SCORED_BY)
    if score == "hardware" and family not in LOWERINGS:
        raise RequestError(
            f"Family `{family}` has no score of phases for oscillators to form; leave "
            "--score out."
        )


def _lowering(family: str) -> Lowering:
    require_lowering(family)
    module, name = LOWERINGS[family].split(":")
    found: Lowering = getattr(import_module(module), name)
    return found


def lower_layer(
    family: str,
    model_update: str,
    number: int,
    layer: Step,
    *,
    update: str | None = None,
    successor: str = "dropped",
    sums: ComplexArray | None = None,
    **settings: Any,
) -> Stage:
    """The stage of one traced coupling step: of the attention, or of the modes.

    Args:
        family: Model family.
        model_update: What the model was trained with, `flow` or `euler`.
        number: Index of the layer; it gives the stage its name.
        layer: Traced step of T tokens and K coordinates.
        update: `flow` or `probe`; None takes the one that matches the training.
        successor: What becomes of the weight that meets no successor.
        sums: Collective modes as they were read, shape (T, M); exact without it.
        settings: Further fields of the stage, such as `scheme`.

    Raises:
        RequestError: the family cannot be lowered, or the layer breaks a law of the IR.
    """
    from oscc.trace import ModesTrace

    require_choice("model_update", model_update, tuple(MATCHING))
    require_lowering(family)
    settings |= {
        "update": update or MATCHING[model_update],
        "model_update": model_update,
    }
    if isinstance(layer, ModesTrace):
        from oscc.lower.modes import fields

        settings = _listed(settings)
        return Stage(name=f"layer.{number}.modes", **fields(layer, sums), **settings)
    return Stage(
        name=f"layer.{number}.coupling",
        theta_rad=layer.theta_rad,
        phi0_rad=layer.theta_rad,
        gain_rad=layer.gain_rad,
        detuning_rad=np.zeros_like(layer.theta_rad),
        couplings=_lowering(family)(layer, successor),
        digital_rad=layer.next_rad,
        **settings,
    )


def lower_mode_drive(number: int, layer: ModesTrace, **settings: Any) -> Stage:
    """The stage whose oscillators read the modes of a layer.

    It is no step of the model but its own device, so it always runs the flow.

    Args:
        number: Index of the layer.
        layer: Traced coupling to modes.
        settings: Further fields of the stage, such as `scheme`.
    """
    from oscc.lower.mode_drive import drive_fields

    name = f"layer.{number}.{MODE_DRIVE}"
    return Stage(name=name, **drive_fields(layer), **_listed(settings))


def _listed(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a stage of listed pairs: no tile of real cells holds them."""
    if settings.get("fidelity") == "oscillators":
        return settings | {"fidelity": "pairwise"}
    return settings


def lower(
    trace: Trace,
    device: Mapping[str, Any],
    *,
    update: str | None = None,
    layers: Collection[int] | None = None,
    fidelity: str = "pairwise",
    mean_field: str = "host",
    score: str = "host",
    **settings: Any,
) -> Program:
    """Program of a traced input: a stage a coupling step, host work, device card.

    Args:
        trace: What the digital model did on the input; of mode `decode` the program
            computes its last token alone.
        device: Content of a device card.
        update: None takes the one that matches the training; the other is allowed,
            and named in the program's notes.
        layers: Layers to lower; None takes all. The couplings of the others are host
            operations.
        fidelity: What a netlist of the stages holds.
        mean_field: `host`, which forms collective modes, or `oscillators`, which
            are read in a stage of their own.
        score: `host`, or `hardware`: scores and logits as correlations of banks.
        settings: Further fields of the program, such as `accuracy_rad`.

    Raises:
        RequestError: the family cannot be lowered, or a layer does not exist.
    """
    require_mean_field(trace.family, mean_field)
    chosen = chosen_layers(trace.layers[-1].layer + 1, layers)
    stages: list[Stage] = []
    digital: dict[int, int] = {}
    for position, step in enumerate(trace.layers):
        found = _stages(trace, step, update, fidelity, mean_field)
        if trace.mode == "decode":
            found = [last_token(stage) for stage in found]
        if step.layer in chosen:
            stages += found
        else:
            digital[position] = sum(pair_macs(s) for s in found if s.readers == 1)
    formed = _formed(trace, score, chosen)
    on_host = host_operations(trace, mean_field, digital)
    return Program(
        family=trace.family,
        stages=tuple(stages),
        host_operations=without_replaced(on_host, formed),
        correlations=formed,
        device=device,
        tokens=trace.tokens,
        notes=(
            *changed_update(stages),
            *_decode_note(trace),
            *_fidelity_note(stages, fidelity),
        ),
        **settings,
    )


def _formed(
    trace: Trace, score: str, layers: tuple[int, ...]
) -> tuple[Correlation, ...]:
    require_choice("score", score, SCORED_BY)
    return () if score == "host" else correlations(trace, layers)


def chosen_layers(count: int, layers: Collection[int] | None) -> tuple[int, ...]:
    """Numbers of the layers to lower, ascending; None takes all.

    Raises:
        RequestError: a layer does not exist.

    Example:
        >>> chosen_layers(3, [2, 0, 2])
        (0, 2)
    """
    if layers is None:
        return tuple(range(count))
    for number in layers:
        if not 0 <= number < count:
            raise RequestError(
                f"Layer {number} does not exist; the model has layers 0 to {count - 1}."
            )
    return tuple(sorted(set(layers)))


def _decode_note(trace: Trace) -> tuple[str, ...]:
    """What a program of one token is, and what it takes for granted."""
    last = trace.tokens.size - 1
    if trace.mode != "decode" or not last:
        return ()
    return (
        f"Decode: this program computes token {last} alone, the newest; the sources "
        f"are the bank of tokens 0 to {last}, whose phases are the digital layers' "
        "own, and the host is counted with cached keys.",
    )


def _stages(
    trace: Trace, step: Step, update: str | None, fidelity: str, mean_field: str
) -> list[Stage]:
    """The stage of a step, after the one that reads its modes where there is one."""
    from oscc.trace import ModesTrace

    out = []
    if mean_field == "oscillators" and isinstance(step, ModesTrace):
        out.append(lower_mode_drive(step.layer, step, fidelity=fidelity))
    stage = lower_layer(
        trace.family,
        trace.update,
        step.layer,
        step,
        update=update,
        successor=trace.successor,
        fidelity=fidelity,
    )
    return [*out, stage]


def changed_update(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Note where the hardware runs another update than the layers were trained with."""
    changed = [
        stage
        for stage in stages
        if MATCHING[stage.model_update] != stage.update and stage.readers == 1
    ]
    if not changed:
        return ()
    first = changed[0]
    return (
        f"The layers were trained with update {first.model_update}, but the program "
        f"runs them as {first.update}, as asked: this changes the model.",
    )


def _fidelity_note(stages: Sequence[Stage], asked: str) -> tuple[str, ...]:
    """Which stages a netlist holds with another fidelity than the one asked for."""
    other = [stage for stage in stages if stage.fidelity != asked]
    if not other:
        return ()
    names = ", ".join(stage.name for stage in other)
    return (
        f"Fidelity {other[0].fidelity} for {names}: a tile of real cells holds weights "
        "that a head shares, not pairs that are listed one by one.",
    )
