"""Say what is wrong with an installation, a checkpoint, a card or a build."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from oscc.checks import nearest
from oscc.errors import OsccError, RequestError, ToolError
from oscc.units import counted
from oscc.version import VERSION

FORMAT = "oscc.doctor/1"
PERIOD_LIMIT = 1e-4
KNOWN_CARD = "vo2-two-state-20k"

_PACKAGES = ("numpy", "scipy", "numba", "torch", "networkx", "safetensors", "msgspec")
_EXTRAS = {
    "PySpice": ("GPL, optional", 'pip install "PySpice>=1.5"'),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Args:
        name: What was looked at, such as `gnucap`.
        ok: Whether it is sound; a note is sound.
        detail: What was found.
        mend: What to do; empty where there is nothing to do.
        tool: Whether a fault is one of the machine (exit 3), not of the user's file.
        note: Whether it is only said, not counted.
    """

    name: str
    ok: bool
    detail: str
    mend: str = ""
    tool: bool = True
    note: bool = False

    def to_json(self) -> dict[str, Any]:
        """The entry of the JSON answer."""
        return {name: getattr(self, name) for name in ("name", "ok", "detail", "mend")}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, and which levels of the ladder can run here."""

    checks: tuple[Check, ...]
    levels: Mapping[str, bool]

    @property
    def exit_status(self) -> int:
        """0 all is sound, 2 the file asked about is not, 3 a tool is missing."""
        bad = [check for check in self.checks if not check.ok]
        if any(not check.tool for check in bad):
            return 2
        return 3 if bad else 0

    def to_json(self) -> dict[str, Any]:
        """Content of the JSON answer."""
        return {
            "format": FORMAT,
            "checks": [check.to_json() for check in self.checks],
            "levels": dict(self.levels),
        }


def doctor(
    path: Path | None = None,
    *,
    key: str | None = None,
    model_config: Mapping[str, Any] | None = None,
    timeout_s: float = 60.0,
) -> Diagnosis:
    """What is wrong with a file, or with the installation where none is named.

    Args:
        path: Checkpoint, device card (or the name of one) or build folder.
        key: Which mapping of a foreign checkpoint holds the weights.
        model_config: Model section of the configuration, for a foreign checkpoint.
        timeout_s: Longest time of one simulator run.

    Raises:
        RequestError: the path does not exist.
    """
    if path is None:
        return _installation(timeout_s)
    return Diagnosis(tuple(_of_file(path, key, model_config)), {})


def simulator_version(name: str) -> str | None:
    """Version that a simulator states, None where the program is not found.

    Raises:
        ToolError: it is there, but does not state a version.
    """
    from oscc_sims.simulator import program_path
    from oscc_sims.simulator import version as stated

    return None if program_path(name) is None else stated(name)


def _installation(timeout_s: float) -> Diagnosis:
    checks = [_python(), *_packages(), _numba(), _torch(), _closed_forms()]
    simulators = {name: _simulator(name, timeout_s) for name in ("ngspice", "gnucap")}
    checks += simulators.values()
    checks += _extras()
    sound = {check.name: check.ok for check in checks}
    levels = {
        "ir": sound["numpy"],
        "phase": sound["numpy"] and sound["numba"],
        "circuit": sound["numpy"] and sound["numba"],
        **{f"spice:{name}": check.ok for name, check in simulators.items()},
    }
    return Diagnosis(tuple(checks), levels)


def _python() -> Check:
    found = platform.python_version()
    detail = f"Python {found}, oscc {VERSION}"
    return Check(
        "python",
        sys.version_info >= (3, 11),
        detail,
        "" if sys.version_info >= (3, 11) else "Install Python 3.11 or newer.",
    )


def _packages() -> list[Check]:
    out = []
    for name in _PACKAGES:
        try:
            out.append(Check(name, True, f"{name} {version(name)}"))
        except PackageNotFoundError:
            mend = f"pip install {name}   (or: make install)"
            out.append(Check(name, False, f"{name} is not installed", mend))
    return [check for check in out if check.name not in ("numba", "torch")]


def _numba() -> Check:
    """Numba compiles a kernel of the circuit engine and gets a known number."""

    def attempt() -> str:
        import numba

        def total(count: int) -> float:
            out = 0.0
            for k in range(count):
                out += 1.0 / (2 * k + 1) ** 2
            return out

        compiled: Any = numba.njit(total)
        # pi^2/8, with the tail of the sum after n terms between 1/(4n+4) and 1/(4n)
        missing = 3.141592653589793**2 / 8 - compiled(1000)
        if not 1 / 4004 < missing < 1 / 4000:
            raise ToolError(f"a compiled sum is off by {missing:.3g}")
        return f"numba {numba.__version__} (compiles and runs)"

    return _tried("numba", attempt, "pip install --force-reinstall numba llvmlite")


def _torch() -> Check:
    def attempt() -> str:
        import torch

        product = torch.ones(2, 3, dtype=torch.float64) @ torch.ones(
            3, 2, dtype=torch.float64
        )
        if product.tolist() != [[3.0, 3.0], [3.0, 3.0]]:
            raise ToolError(f"a product of ones is {product.tolist()}")
        return f"torch {torch.__version__}"

    return _tried("torch", attempt, "pip install torch   (or: make install)")


def _tried(name: str, attempt: Callable[[], str], mend: str) -> Check:
    """Findings of something that may fail in any way that a broken package can."""
    try:
        return Check(name, True, attempt())
    except (ImportError, OSError, RuntimeError, AttributeError, OsccError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Check(name, False, f"{name}: does not work: {first}", mend)


def _closed_forms() -> Check:
    from oscc.verbs.selftest import closed_forms

    return _tried("closed forms", closed_forms, "Install oscc again: it is damaged.")


def _simulator(name: str, timeout_s: float) -> Check:
    """A simulator is judged by what it computes, not by its version."""
    from oscc.config import environment
    from oscc_sims.simulator import program_path

    wanted = getattr(environment(), name)
    path = program_path(name)
    level = "The level spice runs without it."
    if path is None:
        return Check(
            name,
            False,
            f"{name}: `{wanted}` not found. {level}",
            f"sudo apt-get install {name}   (or set OSCC_{name.upper()})",
        )
    try:
        off = known_deck_error(name, path, timeout_s)
    except ToolError as error:
        return Check(
            name,
            False,
            f"{name}: `{path}` does not run a known deck: {error}",
            f"sudo apt-get install --reinstall {name}   (or set OSCC_{name.upper()})",
        )
    try:
        stated = f"{name} {simulator_version(name)}"
    except ToolError:
        stated = f"{name} (states no version)"
    detail = f"{stated}: known deck, period off by {abs(off):.1e}"
    ok = abs(off) <= PERIOD_LIMIT
    return Check(
        name,
        ok,
        f"{detail} (limit {PERIOD_LIMIT:.0e})",
        "" if ok else f"Install another version of {name}.",
    )


def known_deck_error(name: str, path: str, timeout_s: float) -> float:
    """Relative error of the period of a free cell against its closed form.

    Args:
        name: Dialect of the simulator.
        path: Its program.
        timeout_s: Longest time of the run.

    Raises:
        ToolError: the program gave no usable waveform.
    """
    from oscc.device import load_card
    from oscc.device.piecewise import period_s
    from oscc_netlists.deck import reference_deck
    from oscc_netlists.settings import default_settings
    from oscc_sims.process import Children
    from oscc_sims.readout import free_timing
    from oscc_sims.simulator import SimulatorFault, run_deck

    card = load_card(KNOWN_CARD)
    deck = reference_deck(card, default_settings(name))
    try:
        with Children() as children:
            plot = run_deck(children, deck, path, timeout_s=timeout_s)
        timing = free_timing(card, deck, plot)
    except SimulatorFault as error:
        raise ToolError(str(error)) from error
    return timing.period_s / period_s(card) - 1.0


def _extras() -> list[Check]:
    out = []
    for name, (why, mend) in _EXTRAS.items():
        if importlib.util.find_spec(name) is None:
            out.append(Check(name, True, f"no {name} ({why})", mend, note=True))
        else:
            out.append(Check(name, True, f"{name} {version(name)} ({why})", note=True))
    if shutil.which("ngspice") is None and shutil.which("gnucap") is None:
        out.append(
            Check(
                "decks",
                True,
                "without a simulator decks are written but never judged",
                note=True,
            )
        )
    return out


def _of_file(
    path: Path, key: str | None, model_config: Mapping[str, Any] | None
) -> Sequence[Check]:
    from oscc.device.card_file import card_names

    if path.is_dir():
        return _of_build(path)
    if path.suffix in (".yaml", ".yml") or str(path) in card_names():
        return [_of_card(path)]
    if not path.exists():
        others = [str(p) for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = nearest(str(path), [*others, *card_names()])
        raise RequestError(f"`{path}` does not exist.{near}")
    from oscc.diagnosis import diagnose_checkpoint

    found = diagnose_checkpoint(path, key, model_config)
    return [
        Check(c.name, c.ok, c.detail, c.mend, tool=False, note=c.name.endswith(".note"))
        for c in found
    ]


def _of_card(path: Path) -> Check:
    from oscc.device.card_file import load_card
    from oscc.device.piecewise import duty, period_s
    from oscc.units import si_text

    try:
        card = load_card(str(path))
    except RequestError as error:
        detail, _, mend = str(error).partition(". ")
        mend = mend or "Correct the card."
        return Check("card", False, detail, mend, tool=False)
    return Check(
        "card",
        True,
        f"{card.name} oscillates: period {si_text(period_s(card), 's')}, "
        f"duty {duty(card):.3f}",
        tool=False,
    )


def _of_build(path: Path) -> list[Check]:
    """A build is sound if every listed file is what the manifest says."""
    from oscc.build import FORMAT as MANIFEST
    from oscc.build import BuildFolder, outputs
    from oscc.files import read_json

    try:
        folder = BuildFolder.open(path)
        listed = read_json(path / "manifest.json", MANIFEST)["outputs"]
        program = folder.program()
    except RequestError as error:
        return [_bad("build", str(error), "Compile it again with --force.")]
    found = outputs(path)
    checks = [
        Check(
            "build",
            True,
            f"program {program.digest()[:8]}, {counted(len(found), 'file')}",
        )
    ]
    for name in sorted(set(listed) | set(found)):
        if name not in found:
            checks.append(_bad(name, f"{name}: listed, but missing", "Compile again."))
        elif name not in listed:
            checks.append(_bad(name, f"{name}: not in the manifest", "Remove it."))
        elif listed[name] != found[name]:
            mend = "Run the verb that makes it again."
            checks.append(_bad(name, f"{name}: changed since it was written", mend))
    return checks + [_of_run(folder, program, name) for name in folder.engines()]


def _of_run(folder: Any, program: Any, engine: str) -> Check:
    try:
        folder.observables(engine, program)
    except RequestError as error:
        mend = f"oscc simulate {folder.path} --engine {engine}"
        return _bad(f"sim/{engine}", str(error), mend)
    return Check(f"sim/{engine}", True, f"sim/{engine}: of this program")


def _bad(name: str, detail: str, mend: str) -> Check:
    return Check(name, False, detail, mend, tool=False)
