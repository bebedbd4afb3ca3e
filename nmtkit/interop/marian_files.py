"""Read the files of a folder of Hugging Face's Marian, with errors that name the file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmtkit.config.training import ModelConfig
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.interop.marian import BIAS, CONFIG
from nmtkit.model.embedding import sinusoids
from nmtkit.storage.model_folder import load_tensors, size_problem
from nmtkit.storage.reading import read_file
from nmtkit.text.codec import TextCodec

DOWNLOAD_AGAIN = "download the folder again, or have transformers write it again"
"""The remedy for a damaged folder."""

_PICKLE = "pytorch_model.bin"
_POSITIONS = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
_SAME_POSITION = 1e-3
"""Tolerance: half precision changes the table by less, other kinds of sinusoids by more."""


class StoredTensors:
    """The tensors of a file in float32; each is taken once, so that unused ones are found."""

    def __init__(self, path: Path) -> None:
        """Read the file; position tables in it, if any, must be Marian's sinusoids.

        Raises:
            DamagedError: the file is missing or damaged.
            ConfigError: it has other positions.
        """
        if not path.is_file():
            raise DamagedError(f"{path}: missing; {_how_to_get(path)}")
        self._path = path
        self._tensors = {name: tensor.float() for name, tensor in load_tensors(path).items()}
        for name in _POSITIONS:
            table = self._tensors.pop(name, None)
            if table is not None and not _are_sinusoids(table):
                raise ConfigError(
                    f"{path}: cannot be imported: {name} has other positions than Marian's "
                    "sinusoids; use a model with sinusoids"
                )

    def check_size(self, config: ModelConfig, codec: TextCodec) -> None:
        """Raise DamagedError if a model is much larger than the file."""
        problem = size_problem(config, codec, self._tensors)
        if problem:
            raise DamagedError(f"{self._path}: does not fit {CONFIG}: {problem}; {DOWNLOAD_AGAIN}")

    def take(self, names: Sequence[str], shape: torch.Size) -> Tensor:
        """Take the tensor that is stored under one or several of some names.

        Raises:
            DamagedError: none is stored, the shape is another, or the copies differ.
        """
        found = {name: self._tensors.pop(name) for name in names if name in self._tensors}
        if not found:
            raise DamagedError(f"{self._path}: {names[0]} is missing; {DOWNLOAD_AGAIN}")
        first, *others = found.values()
        if first.shape != shape or not all(torch.equal(first, other) for other in others):
            raise DamagedError(
                f"{self._path}: {' or '.join(found)} is not the one tensor of shape {tuple(shape)} "
                f"of {CONFIG}; {DOWNLOAD_AGAIN}"
            )
        return first

    def take_bias(self, size: int) -> Tensor:
        """Take the bias (V,) of the logits; zeros if none is stored."""
        self._tensors.setdefault(BIAS, torch.zeros(1, size))
        return self.take([BIAS], torch.Size([1, size])).flatten()

    def check_is_empty(self) -> None:
        """Raise ConfigError if a tensor was not taken."""
        if self._tensors:
            raise ConfigError(
                f"{self._path}: cannot be imported: nmtkit's model has no parameter for "
                f"{', '.join(sorted(self._tensors))}; use a model without it"
            )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; DamagedError if the file is missing or not one."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise DamagedError(f"{path}: not a JSON object; {DOWNLOAD_AGAIN}")
    return content


def read_bytes(path: Path) -> bytes:
    """Read a file; DamagedError if it cannot be read."""
    try:
        return read_file(path)
    except DamagedError:
        raise
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}; {DOWNLOAD_AGAIN}") from error


def _are_sinusoids(table: Tensor) -> bool:
    if table.dim() != 2 or table.shape[1] % 2 or not table.numel():
        return False
    return torch.allclose(table, sinusoids(*table.shape), rtol=0.0, atol=_SAME_POSITION)


def _how_to_get(path: Path) -> str:
    """Return the remedy for a missing file of tensors."""
    if not (path.parent / _PICKLE).exists():
        return DOWNLOAD_AGAIN
    command = (
        "from transformers import MarianMTModel as M; "
        f'M.from_pretrained("{path.parent}").save_pretrained("{path.parent}")'
    )
    return (
        f"the weights in {_PICKLE} are a pickle, which is never read; if you trust it, run "
        f"`python -c '{command}'`"
    )
