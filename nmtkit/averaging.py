"""Checkpoint averaging: a model with the mean weights of others. Source: paper, section 6.1."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nmtkit.config.schema import TrainRecipe, fields_of, values_of
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import TENSORS, ancestors, describe_model, identify
from nmtkit.storage.model_folder import open_tensors, with_ties, write_model
from nmtkit.storage.run_folder import CHECKPOINTS, find_model, is_run


@dataclass(frozen=True)
class _Source:
    """A model to average; its parameters stay on disk.

    Attributes:
        folder: the model folder.
        manifest: its manifest.
        settings: fingerprint of the codec and values of the configuration, by name.
        run: what all checkpoints of a run have in common, by name.
        types: data type and shape of each parameter.
    """

    folder: Path
    manifest: dict[str, Any]
    settings: dict[str, object]
    run: dict[str, object]
    types: dict[str, str]


def average(
    folders: Sequence[Path],
    out: Path,
    overwrite: bool,
    different_runs: bool,
    reporter: WorkReporter = SILENT,
) -> None:
    """Write a model folder whose parameters are the mean of the parameters of others.

    Each parameter is summed in float64, one after the other, so that memory does not grow with the
    number of models. The mean of equal models equals them bit for bit.

    Args:
        folders: the models, at least one; a model may be given twice.
        out: the folder to write.
        overwrite: replace an existing model folder.
        different_runs: whether the models may be of different runs.
        reporter: receives the progress.

    Raises:
        ConfigError: a folder is a run, models are of different runs, or `out` cannot be used.
        DamagedError: a model is incomplete or not finite, or two models differ in more than the
            values of parameters.
        ResourceError: `out` cannot be written.
    """
    sources = _read_sources(folders, different_runs)
    newest = _newest(sources)
    origin: dict[str, Json] = {
        "update": _update(newest),
        "provenance": _common_provenance(newest, sources),
        "sources": [_identify(one) for one in sources],
    }
    described = describe_model(newest.folder)
    mean = with_ties(_mean(sources, reporter), described)
    write_model(out, mean, described.recipe, described.codec, origin, overwrite)


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


def _read_sources(folders: Sequence[Path], different_runs: bool) -> list[_Source]:
    assert folders
    first, *others = sources = [_read_source(folder) for folder in folders]
    for source in others:
        _check_compatible(first, source)
        if not different_runs:
            _check_same_run(first, source)
    return sources


def _read_source(path: Path) -> _Source:
    if is_run(path):
        raise ConfigError(
            f"{path}: is a run, not a checkpoint; name its checkpoints, or give one run alone"
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
    fields, values = fields_of(TrainRecipe), values_of(described.recipe)
    run = {
        "the dataset": described.manifest["provenance"].get("dataset"),
        "the ancestors": ancestors(described.manifest),
        **{name: values[name] for name, one in fields.items() if not one.may_change_on_resume},
    }
    return _Source(folder, described.manifest, settings, run, types)


def _check_compatible(first: _Source, other: _Source) -> None:
    values, others = ({**source.settings, **source.types} for source in (first, other))
    for name in {**values, **others}:
        if values.get(name) != others.get(name):
            raise DamagedError(
                f"{other.folder}: cannot be averaged with {first.folder}: {name} is "
                f"{others.get(name, 'missing')} in the former and {values.get(name, 'missing')} in "
                "the latter; average checkpoints of one run"
            )


def _check_same_run(first: _Source, other: _Source) -> None:
    """Refuse models of different runs: their means are seldom models that translate."""
    differ = [name for name, value in first.run.items() if other.run[name] != value]
    parents = [one.folder.resolve().parent for one in (first, other)]
    if differ or (parents[0] != parents[1] and all(one.name == CHECKPOINTS for one in parents)):
        reason = f"{differ[0]} differs" if differ else "they are in different folders"
        raise ConfigError(
            f"{other.folder}: is of another run than {first.folder}: {reason}; average checkpoints "
            "of one run, or add --different-runs"
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
