"""Claims of the articles, and what the study of families says of their signs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from study_tables import (
    BASE,
    DEPTHS,
    Judged,
    Study,
    Value,
    copy_depth,
    judge,
    order,
    spread,
    table,
    together,
    validation,
)

WORST = "16–23"
STEPS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
PAPER = (1.6, 3.2)  # cost of a step of C over the transformer's
NO_SIGN = "cannot be judged"


def headlines(study: Study) -> str:
    """Table of the claims."""
    head = ("article", "claim (its figure)", "sign here", "measured here")
    return table(head, [*_kuramoto(study), *_fsn(study), *_ssa(study)])


def _row(article: str, claim: str, judged: Judged) -> tuple[str, ...]:
    return article, claim, judged.verdict, judged.figures


def _compared(
    study: Study, names: tuple[str, str], sign: int, value: Value = validation
) -> Judged:
    return judge(study.differences(*names, value), sign)


def _kuramoto(study: Study) -> list[tuple[str, ...]]:
    name = "kuramoto-euler"
    falls = study.values(
        name, lambda run: order(1, "global")(run) - order(0, "global")(run)
    )
    closer = study.values(
        name,
        lambda run: min(part["local_other"] - part["global"] for part in run["order"]),
    )
    ablations = (
        ("kuramoto-learned-values", "learned values cost bits (+0.25)"),
        ("kuramoto-no-feed-forward", "no feed-forward costs bits (+0.27)"),
        ("kuramoto-no-gates", "no gates costs bits (+0.09)"),
    )
    claim = "above a matched transformer at a million numbers (+0.021)"
    return [
        _row("A", claim, _compared(study, (name, BASE), 1)),
        *(
            _row("A", text, _compared(study, (other, name), 1))
            for other, text in ablations
        ),
        _row("A", "global order falls with depth", judge(falls, -1)),
        _row("A", "tokens align with those that they attend to", judge(closer, 1)),
    ]


def _fsn(study: Study) -> list[tuple[str, ...]]:
    name, plain = "fsn-euler", "kuramoto-euler"
    places = range(len(DEPTHS))
    behind = [_compared(study, (plain, BASE), 1, copy_depth(i)) for i in places]
    ahead = [_compared(study, (name, BASE), -1, copy_depth(i)) for i in places[2:]]
    mean_field = _compared(study, ("fsn-mf-euler", BASE), 1)
    return [
        _row("B", "below the transformer (−0.021)", _compared(study, (name, BASE), -1)),
        _row(
            "B",
            "below Kuramoto attention (−0.032)",
            _compared(study, (name, plain), -1),
        ),
        _row("B", "FSN-MF above the transformer (+0.019)", mean_field),
        (
            *("B", "Kuramoto attention is behind the transformer at every copy depth"),
            *(together(behind), _means(behind)),
        ),
        _row("B", "… worst on long copies (+0.42 at 16–23)", _worst(study, plain)),
        (
            *("B", "FSN is ahead of the transformer at every copy depth from 4 on"),
            *(together(ahead), _means(ahead)),
        ),
        ("B", "ahead up to four million numbers", "cannot be judged", "one size here"),
    ]


def _means(parts: Sequence[Judged]) -> str:
    return ", ".join(part.figures.split(",")[0].split(" ±")[0] for part in parts)


def _worst(study: Study, name: str) -> Judged:
    """Whether the largest deficit of every seed is in the bin of the article."""
    columns = [study.differences(name, BASE, copy_depth(i)) for i in range(len(DEPTHS))]
    places = [DEPTHS[int(np.argmax(row))] for row in zip(*columns, strict=True)]
    deep = sum(place == WORST for place in places)
    figures = f"largest deficit at {', '.join(places)}, by seed"
    if len(places) < 3 or 0 < deep < len(places):
        return Judged("undecided", figures)
    return Judged("reproduced" if deep else "not reproduced", figures)


def _ssa(study: Study) -> list[tuple[str, ...]]:
    unlocked = study.values(
        "ssa-trainable", lambda run: 1 - float(np.mean(run["locked"]))
    )
    position = study.differences("ssa-published", "ssa-trainable", validation)
    share = f"{spread(unlocked)} of the causal pairs do not lock, trainable arm"
    apart = f"published less trainable arm {spread(position, signed=True)}; the arms"
    return [
        (
            "C",
            "sparse by itself: pairs of unlike frequencies do not lock",
            NO_SIGN,
            share,
        ),
        (
            *("C", "frequencies encode positions too", NO_SIGN),
            f"{apart} differ in more than positions",
        ),
        ("C", "one closed-form pass without integration", "by construction", ""),
        _step_cost(),
    ]


def _step_cost() -> tuple[str, ...]:
    """Cost of a step of the published arm, from the benchmark's own results."""
    content = json.loads((STEPS / "training_step.json").read_text("utf-8"))
    wanted = ("ssa, published", "ssa, published, no mask")
    ratios = [
        row["ratio_to_transformer"]
        for row in content["families"]
        if row["model"] in wanted
    ]
    low, high = min(ratios), max(ratios)
    verdict = "reproduced" if high <= PAPER[1] else "not reproduced"
    return (
        *("C", "one training step costs 1.6 to 3.2 times the transformer's", verdict),
        f"{low:.2f} to {high:.2f}, 128 and 512 tokens, with and without a mask; see "
        "[Cost of a step](models.md#cost-of-a-step)",
    )
