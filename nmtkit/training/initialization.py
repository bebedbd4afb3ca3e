"""The weights that a run begins with, if another model's replace the random ones.

All tensors are copied. With another vocabulary, those with a row per entry get the rows of equal
entries. Other entries begin with the mean of the rows of the subwords into which the other model
splits them. Source: Gee et al. 2022, "Fast Vocabulary Transfer", section 3.1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote

from torch import Tensor

from nmtkit.config.model import MAY_DIFFER_FROM_PARENT, ModelConfig
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer
from nmtkit.storage.checkpoint import Resumable
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import (
    Description,
    ancestors,
    describe_model,
    line_of_descent,
    weights_of,
)
from nmtkit.storage.model_folder import check_size, read_parameters, restore_parameters
from nmtkit.storage.run_folder import CONFIG, find_model
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.marks import is_marked
from nmtkit.text.subword import SPACE_SYMBOL
from nmtkit.text.vocabulary import Vocabulary

_PARAMETERS = {
    "source": {"source_embedding.tokens.weight"},
    "target": {"target_embedding.tokens.weight", "projection.weight", "output_bias"},
}
"""The parameters with a row per entry of each side's vocabulary; some may be tied."""
_PARAMETERS["shared"] = _PARAMETERS["source"] | _PARAMETERS["target"]

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
class _Match:
    """The rows of a vocabulary that stand for an entry of another one.

    Attributes:
        rows: several if the vocabulary splits the entry; none if it does not know all of its text.
        is_equal: the row is of an equal entry.
    """

    rows: list[int]
    is_equal: bool


_NEW = _Match([], False)


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
        """Return the origin of a run: its parent, or random weights.

        Args:
            parent: the model that the run is to begin with, if any.
            run_dir: the folder of the run, for messages.
            config: the model to train.
            dataset: the dataset to train on.
            resumable: the checkpoint from which the run continues, if any. It has all weights, so
                nothing is copied. The parent is then not needed, but must be the same if it exists.

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
        _check_codec(parent, described.codec, dataset)
        check_size(described, read_parameters(folder, described), folder)
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
            f"{path}: the model has another shape: {', '.join(changed)}; leave out these "
            "settings or their preset, because --from sets them [model]"
        )


def _check_codec(parent: Parent, own: TextCodec, dataset: Dataset) -> None:
    codec, path = dataset.codec, parent.path
    is_equal = codec.fingerprint == own.fingerprint
    is_of_languages = own.accepts_languages(codec.source_lang, codec.target_lang)
    if is_equal and is_of_languages and parent.updates_vocabulary:
        raise ConfigError(
            f"{path}: the model has the vocabulary and the languages of {dataset.folder}, so "
            "--update-vocabulary has no effect; leave it out"
        )
    if parent.updates_vocabulary:
        return
    if not is_equal:
        raise ConfigError(
            f"{path}: the model has another vocabulary than {dataset.folder}; preprocess with "
            f"--vocabulary-of {quote(str(path))}, or give --update-vocabulary to copy the rows of "
            "equal entries"
        )
    if not is_of_languages:
        raise ConfigError(
            f"{path}: the model translates {own.source_lang} to {own.target_lang}, and "
            f"{dataset.folder} is {codec.source_lang} to {codec.target_lang}; give another "
            "dataset, or --update-vocabulary to train the model for other languages"
        )


def _check_same_parent(parent: Parent, parents: Sequence[Json], run_dir: Path) -> None:
    """Refuse another parent; one that is gone or damaged is not needed any more."""
    if not parents:
        raise ConfigError(
            f"{run_dir}: this run began with random weights; leave out --from to continue it, or "
            "choose another --out"
        )
    known = parents[0]
    assert isinstance(known, Mapping)
    found = weights_of(parent.path)
    if found and known["sha256"] not in found:
        raise ConfigError(
            f"{parent.path}: is not the model that {run_dir} began with: the sha256 of the weights "
            f"is {found[0]}, and that of {known['name']} was {known['sha256']}; to continue the "
            f"run, give --config {quote(str(run_dir / CONFIG))} instead of --from; else choose "
            "another --out"
        )


def _copy_weights(
    folder: Path, described: Description, codec: TextCodec, model: Transformer
) -> Iterator[str]:
    """Copy the weights of a model folder into a model with this codec; yield lines to report."""
    tensors, own = read_parameters(folder, described), described.codec
    yield f"weights from {folder}"
    if codec.fingerprint != own.fingerprint:
        weights = model.state_dict()
        sides = {"source": (codec.source, own.source), "target": (codec.target, own.target)}
        if codec.is_shared and own.is_shared:
            sides = {"shared": sides["source"]}
        for side, (new, old) in sides.items():
            rows = _matching_rows(new, old)
            yield f"{side} entries: {_counted(rows)}"
            for name in weights.keys() & tensors.keys() & _PARAMETERS[side]:
                _copy_rows(tensors[name], weights[name], rows)
                tensors[name] = weights[name]
    restore_parameters(model, tensors, folder)


def _matching_rows(new: Vocabulary, old: Vocabulary) -> list[_Match]:
    """Return, for each entry of a vocabulary, the rows of another that stand for it."""
    if new.kind != old.kind and not {new.kind, old.kind} <= _SUBWORD_KINDS:
        return [_Match([index], True) if index <= EOS_ID else _NEW for index in range(new.size)]
    ids = {old.piece(index): index for index in range(old.size)}
    return [_match(index, new, old, ids) for index in range(new.size)]


def _match(index: int, new: Vocabulary, old: Vocabulary, ids: Mapping[str, int]) -> _Match:
    piece = new.piece(index)
    if index <= EOS_ID:
        return _Match([index], True)
    if piece in ids:
        return _Match([ids[piece]], True)
    if index in new.unknown_ids or is_marked([index], new.marks):
        return _NEW
    parts = old.encode(piece.replace(SPACE_SYMBOL, " "))
    if parts and not piece.startswith(SPACE_SYMBOL) and old.piece(parts[0]) == SPACE_SYMBOL:
        del parts[0]  # an entry inside words follows no space
    return _Match(parts, False) if old.unknown_ids.isdisjoint(parts) else _NEW


def _copy_rows(old: Tensor, new: Tensor, matches: Sequence[_Match]) -> None:
    """Set the rows (V, ...) of new entries to the mean of the matching old rows, if any."""
    for index, match in enumerate(matches):
        if len(match.rows) == 1:
            new[index] = old[match.rows[0]]
        elif match.rows:
            new[index] = old[match.rows].mean(0)


def _counted(matches: Sequence[_Match]) -> str:
    num_equal = sum(match.is_equal for match in matches)
    num_split = sum(bool(match.rows) for match in matches) - num_equal
    return (
        f"{num_equal} of {len(matches)} are copied, {num_split} are means of subwords, "
        f"{len(matches) - num_equal - num_split} are new"
    )
