"""Levels of the ladder: which engine runs each, and how strictly it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from oscc.checks import nearest
from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.verbs import verify_cells
from oscc.verbs.simulate import WHOLE

if TYPE_CHECKING:
    from oscc.verbs.verify import VerifyOptions

LEVELS = ("ir", "phase", "circuit", "spice")

_EXACT_RAD = 1e-6
_SPICE_RAD = 5e-3
_SPICE_PROBE_RAD = 1e-3


@dataclass(frozen=True, slots=True)
class Level:
    """One level to judge: its engine and the engine above it."""

    level: str
    engine: str
    reference: str
    tolerance_rad: float  # of pair cells in the coherence
    cells: bool = False


def levels_of(word: str, program: Program, options: VerifyOptions) -> list[Level]:
    """What a word of the request asks for: one level, or one for each simulator.

    Args:
        word: `ir`, `phase`, `circuit`, `spice` or `spice:ENGINE`.
        program: What is judged.
        options: Tolerances of the request.

    Raises:
        RequestError: an unknown level or simulator.
    """
    level, _, engine = word.partition(":")
    if level not in LEVELS or (engine and level != "spice"):
        raise RequestError(
            f"There is no level `{word}`; there are {', '.join(LEVELS)} and "
            f"spice:ENGINE.{nearest(word, LEVELS)}"
        )
    probed = any(stage.update == "probe" for stage in program.stages)
    cells = program.of_cells
    if level == "spice":
        return [
            Level(
                *(level, name, "circuit"),
                _tolerance(level, name, program, options),
                cells,
            )
            for name in simulators_of(engine)
        ]
    tolerance = _tolerance(level, level, program, options)
    above = {"ir": "digital", "phase": "ir", "circuit": "ir" if probed else "phase"}
    return [Level(level, level, above[level], tolerance, cells)]


def simulators_of(engine: str) -> tuple[str, ...]:
    """The named simulator, or all installed ones where none is named.

    Raises:
        RequestError: there is none of that name.
    """
    from oscc_sims.registry import BUILT_IN, SIMULATORS
    from oscc_sims.registry import engine as open_engine

    known = [name for name in BUILT_IN if name not in WHOLE]
    if engine:
        if engine not in known:
            raise RequestError(
                f"There is no simulator `{engine}`; there are {', '.join(known)}."
                f"{nearest(engine, known)}"
            )
        return (engine,)
    found = tuple(name for name in SIMULATORS if open_engine(name).available()[0])
    return found or SIMULATORS


def _tolerance(
    level: str, engine: str, program: Program, options: VerifyOptions
) -> float:
    if program.of_cells:
        given = options.tolerance_coherence
        return verify_cells.tolerance(level, engine, program.accuracy_rad, given)
    if level in options.tolerance_rad:
        return options.tolerance_rad[level]
    probed = any(stage.update == "probe" for stage in program.stages)
    if level == "spice":
        return _SPICE_PROBE_RAD if probed else _SPICE_RAD
    if level == "circuit" or (level == "phase" and probed):
        return program.accuracy_rad
    return _EXACT_RAD
