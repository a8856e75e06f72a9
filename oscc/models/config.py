"""Configuration of a model: every choice the articles leave open is a field here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from oscc.checks import nearest, require_choice, require_positive, require_whole
from oscc.errors import RequestError

UPDATES = ("flow", "euler", "none")
BOUNDS = ("B0", "B1", "B2", "B3", "B4")

_CHOICES: dict[str, tuple[str, ...]] = {
    "update": UPDATES,
    "bound": BOUNDS,
    "embedding": ("normal", "uniform"),
    "drift": ("rope", "short", "zero"),
    "gates": ("softplus", "none"),
    "offsets": ("learned", "zero"),
    "successor": ("dropped", "renormalised"),
    "feed_forward": ("angles", "lift", "none"),
    "values": ("phases", "projected"),
    "mode_response": ("linear", "square"),
    "arm": ("trainable", "published"),
    "mask": ("causal", "none"),
}
_WHOLE = ("symbols", "k", "layers", "heads", "hidden", "context", "harmonics", "modes")
_LARGEST = 1e30  # float32 ends at 3.4e38; sums of such values need room
_ABOVE_ZERO = ("bound_c", "embedding_std", "sharpness", "beta", "drift_base")
_WITHOUT_PHASES = ("ssa", "transformer")
_PHASES = ("kuramoto", "fsn", "fsn-no-phase", "fsn-mf")
_ROUTES = ("fsn", "fsn-no-phase", "fsn-mf")
# Families that have a field; fields that are not listed belong to all of them.
_HAVE: dict[str, tuple[str, ...]] = {
    "hidden": ("kuramoto", "fsn", "fsn-no-phase", *_WITHOUT_PHASES),
    "harmonics": _ROUTES,
    "bound": _PHASES,
    "bound_c": _PHASES,
    "embedding": _PHASES,
    "embedding_std": _PHASES,
    "sharpness": _PHASES,
    "beta": _PHASES,
    "drift": _PHASES,
    "drift_base": (*_PHASES, "transformer"),
    "gates": _PHASES,
    "gate_std": _PHASES,
    "value_gain": _PHASES,
    "delay_gain": _ROUTES,
    "offsets": ("fsn", "fsn-mf"),
    "successor": _ROUTES,
    "feed_forward": ("kuramoto", "fsn", "fsn-no-phase"),
    "feed_forward_std": ("kuramoto", "fsn", "fsn-no-phase"),
    "query_offset": _PHASES,
    "values": ("kuramoto",),
    "modes": ("fsn-mf",),
    "mode_response": ("fsn-mf",),
    "arm": ("ssa",),
    "mask": ("ssa",),
    "lock_top_k": ("ssa",),
    "dropout": ("ssa",),
}
# Sizes that a comparison gives to all families alike: refused in a request to train
# alone (oscc.verbs.train), not in a configuration.
_SHARED_SIZES = ("hidden", "modes")
_HIDDEN = {"ssa": 192, "transformer": 128}  # near the 65 thousand numbers of the others
# Fields younger than the format: written only where they differ from their default,
# so that a model of before is still written with the same bytes.
_LATER = ("values", "modes", "mode_response", "arm", "mask", "lock_top_k", "dropout")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and open choices of one model.

    Sizes: `symbols` V, `k` coordinates a token, `layers` L, `heads` H (groups of
    coordinates with their own softmax), `hidden` feed-forward width, `context` T,
    `harmonics` N of the coupling (1 for Kuramoto attention), `modes` M of FSN-MF, half
    on harmonic 1 and half on 2. Empty values (`update`, `offsets`, 0 for `hidden` and
    `harmonics`) take what the family has; `update` is `none` without phases.

    Choices, all inferred (the articles do not state them): `bound` B0 none, B1 norm
    of the saturated vector, B2 soft root mean square, B3 fixed root mean square, B4
    per coordinate, with width `bound_c`; `embedding` and `embedding_std` of the
    angles at the start; `sharpness`, `beta`, `drift`, `drift_base`, `value_gain`,
    `gate_std`, `feed_forward_std`, `delay_gain` (start values); `gates` (map of the
    score gates); `offsets` (`zero`: frustration frozen at 0); `successor` (whether
    the weight that meets no successor is dropped or spread over the others);
    `feed_forward` on the raw angles, on their lift, or none; `values` as phases or
    through a learned projection (an ablation of Kuramoto attention); `mode_response`
    f(|Z|) of a collective mode, 1 or |Z|^2; `query_offset` an extension. Of SSA:
    `arm`, constants as published or such that they train; `mask`, none as published
    or causal; `lock_top_k`, 0 or how many partners a token keeps; `dropout`, the share
    that is left out in training (0.1 in the public code). `drift_base` is the
    base of the transformer's rotary positions too.

    Source: Nunley, arXiv 2606.11585 and 2606.18694, Hays, arXiv 2602.14445, as far as
    they state it.

    Example:
        >>> ModelConfig("fsn", "flow").harmonics
        2
    """

    family: str
    update: str = ""
    symbols: int = 98
    k: int = 48
    layers: int = 2
    heads: int = 4
    hidden: int = 0
    context: int = 128
    harmonics: int = 0
    bound: str = "B1"
    bound_c: float = 1.0
    embedding: str = "normal"
    embedding_std: float = 0.5
    sharpness: float = 1.0
    beta: float = 2.0
    drift: str = "rope"
    drift_base: float = 10000.0
    gates: str = "softplus"
    gate_std: float = 0.5
    value_gain: float = 1.0
    delay_gain: float = 1.0
    offsets: str = ""
    successor: str = "dropped"
    feed_forward: str = "angles"
    feed_forward_std: float = 0.5
    query_offset: bool = False
    values: str = "phases"
    modes: int = 48
    mode_response: str = "linear"
    arm: str = "trainable"
    mask: str = "causal"
    lock_top_k: int = 0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        from oscc.models.base import FAMILIES

        require_choice("family", self.family, tuple(FAMILIES))
        for name, value in _of_family(self.family).items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        for name, choices in _CHOICES.items():
            require_choice(name, getattr(self, name), choices)
        _require_had(self)
        for name in _WHOLE:
            require_whole(name, getattr(self, name))
        for f in fields(self):
            require_computable(f.name, getattr(self, f.name))
        for name in _ABOVE_ZERO:
            require_positive(name, getattr(self, name))
        if self.k % self.heads:
            raise RequestError(
                f"Argument `heads` must divide k = {self.k}, but is {self.heads}."
            )
        if not 0 <= self.dropout < 1:
            raise RequestError(
                f"Argument `dropout` must be 0 or more and below 1, not {self.dropout}."
            )
        if self.lock_top_k < 0:
            raise RequestError(
                f"Argument `lock_top_k` must be 0 (all) or more, not {self.lock_top_k}."
            )
        _require_fitting(self)

    def with_changes(self, **changes: Any) -> ModelConfig:
        """Copy with some fields changed; unknown names are refused.

        Raises:
            RequestError: a name is not a field, or a value is not allowed.

        Example:
            >>> ModelConfig("fsn").with_changes(k=16).k
            16
        """
        _require_known(changes)
        return replace(self, **changes)

    def to_json(self) -> str:
        """JSON text with sorted keys, as stored in a checkpoint.

        Example:
            >>> config = ModelConfig("fsn")
            >>> ModelConfig.from_json(config.to_json()) == config
            True
        """
        default = {field.name: field.default for field in fields(self)}
        content = {
            name: value
            for name, value in asdict(self).items()
            if name not in _LATER or value != default[name]
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> ModelConfig:
        """Configuration from JSON text.

        Raises:
            RequestError: not a JSON mapping, an unknown key, a value not allowed.

        Example:
            >>> ModelConfig.from_json('{"family": "fsn", "update": "flow"}').k
            48
        """
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise RequestError(
                f"The model's config is not JSON: {error}. Save the checkpoint again."
            ) from error
        if not isinstance(content, dict):
            raise RequestError("The model's config must be a JSON mapping.")
        return ModelConfig.from_mapping(content)

    @staticmethod
    def from_mapping(content: Mapping[str, Any]) -> ModelConfig:
        """Configuration from a mapping of field names to values.

        Raises:
            RequestError: an unknown key, a missing family, a value not allowed.

        Example:
            >>> ModelConfig.from_mapping({"family": "fsn", "k": 16}).k
            16
        """
        _require_known(content)
        if "family" not in content:
            raise RequestError("The model's config must name its `family`.")
        return ModelConfig(**content)


def family_has(family: str, name: str) -> bool:
    """Whether a field of ModelConfig has a meaning for models of the family.

    Example:
        >>> family_has("fsn", "successor"), family_has("kuramoto", "successor")
        (True, False)
    """
    return family in _HAVE.get(name, (family,))


def _require_had(config: ModelConfig) -> None:
    """Refuse a value other than the default where the family has no such thing."""
    family = config.family
    usual = {f.name: f.default for f in fields(config)} | _of_family(family)
    for name in _HAVE:
        value = getattr(config, name)
        if name not in _SHARED_SIZES and value != usual[name]:
            require_had(family, name, value, usual[name])


def require_had(family: str, name: str, value: Any, usual: Any = None) -> None:
    """Refuse a field of ModelConfig that has no meaning for the family.

    Args:
        family: A name in FAMILIES.
        name: The field.
        value: What was asked for.
        usual: The family's default, where that would be taken.

    Raises:
        RequestError: the family has no such thing; the message names those that have.
    """
    if not family_has(family, name):
        taken = "" if usual is None else f" or give its default, {usual!r}"
        raise RequestError(
            f"Argument `{name}` has no meaning for family {family}, but is {value!r}; "
            f"it belongs to {', '.join(_HAVE[name])}. Leave it out{taken}."
        )


def _of_family(family: str) -> dict[str, Any]:
    """What empty fields stand for."""
    return {
        "update": "none" if family in _WITHOUT_PHASES else "flow",
        "hidden": _HIDDEN.get(family, 96),
        "harmonics": 1 if family == "kuramoto" else 2,
        "offsets": "zero" if family == "fsn-no-phase" else "learned",
    }


def _require_fitting(config: ModelConfig) -> None:
    """Refuse choices that the family does not have."""
    family = config.family
    if (config.update == "none") != (family in _WITHOUT_PHASES):
        wanted = "none" if family in _WITHOUT_PHASES else "flow or euler"
        raise RequestError(
            f"Argument `update` must be {wanted} for family {family}, "
            f"but is {config.update}."
        )
    if config.modes % 2:
        raise RequestError(
            "Argument `modes` must be even (half on each of two harmonics), "
            f"but is {config.modes}."
        )
    if family == "transformer" and config.k // config.heads % 2:
        raise RequestError(
            "Argument `k` / `heads` must be even for rotary positions, "
            f"but is {config.k // config.heads}."
        )


def _require_known(content: Mapping[str, Any]) -> None:
    known = {field.name: field.type for field in fields(ModelConfig)}
    for name, value in content.items():
        if name not in known:
            raise RequestError(
                f"Unknown key `{name}` in the model's config.{nearest(name, known)}"
            )
        _require_type(name, value, str(known[name]))


def _require_type(name: str, value: Any, wanted: str) -> None:
    fits = {
        "str": isinstance(value, str),
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
    }[wanted]
    if not fits:
        word = {"str": "text", "bool": "true or false", "int": "a whole number"}
        raise RequestError(
            f"Argument `{name}` must be {word.get(wanted, 'a number')}, "
            f"but is {value!r}."
        )


def require_computable(name: str, value: Any) -> None:
    """Refuse a number that float32, in which models compute, has no room for.

    Raises:
        RequestError: not finite, or larger than 1e30.

    Example:
        >>> require_computable("beta", 2.0)
    """
    if isinstance(value, float) and not abs(value) <= _LARGEST:
        raise RequestError(
            f"Argument `{name}` must be at most {_LARGEST:g} in size (models compute "
            f"in float32), but is {value!r}."
        )
