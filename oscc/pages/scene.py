"""One target for the report: which one, what pulls it, what it does in a dwell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oscc.arrays import ComplexArray, FloatArray, IntArray
from oscc.device import Card
from oscc.device.coupler import injection_A
from oscc.ir.interpret import field
from oscc.ir.plan import Dwell, dwells
from oscc.ir.stage import Stage
from oscc.ir.views import edges_of
from oscc.pages.trace import TargetTrace, target_trace

_QUANTILE = 0.9
_FLOW_STEPS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One target and one dwell of it.

    Args:
        stage: Name of the stage.
        token: Token of the target.
        coordinate: Coordinate of the target.
        dwell: The longest dwell of the first substep.
        source: Strength of every source, harmonics and routes added, shape (S,).
        theta_rad: Phases of the sources, shape (S,).
        source_names: What each source is, S words.
        trace: What the circuit does.
        tau: Times of the wanted flow, 0 to 1.
        flow_rad: The wanted flow at these times, from the same start.
    """

    stage: str
    token: int
    coordinate: int
    dwell: Dwell
    source: FloatArray
    theta_rad: FloatArray
    source_names: tuple[str, ...]
    trace: TargetTrace
    tau: FloatArray
    flow_rad: FloatArray


def pick_target(stage: Stage) -> tuple[int, int]:
    """Token and coordinate of a target that moves far, yet is no outlier.

    The target whose digital increment is nearest to the 90 % quantile in size, among
    those that three tokens or more pull towards themselves; among all where none is.

    Example:
        >>> from oscc.testing.tiny import tiny_stage
        >>> token, coordinate = pick_target(tiny_stage(tokens=6))
        >>> token >= 2
        True
    """
    moved = stage.on_grid(np.abs(stage.digital_rad - stage.phi0_rad))
    token = stage.begins + np.arange(moved.shape[0])[:, None]
    wanted = (stage.on_grid(stage.gain_rad) > 0) & (token >= 2)
    allowed = wanted if wanted.any() else np.ones_like(wanted)
    middle = np.quantile(moved[allowed], _QUANTILE)
    distance = np.where(allowed, np.abs(moved - middle), np.inf)
    row, column = np.unravel_index(int(distance.argmin()), distance.shape)
    return int(token[row, 0]), int(column)


def _drive(stage: Stage) -> ComplexArray:
    """Complex pull of every target over one dwell of full gain, (N, T, K) [rad]."""
    real, imaginary = field(stage)
    pull = np.asarray(stage.gain_rad * (real + 1j * imaginary), dtype=np.complex128)
    return pull.reshape(len(pull), *stage.grid)


def source_strength(stage: Stage, token: int, coordinate: int) -> FloatArray:
    """Strength by source of one target, harmonics and routes added, shape (S,).

    The sources are those of one token where pairs are listed, see `sources_of`.
    """
    if stage.flat:
        whole = np.zeros(stage.theta_rad.size)
        mine = edges_of(stage, int(stage.rows_of([(token, coordinate)])[0]))
        np.add.at(whole, stage.edges.source[mine], np.abs(stage.edges.gamma[mine]))
        return whole[sources_of(stage, token)]
    out = np.zeros(stage.theta_rad.shape[0])
    for coupling in stage.factored:
        head = coupling.head_of_coordinate[coordinate]
        size = np.abs(coupling.gamma[:, coordinate]).sum()
        out += size * np.abs(coupling.weights[head, token - stage.begins])
    return out


def sources_of(stage: Stage, token: int) -> IntArray:
    """Rows of the sources of one token, where pairs are listed."""
    assert stage.source_index is not None
    return np.flatnonzero(stage.source_index[:, 0] == token)


def _sources(
    stage: Stage, token: int, coordinate: int
) -> tuple[FloatArray, tuple[str, ...]]:
    """Phases and names of the sources of one target."""
    if not stage.flat:
        names = tuple(f"token {u}" for u in range(len(stage.theta_rad)))
        return stage.theta_rad[:, coordinate], names
    assert stage.source_index is not None
    rows = sources_of(stage, token)
    pin = None if stage.modes is None else int(stage.modes.order.size)
    numbers = stage.source_index[rows, 1].tolist()
    word = "source" if pin is None else "mode"
    named = tuple("pin" if m == pin else f"{word} {m}" for m in numbers)
    return stage.theta_rad[rows], named


def make_scene(stage: Stage, card: Card) -> Scene:
    """The picked target of a stage in the longest dwell of the first substep.

    Example:
        >>> from oscc.device import load_card
        >>> from oscc.testing.tiny import tiny_stage
        >>> stage = tiny_stage(tokens=4, dwell_periods=4)
        >>> make_scene(stage, load_card("vo2-two-state-6k")).dwell.periods
        8
    """
    token, coordinate = pick_target(stage)
    first = [d for d in dwells(stage) if d.run == 0 and d.substep == 0]
    dwell = max(first, key=lambda d: d.periods)
    row = token - stage.begins
    drive = dwell.gain * _drive(stage)[:, row, coordinate]
    orders = np.array(stage.harmonics)
    start = float(stage.on_grid(stage.phi0_rad)[row, coordinate])
    theta, names = _sources(stage, token, coordinate)
    current = injection_A(card, drive[None, :], orders, dwell.periods)[0]
    tau, flow = _flow(start, drive, orders)
    return Scene(
        stage=stage.name,
        token=token,
        coordinate=coordinate,
        dwell=dwell,
        source=source_strength(stage, token, coordinate),
        theta_rad=theta,
        source_names=names,
        trace=target_trace(card, current, start, dwell.periods),
        tau=tau,
        flow_rad=flow,
    )


def _flow(
    start: float, drive: ComplexArray, orders: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """dphi/dtau = sum_n Im[D_n e^{-i n phi}] by the midpoint rule, for a picture."""
    step = 1.0 / _FLOW_STEPS
    phi = np.empty(_FLOW_STEPS + 1)
    phi[0] = start

    def rate(at: float) -> float:
        return float((drive * np.exp(-1j * orders * at)).imag.sum())

    for k in range(_FLOW_STEPS):
        middle = phi[k] + 0.5 * step * rate(phi[k])
        phi[k + 1] = phi[k] + step * rate(middle)
    return np.linspace(0.0, 1.0, _FLOW_STEPS + 1), phi
