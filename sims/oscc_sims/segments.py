"""What the kernels of the circuit engine need of a cell and of an injected current.

Every lane is one target oscillator, with its own device parameters where a spread is
given. Carriers run at the frequency of the nominal card, which is also the frequency
of the reference oscillator that phases are read against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from oscc.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from oscc.checks import nearest, require_finite, require_shape
from oscc.device.card import UNITS, Card
from oscc.device.coupler import peak_injection_A
from oscc.device.piecewise import omega as card_omega
from oscc.errors import RequestError

TWO_PI = 2.0 * np.pi


class Drive(NamedTuple):
    """What the kernels read; a named tuple, as they cannot take other classes.

    Attributes:
        periods: Length of the dwell in carrier periods.
        cell: Settled level, rate and end threshold by state, shape (3, 2, M).
        response: Phasors h_n by state, shape (2, N, M), N >= 1.
        current: Phasors I_n with the direct current first, shape (M, N+1).
        constants: omega, Vdd, R_series, C, R_met, R_ins of each lane, shape (M, 6).
    """

    periods: int
    cell: FloatArray
    response: ComplexArray
    current: ComplexArray
    constants: FloatArray


class Lanes(NamedTuple):
    """What the kernels write, lane by lane.

    Attributes:
        v: Node voltage: the start, then the end of the dwell, shape (M,).
        state: State: the start, then the end, shape (M,).
        ups: Upward crossings, -1 where a kernel gave up, shape (M,).
        energy: Energies added to, shape (M, 5); (M, 0) leaves them out.
    """

    v: FloatArray
    state: IntArray
    ups: IntArray
    energy: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Device parameters and free cycle of every lane.

    W is the number of lanes where a spread is given, and one where all lanes are the
    nominal card; arrays by state have shape (2, W).

    Attributes:
        omega_ref: Angular frequency of carriers and reference, [rad/s].
        values: Card parameters by name, each of shape (W,).
        conductance: 1/R_series + 1/R_state, [S].
        tau: C / conductance, [s].
        level: Voltage that the free node would settle to, [V].
        first: Threshold at which the state begins, [V].
        last: Threshold at which it ends, [V].
        length: Time from one to the other on the free cycle, [s].
    """

    omega_ref: float
    values: Mapping[str, FloatArray]
    conductance: FloatArray
    tau: FloatArray
    level: FloatArray
    first: FloatArray
    last: FloatArray
    length: FloatArray

    @property
    def omega(self) -> FloatArray:
        """Own angular frequency of every lane, [rad/s], shape (W,)."""
        return np.asarray(TWO_PI / self.length.sum(axis=0), dtype=np.float64)


def cells(card: Card, lanes: int, spread: Mapping[str, FloatArray] | None) -> Cells:
    """Cells of all lanes: the nominal card, with some parameters lane by lane.

    Args:
        lanes: Number of lanes, M.
        spread: Values of card parameters, by name, each of shape (M,), SI units.

    Raises:
        RequestError: an unknown parameter, a wrong shape, a lane that does not
            oscillate.

    Example:
        >>> from oscc.device import load_card
        >>> card = load_card("vo2-two-state-6k")
        >>> cells(card, 3, {"c_F": np.full(3, 1e-10)}).length.shape
        (2, 3)
    """
    width = lanes if spread else 1
    values = {name: np.full(width, float(getattr(card, name))) for name in UNITS}
    for name, array in (spread or {}).items():
        if name not in UNITS:
            raise RequestError(
                f"Argument `spread` has an unknown parameter `{name}`."
                f"{nearest(name, UNITS)}"
            )
        own = np.asarray(array, dtype=np.float64)
        require_shape(f"spread[{name}]", own, (lanes,), axes="(lanes,)")
        require_finite(f"spread[{name}]", own)
        values[name] = own
    resistance = np.stack([values["r_met_ohm"], values["r_ins_ohm"]])
    conductance = 1.0 / values["r_series_ohm"] + 1.0 / resistance
    tau = values["c_F"] / conductance
    level = values["vdd_V"] / values["r_series_ohm"] / conductance
    first = np.stack([values["v_imt_V"], values["v_mit_V"]])
    last = first[::-1].copy()
    _require_oscillation(level, last)
    length = tau * np.log((level - first) / (level - last))
    return Cells(card_omega(card), values, conductance, tau, level, first, last, length)


def _require_oscillation(level: FloatArray, last: FloatArray) -> None:
    stuck = (level[0] >= last[0]) | (level[1] <= last[1]) | (last[0] >= last[1])
    if stuck.any():
        raise RequestError(
            f"Argument `spread` makes {int(stuck.sum())} lanes stop oscillating, "
            f"first lane {int(stuck.argmax())}. Use a smaller spread."
        )


def _pick(by_state: FloatArray, state: IntArray) -> FloatArray:
    return np.asarray(np.where(state == 1, by_state[1], by_state[0]))


def start_of(cell: Cells, phi0: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Voltage, state and whole turns of every lane at its start phase.

    Args:
        phi0: Start phase on the lane's own free cycle, any turn, [rad], shape (M,).
    """
    turns = np.floor(phi0 / TWO_PI)
    since = np.clip((phi0 - TWO_PI * turns) / cell.omega, 0.0, None)
    state = (since >= cell.length[0]).astype(np.int64)
    since = since - np.where(state == 1, cell.length[0], 0.0)
    fade = np.exp(-since / _pick(cell.tau, state))
    v = _pick(cell.level, state) + _pick(cell.first - cell.level, state) * fade
    return v, state, turns


def phase_in_cycle(cell: Cells, v: FloatArray, state: IntArray) -> FloatArray:
    """Phase of the free cycle through a voltage in a state, [rad], shape (M,)."""
    ratio = _pick(cell.level - cell.first, state) / (_pick(cell.level, state) - v)
    since = _pick(cell.tau, state) * np.log(ratio)
    since = since + np.where(state == 1, cell.length[0], 0.0)
    return np.asarray(cell.omega * since, dtype=np.float64)


def free_lengths(cell: Cells, v: FloatArray, state: IntArray) -> FloatArray:
    """Free segment lengths by state, then the rest of the first one, shape (3, M).

    In base phase of the carriers: the kernels start their search there.
    """
    ratio = (_pick(cell.level, state) - v) / _pick(cell.level - cell.last, state)
    out = np.empty((3, v.size))
    out[:2] = cell.omega_ref * cell.length
    out[2] = cell.omega_ref * _pick(cell.tau, state) * np.log(ratio)
    return out


def monotone(cell: Cells, injection: ComplexArray) -> BoolArray:
    """Lanes whose node surely passes each threshold once, shape (M,).

    C dV/dt = (level - V) conductance + I(t) keeps its sign at the end threshold of a
    state, at all times, if |I| < conductance |level - last| there. A voltage that can
    pass a level in one direction only passes it at most once.
    """
    weakest = np.abs(cell.conductance * (cell.level - cell.last)).min(axis=0)
    weakest = np.broadcast_to(weakest, injection.shape[:1])
    sure = np.asarray(np.abs(injection).sum(axis=1) < weakest, dtype=np.bool_)
    rest = np.flatnonzero(~sure)
    sure[rest] = peak_injection_A(injection[rest]) < weakest[rest]
    return sure


def drive_of(cell: Cells, injection: ComplexArray, periods: int) -> Drive:
    """Everything the kernels read, for one dwell of all lanes.

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order.
    """
    current = injection
    if current.shape[1] == 1:  # the kernels want at least one harmonic
        current = np.pad(current, ((0, 0), (0, 1)))
    return Drive(
        periods,
        kernel_cell(cell, current),
        response_of(cell, current),
        np.ascontiguousarray(current),
        constants_of(cell, current.shape[0]),
    )


def response_of(cell: Cells, injection: ComplexArray) -> ComplexArray:
    """Response phasors of both states to the injected harmonics, [V].

        h_n = I_n / (1/R_series + 1/R_state + i n omega C)

    Args:
        injection: Peak phasors, [A], shape (M, N+1), column = order.

    Returns:
        Phasors, shape (2, N, M); the direct current is left to `kernel_cell`.
    """
    order = np.arange(1, injection.shape[1])
    reactive = np.multiply.outer(1j * order * cell.omega_ref, cell.values["c_F"])
    impedance = 1.0 / (cell.conductance[:, None, :] + reactive)
    return np.ascontiguousarray(injection.T[1:] * impedance)


def kernel_cell(cell: Cells, injection: ComplexArray) -> FloatArray:
    """Settled level, rate per base phase and end threshold, shape (3, 2, M)."""
    out = np.empty((3, 2, injection.shape[0]))
    out[0] = cell.level + injection[:, 0].real / cell.conductance
    out[1] = 1.0 / (cell.omega_ref * cell.tau)
    out[2] = cell.last
    return out


def constants_of(cell: Cells, lanes: int) -> FloatArray:
    """What the energies need: omega, Vdd, R_series, C, R_met, R_ins, shape (M, 6)."""
    names = ("vdd_V", "r_series_ohm", "c_F", "r_met_ohm", "r_ins_ohm")
    out = np.empty((lanes, 6))
    out[:, 0] = cell.omega_ref
    for column, name in enumerate(names, start=1):
        out[:, column] = cell.values[name]
    return out
