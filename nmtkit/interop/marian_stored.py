"""The files of a folder of Hugging Face's Marian, read with errors that name them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.interop.marian import BIAS, CONFIG
from nmtkit.model.embedding import sinusoids
from nmtkit.storage.model_folder import load_tensors

AGAIN = "download the folder again, or have transformers write it again"
"""How to mend what is damaged."""

_PICKLE = "pytorch_model.bin"
_POSITIONS = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
_SAME_POSITION = 1e-3
"""Tables stored in half precision differ by less, other kinds of sinusoids by more."""


class StoredTensors:
    """The tensors of a file in float32, taken one after another so that none is left over."""

    def __init__(self, path: Path) -> None:
        """Read the file; the tables of positions in it, if any, must be our sinusoids.

        Raises:
            DamagedError: it is missing or damaged.
            ConfigError: the positions are others.
        """
        if not path.is_file():
            raise DamagedError(f"{path}: missing; {_how_to_get(path)}")
        self._path = path
        self._tensors = {name: tensor.float() for name, tensor in load_tensors(path).items()}
        for name in _POSITIONS:
            if not _are_sinusoids(self._tensors.pop(name, torch.zeros(0, 2))):
                raise ConfigError(
                    f"{path}: cannot be imported: {name} holds other positions than Marian's "
                    "sinusoids; take a model that has these"
                )

    def take(self, names: Sequence[str], shape: torch.Size) -> Tensor:
        """Return the tensor that is stored under one of some names, or under several.

        Raises:
            DamagedError: there is none, or it has another shape, or not all are equal.
        """
        found = {name: self._tensors.pop(name) for name in names if name in self._tensors}
        if not found:
            raise DamagedError(f"{self._path}: {names[0]} is missing; {AGAIN}")
        first, *others = found.values()
        if first.shape != shape or not all(torch.equal(first, other) for other in others):
            raise DamagedError(
                f"{self._path}: {' or '.join(found)} is not the one tensor of shape {tuple(shape)} "
                f"that {CONFIG} tells of; {AGAIN}"
            )
        return first

    def take_bias(self, size: int) -> Tensor:
        """Return the bias (V,) of the logits, zeros where none is stored."""
        self._tensors.setdefault(BIAS, torch.zeros(1, size))
        return self.take([BIAS], torch.Size([1, size])).flatten()

    def check_is_empty(self) -> None:
        """Refuse what was not taken: ConfigError."""
        if self._tensors:
            raise ConfigError(
                f"{self._path}: cannot be imported: our model has nothing for "
                f"{', '.join(sorted(self._tensors))}; take a model without it"
            )


def read_json(path: Path) -> dict[str, Any]:
    """Read an object; DamagedError if the file is missing or holds something else."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise DamagedError(f"{path}: not a JSON object; {AGAIN}")
    return content


def read_bytes(path: Path) -> bytes:
    """Read a file; DamagedError if it is missing."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}; {AGAIN}") from error


def _are_sinusoids(table: Tensor) -> bool:
    if table.dim() != 2 or table.shape[1] % 2:
        return False
    return torch.allclose(table, sinusoids(*table.shape), rtol=0.0, atol=_SAME_POSITION)


def _how_to_get(path: Path) -> str:
    """Say where a missing file of tensors can come from."""
    if not (path.parent / _PICKLE).exists():
        return AGAIN
    command = (
        "from transformers import MarianMTModel as M; "
        f'M.from_pretrained("{path.parent}").save_pretrained("{path.parent}")'
    )
    return (
        f"the weights in {_PICKLE} are a pickle, which is never read; if you trust it, run "
        f"`python -c '{command}'`"
    )
