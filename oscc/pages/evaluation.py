"""Figures of `evaluate.json` on the page, in the model's own unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oscc.pages.tables import Table, angle, number, table

_AGAINST = ("circuit", "digital")


def bits_per(evaluate: Mapping[str, Any]) -> str:
    """What bits are counted in: a character, or a byte for a model of bytes.

    Example:
        >>> bits_per({"unit": "byte"}), bits_per({})
        ('bits per byte', 'bits per character')
    """
    return f"bits per {evaluate.get('unit', 'character')}"


def evaluation_table(evaluate: Mapping[str, Any]) -> Table:
    """Bits per symbol by engine, from `evaluate.json`, in the model's own unit."""
    hardware = f"hardware ({evaluate['engine']})"
    rows = [
        ("digital", number(evaluate["bpc_digital"], 5), "–", "–", "–"),
        ("phase", number(evaluate["bpc_phase"], 5), "–", "–", "–"),
        (
            hardware,
            number(evaluate["bpc_hardware"], 5),
            f"{number(evaluate['delta_bpc'], 3)} ± {number(evaluate['delta_se'], 2)}",
            number(evaluate["top1_agreement"], 5),
            number(evaluate["kl_nats"], 3),
        ),
    ]
    columns = (
        "engine",
        bits_per(evaluate),
        "to digital",
        "top-1 agreement",
        "KL [nats]",
    )
    return table(columns, rows, (1, 2, 3, 4))


def spice_table(evaluate: Mapping[str, Any]) -> Table | None:
    """What simulators found on targets drawn over the text, None where none ran."""
    layers = evaluate.get("spice", {}).get("layers")
    if not layers:
        return None
    unit = "rad" if "rms_rad_to_circuit" in layers[0] else "coherence"
    shown = angle if unit == "rad" else number
    sizes = [f"{size}_{unit}_to_{one}" for one in _AGAINST for size in ("rms", "max")]
    rows = [
        (
            layer["stage"],
            layer["engine"],
            number(layer["windows"]),
            number(layer["targets"]),
            *(shown(layer[size]) for size in sizes),
        )
        for layer in layers
    ]
    kind = "" if unit == "rad" else " (cos)"
    heads = [f"{size} to {one}{kind}" for one in _AGAINST for size in ("rms", "max")]
    columns = ("stage", "engine", "windows", "targets", *heads)
    return table(columns, rows, tuple(range(2, 8)))
