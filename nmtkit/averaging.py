"""The mean of checkpoints. Source: paper, section 6.1."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from nmtkit.checkpoint import RunFolder, find_model, is_run
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.manifest import Json
from nmtkit.model_folder import (
    TENSORS,
    Description,
    describe_model,
    open_tensors,
    with_ties,
    write_model,
)


@dataclass(frozen=True)
class _Source:
    """A model to average: its folder, what that says of it, and the type of each parameter."""

    folder: Path
    description: Description
    types: dict[str, str]


def average(folders: Sequence[Path], out: Path, overwrite: bool) -> None:
    """Write a model folder whose parameters are the mean of those of others.

    Sums are taken in float64, one parameter after another, so that memory does not grow with the
    number of models; the mean of equal models is bit for bit the same.

    Args:
        folders: the models, at least one; one may be given twice.
        out: the folder to write.
        overwrite: replace a model folder that is there.

    Raises:
        ConfigError: a folder is that of a run, or `out` cannot be used.
        DamagedError: a model is not whole, or two differ in more than the values of parameters.
        ResourceError: `out` cannot be written.
    """
    assert folders
    sources = [_read_source(folder) for folder in folders]
    for source in sources[1:]:
        _check_alike(sources[0], source)
    mean = {name: _mean(name, sources) for name in sources[0].types}
    newest = max((source.description for source in sources), key=_update)
    fields: dict[str, Json] = {
        "update": _update(newest),
        "provenance": newest.manifest["provenance"],
        "sources": [_origin(source) for source in sources],
    }
    write_model(out, with_ties(mean, newest), newest.recipe, newest.codec, fields, overwrite)


def last_checkpoints(run: Path, count: int) -> list[Path]:
    """Return the newest scheduled checkpoints of a run, oldest first.

    Raises:
        ConfigError: there is no such run, or it has fewer of them.
        DamagedError: a checkpoint among them, or newer, is damaged.
    """
    if not is_run(run):
        raise ConfigError(f"{run}: is not the folder of a run; --last needs one")
    scheduled = RunFolder(run).newest_scheduled(count)
    if len(scheduled) < count:
        raise ConfigError(
            f"{run}: has {len(scheduled)} checkpoints made by --save-every, fewer than --last "
            f"{count}; ask for as many, or train with a smaller --save-every or a larger --keep"
        )
    return [one.path for one in scheduled]


def _read_source(path: Path) -> _Source:
    if is_run(path):
        raise ConfigError(f"{path}: is a run; name its checkpoints, or give --last NUMBER")
    folder = find_model(path)
    description = describe_model(folder)
    with open_tensors(folder / TENSORS) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        types = {name: f"{one.get_dtype()} {one.get_shape()}" for name, one in slices.items()}
    return _Source(folder, description, types)


def _check_alike(first: _Source, other: _Source) -> None:
    ours, theirs = _what_is_common(first), _what_is_common(other)
    for name in {**ours, **theirs}:
        if ours.get(name) != theirs.get(name):
            raise DamagedError(
                f"{other.folder}: cannot be averaged with {first.folder}, because {name} is "
                f"{theirs.get(name, 'missing')} there and {ours.get(name, 'missing')} here; "
                "take checkpoints of one run"
            )


def _what_is_common(source: _Source) -> dict[str, object]:
    """Return all that models must have in common to be averaged, each under a name."""
    settings = vars(source.description.recipe.model)
    return {
        "the codec": source.description.codec.fingerprint,
        **{f"[model.{name}]": value for name, value in settings.items()},
        **source.types,
    }


def _mean(name: str, sources: Sequence[_Source]) -> Tensor:
    # Adding to the first, not to zero, keeps the sign of a negative zero.
    first, *others = sources
    stored = _read(name, first)
    total = stored.double()
    for source in others:
        total += _read(name, source)
    return (total / len(sources)).to(stored.dtype)


def _read(name: str, source: _Source) -> Tensor:
    with open_tensors(source.folder / TENSORS) as file:
        tensor: Tensor = file.get_tensor(name)
    return tensor


def _update(description: Description) -> int:
    update: int = description.manifest["update"]
    return update


def _origin(source: _Source) -> dict[str, Json]:
    manifest = source.description.manifest
    return {
        "name": source.folder.absolute().name,
        "update": manifest["update"],
        "sha256": manifest["files"][TENSORS]["sha256"],
    }
