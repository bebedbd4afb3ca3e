"""The model that a path stands for: a model folder, a run, or a checkpoint that a run points to."""

from pathlib import Path

import torch
from torch import Tensor

from nmtkit.errors import DamagedError
from nmtkit.storage.model_folder import LoadedModel, describe_model, read_model, read_parameters
from nmtkit.storage.run_folder import BEST, LAST, RunFolder, is_run


def find_model(path: Path) -> Path:
    """Return the model folder that a path stands for.

    Args:
        path: a model folder; or a run, for its best checkpoint or else its last; or the file
            `best` or `last` of a run.

    Raises:
        DamagedError: the run has no checkpoint.
    """
    if path.name in (BEST, LAST) and path.is_file() and is_run(path.parent):
        run = RunFolder(path.parent)
        found = run.best() if path.name == BEST else run.last()
    elif is_run(path):
        run = RunFolder(path)
        found = run.best() or run.last()
    else:
        return path
    if found is None:
        raise DamagedError(f"{path}: there is no such checkpoint yet; go on with `nmtkit train`")
    return found


def load_model(path: Path, device: torch.device) -> LoadedModel:
    """Load the model that a path stands for, ready to translate on a device.

    Raises:
        DamagedError: there is none, or it is not whole.
    """
    return read_model(find_model(path), device)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the parameters of the model that a path stands for, under all their names.

    Raises:
        DamagedError: there is none, or it is not whole.
    """
    folder = find_model(path)
    return read_parameters(folder, describe_model(folder))
