"""Checkpoint averaging: a model with the mean weights of others. Source: paper, section 6.1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import TENSORS, ancestors, describe_model, identify
from nmtkit.storage.model_folder import (
    LoadedModel,
    make_model,
    open_tensors,
    with_ties,
    write_model,
)
from nmtkit.storage.model_path import find_model
from nmtkit.storage.run_folder import is_run


@dataclass(frozen=True)
class _Source:
    """A model to average; its parameters stay on disk.

    Attributes:
        folder: the model folder.
        manifest: its manifest.
        settings: fingerprint of the codec and values of the configuration, by name.
        types: data type and shape of each parameter.
    """

    folder: Path
    manifest: dict[str, Any]
    settings: dict[str, object]
    types: dict[str, str]


def average(
    folders: Sequence[Path],
    out: Path,
    fields: Mapping[str, Json],
    overwrite: bool,
    reporter: WorkReporter = SILENT,
) -> None:
    """Write a model folder whose parameters are the mean of the parameters of others.

    Each parameter is summed in float64, one after the other, so that memory does not grow with the
    number of models. The mean of equal models equals them bit for bit.

    Args:
        folders: the models, at least one; a model may be given twice.
        out: the folder to write.
        fields: fields of its manifest in addition to the sources of the mean.
        overwrite: replace an existing model folder.
        reporter: receives the progress.

    Raises:
        ConfigError: a folder is a run, or `out` cannot be used.
        DamagedError: a model is incomplete or not finite, or two models differ in more than the
            values of parameters.
        ResourceError: `out` cannot be written.
    """
    sources = _read_sources(folders)
    newest = _newest(sources)
    origin: dict[str, Json] = {
        "update": _update(newest),
        "provenance": _common_provenance(newest, sources),
        "sources": [_identify(one) for one in sources],
    }
    described = describe_model(newest.folder)
    mean = with_ties(_mean(sources, reporter), described)
    write_model(out, mean, described.recipe, described.codec, {**origin, **fields}, overwrite)


def _identify(source: _Source) -> Json:
    """Return the identity of a source and, if it began with another model, its line of descent."""
    parents = ancestors(source.manifest)
    own = identify(source.folder, source.manifest)
    return {**own, "parents": parents} if parents else own


def _common_provenance(newest: _Source, sources: Sequence[_Source]) -> Json:
    """Return the provenance of the newest source, without a line of descent that others lack."""
    provenance: dict[str, Json] = newest.manifest["provenance"]
    parents = ancestors(newest.manifest)
    if all(ancestors(source.manifest) == parents for source in sources):
        return provenance
    return {name: value for name, value in provenance.items() if name != "parents"}


def load_mean(
    folders: Sequence[Path], device: torch.device, reporter: WorkReporter = SILENT
) -> LoadedModel:
    """Load the model that `average` would write onto a device; raises as `average` does."""
    sources = _read_sources(folders)
    folder = _newest(sources).folder
    described = describe_model(folder)
    return make_model(described, with_ties(_mean(sources, reporter), described), folder, device)


def _read_sources(folders: Sequence[Path]) -> list[_Source]:
    assert folders
    sources = [_read_source(folder) for folder in folders]
    for source in sources[1:]:
        _check_compatible(sources[0], source)
    return sources


def _read_source(path: Path) -> _Source:
    if is_run(path):
        raise ConfigError(
            f"{path}: is a run, not a checkpoint; name its checkpoints, or add --last, --best or "
            "--try"
        )
    folder = find_model(path)
    described = describe_model(folder)
    with open_tensors(folder / TENSORS) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        types = {name: f"{part.get_dtype()} {part.get_shape()}" for name, part in slices.items()}
    settings = {
        "the codec": described.codec.fingerprint,
        **{f"[model.{name}]": value for name, value in vars(described.recipe.model).items()},
    }
    return _Source(folder, described.manifest, settings, types)


def _check_compatible(first: _Source, other: _Source) -> None:
    values, others = ({**source.settings, **source.types} for source in (first, other))
    for name in {**values, **others}:
        if values.get(name) != others.get(name):
            raise DamagedError(
                f"{other.folder}: cannot be averaged with {first.folder}: {name} is "
                f"{others.get(name, 'missing')} in the former and {values.get(name, 'missing')} in "
                "the latter; average checkpoints of one run"
            )


def _mean(sources: Sequence[_Source], reporter: WorkReporter) -> dict[str, Tensor]:
    names = sources[0].types
    with reporter.track(names, "averaged", "parameters", len(names)) as tracked:
        return {name: _mean_of_one(name, sources) for name in tracked}


def _mean_of_one(name: str, sources: Sequence[_Source]) -> Tensor:
    """Compute the mean of one parameter; memory holds its sum and one source's tensor."""
    # Starting from the first tensor, not from zero, keeps the sign of a negative zero.
    first, *others = sources
    stored = _read(name, first)
    total, stored_type = stored.double(), stored.dtype
    del stored
    for source in others:
        total += _read(name, source)
    total /= len(sources)
    return total.to(stored_type)


def _read(name: str, source: _Source) -> Tensor:
    with open_tensors(source.folder / TENSORS) as file:
        tensor: Tensor = file.get_tensor(name)
    if not tensor.isfinite().all():
        raise DamagedError(
            f"{source.folder}: cannot be averaged: {name} has values that are not finite; "
            "average other checkpoints"
        )
    return tensor


def _newest(sources: Sequence[_Source]) -> _Source:
    return max(sources, key=_update)


def _update(source: _Source) -> int:
    update: int = source.manifest["update"]
    return update
