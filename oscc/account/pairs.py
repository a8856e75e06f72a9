"""What a stage couples: counts of pairs, sums of strengths by target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscc.arrays import FloatArray
from oscc.ir.stage import Stage
from oscc.ir.views import coupled_pairs, pair_terms


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Counts of one stage, or of several added up.

    Args:
        pairs: Target and source oscillator with any coefficient other than zero.
        pair_terms: Coefficients other than zero, harmonics and routes apart.
        pair_routes: Weights other than zero, routes apart, harmonics merged.
        targets: Target oscillators.
        sources: Source oscillators.
    """

    pairs: int
    pair_terms: int
    pair_routes: int
    targets: int
    sources: int


def count_pairs(stage: Stage) -> PairCounts:
    """Counts of a stage, from the factored form.

    Example:
        >>> from oscc.testing.energy import two_token_stage
        >>> count_pairs(two_token_stage())
        PairCounts(pairs=3, pair_terms=3, pair_routes=3, targets=2, sources=2)
    """
    routes = _listed_pairs(stage)
    for coupling in () if stage.flat else stage.factored:
        weights = (coupling.weights != 0).sum(axis=(1, 2))
        active = (coupling.gamma != 0).any(axis=0)
        routes += int((weights[coupling.head_of_coordinate] * active).sum())
    return PairCounts(
        pairs=coupled_pairs(stage),
        pair_terms=pair_terms(stage),
        pair_routes=routes,
        targets=stage.targets,
        sources=int(stage.theta_rad.size),
    )


def _listed_pairs(stage: Stage) -> int:
    """Words of listed pairs: each has one of its own, whatever its harmonic."""
    return pair_terms(stage) if stage.flat else 0


def strength_by_harmonic(stage: Stage) -> FloatArray:
    """Sum over the pairs of a target of |c_n|, routes added, gain left out.

        strength_n = sum_routes |gamma_n| sum_u |A_u|,  of listed pairs sum |gamma|

    Returns:
        Shape (N, T, K) or (N, T'), N over `stage.harmonics`, without unit.

    Example:
        >>> from oscc.testing.energy import two_token_stage
        >>> strength_by_harmonic(two_token_stage())[0, :, 0].tolist()
        [1.0, 1.0]
    """
    orders = stage.harmonics
    out = np.zeros((len(orders), *stage.phi0_rad.shape))
    if stage.flat:
        edges = stage.edges
        place = (np.searchsorted(orders, edges.harmonic), edges.target)
        np.add.at(out, place, np.abs(edges.gamma))
        return out
    for coupling in stage.factored:
        sums = np.abs(coupling.weights).sum(axis=2)[coupling.head_of_coordinate].T
        for number, order in enumerate(coupling.harmonics):
            slot = orders.index(int(order))
            out[slot] += sums * np.abs(coupling.gamma[number])
    return out


def weight_strength(stage: Stage) -> FloatArray:
    """Sum over routes and sources of |A|, where a coordinate uses the route.

    Of listed pairs the sum of |gamma|. In the shape of the targets.
    """
    if stage.flat:
        return np.asarray(strength_by_harmonic(stage).sum(axis=0))
    out = np.zeros(stage.phi0_rad.shape)
    for coupling in stage.factored:
        sums = np.abs(coupling.weights).sum(axis=2)[coupling.head_of_coordinate].T
        out += sums * (coupling.gamma != 0).any(axis=0)
    return out


def field_by_harmonic(stage: Stage) -> FloatArray:
    """|C_n| of every target, its pairs already summed, shape (N, T, K) or (N, T')."""
    from oscc.ir.interpret import field

    real, imaginary = field(stage)
    out: FloatArray = np.hypot(real, imaginary)
    return out
