"""Stage: a bank of targets pulled by a bank of held sources for one dwell.

    dphi_a/dtau = Omega_a + g_a sum_n Im[exp(-i n phi_a) C_n]
    C_n = sum_b c_{n,ab} exp(i n theta_b)

with tau in [0, 1] and phi_a(0) given. Phase zero is the upward V_IMT crossing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oscc.arrays import FloatArray, IntArray, frozen
from oscc.checks import require_choice, require_finite, require_shape, require_whole
from oscc.errors import RequestError
from oscc.ir.coupling import ROUTES, Coupling
from oscc.ir.edges import Edges
from oscc.ir.flat import check_banks
from oscc.ir.modes import Modes

UPDATES = ("flow", "probe")
MODEL_UPDATES = ("flow", "euler")
SCHEMES = ("plain", "extrapolated", "corrected")
READOUTS = ("phase", "coherence")
LOCK_MODES = ("host", "native")
MOST_SUBSTEPS = 10_000
MOST_PERIODS = 1_000_000
FIDELITIES = ("summed", "pairwise", "oscillators", "passive")


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One oscillator problem of a program; checked on construction.

    Banks are grids of tokens and coordinates, coupled through weights that a head
    shares; or flat, with an index, coupled by a list of edges.

    Args:
        name: `layer.0.coupling`.
        theta_rad: Held source phases, shape (S, K), unwrapped [rad].
        phi0_rad: Target phases at the start, shape (T, K), unwrapped [rad].
        gain_rad: Signed pull over one dwell, value gate times bound, (T, K) [rad].
        detuning_rad: Detuning over one dwell, shape (T, K) [rad].
        couplings: Routes from sources to targets; or one list of edges alone, and
            then the banks are flat: shapes (S',) and (T',).
        digital_rad: What the digital layer computed, shape (T, K), unwrapped [rad].
        update: What the hardware runs: `flow` or `probe`.
        model_update: What the layer was trained with: `flow` or `euler`.
        probe_epsilon: Gain factor of the two runs of a probe.
        scheme: How dwells are combined.
        substeps: Dwells in sequence, each with gain g/substeps.
        dwell_periods: P, the short dwell of one substep, in carrier periods.
        readout: `phase` or `coherence`.
        causal: Whether no target may receive from a later token.
        fidelity: What a netlist of the stage holds.
        first_token: Token number of the first row of targets of a grid, or of the
            first token that pair cells are for; the sources begin with token 0.
        index: Of flat targets, shape (T', n): token and coordinate for read-out
            `phase`; head, token and partner for pair cells.
        source_index: Of flat sources, shape (S', m), first column the token; or head,
            token and partner for pair cells.
        digital_coherence: What the digital layer has for each pair cell, shape (T',).
        modes: Of collective modes, the coefficients that sources and edges follow from.
        readers: How many targets side by side read one field, for the host to know it.
        lock_mode: Whose oscillators a pair cell is made of: its own two, detuned by
            what the host has formed (`host`), or those of its two tokens (`native`).

    Raises:
        RequestError: shapes disagree, a value is not finite, a word is not known,
            or a causal stage has a weight from a later token.
    """

    name: str
    theta_rad: FloatArray
    phi0_rad: FloatArray
    gain_rad: FloatArray
    detuning_rad: FloatArray
    couplings: tuple[Coupling | Edges, ...]
    digital_rad: FloatArray
    update: str = "flow"
    model_update: str = "flow"
    probe_epsilon: float = 0.02
    scheme: str = "extrapolated"
    substeps: int = 4
    dwell_periods: int = 12
    readout: str = "phase"
    causal: bool = True
    fidelity: str = "pairwise"
    first_token: int = 0
    index: IntArray | None = None
    source_index: IntArray | None = None
    digital_coherence: FloatArray | None = None
    modes: Modes | None = None
    readers: int = 1
    lock_mode: str = "host"

    def __post_init__(self) -> None:
        where = f"stage {self.name}"
        for name in (
            "theta_rad",
            "phi0_rad",
            "gain_rad",
            "detuning_rad",
            "digital_rad",
        ):
            object.__setattr__(self, name, frozen(getattr(self, name)))
            require_finite(name, getattr(self, name), where=where)
        for name in ("index", "source_index"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), np.int64))
        if self.digital_coherence is not None:
            object.__setattr__(
                self, "digital_coherence", frozen(self.digital_coherence)
            )
            require_finite("digital_coherence", self.digital_coherence, where=where)
        if not self.flat:
            # the order of routes has no meaning, so it must not change the digest
            ordered = sorted(self.factored, key=lambda c: ROUTES.index(c.route))
            object.__setattr__(self, "couplings", tuple(ordered))
        object.__setattr__(self, "probe_epsilon", float(self.probe_epsilon))
        object.__setattr__(self, "causal", bool(self.causal))
        self._check_words(where)
        if self.flat:
            check_banks(self, where)
            return
        self._check_shapes(where)
        if self.causal:
            self._check_causality(where)

    def _check_words(self, where: str) -> None:
        require_choice("update", self.update, UPDATES, where=where)
        require_choice("model_update", self.model_update, MODEL_UPDATES, where=where)
        require_choice("scheme", self.scheme, SCHEMES, where=where)
        require_choice("readout", self.readout, READOUTS, where=where)
        require_choice("fidelity", self.fidelity, FIDELITIES, where=where)
        require_choice("lock_mode", self.lock_mode, LOCK_MODES, where=where)
        if self.lock_mode != "host" and self.readout != "coherence":
            raise RequestError(f"{where}: `lock_mode` is for pair cells.")
        require_whole("first_token", self.first_token, least=0, where=where)
        require_whole("readers", self.readers, where=where)
        require_whole("substeps", self.substeps, most=MOST_SUBSTEPS, where=where)
        require_whole(
            "dwell_periods", self.dwell_periods, most=MOST_PERIODS, where=where
        )
        if not 0 < self.probe_epsilon < 1:
            raise RequestError(
                f"{where}: Argument `probe_epsilon` must lie between 0 and 1, "
                f"but is {self.probe_epsilon!r}."
            )

    def _check_shapes(self, where: str) -> None:
        require_shape("theta_rad", self.theta_rad, (-1, -1), axes="(S, K)", where=where)
        sources, coordinates = self.theta_rad.shape
        require_shape(
            "phi0_rad", self.phi0_rad, (-1, coordinates), axes="(T, K)", where=where
        )
        shape = self.phi0_rad.shape
        if not (sources and coordinates and shape[0]):
            raise RequestError(
                f"{where}: a stage needs at least one source and one target, but has "
                f"{sources} x {coordinates} and {shape[0]} x {coordinates}."
            )
        for name in ("gain_rad", "detuning_rad", "digital_rad"):
            require_shape(
                name, getattr(self, name), shape, axes=f"(T, K) = {shape}", where=where
            )
        self._check_grid_alone(where)
        if not self.couplings:
            raise RequestError(f"{where}: a stage needs at least one coupling.")
        if len({c.route for c in self.factored}) < len(self.couplings):
            raise RequestError(f"{where}: each route may stand once among couplings.")
        for coupling in self.factored:
            place = f"{where} / route {coupling.route}"
            wanted = (-1, shape[0], sources)
            require_shape(
                "weights",
                coupling.weights,
                wanted,
                axes=f"(H, T, S) = (any, {shape[0]}, {sources})",
                where=place,
            )
            require_shape(
                "gamma",
                coupling.gamma,
                (-1, coordinates),
                axes=f"(N, K) = (any, {coordinates})",
                where=place,
            )

    def _check_grid_alone(self, where: str) -> None:
        """Refuse on grids what only flat banks have."""
        for name in ("index", "source_index", "digital_coherence", "modes"):
            if getattr(self, name) is not None:
                raise RequestError(
                    f"{where}: Argument `{name}` is for flat banks coupled by edges."
                )
        if self.readers > 1:
            raise RequestError(f"{where}: several readers of a field are listed pairs.")
        if self.readout != "phase":
            raise RequestError(
                f"{where}: read-out `{self.readout}` is for pair cells, which are "
                "coupled by edges."
            )

    def _check_causality(self, where: str) -> None:
        for coupling in self.factored:
            later = np.triu(np.abs(coupling.weights), 1 + self.first_token)
            if later.any():
                head, target, source = (int(i) for i in np.argwhere(later)[0])
                target += self.first_token
                raise RequestError(
                    f"{where} / route {coupling.route} / head {head}: target token "
                    f"{target} receives from the later token {source}, "
                    "but the stage is causal."
                )

    @property
    def targets(self) -> int:
        """Number of target oscillators, T times K."""
        return int(self.phi0_rad.size)

    @property
    def harmonics(self) -> tuple[int, ...]:
        """Orders of all routes, ascending."""
        if self.flat:
            return self.edges.orders
        return tuple(sorted({int(n) for c in self.factored for n in c.harmonics}))

    @property
    def flat(self) -> bool:
        """Whether the banks are flat and coupled by edges."""
        return len(self.couplings) == 1 and isinstance(self.couplings[0], Edges)

    @property
    def edges(self) -> Edges:
        """The list of edges.

        Raises:
            RequestError: the stage is coupled through shared weights.
        """
        first = self.couplings[0]
        if not isinstance(first, Edges):
            raise RequestError(f"stage {self.name}: it has weights, and no edges.")
        return first

    @property
    def factored(self) -> tuple[Coupling, ...]:
        """The routes of shared weights.

        Raises:
            RequestError: the stage is coupled by a list of edges, alone or among them.
        """
        found = tuple(c for c in self.couplings if isinstance(c, Coupling))
        if len(found) < len(self.couplings):
            raise RequestError(
                f"stage {self.name}: its pairs are listed as edges; this needs weights "
                "that a head shares."
            )
        return found

    @property
    def grid(self) -> tuple[int, int]:
        """Tokens and coordinates of the targets that are read as phases, (T, K).

        Raises:
            RequestError: the targets are pair cells.
        """
        if not self.flat:
            tokens, coordinates = self.phi0_rad.shape
            return int(tokens), int(coordinates)
        if self.readout != "phase" or self.index is None:
            raise RequestError(
                f"stage {self.name}: its targets are pair cells, no grid of tokens and "
                "coordinates."
            )
        tokens, coordinates = self.index.max(axis=0) - self.index.min(axis=0) + 1
        return int(tokens), int(coordinates)

    @property
    def begins(self) -> int:
        """First token that is computed; tokens before it are sources alone.

        Not every token needs a pair cell of its own, so their stage says it.
        """
        if not self.flat or self.readout != "phase":
            return self.first_token
        assert self.index is not None
        return int(self.index[:, 0].min())

    @property
    def target_index(self) -> IntArray:
        """Token and coordinate of every target that is read as a phase, (T K, 2).

        Raises:
            RequestError: the targets are pair cells.
        """
        places = np.unravel_index(np.arange(self.targets), self.grid)
        index: IntArray = np.stack(places, axis=1) + np.array([self.begins, 0])
        return index

    def rows_of(self, index: npt.ArrayLike) -> IntArray:
        """Rows of targets in the bank, laid out flat, token by token.

        Args:
            index: Token and coordinate of each target, shape (M, 2).

        Raises:
            RequestError: a target that the stage does not have.
        """
        given = np.asarray(index, dtype=np.int64).reshape(-1, 2)
        place, shape = given - np.array([self.begins, 0]), self.grid
        outside = ((place < 0) | (place >= np.array(shape))).any(axis=1)
        if outside.any():
            token, coordinate = given[int(np.argmax(outside))].tolist()
            last = self.begins + shape[0] - 1
            raise RequestError(
                f"stage {self.name} has no target {token}/{coordinate}: it has tokens "
                f"{self.begins} to {last} of {shape[1]} coordinates."
            )
        return np.asarray(place[:, 0] * shape[1] + place[:, 1])

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Values of all targets as tokens and coordinates, shape (..., T, K).

        Args:
            values: In the shape of the targets, any axes before them.

        Raises:
            RequestError: the targets are pair cells.
        """
        before = values.shape[: values.ndim - self.phi0_rad.ndim]
        return values.reshape(*before, *self.grid)
