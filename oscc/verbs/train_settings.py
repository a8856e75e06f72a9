"""What is to be trained: settings, names, and the command that repeats a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from oscc.checks import nearest, require_whole
from oscc.errors import RequestError
from oscc.vocabulary import Vocabulary, vocabulary_of

if TYPE_CHECKING:
    from oscc.models.config import ModelConfig
    from oscc.models.training_config import TrainingConfig

_STANDARD_K = 48
_PHASE_RATE = 1e-2
_LEARNING_RATES = {"ssa": 4e-3, "transformer": 5e-3}  # of models without phases
_PARTS = ("layers", "heads", "harmonics")
_MOST_SIZE, _MOST_PARTS = 1_000_000, 1000  # beyond, memory or patience ends
_LONGEST_NAME = 200  # bytes; folders take 255, and endings are added
_ENDINGS = (".state", ".last-good")  # of files that a run of another name makes


@dataclass(frozen=True, slots=True)
class Request:
    """What a run was asked for, beside its settings.

    `text` is the name of the text file or folder, `name` that of the run's files where
    one was given, `vocabulary` as given.
    """

    seed: int = 0
    text: str = ""
    name: str = ""
    vocabulary: str | Mapping[str, Any] = "auto"
    device: str = "auto"


def settings(
    family: str, update: str, steps: int | None, overrides: Mapping[str, Any]
) -> tuple[ModelConfig, TrainingConfig]:
    """Model and training settings, overrides sorted to where they belong.

    Raises:
        RequestError: a name belongs to neither, or means nothing to the family; a
            size that no machine trains.

    Example:
        >>> settings("fsn", "flow", 10, {"k": 16})[1].steps
        10
    """
    from oscc.models.config import ModelConfig, require_had
    from oscc.models.training_config import TrainingConfig

    model_keys = {f.name for f in fields(ModelConfig)}
    training_keys = {f.name for f in fields(TrainingConfig)}
    unknown = [key for key in overrides if key not in model_keys | training_keys]
    if unknown:
        raise RequestError(
            f"Unknown key `{unknown[0]}` for training."
            f"{nearest(unknown[0], model_keys | training_keys)}"
        )
    model = {key: value for key, value in overrides.items() if key in model_keys}
    other = {key: value for key, value in overrides.items() if key in training_keys}
    other.setdefault("learning_rate", _LEARNING_RATES.get(family, _PHASE_RATE))
    if steps is not None:
        other["steps"] = steps
    if update:
        model["update"] = update
    config = ModelConfig.from_mapping({"family": family, **model})
    usual = ModelConfig(family)
    for key, value in model.items():
        if isinstance(value, int) and not isinstance(value, bool):
            most = _MOST_PARTS if key in _PARTS else _MOST_SIZE
            require_whole(key, value, least=0, most=most)
        if value != getattr(usual, key):
            require_had(family, key, value, getattr(usual, key))
    return config, TrainingConfig(**other)


def wanted_vocabulary(given: str | Mapping[str, Any]) -> str | Vocabulary:
    """What `text_corpus` takes: `auto`, `ascii`, `bytes`, or a vocabulary.

    Args:
        given: One of these words, or a mapping as `model.vocabulary` takes it.

    Raises:
        RequestError: a mapping that is none.

    Example:
        >>> wanted_vocabulary({"characters": "ab"}).size
        2
    """
    return given if isinstance(given, str) else vocabulary_of(given)


def default_name(config: ModelConfig) -> str:
    """Base name of the checkpoint files: FAMILY-UPDATE, with -kNN for other sizes.

    SSA is named by its arm, and a transformer by its family alone: they have no update.

    Example:
        >>> from oscc.models.config import ModelConfig
        >>> default_name(ModelConfig("fsn", "flow", k=8))
        'fsn-flow-k08'
    """
    size = "" if config.k == _STANDARD_K else f"-k{config.k:02d}"
    kind = config.arm if config.family == "ssa" else config.update
    kind = "" if kind == "none" else f"-{kind}"
    return f"{config.family}{kind}{size}"


def plain_name(name: str) -> str:
    """The name, which must be that of files in one folder.

    Raises:
        RequestError: it holds a folder, is hidden or too long, or is that of the
            state of another run.

    Example:
        >>> plain_name("fsn-flow.v2")
        'fsn-flow.v2'
    """
    plain = name.isprintable() and not set(name) & {"/", "\\"}
    if not plain or name.startswith((".", "-")) or not name.strip():
        raise RequestError(
            f"--name must be a plain file name, without a folder and not beginning "
            f"with a dot or a dash, but is {name!r}. The folder is -o."
        )
    if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        raise RequestError(
            f"--name must have at most {_LONGEST_NAME} bytes, but has "
            f"{len(name.encode('utf-8', 'replace'))}."
        )
    if name.endswith(_ENDINGS):
        raise RequestError(
            f"--name must not end with {' or '.join(_ENDINGS)}, which are files of the "
            f"run without that, but is {name!r}."
        )
    return name


def command_line(
    config: ModelConfig,
    training: TrainingConfig,
    request: Request,
    overrides: Mapping[str, Any],
) -> str:
    """Command line that repeats a training, in a shell, where its text is at hand.

    Of a text only the name is written, for metrics are given away with a checkpoint
    and are to name no folder of a machine.
    """
    words = ["oscc", "train", "--family", config.family]
    if config.update != "none":
        words += ["--update", config.update]
    if request.text:
        words += ["--text", request.text]
    if request.name and request.name != default_name(config):
        words += ["--name", request.name]
    words += ["--seed", str(request.seed), "--set", f"train.steps={training.steps}"]
    given = {key: value for key, value in overrides.items() if key != "steps"}
    keys = {
        f"{'model' if hasattr(config, key) else 'train'}.{key}": value
        for key, value in sorted(given.items())
        if key != "update"
    }
    if isinstance(request.vocabulary, Mapping):
        keys["model.vocabulary"] = dict(request.vocabulary)
    elif request.vocabulary != "auto":
        keys["train.vocabulary"] = request.vocabulary
    if request.device != "auto":
        keys["train.device"] = request.device
    for key, value in keys.items():
        words += ["--set", f"{key}={_yaml(value)}"]
    return shlex.join(words)


def _yaml(value: Any) -> str:
    """A value as our configuration reads it back."""
    if isinstance(value, str) and value.isidentifier():
        return value if value not in ("true", "false", "null") else f'"{value}"'
    text = json.dumps(value, ensure_ascii=False)
    # what YAML takes in quotes only by its number
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
