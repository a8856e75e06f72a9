"""Tables of the report as text cells, from the program and the JSON files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oscc.ir.plan import dwells, total_periods
from oscc.ir.program import Program
from oscc.ir.stage import Stage
from oscc.ir.views import coupled_pairs, pair_terms
from oscc.ladder.levels import drive_strength
from oscc.observables import Observables
from oscc.units import counted, grouped, si_text


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text: `numbers` names the columns that are set to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()
) -> Table:
    """Table of the cells given.

    Example:
        >>> table(["a"], [["1"]], [0]).rows
        (('1',),)
    """
    return Table(tuple(columns), tuple(tuple(r) for r in rows), frozenset(numbers))


def angle(value: float | None) -> str:
    """An angle for people, a dash for none."""
    return "–" if value is None else si_text(value, "rad")


def joule(value: float | None) -> str:
    """An energy for people, the word for none."""
    return si_text(value, "J")


def number(value: float | None, digits: int = 4) -> str:
    """A plain number for people, a dash for none.

    Example:
        >>> number(1552.7, 3), number(0.99996, 5), number(None)
        ('1 550', '0.99996', '–')
    """
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits - 1}e}")
    return grouped(int(rounded)) if abs(rounded) >= 1000 else f"{value:.{digits}g}"


def words(name: str) -> str:
    """A key of a file as words.

    Example:
        >>> words("source_oscillators")
        'source oscillators'
    """
    return name.replace("_", " ")


def plan_text(stage: Stage) -> str:
    r"""How a stage is run, in a few words.

    Example:
        >>> from oscc.testing.tiny import tiny_stage
        >>> plan_text(tiny_stage(substeps=3, dwell_periods=4))
        'extrapolated, 3\xa0×\xa0(4\xa0+\xa08)'
    """
    lengths = sorted({dwell.periods for dwell in dwells(stage)})
    periods = " + ".join(str(n) for n in lengths)
    periods = f"({periods})" if len(lengths) > 1 else periods
    runs = ", twice (probe)" if stage.update == "probe" else ""
    steps = f"{stage.substeps} × {periods}".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{stage.scheme}, {steps}{runs}"


def program_facts(program: Program) -> tuple[tuple[str, str], ...]:
    """What was compiled, as name and text."""
    first = program.stages[0]
    provenance = program.provenance
    facts = [
        ("family", program.family),
        ("trained update", first.model_update),
        ("hardware update", first.update),
        ("input", counted(program.tokens.size, "token")),
        ("computed", _computed(program)),
        ("device card", str(program.device.get("name"))),
        ("coupler", program.coupler),
        (
            "fidelity of netlists",
            " + ".join(sorted({s.fidelity for s in program.stages})),
        ),
        ("accuracy asked", f"{1e3 * program.accuracy_rad:g} mrad rms a stage"),
        ("seed", str(program.seed)),
        ("program", program.digest()),
    ]
    for key, name in (
        ("checkpoint_sha256", "checkpoint"),
        ("input_sha256", "input text"),
        ("version", "compiled by oscc"),
    ):
        if key in provenance:
            facts.append((name, str(provenance[key])))
    return tuple(facts)


def _computed(program: Program) -> str:
    """Which tokens the program computes."""
    if not program.decodes:
        return "every token (prefill)"
    return f"token {program.tokens.size - 1} alone (decode)"


def stage_table(program: Program, seen: Mapping[str, Observables]) -> Table:
    """One row a stage: size, coupling, plan, largest drive and injection."""
    circuit = seen.get("circuit")
    rows = []
    for stage in program.stages:
        facts = circuit.facts.get(stage.name, {}) if circuit is not None else {}
        injection = facts.get("injection_ratio")
        rows.append(
            (
                stage.name,
                grouped(stage.targets),
                grouped(int(stage.theta_rad.size)),
                grouped(coupled_pairs(stage)),
                grouped(pair_terms(stage)),
                ", ".join(str(n) for n in stage.harmonics),
                f"{float(drive_strength(stage).max()):.3g} rad",
                plan_text(stage),
                grouped(total_periods(stage)),
                number(injection, 3),
            )
        )
    columns = (
        *("stage", "targets", "sources", "coupled pairs", "pair terms", "harmonics"),
        *("peak drive", "plan (periods)", "periods", "injection"),
    )
    return table(columns, rows, (1, 2, 3, 4, 6, 8, 9))


def pass_table(program: Program) -> Table:
    """What each pass recorded, with a row for each stage."""
    rows = []
    for record in program.provenance.get("passes", ()):
        content = dict(record)
        name = str(content.pop("name", content.pop("pass", "?")))
        stages = content.pop("stages", ())
        if content or not stages:
            rows.append((name, "all", _plain(content)))
        for stage in stages:
            facts = dict(stage)
            rows.append((name, str(facts.pop("stage", "?")), _plain(facts)))
    return table(("pass", "stage", "recorded"), rows)


def _plain(content: Any) -> str:
    """Nested figures as one line of text."""
    if isinstance(content, Mapping):
        return "; ".join(f"{words(str(k))}: {_plain(v)}" for k, v in content.items())
    if isinstance(content, (list, tuple)):
        return ", ".join(_plain(v) for v in content)
    if content is None:
        return "–"
    return f"{content:.4g}" if isinstance(content, float) else str(content)


def _change(entry: Mapping[str, Any]) -> str:
    """What half the step moved, of a phase or of the coherence of pair cells."""
    if entry.get("change_coherence") is not None:
        return f"{number(entry['change_coherence'], 3)} in cos"
    return angle(entry["change_rad"])


def host_table(program: Program, energy: Mapping[str, Any] | None) -> Table:
    """Work on the host by name, with its energy where the account is at hand."""
    counts: dict[tuple[str, str], int] = {}
    for operation in program.host_operations:
        key = (operation.name, operation.unit)
        counts[key] = counts.get(key, 0) + operation.count
    parts = {} if energy is None else energy.get("host_parts_J", {})
    rows = [
        (
            words(name),
            grouped(count),
            unit,
            joule(parts[name]) if name in parts else "–",
        )
        for (name, unit), count in counts.items()
    ]
    rows += [
        (f"{words(name)} (for the hardware)", "–", "mac", joule(value))
        for name, value in parts.items()
        if name not in {key[0] for key in counts}
    ]
    return table(("on the host", "count", "unit", "energy"), rows, (1, 3))


def convergence_lines(verdict: Mapping[str, Any]) -> list[str]:
    """A sentence for each simulator's gate."""
    return [
        f"Halving the step moves {entry['engine']} by at most "
        f"{_change(entry)} over {counted(entry['targets'], 'target')}: "
        f"{'converged' if entry['passed'] else 'NOT converged'}."
        for entry in verdict["convergence"]
    ]


def measured_table(energy: Mapping[str, Any]) -> Table:
    """What engines integrated, beside the closed form of the same scope."""
    rows = []
    for entry in energy["measured"]:
        error = entry.get("balance_error")
        balanced = "balanced" if entry.get("balanced") else str(entry.get("reason"))
        rows.append(
            (
                entry["engine"],
                entry["scope"],
                joule(entry["supply_J"]),
                joule(entry["injected_J"]) if entry["injected_J"] is not None else "–",
                number(entry.get("over_closed_form"), 5),
                number(entry.get("over_circuit"), 5),
                f"{error:.2g}" if error is not None else "–",
                balanced,
            )
        )
    columns = (
        *("engine", "scope", "supply", "injected work", "over closed form"),
        "over circuit, same targets",
        *("balance error", "balance"),
    )
    return table(columns, rows, (2, 3, 4, 5, 6))


def assumption_table(energy: Mapping[str, Any]) -> Table:
    """Every assumption with its value, source and standing."""
    rows = [
        (
            entry["name"],
            _quantity(entry["value"], entry["unit"]),
            _standing(entry),
            entry["source"],
        )
        for entry in energy["assumptions"]
    ]
    return table(("assumption", "value", "measured", "source"), rows, (1,))


def _standing(entry: Mapping[str, Any]) -> str:
    """Whether a figure was measured, or is the user's own."""
    if entry.get("replaced"):
        return "no, replaced"
    return "yes" if entry["measured"] else "no"


def _quantity(value: float, unit: str) -> str:
    return f"{value:g}" if unit == "1" else si_text(value, unit, digits=4)


def gap_facts(gap: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Figures of the tile of real cells, as name and text."""
    out = []
    for key, value in gap.items():
        if key == "tiles":
            out += [
                (f"tile of {tile.get('stage', '?')}", _tile_line(tile))
                for tile in value
            ]
        elif key.endswith("_rad") and isinstance(value, float):
            out.append((words(key.removesuffix("_rad")), angle(value)))
        elif key.endswith("_J") and isinstance(value, float):
            out.append((words(key.removesuffix("_J")), joule(value)))
        else:
            out.append((words(key), _plain(value)))
    return tuple(out)


def _tile_line(tile: Mapping[str, Any]) -> str:
    """The figures of one tile that differ from tile to tile."""
    parts = []
    for key, name in (("rms_rad", "rms"), ("max_rad", "largest")):
        if tile.get(key) is not None:
            parts.append(f"{angle(tile[key])} {name}")
    if tile.get("supply_J") is not None:
        parts.append(f"supply {joule(tile['supply_J'])}")
    for key in ("coordinate", "pairs", "periods", "elements"):
        if tile.get(key) is not None:
            parts.append(f"{words(key)} {grouped(tile[key])}")
    return ", ".join(parts)


def layer_table(evaluate: Mapping[str, Any]) -> Table:
    """Phase error by layer with the hardware in the loop, from `evaluate.json`."""
    rows = [
        (
            layer["stage"],
            angle(layer["rms_rad"]),
            str(layer["slips"]),
            angle(layer.get("rms_rad_to_model")),
        )
        for layer in evaluate["layers"]
    ]
    columns = ("stage", "rms phase error", "slips", "rms to the digital model")
    return table(columns, rows, (1, 2, 3))


def noise_lines(energy: Mapping[str, Any]) -> list[str]:
    """What noise leaves of the accuracy, in sentences."""
    noise = energy.get("noise")
    if not noise:
        return []
    largest = noise["threshold_noise_max_relative"]
    passes = (
        "No threshold noise passes: thermal jitter alone is above the accuracy."
        if largest is None
        else f"Largest threshold noise that passes: {100 * largest:.2g} % of V_IMT "
        f"({noise['note']})."
    )
    return [
        f"Thermal jitter of the noisiest stage: {angle(noise['thermal_jitter_rad'])}, "
        f"undriven, against {angle(noise['accuracy_rad'])} asked.",
        passes,
    ]
