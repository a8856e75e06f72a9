"""Hypothesis strategies: random IR values and random scalar targets.

Needs the package hypothesis, which comes with the extra `dev`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oscc.arrays import FloatArray
from oscc.ir import Coupling, Edges, HostOperation, Program, Stage
from oscc.ir.coupling import ROUTES
from oscc.ir.program import COUPLERS
from oscc.ir.stage import FIDELITIES, MODEL_UPDATES, SCHEMES, UPDATES
from oscc.lower import LOWERINGS
from oscc.passes.options import Targets
from oscc.testing.flat import cells_stage, modes_stage
from oscc.testing.tiny import tiny_model, tiny_stage

finite = st.floats(allow_nan=False, allow_infinity=False)
"""Every number that a file must keep: zeros of both signs, subnormal, huge."""


def _mappings(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.text(max_size=8), inner, max_size=3)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | _mappings(inner),
    max_leaves=6,
)


def _arrays(*shape: int) -> st.SearchStrategy[FloatArray]:
    return hnp.arrays(np.float64, shape, elements=finite)


@st.composite
def couplings(
    draw: st.DrawFn, route: str, heads: int, shape: tuple[int, int, int], causal: bool
) -> Coupling:
    """A route with any finite values; `shape` is (T, S, K)."""
    targets, sources, coordinates = shape
    orders = draw(st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True))
    weights = draw(_arrays(heads, targets, sources))
    return Coupling(
        route=route,
        harmonics=np.array(sorted(orders)),
        weights=np.tril(weights) if causal else weights,
        gamma=draw(_arrays(len(orders), coordinates)),
        alpha_rad=draw(_arrays(len(orders), coordinates)),
    )


@st.composite
def flat_stages(draw: st.DrawFn, name: str = "layer.0.modes") -> Stage:
    """Any finite values in flat banks of up to 3 tokens, as modes or as pair cells."""
    tokens = draw(st.integers(1, 3))
    if draw(st.booleans()):
        values = ("theta_rad", "phi0_rad", "gain_rad", "digital_rad")
        changes: dict[str, Any] = {word: draw(_arrays(tokens)) for word in values}
        return cells_stage(np.zeros(tokens), **changes, name=name)
    words = ("phi0_rad", "gain_rad", "detuning_rad", "digital_rad")
    columns, modes = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    changes = {word: draw(_arrays(tokens * columns)) for word in words}
    plain = modes_stage(tokens=tokens, coordinates=columns, modes=modes).edges
    edges = Edges(
        plain.target,
        plain.source,
        draw(hnp.arrays(np.int64, plain.target.shape, elements=st.integers(1, 64))),
        draw(_arrays(plain.target.size)),
        draw(_arrays(plain.target.size)),
    )
    sizes = {"tokens": tokens, "coordinates": columns, "modes": modes}
    return modes_stage(**sizes, couplings=(edges,), **changes, name=name)


@st.composite
def stages(draw: st.DrawFn, name: str = "layer.0.coupling") -> Stage:
    """Any valid stage, of up to 3 targets, 3 sources and 4 coordinates."""
    heads = draw(st.integers(1, 2))
    coordinates = heads * draw(st.integers(1, 2))
    targets, sources = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    causal = draw(st.booleans())
    routes = draw(st.lists(st.sampled_from(ROUTES), min_size=1, unique=True))
    shape = (targets, sources, coordinates)
    return Stage(
        name=name,
        theta_rad=draw(_arrays(sources, coordinates)),
        phi0_rad=draw(_arrays(targets, coordinates)),
        gain_rad=draw(_arrays(targets, coordinates)),
        detuning_rad=draw(_arrays(targets, coordinates)),
        couplings=tuple(draw(couplings(r, heads, shape, causal)) for r in routes),
        digital_rad=draw(_arrays(targets, coordinates)),
        update=draw(st.sampled_from(UPDATES)),
        model_update=draw(st.sampled_from(MODEL_UPDATES)),
        probe_epsilon=draw(st.floats(1e-6, 0.5)),
        scheme=draw(st.sampled_from(SCHEMES)),
        substeps=draw(st.integers(1, 99)),
        dwell_periods=draw(st.integers(1, 9999)),
        causal=causal,
        fidelity=draw(st.sampled_from(FIDELITIES)),
    )


_operations = st.builds(
    HostOperation,
    name=st.text(max_size=12),
    layer=st.integers(-1, 9),
    count=st.integers(0, 2**53),
    unit=st.sampled_from(("mac", "exp", "sincos", "read")),
)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any valid program of one or two stages."""
    count = draw(st.integers(1, 2))
    names = [f"layer.{number}.coupling" for number in range(count)]
    return Program(
        family=draw(st.sampled_from(("fsn", "kuramoto"))),
        stages=tuple(draw(stages(name) | flat_stages(name)) for name in names),
        host_operations=tuple(draw(st.lists(_operations, max_size=2))),
        device=draw(_mappings(_json)),
        tokens=np.array(draw(st.lists(st.integers(0, 255), max_size=4)), np.int64),
        accuracy_rad=draw(st.floats(1e-9, 1e3)),
        coupler=draw(st.sampled_from(COUPLERS)),
        deck_targets=draw(st.integers(1, 64)),
        seed=draw(st.integers(0, 2**63)),
        notes=tuple(draw(st.lists(st.text(max_size=20), max_size=2))),
        provenance=draw(_mappings(_json)),
    )


@st.composite
def dynamic_stages(
    draw: st.DrawFn,
    *,
    largest_gain: float = 6.0,
    harmonics: tuple[tuple[int, ...], ...] = ((1,), (1, 2), (2, 3), (1, 2, 3)),
    changes: dict[str, Any] | None = None,
) -> Stage:
    """A causal stage whose flow is worth running: random weights, drives, signs."""
    heads = draw(st.integers(1, 2))
    return tiny_stage(
        draw(st.integers(0, 2**32)),
        tokens=draw(st.integers(1, 5)),
        coordinates=heads * draw(st.integers(1, 3)),
        heads=heads,
        harmonics=draw(st.sampled_from(harmonics)),
        gain_rad=draw(st.floats(0.0, largest_gain)),
        routes=draw(st.sampled_from((ROUTES, ROUTES[:1]))),
        **(changes or {}),
    )


@st.composite
def targets(
    draw: st.DrawFn, *, largest_drive: float = 30.0, most_harmonics: int = 3
) -> Targets:
    """Scalar targets: drives of any size up to the largest, starts on several turns."""
    count = draw(st.integers(1, 6))
    orders = draw(
        st.lists(
            st.integers(1, most_harmonics),
            min_size=1,
            max_size=most_harmonics,
            unique=True,
        )
    )
    seed = draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    shape = (count, len(orders))
    size = random.uniform(0.0, 1.0, shape)
    size *= largest_drive * random.uniform(0.0, 1.0, (count, 1)) / len(orders)
    return Targets(
        drive=size * np.exp(1j * random.uniform(-np.pi, np.pi, shape)),
        harmonics=np.array(sorted(orders)),
        phi0_rad=random.uniform(-9.0, 9.0, count),
    )


@st.composite
def phase_models(
    draw: st.DrawFn, /, *, largest_gain: float = 12.0, **fixed: Any
) -> tuple[Any, list[int]]:
    """A random model of a family that is lowered, and an input of up to its context.

    Args:
        largest_gain: Gains have both signs up to it [rad].
        fixed: Fields of the configuration that are not drawn.
    """
    family = fixed.pop("family", None) or draw(st.sampled_from(tuple(LOWERINGS)))
    heads = draw(st.integers(1, 3))
    context = draw(st.integers(1, 16))
    sizes: dict[str, Any] = {
        "heads": heads,
        "k": heads * draw(st.integers(1, 3)),
        "layers": draw(st.integers(1, 2)),
        "context": context,
        "bound": draw(st.sampled_from(("B0", "B1", "B4"))),
        "gates": draw(st.sampled_from(("softplus", "none"))),
    }
    if family != "kuramoto":
        sizes["harmonics"] = draw(st.integers(1, 3))
        sizes["successor"] = draw(st.sampled_from(("dropped", "renormalised")))
    if family == "fsn-mf":
        sizes["modes"] = 2 * draw(st.integers(1, 4))
        sizes["mode_response"] = draw(st.sampled_from(("linear", "square")))
    update = fixed.pop("update", None) or draw(st.sampled_from(("flow", "euler")))
    model = tiny_model(
        family,
        update,
        seed=draw(st.integers(0, 2**32)),
        gain_rad=draw(st.floats(0.0, largest_gain)),
        **(sizes | fixed),
    )
    tokens = st.lists(st.integers(0, 97), min_size=1, max_size=context)
    return model, draw(tokens)
