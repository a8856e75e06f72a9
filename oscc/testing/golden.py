"""Golden files: programs of fixed content, written once for each format version.

Every number is a multiple of 1/8, so that no rounding of a platform shows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from oscc.ir import Coupling, HostOperation, Program, Stage
from oscc.ir.upgrade import VERSION


def flow_program() -> Program:
    """Two tokens, two coordinates, both routes, two harmonics, update `flow`.

    Example:
        >>> flow_program().stages[0].harmonics
        (1, 2)
    """
    weights = np.array([[[1.0, 0.0], [0.25, 0.75]]])
    successor = np.array([[[0.0, 0.0], [0.0, 0.25]]])
    gamma = np.array([[1.0, -0.5], [0.25, 0.125]])
    alpha = np.array([[0.0, 0.5], [-1.5, 2.0]])
    stage = Stage(
        name="layer.0.coupling",
        theta_rad=np.array([[0.125, -3.5], [9.25, 0.0]]),
        phi0_rad=np.array([[0.125, -3.5], [9.25, 0.0]]),
        gain_rad=np.array([[2.0, -1.5], [0.0, 4.0]]),
        detuning_rad=np.array([[0.0, 0.5], [0.0, 0.0]]),
        couplings=(
            Coupling("present", np.array([1, 2]), weights, gamma, alpha),
            Coupling("successor", np.array([1, 2]), successor, -gamma, alpha),
        ),
        digital_rad=np.array([[0.25, -3.0], [9.25, -0.0]]),
        substeps=3,
        dwell_periods=4,
    )
    return Program(
        family="fsn",
        stages=(stage,),
        host_operations=(HostOperation("score", 0, 12), HostOperation("read", -1, 2)),
        device={"name": "golden card", "parameters": {"c_F": 1e-10, "vdd_V": 5}},
        tokens=np.array([34, 97]),
        accuracy_rad=0.0078125,
        deck_targets=2,
        seed=7,
        provenance={"version": "golden", "passes": [{"name": "none"}]},
    )


def probe_program() -> Program:
    """The flow program run as a probe of an Euler model, without a successor route.

    Example:
        >>> probe_program().stages[0].update
        'probe'
    """
    from dataclasses import replace

    flow = flow_program()
    stage = replace(
        flow.stages[0],
        couplings=flow.stages[0].couplings[:1],
        update="probe",
        model_update="euler",
        probe_epsilon=0.03125,
        scheme="plain",
        fidelity="oscillators",
    )
    return flow.replace(family="kuramoto", stages=(stage,), notes=("a note, größer",))


PROGRAMS = {"flow": flow_program, "probe": probe_program}


def write_missing(folder: Path) -> list[Path]:
    """Write the golden files of the current version that are not there yet.

    Args:
        folder: Holds one folder a version, `program-1` and so on.

    Returns:
        What was written; a file that is there is never touched.
    """
    from oscc.ir.codec import save

    written = []
    for name, make in PROGRAMS.items():
        path = folder / f"program-{VERSION}" / f"{name}.safetensors"
        if not path.exists():
            save(make(), path)
            written.append(path)
    return written


if __name__ == "__main__":
    write_missing(Path(sys.argv[1]))
