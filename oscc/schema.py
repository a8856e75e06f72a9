"""Schema of the configuration: one frozen section a verb, with every default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Bits = Annotated[int, Meta(ge=0, le=24)]  # 24: the significand of float32
NotNegative = Annotated[float, Meta(ge=0)]
Targets = Union[Natural, str, tuple[str, ...]]  # noqa: UP007 (msgspec reads it)

Family = Literal["kuramoto", "fsn", "fsn-no-phase", "fsn-mf", "ssa", "transformer"]
Text = Union[str, dict[str, Any]]  # noqa: UP007 (characters, or how they are numbered)


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every section: frozen, no unknown key."""


class Compile(_Section, frozen=True):
    """What `oscc compile` builds, from which device, how exactly.

    `accuracy_mrad` is used where `periods` is not given; `update` empty means the one
    that the checkpoint was trained with.
    """

    device: str | None = None
    coupler: Literal["shaped"] = "shaped"
    fidelity: Literal["summed", "pairwise", "oscillators"] = "pairwise"
    update: Literal["flow", "probe"] | None = None
    scheme: Literal["auto", "plain", "extrapolated", "corrected"] = "auto"
    substeps: Count | None = None
    periods: Count | None = None
    accuracy_mrad: Positive = 10.0
    layers: tuple[Natural, ...] | None = None
    mode: Literal["prefill", "decode"] = "prefill"
    max_tokens: Count | None = None
    deck_targets: Count = 8
    unknown: Literal["error", "other"] = "error"
    lock_coupling: Positive | None = None
    lock_margin: NotNegative = 0.05
    lock_mode: Literal["host", "native"] = "host"
    mean_field: Literal["host", "oscillators"] = "host"
    score: Literal["host", "hardware"] = "host"
    key: str | None = None


class Simulate(_Section, frozen=True):
    """Which engine runs which part of a build."""

    engine: str = "circuit"
    stages: tuple[str, ...] | None = None
    targets: Targets | None = None
    gate: bool = True


class Tolerance(_Section, frozen=True):
    """Largest rms error of a level, [rad] or of a coherence; empty: the default."""

    ir: Positive | None = None
    phase: Positive | None = None
    circuit: Positive | None = None
    spice: Positive | None = None


class Verify(_Section, frozen=True):
    """Which levels of the ladder are judged, against what."""

    levels: tuple[str, ...] = ("ir", "phase", "circuit")
    tile: bool = False
    closed_loop: bool = False
    tolerance_rad: Tolerance = Tolerance()
    tolerance_coherence: Tolerance = Tolerance()


class Energy(_Section, frozen=True):
    """Assumed figures of the energy account, by name; the account knows the names."""

    assumptions: dict[str, NotNegative] = {}


class Evaluate(_Section, frozen=True):
    """How much held-out text runs through which engine."""

    engine: str = "circuit"
    tokens: Count = 20_000
    lock_step: NotNegative = 1e-3
    accuracy_mrad: Positive = 10.0
    spice: Count | None = None
    simulator: str | None = None


class Model(_Section, frozen=True):
    """Fields of a model, as oscc.models.config.ModelConfig; empty takes its default.

    For training, and for a checkpoint that does not say what it holds.
    """

    family: Family | None = None
    update: Literal["flow", "euler", "none"] | None = None
    symbols: Count | None = None
    k: Count | None = None
    layers: Count | None = None
    heads: Count | None = None
    hidden: Count | None = None
    context: Count | None = None
    harmonics: Count | None = None
    bound: Literal["B0", "B1", "B2", "B3", "B4"] | None = None
    bound_c: Positive | None = None
    embedding: Literal["normal", "uniform"] | None = None
    embedding_std: Positive | None = None
    sharpness: Positive | None = None
    beta: Positive | None = None
    drift: Literal["rope", "short", "zero"] | None = None
    drift_base: Positive | None = None
    gates: Literal["softplus", "none"] | None = None
    gate_std: float | None = None
    value_gain: float | None = None
    delay_gain: float | None = None
    offsets: Literal["learned", "zero"] | None = None
    successor: Literal["dropped", "renormalised"] | None = None
    feed_forward: Literal["angles", "lift", "none"] | None = None
    feed_forward_std: float | None = None
    query_offset: bool | None = None
    values: Literal["phases", "projected"] | None = None
    modes: Count | None = None
    mode_response: Literal["linear", "square"] | None = None
    arm: Literal["trainable", "published"] | None = None
    mask: Literal["causal", "none"] | None = None
    lock_top_k: Natural | None = None
    dropout: NotNegative | None = None
    vocabulary: Text | None = None


class Train(_Section, frozen=True):
    """Fields of oscc.models.training.TrainingConfig; empty takes its default.

    `vocabulary` says what a symbol of the text is, where the section `model` does not.
    """

    steps: Count | None = None
    batch: Count | None = None
    learning_rate: Positive | None = None
    warm_up: Natural | None = None
    final_share: Positive | None = None
    clip: Positive | None = None
    skip_norm: Positive | None = None
    skip_limit: Count | None = None
    save_every: Count | None = None
    phase_noise_rad: NotNegative | None = None
    gain_error: NotNegative | None = None
    weight_bits: Bits | None = None
    vocabulary: Literal["auto", "ascii", "bytes"] = "auto"
    resume: bool = True
    device: Literal["auto", "cpu", "cuda"] = "auto"
    plot: bool = False


class Config(_Section, frozen=True):
    """The whole configuration: common values, then one section a verb."""

    seed: Natural = 0
    jobs: Count | None = None
    timeout_s: Positive | None = None
    compile: Compile = Compile()
    simulate: Simulate = Simulate()
    verify: Verify = Verify()
    energy: Energy = Energy()
    evaluate: Evaluate = Evaluate()
    train: Train = Train()
    model: Model = Model()


def keys(
    section: type[msgspec.Struct] = Config, prefix: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Every dotted key of the schema with its type and its default.

    Example:
        >>> next(keys())[0]
        'seed'
    """
    for field in msgspec.structs.fields(section):
        name = f"{prefix}{field.name}"
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from keys(field.type, f"{name}.")
        else:
            default = field.default
            if default is msgspec.NODEFAULT:
                default = field.default_factory()
            yield name, field.type, default


def wanted(kind: Any) -> str:
    """Words for what a key takes, such as `a whole number ≥ 1`.

    Example:
        >>> wanted(Count)
        'a whole number ≥ 1'
    """
    return _words(msgspec.inspect.type_info(kind))


def _words(info: Any) -> str:
    inspect = msgspec.inspect
    if isinstance(info, inspect.UnionType):
        parts = [_words(part) for part in info.types]
        return " or ".join(part for part in parts if part != "null") or "null"
    if isinstance(info, inspect.LiteralType):
        words = ", ".join(str(value) for value in info.values)
        return f"one of {words}" if len(info.values) > 1 else f"`{words}`"
    if isinstance(info, inspect.VarTupleType):
        return f"a list, each item {_words(info.item_type)}"
    simple: dict[type, str] = {
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.StrType: "text",
        inspect.BoolType: "true or false",
        inspect.NoneType: "null",
        inspect.DictType: "a mapping",
    }
    return simple[type(info)] + _bounds(info)


def _bounds(info: Any) -> str:
    low, above = getattr(info, "ge", None), getattr(info, "gt", None)
    high = getattr(info, "le", None)
    if high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f" ≥ {low}"
    return f" above {above:g}" if above is not None else ""
