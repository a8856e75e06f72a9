"""What a layer consists of, and where each part runs: oscillators, host, or nowhere.

Every tensor of a model and every operation of the host belongs to one part, so that
nothing of a layer goes without saying.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oscc.errors import RequestError
from oscc.lower.program import LOCK_FAMILIES, require_lowering

if TYPE_CHECKING:
    from oscc.models.config import ModelConfig

LOWERED, HOST, REFUSED = "oscillators", "host", "refused"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a layer, or of what is around the layers.

    Args:
        name: Such as `coupling`.
        tensors: Names within the layer; those that end with a dot are prefixes.
        operations: Names of host operations that it causes.
        where: `oscillators`, `host`, or `refused`: it would run on oscillators, but
            cannot be lowered.
    """

    name: str
    tensors: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    where: str = HOST

    def holds(self, tensor: str) -> bool:
        """Whether a tensor, by its name within the layer, belongs to the part.

        Example:
            >>> Part("value gate", ("value.",)).holds("value.bias")
            True
        """
        return any(
            tensor == name or (name.endswith(".") and tensor.startswith(name))
            for name in self.tensors
        )


def refusal(config: ModelConfig) -> str:
    """Why the model cannot be lowered, empty if it can.

    Example:
        >>> from oscc.models.config import ModelConfig
        >>> refusal(ModelConfig("fsn"))
        ''
    """
    if config.family in LOCK_FAMILIES:
        return ""
    try:
        require_lowering(config.family, config.values)
    except RequestError as error:
        return str(error)
    return ""


def layer_parts(config: ModelConfig) -> tuple[Part, ...]:
    """Parts of a layer in the order they run; all layers of a model are alike.

    Example:
        >>> from oscc.models.config import ModelConfig
        >>> names(layer_parts(ModelConfig("fsn")), LOWERED)
        'coupling'
    """
    where = REFUSED if refusal(config) else LOWERED
    if config.family == "ssa":
        return _ssa(config, where)
    if config.family == "transformer":
        return _transformer(where)
    return (*_attention(config, where), *_after(config, where))


def outer_parts(config: ModelConfig) -> tuple[Part, ...]:
    """Parts before the first and after the last layer, all on the host."""
    embedding = Part("embedding", ("embedding",), ("embedding_reads",))
    if config.family in ("ssa", "transformer"):
        norm = Part("final norm", ("final_norm.",), ("norms",))
        return embedding, norm, Part("read-out", ("head",), ("read_out",))
    operations = ("read_out", "sine_cosine_pairs")
    return embedding, Part("read-out", ("prototypes", "beta"), operations)


def _attention(config: ModelConfig, where: str) -> tuple[Part, ...]:
    """Attention of a phase model: the score on the host, the coupling lowered."""
    score = ("score", "softmax_exponentials", "sine_cosine_pairs")
    parts = [
        Part("score gates", ("score.query.", "score.key."), ("score_gates",)),
        Part("query offset", ("score.offset",)),
        Part("score and softmax", ("score.drift", "score.sharpness"), score),
        Part("value gate", ("value.",), ("value_gate",)),
        Part("bound", (), ("bound",)),
        Part("learned values", ("projection",), (), where),
        Part("coupling", ("gamma", "alpha"), (), where),
    ]
    absent = {
        "score gates": config.gates == "none",
        "query offset": not config.query_offset,
        "bound": config.bound == "B0",
        "learned values": config.values == "phases",
    }
    return tuple(part for part in parts if not absent.get(part.name))


def _after(config: ModelConfig, where: str) -> tuple[Part, ...]:
    """What follows the attention: collective modes, a feed-forward, or nothing."""
    bounded = config.bound != "B0"
    if config.family == "fsn-mf":
        sums = (
            *("modes", "mode_sizes", "mode_phases", "mode_weights"),
            *("mode_angles", "mode_equations", "mode_logarithms"),
        )
        parts = [Part("sums of the modes", ("mode_in",), sums)]
        parts += [Part("bound of the modes", (), ("bound",))] if bounded else []
        return *parts, Part("coupling to the modes", ("mode_out", "pin"), (), where)
    if config.feed_forward == "none":
        return ()
    inner = Part("feed-forward", ("feed_forward.",), ("feed_forward",))
    bound = Part("bound of the feed-forward", (), ("feed_forward_bound",))
    return (inner, bound) if bounded else (inner,)


def _ssa(config: ModelConfig, where: str) -> tuple[Part, ...]:
    strength = ("lock_factors_exponentials", "lock_ratios")
    mixed = ("normalisation", "values")
    parts = [
        Part("norm before the attention", ("attention_norm.",), ("norms",)),
        Part("frequencies", ("attention.frequency.",), ("projections", "distances")),
        Part("positions", ("attention.position", "attention.rates")),
        Part(
            "order parameter",
            ("attention.phase.",),
            ("order_parameter", "sine_cosine_pairs"),
        ),
        Part("strength of pairs", ("attention.decay", "attention.pull"), strength),
        Part("locks", (), (), where),
        Part("strongest partners"),
        Part("normalised sum of values", ("attention.value.", "attention.out."), mixed),
        Part("norm before the feed-forward", ("norm.",)),
        Part("feed-forward", ("up.", "down."), ("feed_forward",)),
    ]
    absent = {
        "positions": config.arm == "published",
        "strongest partners": not config.lock_top_k,
    }
    return tuple(part for part in parts if not absent.get(part.name))


def _transformer(where: str) -> tuple[Part, ...]:
    return (
        Part("norm before the attention", ("attention_norm.",)),
        Part("rotary positions"),
        Part("attention", ("read.", "out."), (), where),
        Part("norm before the feed-forward", ("norm.",)),
        Part("feed-forward", ("gate.", "up.", "down.")),
    )


def names(parts: Collection[Part], where: str) -> str:
    """Names of the parts that run somewhere, `none` if there is none.

    Example:
        >>> names([Part("norm"), Part("coupling", where=LOWERED)], HOST)
        'norm'
    """
    return ", ".join(part.name for part in parts if part.where == where) or "none"


def layer_sentences(config: ModelConfig) -> list[str]:
    """A sentence for each layer: what of it is lowered, on the host, and refused.

    Example:
        >>> from oscc.models.config import ModelConfig
        >>> layer_sentences(ModelConfig("kuramoto", layers=1, bound="B0", gates="none"))
        ['layer 0: on oscillators coupling; on the host score and softmax, value gate, \
feed-forward']
    """
    parts, why = layer_parts(config), refusal(config)
    text = f"on the host {names(parts, HOST)}"
    if why:
        text = f"cannot be lowered {names(parts, REFUSED)}; {text}. {why}"
    else:
        text = f"on oscillators {names(parts, LOWERED)}; {text}"
    return [f"layer {number}: {text}" for number in range(config.layers)]
