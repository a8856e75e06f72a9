"""Energy account of a program or of a build folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from oscc.account import EnergyAccount, account
from oscc.build import BuildFolder
from oscc.files import read_json
from oscc.ir.program import Program
from oscc.ladder.verdict import FORMAT as VERIFY_FORMAT
from oscc.observables import Observables
from oscc.verbs.ideal import ideal_elements


def energy(
    program: Program,
    seen: Observables | Collection[Observables] = (),
    *,
    overrides: Mapping[str, float] | None = None,
) -> EnergyAccount:
    """Energy account of a program, beside what engines measured.

    Args:
        program: What was compiled.
        seen: Observables of any engines; those that integrated energies are listed.
        overrides: Values of assumptions by name, in the unit of the assumption.

    Raises:
        RequestError: an unknown assumption, or observables of another program.

    Example:
        >>> from oscc.testing.energy import two_token_program
        >>> energy(two_token_program()).pairs
        3
    """
    given = [seen] if isinstance(seen, Observables) else list(seen)
    return account(
        program,
        {one.engine: one for one in given},
        overrides=overrides,
        ideal_elements=ideal_elements(program, given),
    )


def energy_folder(
    build: Path, *, overrides: Mapping[str, float] | None = None
) -> EnergyAccount:
    """Account of a build folder, from every engine that has run; writes energy.json.

    Raises:
        RequestError: not a build folder, observables of another program in it, or an
            unknown assumption.
        ToolError: the disk is full.
    """
    folder = BuildFolder.open(build)
    with folder.locked():
        program = folder.program()
        seen = {name: folder.observables(name, program) for name in folder.engines()}
        found = {name: one for name, one in seen.items() if one is not None}
        gap = _fidelity_gap(folder, program)
        result = account(
            program,
            found,
            overrides=overrides,
            ideal_elements=ideal_elements(
                program, found.values(), tile=gap, folder=folder
            ),
            tile=_tile_entry(gap),
        )
        folder.write_json("energy.json", result.to_json())
    return result


def _fidelity_gap(folder: BuildFolder, program: Program) -> Mapping[str, Any]:
    """Facts of the tile of real cells, empty where `verify` has not run one."""
    path = folder.path / "verify.json"
    if not path.is_file():
        return {}
    verdict = read_json(path, VERIFY_FORMAT)
    gap = verdict.get("fidelity_gap")
    return dict(gap) if gap and verdict.get("program") == program.digest() else {}


def _tile_entry(gap: Mapping[str, Any]) -> dict[str, Any] | None:
    """Measured entry of the tile, None where its supply was not integrated."""
    if gap.get("supply_J") is None:
        return None
    cells = f"{gap.get('sources', '?')} sources x {gap.get('targets', '?')} targets"
    return {
        "engine": str(gap.get("engine", "gnucap")),
        "scope": f"tile of real cells, {cells}, {gap.get('stage', 'one stage')}: whole "
        "deck with writes, settling and reads",
        "targets": int(gap.get("targets", 0)),
        "supplies": ["vdd"],
        "tag": "simulated",
        "supply_J": float(gap["supply_J"]),
        "injected_J": gap.get("injected_J"),
        "parts_J": gap.get("parts_J"),
        "balance_error": gap.get("balance_error"),
        "balanced": gap.get("balanced"),
        "reason": gap.get("reason", "the deck reports its supply alone"),
        "closed_form_J": gap.get("closed_form_J"),
        "over_closed_form": gap.get("over_closed_form"),
    }
