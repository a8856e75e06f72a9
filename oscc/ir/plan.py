"""Plan of a stage: the dwells that its scheme runs, in order.

The flow composes, so a dwell of gain g is S dwells of gain g/S. `extrapolated` runs
each twice from the same start, over P and 2P periods, and reads 2 psi(2P) - psi(P).
A `probe` does all of it at gains +epsilon g and -epsilon g.
"""

from __future__ import annotations

from dataclasses import dataclass

from oscc.ir.stage import Stage


@dataclass(frozen=True, slots=True)
class Dwell:
    """One write, one coupled interval and one read of every target of a stage.

    Args:
        run: 0 for the flow or the probe at +epsilon, 1 for the probe at -epsilon.
        substep: Index of the substep within the run.
        periods: Length in carrier periods.
        gain: Factor on the stage's gain: signed, 1/S for a flow.
    """

    run: int
    substep: int
    periods: int
    gain: float


def dwells(stage: Stage) -> tuple[Dwell, ...]:
    """The dwells of a stage in the order in which they run.

    The arrays `STAGE.raw.start_rad` and `STAGE.raw.end_rad`, shape (M, D), have one
    column for each.
    """
    signs = (1.0,) if stage.update == "flow" else (1.0, -1.0)
    size = 1.0 if stage.update == "flow" else stage.probe_epsilon
    lengths = [stage.dwell_periods]
    if stage.scheme == "extrapolated":
        lengths.append(2 * stage.dwell_periods)
    return tuple(
        Dwell(run, substep, periods, sign * size / stage.substeps)
        for run, sign in enumerate(signs)
        for substep in range(stage.substeps)
        for periods in lengths
    )


def total_periods(stage: Stage) -> int:
    """Carrier periods that a stage takes in all, every dwell counted."""
    return sum(dwell.periods for dwell in dwells(stage))
