"""The oscillator-network program: types, serialisation, views, meaning."""

from oscc.ir.coupling import Coupling
from oscc.ir.edges import Edges
from oscc.ir.modes import Modes
from oscc.ir.program import HostOperation, Program
from oscc.ir.stage import Stage

__all__ = ["Coupling", "Edges", "HostOperation", "Modes", "Program", "Stage"]
