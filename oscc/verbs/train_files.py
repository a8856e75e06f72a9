"""Files of a training run: their names, whose they are, and the lock on them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from oscc.errors import RequestError
from oscc.files import require_writable
from oscc.locks import held

METRICS_FORMAT = "oscc.metrics/1"
PICTURE_MARK = "oscc-training-curve"  # by which a picture is known as ours


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Files of the run `name` in the folder `out`."""

    out: Path
    name: str

    def _of(self, ending: str) -> Path:
        return self.out / f"{self.name}{ending}"

    @property
    def checkpoint(self) -> Path:
        """The trained model."""
        return self._of(".safetensors")

    @property
    def metrics(self) -> Path:
        """Figures of the run."""
        return self._of(".metrics.json")

    @property
    def curve(self) -> Path:
        """One JSON line for every saved state."""
        return self._of(".curve.jsonl")

    @property
    def picture(self) -> Path:
        """The curve, drawn."""
        return self._of(".curve.svg")

    @property
    def state(self) -> Path:
        """Where an unfinished run goes on from."""
        return self._of(".state.safetensors")

    @property
    def last_good(self) -> Path:
        """Checkpoint of the last good weights of a run that diverged."""
        return self._of(".last-good.safetensors")

    def require_free(self, *, force: bool) -> None:
        """Refuse a folder that cannot be written, and files that must not be replaced.

        Args:
            force: Replace the results of an earlier run.

        Raises:
            RequestError: the folder is a file or not writable, a file of the run's
                names is none of ours, or a result is there and `force` is not given.
        """
        require_writable(self.out)
        kinds: dict[Path, Callable[[Path], bool]] = {
            self.checkpoint: _is_tensors("oscc.checkpoint/"),
            self.metrics: _is_metrics,
            self.curve: _is_curve,
            self.picture: _is_picture,
            self.state: _is_tensors("oscc.training/"),
            self.last_good: _is_tensors("oscc.checkpoint/"),
        }
        for path, ours in kinds.items():
            if path.is_symlink() or path.exists():
                if not _read(ours, path):
                    raise RequestError(
                        f"`{path}` is not a file that oscc train wrote; it is left as "
                        "it is. Choose another -o or --name, or move it away."
                    )
                if path in (self.checkpoint, self.metrics) and not force:
                    raise RequestError(
                        f"`{path}` is there already. Choose another -o or --name, or "
                        "give --force."
                    )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run's name in its folder, which is made where it is missing.

        Raises:
            RequestError: another run holds it, or the folder cannot be made.
        """
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(
                f"`{self.out}` cannot be made: {error.strerror or error}. "
                "Choose another -o."
            ) from error
        busy = (
            f"Another oscc run is training `{self.name}` in `{self.out}`. Wait for it, "
            "or choose another -o or --name."
        )
        with held(self.out / f".{self.name}.lock", busy, remove=True):
            yield


def _read(ours: Callable[[Path], bool], path: Path) -> bool:
    try:
        return path.is_file() and ours(path)
    except PermissionError as error:
        raise RequestError(
            f"`{path}` is closed to you. Choose another -o or --name."
        ) from error
    except (OSError, ValueError, RequestError):
        return False


def _is_tensors(prefix: str) -> Callable[[Path], bool]:
    def ours(path: Path) -> bool:
        from oscc import tensors

        return tensors.load(path)[1].get("format", "").startswith(prefix)

    return ours


def _is_metrics(path: Path) -> bool:
    content = json.loads(path.read_text("utf-8"))
    return isinstance(content, dict) and content.get("format") == METRICS_FORMAT


def _is_curve(path: Path) -> bool:
    """Whether every line is one of a curve; a run may have no line yet."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return all(
        isinstance(row, dict) and {"step", "symbols_seen"} <= set(row) for row in rows
    )


def _is_picture(path: Path) -> bool:
    return f'id="{PICTURE_MARK}"' in path.read_text("utf-8")
