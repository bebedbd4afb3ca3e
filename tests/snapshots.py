"""Small checkpoints whose tensors identify their update, and the tensors of any model."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from nmtkit.config.schema import TrainRecipe
from nmtkit.storage.checkpoint import Snapshot, write_checkpoint
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.model_folder import read_parameters, write_model
from nmtkit.storage.run_folder import RunFolder, find_model
from tests.tiny import tiny_codec

PROVENANCE = {"dataset": "0123"}


def tiny_tensors(update: int) -> dict[str, Tensor]:
    """Return stand-ins for parameters; `tied` is another name of `weight`."""
    weight = torch.arange(6.0).view(2, 3) + update
    return {"weight": weight, "bias": torch.tensor([0.1 * update, -0.0]), "tied": weight}


def tiny_snapshot(update: int, is_scheduled: bool) -> Snapshot:
    return Snapshot(
        update=update,
        is_scheduled=is_scheduled,
        model=tiny_tensors(update),
        recipe=TrainRecipe(),
        codec=tiny_codec(),
        provenance=PROVENANCE,
        state_tensors={"moment": torch.full((4,), float(update))},
        state_values={"update": update, "position": {"epoch": 0, "index": update}},
    )


def tiny_run(path: Path, *updates: int) -> RunFolder:
    """Make a run with scheduled checkpoints of these updates."""
    run = RunFolder.create_or_open(path)
    for update in updates:
        write_checkpoint(run, tiny_snapshot(update, is_scheduled=True))
    return run


def tiny_model_folder(path: Path, update: int, tensors: Mapping[str, Tensor]) -> Path:
    """Write a model folder with some parameters."""
    fields: dict[str, Json] = {"update": update, "provenance": PROVENANCE}
    write_model(path, tensors, TrainRecipe(), tiny_codec(), fields, overwrite=False)
    return path


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the parameters of a model folder or run, under all their names."""
    folder = find_model(path)
    return read_parameters(folder, describe_model(folder))
