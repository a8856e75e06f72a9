"""Checkpoints."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from oscc import tensors
from oscc.corpus import Vocabulary
from oscc.models.config import ModelConfig

CHECKPOINT_FORMAT = "oscc.checkpoint/1"


def save_checkpoint(
    path: Path, model: nn.Module, config: ModelConfig, vocabulary: Vocabulary
) -> None:
    """Write a checkpoint."""
    arrays = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    metadata = {
        "format": CHECKPOINT_FORMAT,
        "family": config.family,
        "update": config.update,
        "config": config.to_json(),
        "vocabulary": vocabulary.to_json(),
    }
    tensors.save(path, arrays, metadata)
