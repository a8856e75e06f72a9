"""Pair cells in a simulator: which ones, their decks, what was read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oscc.arrays import IntArray
from oscc.device.card_file import card_from_mapping
from oscc.errors import RequestError
from oscc.files import dump_json, write_atomic
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ladder.locks import sample_cells
from oscc.observables import Observables
from oscc.seeds import stream

if TYPE_CHECKING:
    from oscc.device.card import Card
    from oscc.verbs.simulate import SimulateOptions


def sampled_cells(program: Program, count: int | None = None) -> dict[str, IntArray]:
    """Seeded sample of cells of every stage, one in each band of x.

    Args:
        program: A program of pair cells.
        count: Cells a stage; the program's own number without it.
    """
    wanted = program.deck_targets if count is None else count
    return {
        stage.name: sample_cells(
            stage, wanted, stream(program.seed, f"deck sample {stage.name}")
        )
        for stage in program.stages
    }


def chosen_cells(program: Program, options: SimulateOptions) -> dict[str, IntArray]:
    """Rows of the cells that a simulator runs, by stage.

    Raises:
        RequestError: a stage or a cell that is not in the program, or a malformed
            list.
    """
    names = options.stages
    for name in names or ():
        program.stage(name)
    stages = [s for s in program.stages if names is None or s.name in names]
    wanted = options.targets
    if isinstance(wanted, Mapping):
        return {s.name: wanted[s.name] for s in stages if s.name in wanted}
    if wanted is None or isinstance(wanted, int) or str(wanted).isdigit():
        count = None if wanted is None else int(str(wanted))
        if count is not None and count < 1:
            raise RequestError(
                f"A simulator runs 1 cell a stage or more, but {count} were asked for."
            )
        sample = sampled_cells(program, count)
        return {stage.name: sample[stage.name] for stage in stages}
    if wanted == "all":
        return {s.name: np.arange(s.targets) for s in stages}
    listed = wanted.split(";") if isinstance(wanted, str) else list(wanted)
    return {s.name: _rows(listed, s) for s in stages}


def _rows(listed: Collection[str], stage: Stage) -> IntArray:
    assert stage.index is not None
    row = {tuple(map(int, place)): i for i, place in enumerate(stage.index)}
    out = []
    for entry in listed:
        parts = [part.strip() for part in str(entry).split(",")]
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            raise RequestError(
                f"Cell {entry!r} must be HEAD,TOKEN,PARTNER, such as 0,17,3; several "
                "are parted by `;`."
            )
        place = tuple(int(part) for part in parts)
        if place not in row:
            raise RequestError(
                f"stage {stage.name}: the pair {entry} has no cell. It is too far from "
                "its lock range, or not in the program; --stages chooses the stages."
            )
        out.append(row[place])
    return np.array(sorted(set(out)), dtype=np.int64)


def simulate_cells(
    program: Program, name: str, options: SimulateOptions
) -> Observables:
    """Some cells of every stage in a simulator.

    Args:
        program: A program of pair cells.
        name: `ngspice` or `gnucap`.
        options: Cells, processes, limits.

    Raises:
        RequestError: a simulator that runs no cells, or a cell that is not there.
        ToolError: the simulator is missing or failed.
    """
    from oscc_backends import lock
    from oscc_netlists.names import unique_names
    from oscc_netlists.settings import DIALECTS
    from oscc_sims import lock_spice

    if name not in DIALECTS:
        raise RequestError(
            f"Engine {name} runs no pair cells; use {' or '.join(DIALECTS)}."
        )
    card = card_from_mapping(program.device, "the program's device card")
    stems = unique_names(stage.name for stage in program.stages)
    arrays: dict[str, Any] = {}
    facts: dict[str, Any] = {"fidelity": "oscillators", "decks": 0}
    for stage_name, rows in chosen_cells(program, options).items():
        seen = lock_spice.run(
            card,
            lock.problem(program.stage(stage_name)),
            rows,
            name,
            gate=options.gate,
            jobs=options.jobs,
            timeout_s=options.timeout_s,
            decks_dir=options.decks,
            stem=stems[stage_name],
            program=program.digest(),
        )
        arrays |= seen.arrays(stage_name)
        facts["decks"] += seen.decks
        facts["ideal_elements"] = dict(seen.ideal)
    return Observables(name, program.digest(), arrays, facts)


def write_cells(program: Program, folder: Path) -> None:
    """Decks of the sampled cells of every stage, for both dialects, with their index.

    Args:
        program: A program of pair cells.
        folder: Build folder; the decks go to its `netlist`.
    """
    from oscc.build import NETLIST_FORMAT
    from oscc_backends import lock, lock_spice
    from oscc_backends.deck_files import FOLDER, ORIGIN_FORMAT
    from oscc_netlists.circuit import largest_count
    from oscc_netlists.names import unique_names
    from oscc_netlists.settings import DIALECTS, default_settings

    card = card_from_mapping(program.device, "the program's device card")
    names, digest = unique_names(s.name for s in program.stages), program.digest()
    root, rows, origins = folder / FOLDER, [], {}
    for dialect in DIALECTS:
        settings = default_settings(dialect)
        for stage_name, cells in sampled_cells(program).items():
            problem = lock.problem(program.stage(stage_name))
            for cell in cells:
                deck = lock_spice.build_deck(
                    card, problem, int(cell), settings, program=digest
                )
                name = f"{dialect}/{lock_spice.deck_name(deck, stem=names[stage_name])}"
                write_atomic(root / name, deck.text)
                rows.append(lock_spice.index_row(deck, name))
                origins[name] = lock_spice.origin_entry(deck)
    index = {
        "format": NETLIST_FORMAT,
        "program": digest,
        "fidelity": program.stages[0].fidelity,
        "ideal_elements": largest_count(row["ideal_elements"] for row in rows),
        "names": dict(names),
        "decks": rows,
    }
    write_atomic(root / "index.json", dump_json(index))
    content = {"format": ORIGIN_FORMAT, "decks": origins}
    write_atomic(root / "origin.json", dump_json(content))


def list_cells(folder: Path, program: Program, seen: Observables) -> None:
    """List the decks of a simulator's run in `index.json`, in place of older ones.

    Decks of an earlier choice of cells are removed.

    Args:
        folder: Build folder; without an index nothing is listed.
        program: What was simulated.
        seen: What the simulator saw.
    """
    from oscc.build import NETLIST_FORMAT
    from oscc.files import read_json
    from oscc_backends import lock, lock_spice
    from oscc_backends.deck_files import FOLDER
    from oscc_netlists.settings import default_settings

    path = folder / FOLDER / "index.json"
    if not path.is_file():
        return
    index = read_json(path, NETLIST_FORMAT)
    card: Card = card_from_mapping(program.device, "the program's device card")
    rows = [row for row in index["decks"] if row.get("engine") != seen.engine]
    stems: Mapping[str, str] = index["names"]
    kept: set[str] = set()
    for stage_name in seen.stages:
        problem = lock.problem(program.stage(stage_name))
        gated = f"{stage_name}.raw.half_step_coherence" in seen.arrays
        plain = default_settings(seen.engine)
        for cell in seen.arrays[f"{stage_name}.cells"]:
            for finer in (False, True) if gated else (False,):
                deck = lock_spice.build_deck(
                    card, problem, int(cell), plain.finer() if finer else plain
                )
                name = lock_spice.deck_name(deck, stem=stems[stage_name], finer=finer)
                kept.add(name)
                row = lock_spice.index_row(deck, f"../sim/{seen.engine}/decks/{name}")
                rows.append(row | {"engine": seen.engine, "finer": finer})
    for deck_path in folder.glob(f"sim/{seen.engine}/decks/*.cir"):
        if deck_path.name not in kept:
            deck_path.unlink()
    write_atomic(path, dump_json(index | {"decks": rows}))
