"""Observables: what an engine saw of a program, with its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscc import tensors
from oscc.arrays import FloatArray, IntArray, frozen
from oscc.errors import RequestError, ToolError

FORMAT = "oscc.observables/1"


@dataclass(frozen=True, slots=True, eq=False)
class Observables:
    """Arrays by name, with the program and the engine they come from.

    Names: `STAGE.phase` (T, K) or (M,), unwrapped [rad]; `STAGE.index` (M, 2) token
    and coordinate where only some targets were simulated; `STAGE.raw.start_rad` and
    `STAGE.raw.end_rad` (M, D) of every dwell of the plan; `STAGE.raw.half_step_rad`
    (M, D) where a convergence run was made; `STAGE.supply_J`, `STAGE.injected_J`.
    Of pair cells, in the order of the stage or of `STAGE.cells` (M,) where only some
    were simulated: `STAGE.coherence`, `STAGE.locked` (1 locked, 0 slipping, -1 not
    decided by the read-out), `STAGE.margin`.

    Args:
        engine: `phase`, `circuit`, `ngspice`, ...
        program: Digest of the program.
        arrays: Read-only arrays by name.
        facts: Figures of the run that repeat exactly: counts, settings, versions.

    Raises:
        ToolError: an engine gave a value that is not finite.
    """

    engine: str
    program: str
    arrays: Mapping[str, npt.NDArray[Any]]
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        kept = {}
        for name, array in self.arrays.items():
            values = np.asarray(array)
            bad = ~np.isfinite(values)
            if bad.any():
                first = tuple(int(i) for i in np.argwhere(bad)[0])
                raise ToolError(
                    f"The {self.engine} run gave {int(bad.sum())} values of `{name}` "
                    f"that are not finite, first at {first}: no number is offered."
                )
            kept[name] = frozen(values, values.dtype)
        object.__setattr__(self, "arrays", kept)

    def phase(self, stage: str) -> FloatArray:
        """Phases of a stage, shape (T, K), or (M,) where `index` says which.

        Raises:
            RequestError: the stage was not simulated.
        """
        return self._array(f"{stage}.phase")

    def targets(self, stage: str) -> int:
        """Number of targets, or of pair cells, of a stage that were simulated.

        Raises:
            RequestError: the stage was not simulated.
        """
        name = f"{stage}.coherence"
        if name in self.arrays:
            return int(self.arrays[name].size)
        return int(self.phase(stage).size)

    def index(self, stage: str, shape: tuple[int, ...], first: int = 0) -> IntArray:
        """Token and coordinate of each simulated target, shape (M, 2).

        Args:
            stage: Name of the stage.
            shape: Tokens and coordinates of its targets.
            first: Token of its first targets.
        """
        if f"{stage}.index" in self.arrays:
            return np.asarray(self.arrays[f"{stage}.index"], dtype=np.int64)
        places = np.unravel_index(np.arange(int(np.prod(shape))), shape)
        every: IntArray = np.stack(places, 1) + np.array([first, 0])
        return every

    def _array(self, name: str) -> npt.NDArray[Any]:
        if name not in self.arrays:
            raise RequestError(f"The {self.engine} run holds no `{name}`.")
        return self.arrays[name]

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages that were simulated."""
        return tuple(
            name.rpartition(".")[0]
            for name in sorted(self.arrays)
            if name.endswith((".phase", ".coherence"))
        )


def save(seen: Observables, path: Path) -> None:
    """Write `observables.safetensors` atomically; equal content is equal bytes.

    Raises:
        ToolError: the file could not be written.
    """
    metadata = {
        "format": FORMAT,
        "engine": seen.engine,
        "program": seen.program,
        "facts": json.dumps(seen.facts, sort_keys=True, allow_nan=False),
    }
    tensors.save(path, seen.arrays, metadata)


def load(path: Path) -> Observables:
    """Read `observables.safetensors`.

    Raises:
        RequestError: missing, damaged or foreign.
    """
    arrays, metadata = tensors.load(path)
    if metadata.get("format") != FORMAT:
        raise RequestError(
            f"`{path}` has format {metadata.get('format')!r}, "
            f"but this version reads {FORMAT!r}."
        )
    try:
        facts = json.loads(metadata.get("facts", "{}"))
    except json.JSONDecodeError as error:
        raise RequestError(f"`{path}` has malformed facts: {error}.") from error
    return Observables(
        engine=metadata.get("engine", ""),
        program=metadata.get("program", ""),
        arrays=arrays,
        facts=facts,
    )
