"""The weights that a run begins with, if another model's replace the random ones.

All tensors are copied. With another vocabulary, those with a row per entry get the rows of equal
entries. Other entries begin with the mean of the rows of the subwords into which the other model
splits them. Source: Gee et al. 2022, "Fast Vocabulary Transfer", section 3.1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import Tensor

from nmtkit.config.training import MAY_DIFFER_FROM_PARENT, ModelConfig
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer
from nmtkit.storage.checkpoint import Resumable
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import (
    TENSORS,
    Description,
    ancestors,
    describe_model,
    line_of_descent,
)
from nmtkit.storage.model_folder import read_parameters, restore_parameters
from nmtkit.storage.model_path import find_model
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.subword import SPACE_SYMBOL

_PARAMETERS = {
    "source": {"source_embedding.tokens.weight"},
    "target": {"target_embedding.tokens.weight", "projection.weight", "output_bias"},
}
"""The parameters with a row per entry of each side's vocabulary; some may be tied."""

_SUBWORD_KINDS = {"sentencepiece", "marian"}


@dataclass(frozen=True)
class Parent:
    """The model whose weights a run begins with.

    Attributes:
        path: a model folder, a run, or `best` or `last` of a run.
        updates_vocabulary: the dataset may have another vocabulary or other languages.
    """

    path: Path
    updates_vocabulary: bool = False


@dataclass(frozen=True)
class Origin:
    """The origin of a run's weights.

    Attributes:
        parents: the line of descent of the model that the run began with, for the manifests of the
            run; empty if it began with random weights.
        copy_to: copies the weights into a new model, and yields lines to report.
    """

    parents: list[Json]
    copy_to: Callable[[Transformer], Iterable[str]]

    @staticmethod
    def find(
        parent: Parent | None,
        run_dir: Path,
        config: ModelConfig,
        dataset: Dataset,
        resumable: Resumable | None,
    ) -> "Origin":
        """Return the origin of a run: a checkpoint, or else a parent, or else random weights.

        Args:
            parent: the model that the run is to begin with, if any.
            run_dir: the folder of the run, for messages.
            config: the model to train.
            dataset: the dataset to train on.
            resumable: the checkpoint from which the run continues, if any. The parent is then not
                needed, but must be the same if it exists.

        Raises:
            DamagedError: there is no parent, or it is damaged.
            ConfigError: the parent does not fit the model or the dataset, or is not the run's.
        """
        if resumable is not None:
            parents: list[Json] = [*ancestors({"provenance": resumable.provenance})]
            if parent is not None:
                _check_same_parent(parent, parents, run_dir)
            return Origin(parents, no_weights)
        if parent is None:
            return Origin([], no_weights)
        folder = find_model(parent.path)
        described = describe_model(folder)
        _check_shape(parent.path, described.recipe.model, config)
        if not parent.updates_vocabulary:
            _check_codec(parent.path, described.codec, dataset)
        return Origin(
            [*line_of_descent(folder, described.manifest, described.codec)],
            partial(_copy_weights, folder, described, dataset.codec),
        )


def no_weights(_model: Transformer) -> Iterable[str]:
    """Leave a new model's weights unchanged."""
    return ()


def _check_shape(path: Path, parent: ModelConfig, config: ModelConfig) -> None:
    own = vars(parent)
    changed = [
        f"{name} ({value}) must be {own[name]}"
        for name, value in vars(config).items()
        if value != own[name] and name not in MAY_DIFFER_FROM_PARENT
    ]
    if changed:
        raise ConfigError(
            f"{path}: the model has another shape: {', '.join(changed)}; leave these settings out, "
            "because --from sets them [model]"
        )


def _check_codec(path: Path, parent: TextCodec, dataset: Dataset) -> None:
    codec = dataset.codec
    if codec.fingerprint != parent.fingerprint:
        raise ConfigError(
            f"{path}: the model has another vocabulary than {dataset.folder}; preprocess with "
            f"--vocabulary-of {path}, or give --update-vocabulary to copy the rows of equal entries"
        )
    languages, own = (f"{one.source_lang} to {one.target_lang}" for one in (codec, parent))
    if languages != own:
        raise ConfigError(
            f"{path}: the model translates {own}, and {dataset.folder} is {languages}; give "
            "another dataset, or --update-vocabulary to train the model for other languages"
        )


def _check_same_parent(parent: Parent, parents: Sequence[Json], run_dir: Path) -> None:
    if not parents:
        raise ConfigError(
            f"{run_dir}: this run began with random weights; leave out --from to continue it, or "
            "choose another --out"
        )
    if not parent.path.exists():
        return
    manifest, known = describe_model(find_model(parent.path)).manifest, parents[0]
    found = manifest["files"][TENSORS]["sha256"]
    assert isinstance(known, Mapping)
    if found != known["sha256"]:
        raise ConfigError(
            f"{parent.path}: is not the model that {run_dir} began with: the sha256 of its weights "
            f"is {found}, and that of {known['name']} was {known['sha256']}; restore it, or "
            "choose another --out"
        )


def _copy_weights(
    folder: Path, described: Description, codec: TextCodec, model: Transformer
) -> Iterator[str]:
    """Copy the weights of a model folder into a model with this codec; yield lines to report."""
    tensors = read_parameters(folder, described)
    yield f"weights from {folder}"
    if codec.fingerprint != described.codec.fingerprint:
        weights = model.state_dict()
        for side in ("source", "target"):
            ids = [*_equivalents(getattr(codec, side), getattr(described.codec, side))]
            yield f"{side} entries: {_counted(ids)}"
            for name in weights.keys() & tensors.keys() & _PARAMETERS[side]:
                _copy_rows(tensors[name], weights[name], ids)
                tensors[name] = weights[name]
    restore_parameters(model, tensors, folder)


def _equivalents(new: Vocabulary, old: Vocabulary) -> Iterator[list[int]]:
    """Yield, for each entry of a vocabulary, the ids of another whose rows stand for it.

    One id for an equal entry, several for one that the other splits, none where all text of the
    entry is unknown to the other.
    """
    is_comparable = {new.kind, old.kind} <= _SUBWORD_KINDS or new.kind == old.kind
    ids = {old.piece(index): index for index in range(old.size)} if is_comparable else {}
    for index in range(new.size):
        piece = new.piece(index)
        if index <= EOS_ID:
            yield [index]
        elif piece in ids:
            yield [ids[piece]]
        else:
            yield _split(piece, old) if is_comparable and index not in new.unknown_ids else []


def _split(piece: str, old: Vocabulary) -> list[int]:
    """Return the ids of the text of an entry; none if any of them is unknown."""
    ids = old.encode(piece.replace(SPACE_SYMBOL, " "))
    if ids and not piece.startswith(SPACE_SYMBOL) and old.piece(ids[0]) == SPACE_SYMBOL:
        del ids[0]  # an entry inside words follows no space
    return ids if old.unknown_ids.isdisjoint(ids) else []


def _copy_rows(old: Tensor, new: Tensor, ids: Sequence[Sequence[int]]) -> None:
    """Set the rows of new entries (V, ...) with ids to the mean of these old rows."""
    for index, of_entry in enumerate(ids):
        if len(of_entry) == 1:
            new[index] = old[of_entry[0]]
        elif of_entry:
            new[index] = old[list(of_entry)].mean(0)


def _counted(ids: Sequence[Sequence[int]]) -> str:
    copied = sum(len(one) == 1 for one in ids)
    averaged = sum(len(one) > 1 for one in ids)
    return (
        f"{copied} of {len(ids)} are copied, {averaged} are means of subwords, "
        f"{len(ids) - copied - averaged} are new"
    )
