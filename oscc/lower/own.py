"""Anyone's layer: whatever can state its phases, pair coefficients and gain is a stage.

    dphi_a/dtau = Omega_a + g_a sum_n Im[exp(-i n phi_a) sum_b c_nab exp(i n theta_b)]

A layer says what theta, c, g and Omega are on one input, and what it computed itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray, IntArray
from oscc.checks import require_choice, require_shape
from oscc.errors import RequestError
from oscc.ir.coupling import Coupling
from oscc.ir.edges import Edges
from oscc.ir.stage import Stage
from oscc.lower.program import MATCHING


@dataclass(frozen=True, slots=True, eq=False)
class PhaseCoupling:
    """What a layer states of itself on one input; arrays of numpy or torch.

    The pairs are given in one of three forms: `weights` that the coordinates of a head
    share, `coefficients` of every pair, or a list of `edges`.

    Args:
        theta_rad: Held source phases, shape (S, M), unwrapped [rad]; M = K for weights.
        gain_rad: Signed gain of each target over the dwell, shape (T, K) [rad].
        digital_rad: Phases that the layer itself computed, shape (T, K), unwrapped.
            They are what the program is judged against; nothing is fitted to them.
        weights: Shared weights, shape (H, T, S); a row receives, a column sends.
        gamma: Signed strengths for weights, shape (N, K); 1 without it.
        alpha_rad: Offsets for weights, shape (N, K) [rad]; 0 without it.
        coefficients: Complex c_n of every pair, shape (N, T K, S M), rows and columns
            in the order of the arrays, token by token; zeros are no pairs.
        edges: Pairs listed one by one, rows numbered as those of `coefficients`.
        harmonics: Orders, shape (N,); 1..N without it. Not for edges, which have them.
        phi0_rad: Target phases at the start, shape (T, K); the sources' without it.
        detuning_rad: Detuning over the dwell, shape (T, K) [rad]; 0 without it.
        update: What the layer computes: `flow`, the equation's own solution, or
            `euler`, one explicit step of it.
        causal: Whether no target may receive from a later token.
    """

    theta_rad: npt.ArrayLike
    gain_rad: npt.ArrayLike
    digital_rad: npt.ArrayLike
    weights: npt.ArrayLike | None = None
    gamma: npt.ArrayLike | None = None
    alpha_rad: npt.ArrayLike | None = None
    coefficients: npt.ArrayLike | None = None
    edges: Edges | None = None
    harmonics: npt.ArrayLike | None = None
    phi0_rad: npt.ArrayLike | None = None
    detuning_rad: npt.ArrayLike | None = None
    update: str = "flow"
    causal: bool = False


def stage_from(
    coupling: PhaseCoupling,
    name: str = "layer.0.coupling",
    *,
    update: str | None = None,
    **settings: Any,
) -> Stage:
    """The stage of a layer that states its coupling.

    Args:
        coupling: What the layer states.
        name: Name of the stage.
        update: What the hardware runs, `flow` or `probe`; None takes the one that
            matches the layer's own.
        settings: Further fields of the stage, such as `fidelity`.

    Returns:
        A stage of shared weights, or one of flat banks coupled by edges.

    Raises:
        RequestError: the pairs are given in no form or in several, shapes disagree, or
            a law of the IR is broken.

    Example:
        >>> phase = np.array([[0.0], [1.0]])
        >>> pull = np.array([[[1.0, 0.0], [0.5, 0.5]]])
        >>> one = PhaseCoupling(phase, np.ones((2, 1)), phase, weights=pull)
        >>> stage_from(one).grid
        (2, 1)
    """
    where = f"stage {name}"
    require_choice("update", coupling.update, tuple(MATCHING), where=where)
    forms = ("weights", "coefficients", "edges")
    given = [form for form in forms if getattr(coupling, form) is not None]
    if len(given) != 1:
        raise RequestError(
            f"{where}: give the pairs in one form of {', '.join(forms)}, not in "
            f"{' and '.join(given) or 'none'}."
        )
    _require_own_fields(coupling, given[0], where)
    banks: dict[str, Any] = _banks(coupling, where)
    shared: dict[str, Any] = {
        "name": name,
        "causal": coupling.causal,
        "model_update": coupling.update,
        "update": update or MATCHING[coupling.update],
    }
    if given == ["weights"]:
        pairs = _shared(coupling, banks["phi0_rad"].shape[1])
        return Stage(**shared, **banks, couplings=(pairs,), **settings)
    targets, sources = banks["phi0_rad"].shape, banks["theta_rad"].shape
    return Stage(
        **shared,
        **{key: array.ravel() for key, array in banks.items()},
        couplings=(_listed(coupling, targets, sources, where),),
        index=_grid(targets),
        source_index=_grid(sources),
        **settings,
    )


def _require_own_fields(coupling: PhaseCoupling, form: str, where: str) -> None:
    """Refuse fields that the form of the pairs has no place for."""
    of_weights = ("gamma", "alpha_rad")
    spare = {
        "weights": (),
        "coefficients": of_weights,
        "edges": (*of_weights, "harmonics"),
    }[form]
    for name in spare:
        if getattr(coupling, name) is not None:
            raise RequestError(
                f"{where}: `{name}` goes with `weights`; {form} hold it already."
            )


def _banks(coupling: PhaseCoupling, where: str) -> dict[str, FloatArray]:
    """Arrays of sources and targets, what was left out put in."""
    theta = _array(coupling.theta_rad)
    start = theta if coupling.phi0_rad is None else _array(coupling.phi0_rad)
    for name, array, axes in (("theta_rad", theta, "(S, M)"), ("phi0_rad", start, "")):
        require_shape(name, array, (-1, -1), axes=axes or "(T, K)", where=where)
    out = {"theta_rad": theta, "phi0_rad": start}
    for name in ("gain_rad", "digital_rad", "detuning_rad"):
        value = getattr(coupling, name)
        out[name] = np.zeros_like(start) if value is None else _array(value)
        # flat banks would hide which axis is wrong
        axes = f"(T, K) = {start.shape}"
        require_shape(name, out[name], start.shape, axes=axes, where=where)
    return out


def _shared(coupling: PhaseCoupling, coordinates: int) -> Coupling:
    known = [x for x in (coupling.gamma, coupling.alpha_rad) if x is not None]
    orders = _orders(coupling, len(_array(known[0])) if known else 1)
    shape = (len(orders), coordinates)
    gamma, alpha = coupling.gamma, coupling.alpha_rad
    return Coupling(
        route="present",
        harmonics=orders,
        weights=_array(coupling.weights),
        gamma=np.ones(shape) if gamma is None else _array(gamma),
        alpha_rad=np.zeros(shape) if alpha is None else _array(alpha),
    )


def _listed(
    coupling: PhaseCoupling,
    targets: tuple[int, ...],
    sources: tuple[int, ...],
    where: str,
) -> Edges:
    if coupling.edges is not None:
        return coupling.edges
    given = np.asarray(_plain(coupling.coefficients), dtype=np.complex128)
    pairs = (int(np.prod(targets)), int(np.prod(sources)))
    axes = f"(N, T K, S M) = (any, {pairs[0]}, {pairs[1]})"
    require_shape("coefficients", given, (-1, *pairs), axes=axes, where=where)
    orders = _orders(coupling, len(given))
    require_shape("harmonics", orders, (len(given),), axes="(N,)", where=where)
    target, source, order = np.nonzero(given.transpose(1, 2, 0))
    chosen = given[order, target, source]
    return Edges(target, source, orders[order], np.abs(chosen), np.angle(chosen))


def _orders(coupling: PhaseCoupling, count: int) -> IntArray:
    if coupling.harmonics is None:
        return np.arange(1, count + 1)
    return np.asarray(_plain(coupling.harmonics))


def _grid(shape: tuple[int, ...]) -> IntArray:
    """Token and coordinate of every oscillator of a bank, in order."""
    places = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    return np.stack(places, axis=1).astype(np.int64)


def _plain(values: Any) -> Any:
    """A tensor as an array; anything else as it is."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    return values


def _array(values: Any) -> FloatArray:
    return np.asarray(_plain(values), dtype=np.float64)
