"""Energy account: the value, its JSON, its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oscc.units import counted, grouped, si_text

FORMAT = "oscc.energy/1"

CAUSES = (
    "source_oscillators",
    "target_oscillators",
    "couplers",
    "read_out",
    "programming",
    "host",
)

_HEADS = {
    "source_oscillators": "source osc.",
    "target_oscillators": "target osc.",
    "couplers": "couplers",
    "read_out": "read-out",
    "programming": "programming",
    "host": "host",
}


@dataclass(frozen=True, slots=True, eq=False)
class EnergyAccount:
    """What a program costs in energy, by cause, per pair and per token.

    `causes_J` sums to `total_J` exactly, in any order of summation. Figures per pair
    are None where there is no pair.

    Args:
        program: Digest of the program.
        fidelity: Of the netlists the account stands for.
        ideal_elements: Ideal elements in the signal path by SPICE letter, None where
            no netlist was at hand.
        pairs: Coupled pairs of all stages.
        pair_terms: Coefficients other than zero of all stages.
        tokens: Tokens that are computed: those of the input, or 1 when decoding.
        periods: Carrier periods of all dwells of all stages.
        seconds_per_token: Time of a token through all stages, these periods times T0
            [s]: of each generated token when decoding; of all tokens of the input
            together in a prefill. Holds, settling and reads are in `duration_s`.
        mode: `prefill` or `decode`.
        causes_J: Energy by `CAUSES`.
        total_J: Their sum.
        marginal_J: What one more pair costs: its coupler and its weight writes.
        correlations: What scores and logits on oscillators cost, with their outputs
            and multiply-accumulates; empty where the host forms them.
        host_parts_J: Host energy by operation.
        stages: Figures of each stage.
        assumptions: Entries of `energy.json`.
        measured: Entries of `energy.json`.
        digital_J: Energy of the coupling as multiply-accumulates, by precision.
        hardware_over_digital: Hardware, with the host work that it needs, over digital.
        break_even: Capacitor at which hardware would cost as much, by precision.
        host_assisted: Whether the host forms the field for the hardware to run.
        noise: Thermal jitter and the largest threshold noise that passes.
        notes: What a reader must know before quoting a figure.
        omitted: What no figure contains.
    """

    program: str
    fidelity: str
    ideal_elements: Mapping[str, int] | None
    pairs: int
    pair_terms: int
    tokens: int
    periods: int
    seconds_per_token: float
    mode: str
    causes_J: Mapping[str, float]
    total_J: float
    marginal_J: float | None
    host_parts_J: Mapping[str, float]
    stages: tuple[Mapping[str, Any], ...]
    assumptions: tuple[Mapping[str, Any], ...]
    measured: tuple[Mapping[str, Any], ...]
    digital_J: Mapping[str, float]
    hardware_over_digital: Mapping[str, float | None]
    break_even: Mapping[str, Mapping[str, Any]]
    host_assisted: bool
    noise: Mapping[str, Any]
    notes: tuple[str, ...]
    omitted: tuple[str, ...]
    correlations: Mapping[str, float] = field(default_factory=dict)

    @property
    def all_in_J(self) -> float | None:
        """The total over coupled pairs."""
        return self.total_J / self.pairs if self.pairs else None

    @property
    def per_token_J(self) -> float | None:
        """The total over the tokens that are computed."""
        return self.total_J / self.tokens if self.tokens else None

    def to_json(self) -> dict[str, Any]:
        """Content of `energy.json`."""
        return {
            "format": FORMAT,
            "program": self.program,
            "fidelity": self.fidelity,
            "ideal_elements": _plain(self.ideal_elements),
            "pairs": self.pairs,
            "pair_terms": self.pair_terms,
            "mode": self.mode,
            "tokens": self.tokens,
            "periods": self.periods,
            "supplies": ["vdd", "host"],
            "tags": {
                "causes_J": "formula",
                "measured": "simulated",
                "digital_J": "cited",
            },
            "per_pair_J": self._per_pair(),
            "per_token_J": self.per_token_J,
            "seconds_per_token": self.seconds_per_token,
            "total_J": self.total_J,
            "causes_J": dict(self.causes_J),
            "host_parts_J": dict(self.host_parts_J),
            "correlations": dict(self.correlations) or None,
            "stages": [dict(stage) for stage in self.stages],
            "assumptions": [dict(entry) for entry in self.assumptions],
            "measured": [dict(entry) for entry in self.measured],
            "digital_J": dict(self.digital_J),
            "hardware_over_digital": dict(self.hardware_over_digital),
            "break_even": {name: dict(v) for name, v in self.break_even.items()},
            "host_assisted": self.host_assisted,
            "noise": dict(self.noise),
            "notes": list(self.notes),
            "omitted": list(self.omitted),
        }

    def _per_pair(self) -> dict[str, float | None]:
        hardware = self.total_J - self.causes_J["host"]
        parts = {"all_in": self.total_J, "without_host": hardware}
        if self.correlations:
            parts["without_correlations"] = self.total_J - self.correlations["energy_J"]
        each = {n: v / self.pairs if self.pairs else None for n, v in parts.items()}
        return {"marginal": self.marginal_J, **each}

    def __str__(self) -> str:
        return energy_table(self.to_json())


def _plain(counts: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if counts is None else dict(counts)


def energy_table(
    energy: Mapping[str, Any], origins: Mapping[str, str] | None = None
) -> str:
    """The table of an account, from the content of `energy.json`.

    Args:
        energy: The content.
        origins: Where each replaced assumption was given, by name. The file does not
            hold it: a place may be a path.

    Example:
        >>> from oscc.account import account
        >>> from oscc.testing.energy import two_token_program
        >>> print(str(account(two_token_program(), {})).splitlines()[0][-31:])
        (3 pairs, 2 tokens, 20 periods)
    """
    pair = energy["per_pair_J"]
    causes = energy["causes_J"]
    heads = [*(_HEADS[name] for name in CAUSES), "total"]
    cells = [*(si_text(causes[name], "J") for name in CAUSES)]
    cells.append(si_text(energy["total_J"], "J"))
    widths = [max(len(h), len(c)) for h, c in zip(heads, cells, strict=True)]
    lines = [
        f"per coupled pair   all-in {_per_pair(pair['all_in'])}   "
        f"marginal {_per_pair(pair['marginal'])}   "
        f"({counted(energy['pairs'], 'pair')}, {counted(energy['tokens'], 'token')}, "
        f"{counted(energy['periods'], 'period')})",
        *_correlation_line(energy),
        "cause              " + _row(heads, widths),
        "total              " + _row(cells, widths),
        *_token_line(energy),
        *_measured_lines(energy),
        _digital_line(energy),
        f"break-even         {break_even_line(energy)}",
        *(f"note               {note}" for note in energy["notes"]),
        *_replaced_lines(energy, origins or {}),
        _assumption_line(energy),
    ]
    return "\n".join(lines)


def _token_line(energy: Mapping[str, Any]) -> list[str]:
    """What one generated token costs, where that is what was accounted for."""
    if energy["mode"] != "decode":
        return []
    each = si_text(energy["per_token_J"], "J")
    seconds = si_text(energy["seconds_per_token"], "s")
    return [f"per new token      {each}, {seconds} of coupled periods"]


def _correlation_line(energy: Mapping[str, Any]) -> list[str]:
    """What scores and logits cost, and what is left for the coupling without them."""
    formed = energy.get("correlations")
    if not formed:
        return []
    output, product = (si_text(formed[f"per_{n}_J"], "J") for n in ("output", "mac"))
    alone = _per_pair(energy["per_pair_J"]["without_correlations"])
    return [
        f"scores and logits  {output} an output   {product} a multiply-accumulate   "
        f"({counted(formed['outputs'], 'output')}; without them {alone} a coupled pair)"
    ]


def break_even_line(energy: Mapping[str, Any]) -> str:
    """How small a cell would have to be to cost no more than int8, in a sentence."""
    found = energy["break_even"]["int8"]
    if found["c_F"] is None:
        return (
            "No cell is small enough to cost no more than int8: words written, "
            "conversions and the host work of the hardware alone cost more."
        )
    size = si_text(found["c_F"], "F")
    jitter = si_text(found["thermal_jitter_rad"], "rad")
    enough = "within" if found["quiet_enough"] else "above"
    return (
        f"At the same resistors and voltages a cell of {size} would cost as much as "
        f"int8; its thermal jitter would be {jitter}, {enough} the accuracy asked."
    )


def _per_pair(value: float | None) -> str:
    return "undefined (0 pairs)" if value is None else si_text(value, "J")


def _row(cells: list[str], widths: list[int]) -> str:
    return "  ".join(c.rjust(w) for c, w in zip(cells, widths, strict=True))


def _measured_lines(energy: Mapping[str, Any]) -> list[str]:
    out = []
    for entry in energy["measured"]:
        state = f"FAILED: {entry['reason']}"
        if entry["balanced"]:
            state = f"balance {100 * entry['balance_error']:.2g} %"
        elif entry["balanced"] is None:
            state = f"no balance: {entry['reason']}"
        ratio = entry["over_closed_form"]
        beside = "" if ratio is None else f", {ratio:.4f} of the closed form"
        if entry.get("over_circuit") is not None:
            beside += f", {entry['over_circuit']:.4f} of circuit"
        out.append(
            f"measured           {entry['engine']} {si_text(entry['supply_J'], 'J')} "
            f"({_what(entry)}, {state}{beside})"
        )
    return out or ["measured           nothing: no engine integrated energy"]


def _what(entry: Mapping[str, Any]) -> str:
    """Targets of a measured entry, told apart where they are a tile's."""
    targets = counted(entry["targets"], "target")
    tile = str(entry["scope"]).startswith("tile of real cells")
    return f"tile of real cells, {targets}" if tile else targets


def _digital_line(energy: Mapping[str, Any]) -> str:
    figures = " · ".join(
        f"{name} {si_text(value, 'J')}" for name, value in energy["digital_J"].items()
    )
    ratio = energy["hardware_over_digital"]["int8"]
    needs = (
        "undefined (0 pairs)"
        if ratio is None
        else f"hardware needs {_times(ratio)} int8"
    )
    return f"digital, coupling  {figures}   → {needs}"


def _times(ratio: float) -> str:
    """A ratio with three figures, without an exponent."""
    return (
        f"{grouped(int(float(f'{ratio:.2e}')))}x" if ratio >= 100 else f"{ratio:.3g}x"
    )


def _replaced_lines(energy: Mapping[str, Any], origins: Mapping[str, str]) -> list[str]:
    """A line for each assumption that the user replaced, with what it replaces."""
    out = []
    for entry in energy["assumptions"]:
        if entry.get("replaced"):
            name, unit = entry["name"], entry["unit"]
            value = f"{entry['value']:g}" + ("" if unit == "1" else f" {unit}")
            place = f" ({origins[name]})" if name in origins else ""
            line = f"replaced           {name} = {value}: {entry['source']}{place}"
            out.append(line)
    return out


def _assumption_line(energy: Mapping[str, Any]) -> str:
    entries = energy["assumptions"]
    known = sum(bool(entry["measured"]) for entry in entries)
    given = sum(bool(entry.get("replaced")) for entry in entries)
    yours = f", {given} replaced by you" if given else ""
    return (
        f"{len(entries)} assumptions ({known} measured, {len(entries) - known} not"
        f"{yours}) · "
        f"omitted: {'; '.join(energy['omitted'])}"
    )
