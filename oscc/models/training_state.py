"""The state of a training run as one file: weights, optimiser, progress."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from oscc import tensors
from oscc.errors import RequestError
from oscc.models.training_config import Progress

STATE_FORMAT = "oscc.training/2"


Weights = dict[str, torch.Tensor]


@dataclass(slots=True, eq=False)
class TrainingState:
    """What a run goes on from.

    `run` says what the run is, and only the same run may go on from a file; `good`
    holds the weights of the lowest held-out loss so far, on the CPU, empty before
    that was measured.
    """

    run: str
    progress: Progress
    good: Weights


def save_state(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    state: TrainingState,
) -> None:
    """Write weights, optimiser and progress, atomically.

    Raises:
        ToolError: the file could not be written.
    """
    arrays: tensors.Arrays = {f"good.{k}": v.numpy() for k, v in state.good.items()}
    names = {id(p): name for name, p in model.named_parameters()}
    for name, value in model.state_dict().items():
        arrays[f"weights.{name}"] = value.detach().cpu().numpy()
    for parameter, slots in optimiser.state.items():
        for slot, value in slots.items():
            key = f"optimiser.{slot}.{names[id(parameter)]}"
            arrays[key] = np.asarray(value.cpu())
    metadata = {
        "format": STATE_FORMAT,
        "run": state.run,
        "progress": json.dumps(asdict(state.progress), sort_keys=True),
    }
    tensors.save(path, arrays, metadata)


def load_state(
    path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, run: str
) -> TrainingState:
    """Fill model and optimiser from a saved state of the same run.

    Returns:
        Where the run was, and its good weights.

    Raises:
        RequestError: the file is of another format or run.
    """
    arrays, metadata = tensors.load(path)
    if metadata.get("format") != STATE_FORMAT:
        found = metadata.get("format", "none")
        raise RequestError(
            f"`{path}` is not the state of a training run of this version (its format "
            f"is {found}, not {STATE_FORMAT}). Move it away to train from the start."
        )
    if metadata.get("run") != run:
        raise RequestError(
            f"`{path}` belongs to another run: its configuration, seed or corpus "
            "differs. Choose another -o or --name, or train from the start with "
            "--no-resume."
        )
    progress = Progress(**json.loads(metadata["progress"]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(arrays[f"weights.{name}"].copy()))
            if parameter.requires_grad and progress.step:
                slots = _slots(name, parameter, arrays)
                if slots:
                    optimiser.state[parameter] = slots
    good = {
        name.removeprefix("good."): torch.from_numpy(value.copy())
        for name, value in arrays.items()
        if name.startswith("good.")
    }
    return TrainingState(run, progress, good)


def _slots(
    name: str, parameter: nn.Parameter, arrays: tensors.Arrays
) -> dict[str, Any]:
    slots: dict[str, Any] = {}
    for slot in ("step", "exp_avg", "exp_avg_sq"):
        key = f"optimiser.{slot}.{name}"
        if key in arrays:
            value = torch.from_numpy(np.array(arrays[key]))
            # the optimiser counts its steps on the host
            slots[slot] = value if slot == "step" else value.to(parameter.device)
    return slots
