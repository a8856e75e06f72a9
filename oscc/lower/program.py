"""Lowering of a whole trace: one coupling stage a layer, and the host's work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.checks import require_choice
from oscc.errors import RequestError
from oscc.ir.coupling import Coupling
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.lower.decode import last_token
from oscc.lower.host import host_operations

if TYPE_CHECKING:
    from oscc.trace import LayerTrace, Trace

LOWERINGS = {
    "kuramoto": "oscc.lower.kuramoto:couplings",
    "fsn": "oscc.lower.fsn:couplings",
    "fsn-no-phase": "oscc.lower.fsn:couplings",
}

MATCHING = {"flow": "flow", "euler": "probe"}
"""What the hardware runs for what a layer was trained with."""


Lowering = Callable[["LayerTrace", str], tuple[Coupling, ...]]


def require_lowering(family: str, values: str = "phases") -> None:
    """Refuse what has no lowering.

    Args:
        family: Model family.
        values: Of ModelConfig; learned projections are no pair coefficients.

    Raises:
        RequestError: the family, or its values, cannot be lowered.

    Example:
        >>> require_lowering("fsn")
    """
    if family not in LOWERINGS:
        raise RequestError(
            f"Family `{family}` cannot be lowered yet; {', '.join(LOWERINGS)} can."
        )
    if values != "phases":
        raise RequestError(
            "A model with learned values cannot be lowered: what it sums are not "
            "phases of oscillators."
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
    layer: LayerTrace,
    *,
    update: str | None = None,
    successor: str = "dropped",
    **settings: Any,
) -> Stage:
    """The coupling stage of one traced layer.

    Args:
        family: Model family.
        model_update: What the model was trained with, `flow` or `euler`.
        number: Index of the layer; it gives the stage its name.
        layer: Traced layer of T tokens and K coordinates.
        update: `flow` or `probe`; None takes the one that matches the training.
        successor: What becomes of the weight that meets no successor.
        settings: Further fields of the stage, such as `scheme`.

    Raises:
        RequestError: the family cannot be lowered, or the layer breaks a law of the IR.
    """
    require_choice("model_update", model_update, tuple(MATCHING))
    return Stage(
        name=f"layer.{number}.coupling",
        theta_rad=layer.theta_rad,
        phi0_rad=layer.theta_rad,
        gain_rad=layer.gain_rad,
        detuning_rad=np.zeros_like(layer.theta_rad),
        couplings=_lowering(family)(layer, successor),
        digital_rad=layer.next_rad,
        update=update or MATCHING[model_update],
        model_update=model_update,
        **settings,
    )


def lower(
    trace: Trace,
    device: Mapping[str, Any],
    *,
    update: str | None = None,
    layers: Collection[int] | None = None,
    fidelity: str = "pairwise",
    **settings: Any,
) -> Program:
    """Program of a traced input: a stage a layer, host operations, device card.

    Args:
        trace: What the digital model did on the input; of mode `decode` the program
            computes its last token alone.
        device: Content of a device card.
        update: None takes the one that matches the training; the other is allowed,
            and named in the program's notes.
        layers: Layers to lower; None takes all.
        fidelity: What a netlist of the stages holds.
        settings: Further fields of the program, such as `accuracy_rad`.

    Raises:
        RequestError: the family cannot be lowered, or a layer does not exist.
    """
    chosen = chosen_layers(len(trace.layers), layers)
    stages = tuple(
        lower_layer(
            trace.family,
            trace.update,
            number,
            trace.layers[number],
            update=update,
            successor=trace.successor,
            fidelity=fidelity,
        )
        for number in chosen
    )
    if trace.mode == "decode":
        stages = tuple(last_token(stage) for stage in stages)
    return Program(
        family=trace.family,
        stages=stages,
        host_operations=host_operations(trace),
        device=device,
        tokens=trace.tokens,
        notes=(*changed_update(stages), *_decode_note(trace)),
        **settings,
    )


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


def changed_update(stages: tuple[Stage, ...]) -> tuple[str, ...]:
    """Note where the hardware runs another update than the layers were trained with."""
    changed = [s for s in stages if MATCHING[s.model_update] != s.update]
    if not changed:
        return ()
    first = changed[0]
    return (
        f"The layers were trained with update {first.model_update}, but the program "
        f"runs them as {first.update}, as asked: this changes the model.",
    )
