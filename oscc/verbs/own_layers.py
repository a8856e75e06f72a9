"""Programs of layers that are not a family of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.errors import RequestError
from oscc.ir.program import HostOperation, Program
from oscc.lower.own import PhaseCoupling, stage_from
from oscc.lower.program import changed_update
from oscc.verbs.compile import (
    CompileRequest,
    default_device,
    pass_options,
    require_supported,
)

_OF_TEXTS = ("mode", "max_tokens", "unknown")


def program_from_layers(
    layers: Sequence[PhaseCoupling],
    *,
    tokens: npt.ArrayLike | None = None,
    host_operations: Sequence[HostOperation] = (),
    family: str = "own",
    **settings: Any,
) -> Program:
    """Program of layers that state their own coupling, run through the passes.

    Args:
        layers: What each layer states on the input, in the order in which they run;
            stages are named `layer.0.coupling` and so on.
        tokens: Symbols of the input, shape (T,); positions 0..T-1 without it.
        host_operations: What stays digital, counted by the caller; none without it,
            and the energy account then knows of no host work.
        family: Word for the model in reports.
        settings: Fields of `CompileRequest` that are not about texts, such as `device`,
            `accuracy_mrad`, `update` or `periods`.

    Raises:
        RequestError: no layer, a layer that breaks a law of the IR, a setting that
            cannot be used, or no scheme that reaches the accuracy.

    Example:
        >>> phase = np.array([[0.0], [0.4]])
        >>> moved = 2 * np.arctan(np.exp(-1.0) * np.tan(np.array([[0.0], [0.2]])))
        >>> held = np.zeros((2, 1))
        >>> pull = np.eye(2)[None]
        >>> layer = PhaseCoupling(held, held + 1.0, moved, weights=pull, phi0_rad=phase)
        >>> program_from_layers([layer], scheme="plain", periods=20).stages[0].targets
        2
    """
    from oscc import passes
    from oscc.device.card_file import card_to_mapping, load_card
    from oscc.version import VERSION

    request = _request(settings)
    if not layers:
        raise RequestError("Argument `layers` must hold at least one layer.")
    stages = tuple(
        stage_from(
            layer,
            f"layer.{number}.coupling",
            update=request.update,
            fidelity=request.fidelity,
        )
        for number, layer in enumerate(layers)
    )
    card = load_card(request.device or default_device(""))
    program = Program(
        family=family,
        stages=stages,
        host_operations=tuple(host_operations),
        device=card_to_mapping(card),
        tokens=np.asarray(np.arange(stages[0].grid[0]) if tokens is None else tokens),
        accuracy_rad=1e-3 * request.accuracy_mrad,
        coupler=request.coupler,
        deck_targets=request.deck_targets,
        seed=request.seed,
        notes=changed_update(stages),
        provenance={"version": VERSION, "seed": request.seed, "passes": []},
    )
    return passes.run(program, pass_options(card, request))


def _request(settings: dict[str, Any]) -> CompileRequest:
    for name in _OF_TEXTS:
        if name in settings:
            raise RequestError(
                f"Setting `{name}` is for a checkpoint on a text; layers state their "
                "tokens themselves."
            )
    request = CompileRequest(**settings)
    require_supported(request)
    return request
