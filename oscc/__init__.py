"""Compiler and simulator for oscillator hardware.

    import oscc
    model   = oscc.load("checkpoints/fsn-flow.safetensors")
    program = oscc.compile(model, "import os", accuracy_mrad=10)
    seen    = oscc.simulate(program, engine="circuit")
    verdict = oscc.verify(program, seen)
    account = oscc.energy(program, seen)

Every name is imported on first use, so that `import oscc` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oscc.account import EnergyAccount
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.checkpoint import load_checkpoint as load
    from oscc.errors import OsccError, RequestError, ToolError, UndecidedError
    from oscc.ir.coupling import Coupling
    from oscc.ir.edges import Edges
    from oscc.ir.program import Program
    from oscc.ir.stage import Stage
    from oscc.ladder.verdict import Verdict
    from oscc.lower.own import PhaseCoupling, stage_from
    from oscc.observables import Observables
    from oscc.verbs.compile import CompileRequest, compile
    from oscc.verbs.doctor import Diagnosis, doctor
    from oscc.verbs.energy import energy
    from oscc.verbs.evaluate import EvaluateOptions, evaluate
    from oscc.verbs.inspect import inspect
    from oscc.verbs.own_layers import program_from_layers
    from oscc.verbs.report import report_folder as report
    from oscc.verbs.simulate import SimulateOptions, simulate
    from oscc.verbs.train import TrainResult, train
    from oscc.verbs.verify import VerifyOptions, verify
    from oscc.version import VERSION as __version__

_PLACES = {
    "CompileRequest": "oscc.verbs.compile:CompileRequest",
    "Coupling": "oscc.ir.coupling:Coupling",
    "Diagnosis": "oscc.verbs.doctor:Diagnosis",
    "Edges": "oscc.ir.edges:Edges",
    "EnergyAccount": "oscc.account:EnergyAccount",
    "EvaluateOptions": "oscc.verbs.evaluate:EvaluateOptions",
    "LoadedCheckpoint": "oscc.checkpoint:LoadedCheckpoint",
    "Observables": "oscc.observables:Observables",
    "OsccError": "oscc.errors:OsccError",
    "PhaseCoupling": "oscc.lower.own:PhaseCoupling",
    "Program": "oscc.ir.program:Program",
    "RequestError": "oscc.errors:RequestError",
    "SimulateOptions": "oscc.verbs.simulate:SimulateOptions",
    "Stage": "oscc.ir.stage:Stage",
    "ToolError": "oscc.errors:ToolError",
    "TrainResult": "oscc.verbs.train:TrainResult",
    "UndecidedError": "oscc.errors:UndecidedError",
    "Verdict": "oscc.ladder.verdict:Verdict",
    "VerifyOptions": "oscc.verbs.verify:VerifyOptions",
    "__version__": "oscc.version:VERSION",
    "compile": "oscc.verbs.compile:compile",
    "doctor": "oscc.verbs.doctor:doctor",
    "energy": "oscc.verbs.energy:energy",
    "evaluate": "oscc.verbs.evaluate:evaluate",
    "inspect": "oscc.verbs.inspect:inspect",
    "load": "oscc.checkpoint:load_checkpoint",
    "program_from_layers": "oscc.verbs.own_layers:program_from_layers",
    "report": "oscc.verbs.report:report_folder",
    "simulate": "oscc.verbs.simulate:simulate",
    "stage_from": "oscc.lower.own:stage_from",
    "train": "oscc.verbs.train:train",
    "verify": "oscc.verbs.verify:verify",
}

__all__ = [
    "CompileRequest",
    "Coupling",
    "Diagnosis",
    "Edges",
    "EnergyAccount",
    "EvaluateOptions",
    "LoadedCheckpoint",
    "Observables",
    "OsccError",
    "PhaseCoupling",
    "Program",
    "RequestError",
    "SimulateOptions",
    "Stage",
    "ToolError",
    "TrainResult",
    "UndecidedError",
    "Verdict",
    "VerifyOptions",
    "__version__",
    "compile",
    "doctor",
    "energy",
    "evaluate",
    "inspect",
    "load",
    "program_from_layers",
    "report",
    "simulate",
    "stage_from",
    "train",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'oscc' has no attribute {name!r}")
    module, attribute = _PLACES[name].split(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
