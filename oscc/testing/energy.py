"""A stage and a program so small that their energy can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from oscc.device import card_to_mapping, load_card
from oscc.ir import Coupling, HostOperation, Program, Stage


def two_token_stage(**changes: Any) -> Stage:
    """Two tokens, one coordinate, one harmonic, three causal pairs, gain 0.3.

    Example:
        >>> two_token_stage(scheme="plain").targets
        2
    """
    coupling = Coupling(
        route="present",
        harmonics=np.array([1]),
        weights=np.array([[[1.0, 0.0], [0.25, 0.75]]]),
        gamma=np.array([[1.0]]),
        alpha_rad=np.array([[0.0]]),
    )
    values: dict[str, Any] = {
        "name": "layer.0.coupling",
        "theta_rad": np.array([[0.4], [1.1]]),
        "phi0_rad": np.array([[0.4], [1.1]]),
        "gain_rad": np.array([[0.3], [-0.3]]),
        "detuning_rad": np.zeros((2, 1)),
        "couplings": (coupling,),
        "digital_rad": np.array([[0.4], [1.1]]),
        "scheme": "plain",
        "substeps": 1,
        "dwell_periods": 20,
    }
    return Stage(**(values | changes))


def two_token_program(*stages: Stage, **changes: Any) -> Program:
    """Program of the stages given, or of one `two_token_stage`, on the default card.

    Example:
        >>> two_token_program().tokens.tolist()
        [7, 9]
    """
    values: dict[str, Any] = {
        "family": "kuramoto",
        "stages": stages or (two_token_stage(),),
        "host_operations": (
            HostOperation("score", 0, 100),
            HostOperation("softmax", 0, 3, "exp"),
            HostOperation("bound", 0, 6),
        ),
        "device": card_to_mapping(load_card("vo2-two-state-6k")),
        "tokens": np.array([7, 9]),
    }
    return Program(**(values | changes))
