"""The model folder: `model.safetensors`, `config.toml`, `codec/`, `manifest.json`.

It is complete: translation needs no other file. Checkpoints of a run and averaged models are model
folders. Weights are never read from a pickle.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps
from nmtkit.errors import RESTORE, DamagedError, DivergedError
from nmtkit.model.cost import count_parameters
from nmtkit.model.transformer import Transformer
from nmtkit.storage.disk import check_is_file, check_path
from nmtkit.storage.durable import new_folder
from nmtkit.storage.manifest import Json, missing_file_error
from nmtkit.storage.model_description import (
    CODEC,
    CONFIG,
    FORMAT,
    TENSORS,
    VERSION,
    Description,
    describe_model,
    stored_aligning_attention,
)
from nmtkit.storage.run_folder import find_model
from nmtkit.text.codec import TextCodec

_OS_ERROR = re.compile(r"\(os error ([0-9]+)\)")
_MOST_TIMES = 10
"""A model of more parameters than this many times those of its file is not built."""


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready to translate."""

    model: Transformer
    codec: TextCodec
    recipe: TrainRecipe
    manifest: dict[str, Any]


def write_model(
    folder: Path,
    tensors: Mapping[str, Tensor],
    recipe: TrainRecipe,
    codec: TextCodec,
    fields: Mapping[str, Json],
    overwrite: bool,
) -> None:
    """Write a model folder.

    Args:
        folder: the folder to make.
        tensors: the parameters under the names of `Transformer.state_dict`; a tied parameter is
            stored once.
        recipe: the recipe of their training.
        codec: the conversion between text and ids.
        fields: further fields of the manifest.
        overwrite: replace an existing model folder.

    Raises:
        DivergedError: a parameter is not finite.
        ConfigError, ResourceError: as in `nmtkit.storage.durable.new_folder`.
    """
    stored, ties = _without_ties(tensors)
    _check_finite(stored, folder)
    with new_folder(folder, FORMAT, VERSION, overwrite=overwrite) as staged:
        save_tensors(stored, staged.path / TENSORS)
        (staged.path / CONFIG).write_text(dumps(recipe), encoding="utf-8")
        (staged.path / CODEC).mkdir()
        codec.save(staged.path / CODEC)
        staged.fields.update(
            fields,
            torch=torch.__version__,
            parameters=sum(tensor.numel() for tensor in stored.values()),
            source_size=codec.source.size,
            target_size=codec.target.size,
            codec=codec.fingerprint,
            ties=ties,
        )


def read_parameters(folder: Path, description: Description) -> dict[str, Tensor]:
    """Return the parameters of a described model folder, under all their names."""
    return with_ties(load_tensors(folder / TENSORS), description)


def with_ties(tensors: Mapping[str, Tensor], description: Description) -> dict[str, Tensor]:
    """Return parameters with all names of the tied ones, which are stored once."""
    ties: dict[str, str] = description.manifest["ties"]
    return {**tensors, **{name: tensors[stored] for name, stored in ties.items()}}


def load_model(path: Path, device: torch.device) -> LoadedModel:
    """Return the model that a path refers to, ready to translate on a device.

    Raises:
        DamagedError: there is no model, or it is damaged.
    """
    return read_model(find_model(path), device)


def read_model(folder: Path, device: torch.device) -> LoadedModel:
    """Return the model of a folder on `device`, in evaluation mode.

    Raises:
        DamagedError: the folder is not a model folder, or is damaged.
    """
    described = describe_model(folder)
    tensors = read_parameters(folder, described)
    check_size(described, tensors, folder)
    model = uninitialized_model(described.recipe.model, described.codec)
    restore_parameters(model, tensors, folder, is_new=True)
    model = model.to(device).eval()
    num_layers = described.recipe.model.decoder_layers
    model.stored_aligning_attention = stored_aligning_attention(folder, num_layers)
    return LoadedModel(model, described.codec, described.recipe, described.manifest)


def check_size(described: Description, tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Raise DamagedError if the model of a folder is much larger than its file of parameters.

    Args:
        described: recipe and codec of the model.
        tensors: the parameters under all their names.
        folder: the folder that they were read from, for messages.
    """
    problem = size_problem(described.recipe.model, described.codec, tensors)
    if problem:
        raise DamagedError(f"{folder / TENSORS}: does not fit {CONFIG}: {problem}; {RESTORE}")


def size_problem(config: ModelConfig, codec: TextCodec, tensors: Mapping[str, Tensor]) -> str:
    """Return why a model must not be built for the parameters of a file; "" if it may be.

    Its size follows from settings, and a small file must not make nmtkit allocate much memory. The
    size of the tensors is that of their file; one with several names counts once.
    """
    found = sum({id(tensor): tensor.numel() for tensor in tensors.values()}.values())
    sizes = codec.source.size, codec.target.size
    expected = count_parameters(config, *sizes, codec.is_shared).total
    if expected <= _MOST_TIMES * found:
        return ""
    return f"{found:,} parameters, where the model has {expected:,}"


def uninitialized_model(config: ModelConfig, codec: TextCodec) -> Transformer:
    """Return a model whose parameters must be set; see `size_problem`."""
    with _SkipInitialization():
        return Transformer(config, codec.source.size, codec.target.size, codec.is_shared)


_DRAWING = {"normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_"}
"""Names of the functions of tensors and of `torch.nn.init` that draw parameters."""


class _SkipInitialization(TorchFunctionMode):
    """Leaves parameters unchanged where they would be drawn, because they will be overwritten.

    Drawing takes longer than reading, and memory is not used before it is written.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch, except those that draw."""
        kwargs = kwargs or {}
        if function.__name__ in _DRAWING:
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)


def restore_parameters(
    model: Transformer, tensors: Mapping[str, Tensor], folder: Path, *, is_new: bool = False
) -> None:
    """Give a model the parameters that were read from a folder.

    Args:
        model: the model.
        tensors: the parameters under all their names.
        folder: for messages.
        is_new: the model is uninitialised, and takes the tensors instead of copies.

    Raises:
        DamagedError: names or shapes differ from the model's; the message names the first.
    """
    expected = model.state_dict()
    for name in {**expected, **tensors}:
        found = tuple(tensors[name].shape) if name in tensors else "missing"
        wanted = tuple(expected[name].shape) if name in expected else "none"
        if found != wanted:
            raise DamagedError(
                f"{folder / TENSORS}: does not fit {CONFIG}: {name} is {found}, where the model "
                f"has {wanted}; {RESTORE}"
            )
    if is_new:
        tensors = {name: tensor.float() for name, tensor in tensors.items()}
    model.load_state_dict(tensors, assign=is_new)


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to a file; OSError if the file cannot be written."""
    check_path(path)
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        # safetensors reports the error number in its message only.
        code = _OS_ERROR.search(str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file that `save_tensors` wrote; DamagedError for other content."""
    with open_tensors(path) as file:
        return {name: _copy_tensor(path, name) for name in file.keys()}  # noqa: SIM118


def _copy_tensor(path: Path, name: str) -> Tensor:
    """Return a copy of a tensor of a file.

    While a view of one tensor lives, the whole file is in memory; so it is opened for each.
    """
    with safe_open(path, framework="pt") as file:
        copy: Tensor = file.get_tensor(name).clone()
    return copy


@contextmanager
def open_tensors(path: Path) -> Iterator[Any]:
    """Open a file of `save_tensors` as a `safe_open`; DamagedError for other content.

    Integers would be read as numbers with a fraction, and are no weights.
    """
    check_path(path)
    try:
        check_is_file(path)
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                if not (type := file.get_slice(name).get_dtype()).startswith(("F", "BF")):
                    raise DamagedError(f"{path}: {name} is of type {type}, not float; {RESTORE}")
            yield file
    except FileNotFoundError:
        raise missing_file_error(path) from None
    except SafetensorError as error:
        raise DamagedError(f"{path}: damaged ({error}); {RESTORE}") from error


def _without_ties(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the distinct parameters, and the stored name of each further tied name."""
    stored_names: dict[tuple[int, torch.Size], str] = {}
    ties = {}
    for name, tensor in tensors.items():
        stored = stored_names.setdefault((tensor.data_ptr(), tensor.shape), name)
        if stored != name:
            ties[name] = stored
    return {name: tensors[name] for name in stored_names.values()}, ties


def _check_finite(tensors: Mapping[str, Tensor], folder: Path) -> None:
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise DivergedError(
                f"{folder}: not written, because {name} has values that are not finite; start "
                "again in another --out with a lower --learning-rate-scale, or with --clip-norm"
            )
