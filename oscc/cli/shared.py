"""Options that several verbs have: each is said once, with its key and its words."""

from __future__ import annotations

from oscc.cli.options import setting

UNKNOWN = setting(
    "--unknown",
    "compile.unknown",
    group="Input",
    text="A character that the model does not know: refuse, or take as `other`.",
)
KEY = setting(
    "--key", "compile.key", group="Input", text="Weights to take of a foreign file."
)
DEVICE = setting(
    "--device",
    "compile.device",
    group="Device",
    text="Device card, by name or as a file.",
)
UPDATE = setting(
    "--update",
    "compile.update",
    group="Accuracy",
    text="What runs; without it, what the checkpoint was trained with.",
)
MEAN_FIELD = setting(
    "--mean-field",
    "compile.mean_field",
    group="Device",
    text="Who forms the collective modes of FSN-MF.",
)
SCORE = setting(
    "--score",
    "compile.score",
    group="Device",
    text="Who forms scores and logits: the host, or oscillators as correlations.",
)
TARGETS = setting(
    "--targets",
    "simulate.targets",
    group="Input",
    text="Targets of a simulator: a number, all, or TOKEN,COORDINATE;...; of pair "
    "cells HEAD,TOKEN,PARTNER;....",
)
