"""Program: ordered stages and host operations, with all that a run depends on.

Values are equal when their content is: the digest leaves provenance out.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc.arrays import IntArray, frozen
from oscc.checks import (
    require_choice,
    require_positive,
    require_shape,
    require_whole,
)
from oscc.errors import RequestError
from oscc.ir.correlation import Correlation
from oscc.ir.stage import Stage

COUPLERS = ("shaped",)

CONVENTIONS: Mapping[str, str] = {
    "phase_zero": "upward V_IMT crossing",
    "phase_unit": "rad, unwrapped",
    "equation": "dphi_a/dtau = Omega_a"
    " + g_a sum_n Im[exp(-i n phi_a) sum_b c_nab exp(i n theta_b)]",
    "coefficient": "c = gamma exp(+i alpha) A; row of A receives, column sends",
    "injection": "I(t) = sum_n Re(I_n exp(i n omega (t - t0))), t0 opens the gate",
}


@dataclass(frozen=True, slots=True)
class HostOperation:
    """Work that stays digital, counted for the whole input.

    Args:
        name: `score`, `softmax_exponentials`, `bound`, `feed_forward`, ...
        layer: Index of the layer, -1 for what belongs to none.
        count: How many of the unit.
        unit: `mac`, or `exp`, `sincos`, `read` where it is no multiply-accumulate.
    """

    name: str
    layer: int
    count: int
    unit: str = "mac"

    def __post_init__(self) -> None:
        require_whole("count", self.count, least=0, where=f"operation {self.name}")
        require_whole("layer", self.layer, least=-1, where=f"operation {self.name}")


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What is compiled: an oscillator network in stages, independent of a backend.

    Args:
        family: Model family, such as `fsn`.
        stages: In the order in which they run.
        host_operations: In the order in which they run.
        device: Content of the device card (name, values, sources).
        tokens: Symbols of the input, shape (T,).
        accuracy_rad: Wanted rms phase error of a stage on hardware.
        coupler: Kind of coupler.
        deck_targets: Targets a layer that are sampled for decks.
        seed: Seed of every draw of the program.
        notes: What a reader must know, such as a changed update.
        provenance: Digests of the inputs, versions, what each pass did; not content.
        correlations: Scores and logits that oscillators form, where they do.

    Raises:
        RequestError: no stage, two of one name, or a value out of range.
    """

    family: str
    stages: tuple[Stage, ...]
    host_operations: tuple[HostOperation, ...]
    device: Mapping[str, Any]
    tokens: IntArray
    accuracy_rad: float = 0.01
    coupler: str = "shaped"
    deck_targets: int = 8
    seed: int = 0
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    correlations: tuple[Correlation, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        object.__setattr__(self, "correlations", tuple(self.correlations))
        object.__setattr__(self, "host_operations", tuple(self.host_operations))
        object.__setattr__(self, "tokens", _symbols(self.tokens))
        object.__setattr__(self, "notes", tuple(self.notes))
        for name in ("device", "provenance"):
            object.__setattr__(self, name, _plain(name, getattr(self, name)))
        require_choice("coupler", self.coupler, COUPLERS)
        require_positive("accuracy_rad", self.accuracy_rad, unit="rad")
        object.__setattr__(self, "accuracy_rad", float(self.accuracy_rad))
        require_whole("deck_targets", self.deck_targets)
        require_whole("seed", self.seed, least=0)
        if not self.stages:
            raise RequestError("Argument `stages` must hold at least one stage.")
        names = [stage.name for stage in self.stages]
        names += [one.name for one in self.correlations]
        for name in names:
            if names.count(name) > 1:
                raise RequestError(f"stage {name} stands twice in the program.")

    @property
    def computed_tokens(self) -> int:
        """Tokens whose phases the program computes: all, or the last when decoding."""
        return max(int(self.tokens.size) - min(s.begins for s in self.stages), 0)

    @property
    def decodes(self) -> bool:
        """Whether one new token alone is computed, on a bank of earlier ones."""
        return any(stage.begins for stage in self.stages)

    @property
    def of_cells(self) -> bool:
        """Whether the targets are pair cells, read as coherences."""
        return all(stage.readout == "coherence" for stage in self.stages)

    def stage(self, name: str) -> Stage:
        """The stage of a name.

        Raises:
            RequestError: there is none.
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        known = ", ".join(stage.name for stage in self.stages)
        raise RequestError(f"The program has no stage `{name}`; it has {known}.")

    def replace(self, **changes: Any) -> Program:
        """A program with some fields changed, checked anew."""
        return dataclasses.replace(self, **changes)

    def digest(self) -> str:
        """Hash of the content, provenance left out; the same on every platform."""
        from oscc.ir.codec import content_digest

        return content_digest(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


def _symbols(given: npt.ArrayLike) -> IntArray:
    tokens = np.asarray(given)
    require_shape("tokens", tokens, (-1,), axes="(T,)")
    if tokens.dtype.kind not in "iu" or (tokens < 0).any():
        raise RequestError("Argument `tokens` must hold whole numbers >= 0.")
    return frozen(tokens, np.int64)


def _plain(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Own copy of a mapping, as a trip through the file would leave it."""
    try:
        text = json.dumps(content, allow_nan=False, sort_keys=True)
        copy: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError) as error:
        raise RequestError(
            f"Argument `{name}` must be plain JSON content, but is not: {error}."
        ) from error
    return copy
