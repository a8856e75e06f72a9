"""Settings of a training run, and where it is."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from oscc.checks import require_positive, require_whole
from oscc.models.config import require_computable
from oscc.models.disturbance import Disturbance

_POSITIVE = ("learning_rate", "final_share", "clip", "skip_norm")
_WHOLE = ("steps", "batch", "skip_limit", "save_every")
_MOST = 1_000_000_000
_LARGEST_BATCH = 65_536  # windows; more is a slip of the hand, and needs 1 TB


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Settings of the optimiser; defaults are those of the shipped checkpoints.

    A step whose gradient norm before clipping exceeds `skip_norm` is skipped; the run
    fails once `skip_limit` steps were skipped, and at once when a loss is not finite.
    `phase_noise_rad`, `gain_error` and `weight_bits` disturb every coupling step of the
    training (see oscc.models.disturbance); the figures afterwards are without them.

    Raises:
        RequestError: a value that is not a whole number, not above zero, or beyond
            what can be computed with.
    """

    steps: int = 9000
    batch: int = 8
    learning_rate: float = 1e-2
    warm_up: int = 50
    final_share: float = 0.1
    clip: float = 1.0
    skip_norm: float = 50.0
    skip_limit: int = 20
    save_every: int = 250
    phase_noise_rad: float = 0.0
    gain_error: float = 0.0
    weight_bits: int = 0

    def __post_init__(self) -> None:
        for name in _WHOLE:
            require_whole(name, getattr(self, name), most=_MOST)
        require_whole("batch", self.batch, most=_LARGEST_BATCH)
        require_whole("warm_up", self.warm_up, least=0, most=_MOST)
        for name in _POSITIVE:
            require_positive(name, getattr(self, name))
        for one in fields(self):
            require_computable(one.name, getattr(self, one.name))
        _ = self.disturbance  # refuses sizes that make none

    @property
    def disturbance(self) -> Disturbance:
        """What is done to the coupling steps while training."""
        return Disturbance(self.phase_noise_rad, self.gain_error, self.weight_bits)


@dataclass(slots=True)
class Progress:
    """Where a run is: steps done, skipped steps, running loss, curve.

    `largest_norm` is the largest gradient norm of all steps that were taken. `curve`
    has a row [step, running mean of the training loss in bits] for every saved state;
    `validation` and `norms` go with it: bits on a few fixed held-out batches, and the
    largest gradient norm, before clipping, of the steps since the row before, skipped
    ones too (infinite where it was not finite). `recent_norm` is that since the last.
    `good_step` is the step of the row with the lowest `validation`.
    """

    step: int = 0
    skipped: list[int] = field(default_factory=list)
    largest_norm: float = 0.0
    running_nats: float | None = None
    curve: list[list[float]] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    recent_norm: float = 0.0
    good_step: int | None = None
