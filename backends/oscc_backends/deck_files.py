"""Files of the sample's decks: `netlist/` of a build folder.

netlist/index.json                    what each deck is of, with the names used
netlist/origin.json                   what each element of each deck stands for
netlist/DIALECT/*.cir                 first-substep decks of the sampled targets
netlist/DIALECT/reference/*.cir       free reference of the card
netlist/gnucap/tile_STAGE.cir         tile of real cells, for fidelity `oscillators`

A simulator keeps the decks of its last run in `sim/ENGINE/decks`; the index lists them
beside those of the sample.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oscc.arrays import IntArray
from oscc.build import NETLIST_FORMAT
from oscc.errors import RequestError
from oscc.files import dump_json, read_json, write_atomic
from oscc.ir.plan import dwells
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.observables import Observables
from oscc_backends.spice import Prepared, build_deck, deck_name, prepare
from oscc_backends.tile import Tile, build_tile
from oscc_netlists.circuit import Circuit, ideal_elements, largest_count
from oscc_netlists.couplers import ROUTE_LETTER
from oscc_netlists.deck import Deck, reference_deck
from oscc_netlists.names import safe_name
from oscc_netlists.settings import DIALECTS, default_settings
from oscc_netlists.tile import WriteTiming
from oscc_netlists.timing import Timing, closed_form

ORIGIN_FORMAT = "oscc.origin/1"
FOLDER = "netlist"

_WHOLE = ("token", "coordinate", "run", "substep", "periods")

_HEADER = re.compile(r"^\* ([a-z_]+): (.*)$", re.MULTILINE)
_STEM = re.compile(r"_t\d+_k\d+_r\d+_s\d+_p\d+(_finer)?$")
_PAIR = re.compile(r"[vg]_(?P<source>\d+)_(?P<harmonic>\d+)_(?P<route>[pse])")
_TILE = re.compile(r"g_w_(?P<target>\d+)_(?P<source>\d+)_(?P<route>[pse])")
_SUM = re.compile(r"[rg]_x_(?P<harmonic>\d+)_(?P<route>[pse])")
_HOST_SUM = re.compile(r"(?:v_sum|g_x)_(?P<harmonic>\d+)")


def write_sample(
    program: Program,
    targets: Mapping[str, IntArray],
    folder: Path,
    timings: Mapping[str, Timing | None] | None = None,
    *,
    written: WriteTiming | None = None,
) -> dict[str, Any]:
    """Write the first-substep decks of sampled targets, for every dialect.

    A stage of fidelity `oscillators` gets one tile of real cells, for gnucap, beside
    the `pairwise` decks of its sample that the tile is compared with.

    Args:
        program: The program; a deck has the fidelity that `deck_fidelity` says.
        targets: Token and coordinate of each target by stage, shape (M, 2).
        folder: Build folder; the decks go to its `netlist`.
        timings: The simulators' own free runs by dialect; where one is missing, the
            closed form is taken and the deck says `calibrated: no`.
        written: gnucap's free run of a written cell, which tiles are timed by.

    Returns:
        Content of `index.json`.

    Raises:
        RequestError: a stage that decks cannot hold, or a tile without its timing.
        ToolError: a file could not be written.
    """
    prepared = prepare(program)
    root = folder / FOLDER
    rows: list[dict[str, Any]] = []
    origins: dict[str, Any] = {}
    for dialect in DIALECTS:
        known = (timings or {}).get(dialect)
        timing = known or closed_form(prepared.card, default_settings(dialect))
        rows.append(_write_reference(prepared, timing, root))
        for deck in _decks(prepared, targets, timing):
            name = f"{dialect}/{deck_name(prepared, deck)}"
            write_atomic(root / name, deck.text)
            rows.append(index_row(deck, name))
            origins[name] = origin_entry(deck)
    tiles = _write_tiles(prepared, written, root, origins)
    rows += tiles
    index = {
        "format": NETLIST_FORMAT,
        "program": prepared.digest,
        "fidelity": program.stages[0].fidelity,
        "ideal_elements": largest_count(
            row.get("ideal_elements", {}) for row in tiles or rows
        ),
        "names": dict(prepared.names),
        "decks": rows,
    }
    write_atomic(root / "index.json", dump_json(index))
    content = {"format": ORIGIN_FORMAT, "decks": origins}
    write_atomic(root / "origin.json", dump_json(content))
    return index


def deck_fidelity(stage: Stage) -> str:
    """What a deck of one target holds: a tile's own targets are judged `pairwise`."""
    return "pairwise" if stage.fidelity == "oscillators" else stage.fidelity


def _write_tiles(
    prepared: Prepared,
    written: WriteTiming | None,
    root: Path,
    origins: dict[str, Any],
) -> list[dict[str, Any]]:
    """Tile of every stage that asks for one; its origin is added, its row returned."""
    rows = []
    for stage in prepared.program.stages:
        if stage.fidelity != "oscillators":
            continue
        if written is None:
            raise RequestError(
                f"stage {stage.name}: a tile is timed by gnucap's run of a written "
                "cell, which is not given."
            )
        tile = build_tile(prepared, stage.name, None, written)
        name = f"gnucap/tile_{prepared.names[stage.name]}.cir"
        write_atomic(root / name, tile.deck.text)
        row = _tile_row(tile, name)
        rows.append(row)
        kept = ("stage", "token", "coordinate", "fidelity")
        facts = {key: row[key] for key in kept}
        origins[name] = facts | {"elements": origin(tile.deck.circuit)}
    return rows


def _tile_row(tile: Tile, name: str) -> dict[str, Any]:
    """What a tile is of, for `index.json`; it has no token of its own."""
    circuit = tile.deck.circuit
    return {
        "file": name,
        "dialect": tile.deck.dialect,
        "stage": tile.stage,
        "token": None,
        "coordinate": tile.coordinate,
        "fidelity": "oscillators",
        "calibrated": True,
        "sources": int(tile.spec.theta_rad.size),
        "targets": int(tile.spec.phi0_rad.size),
        "periods": int(tile.dwell.periods),
        "gain": float(tile.dwell.gain),
        "elements": sum(1 for _ in circuit.elements()),
        "ideal_elements": ideal_elements(circuit),
    }


def _write_reference(prepared: Prepared, timing: Timing, root: Path) -> dict[str, Any]:
    deck = reference_deck(prepared.card, timing.settings)
    name = f"{deck.dialect}/reference/{safe_name(prepared.card.name)}.cir"
    write_atomic(root / name, deck.text)
    return {
        "file": name,
        "dialect": deck.dialect,
        "reference": prepared.card.name,
        "calibrated": timing.calibrated,
        "period_s": float(timing.period_s),
    }


def _decks(
    prepared: Prepared, targets: Mapping[str, IntArray], timing: Timing
) -> list[Deck]:
    """Decks of the first substep: over P and, where extrapolated, over 2P periods."""
    out = []
    for name, index in targets.items():
        stage = prepared.program.stage(name)
        plan = [d for d in dwells(stage) if d.run == 0 and d.substep == 0]
        starts = stage.phi0_rad.ravel()[stage.rows_of(index)].tolist()
        places = np.asarray(index, dtype=np.int64).tolist()
        for (token, coordinate), start in zip(places, starts, strict=True):
            out += [
                build_deck(
                    prepared,
                    name,
                    token,
                    coordinate,
                    dwell,
                    phi0_rad=start,
                    fidelity=deck_fidelity(stage),
                    dialect=timing.settings.dialect,
                    timing=timing,
                )
                for dwell in plan
            ]
    return out


def index_row(deck: Deck, name: str) -> dict[str, Any]:
    """What a deck is of, for `index.json`."""
    facts = deck.facts
    return {
        "file": name,
        "dialect": deck.dialect,
        "stage": facts["stage"],
        "fidelity": facts["fidelity"],
        "calibrated": deck.timing.calibrated,
        "start_rad": float(facts["start_rad"]),
        "gain": float(facts["gain"]),
        "elements": sum(1 for _ in deck.circuit.elements()),
        "ideal_elements": ideal_elements(deck.circuit),
        **{key: int(facts[key]) for key in _WHOLE},
    }


def list_run(folder: Path, seen: Observables) -> None:
    """List the decks of a simulator's run in `index.json`, in place of older ones.

    Decks of an earlier choice of targets are removed: what stays is what the
    observables were read from.

    Args:
        folder: Build folder; without an index nothing is listed.
        seen: What the simulator saw, with the index of its targets.
    """
    path = folder / FOLDER / "index.json"
    if not path.is_file():
        return
    index = read_json(path, NETLIST_FORMAT)
    run = {
        (name, int(token), int(coordinate))
        for name in seen.stages
        for token, coordinate in seen.arrays[f"{name}.index"]
    }
    stages = {safe: name for name, safe in index["names"].items()}
    rows = [row for row in index["decks"] if row.get("engine") != seen.engine]
    for deck in sorted(folder.glob(f"sim/{seen.engine}/decks/*.cir")):
        row = _row_of_run(deck, seen.engine, stages)
        gated = f"{row['stage']}.raw.half_step_rad" in seen.arrays
        if (row["stage"], row["token"], row["coordinate"]) not in run or (
            row["finer"] and not gated
        ):
            deck.unlink()
            continue
        rows.append(row)
    write_atomic(path, dump_json(index | {"decks": rows}))


def _row_of_run(path: Path, engine: str, stages: Mapping[str, str]) -> dict[str, Any]:
    """What a deck of a run is of, from its own header.

    The stage is told by the file's name: a comment cannot hold every name.
    """
    text = path.read_text(encoding="utf-8")
    facts = dict(_HEADER.findall(text))
    letters = facts["ideal_elements"].split()
    return {
        "file": f"../sim/{engine}/decks/{path.name}",
        "engine": engine,
        "finer": path.stem.endswith("_finer"),
        "dialect": facts["dialect"],
        "stage": stages[_STEM.sub("", path.stem)],
        "fidelity": facts["fidelity"],
        "calibrated": facts["calibrated"] == "yes",
        "start_rad": float(facts["start_rad"]),
        "gain": float(facts["gain"]),
        "elements": sum(1 for line in text.splitlines() if line[0] not in "*."),
        "ideal_elements": {
            letter: int(count)
            for letter, count in zip(letters[::2], letters[1::2], strict=True)
        },
        **{key: int(facts[key]) for key in _WHOLE},
    }


def origin_entry(deck: Deck) -> dict[str, Any]:
    """Entry of a deck in `origin.json`."""
    return {
        "stage": deck.facts["stage"],
        "token": int(deck.facts["token"]),
        "coordinate": int(deck.facts["coordinate"]),
        "fidelity": deck.facts["fidelity"],
        "elements": origin(deck.circuit),
    }


def origin(circuit: Circuit) -> dict[str, dict[str, Any]]:
    """Role of every element, with harmonic, route and sources where it has them."""
    word = {letter: route for route, letter in ROUTE_LETTER.items()}
    senders = sorted(
        {int(m["source"]) for n in circuit.roles if (m := _PAIR.fullmatch(n))}
    )
    out: dict[str, dict[str, Any]] = {}
    for name, role in circuit.roles.items():
        entry: dict[str, Any] = {"role": role}
        for pattern in (_PAIR, _TILE, _SUM, _HOST_SUM):
            found = pattern.fullmatch(name)
            if found is None:
                continue
            parts = found.groupdict()
            entry |= {k: int(parts[k]) for k in ("harmonic", "target") if k in parts}
            if "route" in parts:
                entry["route"] = word[parts["route"]]
            own = parts.get("source")
            entry["sources"] = senders if own is None else [int(own)]
            break
        out[name] = entry
    return out
