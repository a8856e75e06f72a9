"""Tiny SSA models: small enough to run in every test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.models.ssa import SsaModel

SIZES = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": 16}


def lock_model(seed: int = 1, **changes: Any) -> SsaModel:
    """SSA model of random parameters, with 2 layers, k = 8, 2 heads, context 16.

    Example:
        >>> lock_model().config.family
        'ssa'
    """
    from oscc.models.base import build_model
    from oscc.models.config import ModelConfig
    from oscc.models.ssa import SsaModel

    model = build_model(ModelConfig("ssa", **(SIZES | changes)), seed)
    assert isinstance(model, SsaModel)
    return model


def lock_checkpoint(seed: int = 1, **changes: Any) -> LoadedCheckpoint:
    """A `lock_model` as `oscc.load` would return it.

    Example:
        >>> lock_checkpoint().vocabulary.size
        98
    """
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.corpus import ASCII
    from oscc.files import sha256_bytes

    digest = sha256_bytes(f"ssa {seed} {sorted(changes.items())}".encode())
    return LoadedCheckpoint(lock_model(seed, **changes), ASCII, digest)


def write_lock_checkpoint(path: Path, seed: int = 1, **changes: Any) -> Path:
    """Write a `lock_model` as a checkpoint of ours, and return its path."""
    from oscc.checkpoint import save_checkpoint
    from oscc.corpus import ASCII

    model = lock_model(seed, **changes)
    save_checkpoint(path, model, model.config, ASCII)
    return path
