"""The folder of a training run: checkpoints that training can go on from.

RUN/config.toml                   the recipe
RUN/metrics.jsonl                 what training told
RUN/checkpoints/00001000/         the model after update 1000, a model folder
RUN/checkpoints/00001000.state/   what training needs beside it to go on
RUN/last, RUN/best                the names of two checkpoints, a line each
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps, loads
from nmtkit.errors import ConfigError, DamagedError, NmtkitError, ResourceError
from nmtkit.storage.disk_errors import check_path
from nmtkit.storage.durable import (
    make_folder,
    new_folder,
    read_manifest,
    remove,
    remove_leftovers,
    replace_file,
)
from nmtkit.storage.manifest import MANIFEST, Json, verify_files
from nmtkit.storage.model_folder import (
    CONFIG,
    FORMAT,
    VERSION,
    describe_model,
    load_tensors,
    read_parameters,
    save_tensors,
    write_model,
)
from nmtkit.text.codec import TextCodec

STATE_FORMAT = "nmtkit-training-state"
STATE_VERSION = 2

NUM_WITH_STATE = 2
"""So many of the newest checkpoints keep their training state, should one be damaged."""

LAST, BEST = "last", "best"
"""Names of the files of a run that name a checkpoint."""

_CHECKPOINTS, _METRICS = "checkpoints", "metrics.jsonl"
_NAME = re.compile(r"[0-9]{8,}")
RUN_FILES = {
    *(_CHECKPOINTS, LAST, BEST, _METRICS, CONFIG),
    *("micro_batches.json", "pieces.json", "tensorboard"),
}
"""Names that the folder of a run may hold; a folder with any other is not taken for one."""
_STATE_SUFFIX = ".state"
_STATE_TENSORS, _STATE_VALUES = "state.safetensors", "state.json"

Warn = Callable[[str], None]


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint is made of.

    Attributes:
        update: optimiser updates done.
        is_scheduled: it is due by --save-every, so that averaging takes it.
        model: the parameters as `Transformer.state_dict` names them.
        recipe, codec: what makes the model folder complete.
        provenance: facts about the run for the manifest.
        state_tensors, state_values: what training needs beside the model to go on.
    """

    update: int
    is_scheduled: bool
    model: Mapping[str, Tensor]
    recipe: TrainRecipe
    codec: TextCodec
    provenance: Mapping[str, str]
    state_tensors: Mapping[str, Tensor]
    state_values: Mapping[str, Json]


@dataclass(frozen=True)
class Resumable:
    """A checkpoint to go on from: its model folder, and what `Snapshot` says of the rest."""

    path: Path
    update: int
    model: dict[str, Tensor]
    recipe: TrainRecipe
    provenance: dict[str, str]
    state_tensors: dict[str, Tensor]
    state_values: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a run: its update, its model folder, and whether --save-every made it."""

    update: int
    path: Path
    is_scheduled: bool


class RunFolder:
    """The folder of a training run; whoever writes to it holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics_path = path / _METRICS

    @staticmethod
    def create_or_open(path: Path) -> "RunFolder":
        """Return the run at a path; a new one where there is nothing, or an empty folder.

        Raises:
            ConfigError: there is something else, or the path is one that no weights can be under.
            ResourceError: it cannot be created.
        """
        check_path(path)
        if path.is_dir() and not is_run(path):
            found = set(_visible(path))
            if found:
                raise ConfigError(
                    f"{path}: is not the folder of a run, and holds "
                    f"{min(found - RUN_FILES or found)!r}; "
                    "choose another --out"
                )
        make_folder(path / _CHECKPOINTS)
        return RunFolder(path)

    def write_recipe(self, recipe: TrainRecipe) -> None:
        """Have `config.toml` say the recipe of this session."""
        replace_file(self.path / CONFIG, dumps(recipe).encode())

    def checkpoints(self) -> list[Checkpoint]:
        """Return all checkpoints by update; DamagedError if one of them cannot be read."""
        return [_read_checkpoint(folder) for folder in self._model_folders()]

    def newest_scheduled(self, count: int) -> list[Checkpoint]:
        """Return the newest scheduled checkpoints by update, fewer than `count` if there are not.

        Raises:
            DamagedError: one of them, or a newer one, cannot be read.
        """
        found: list[Checkpoint] = []
        for folder in reversed(self._model_folders()):
            checkpoint = _read_checkpoint(folder)
            if checkpoint.is_scheduled:
                found.append(checkpoint)
            if len(found) == count:
                break
        return found[::-1]

    def last(self) -> Path | None:
        """Return the model folder that `last` names, or else the newest; None if there is none."""
        return self._pointed(LAST) or next(reversed(self._model_folders()), None)

    def best(self) -> Path | None:
        """Return the model folder that validated best; None if there is none."""
        return self._pointed(BEST)

    def point_best(self, best_first: Sequence[int]) -> None:
        """Make the best checkpoint the first that there is of some updates; none of them, none."""
        for update in best_first:
            folder = self._model_folder(update)
            if (folder / MANIFEST).exists():
                self._point(BEST, folder)
                return
        remove(self.path / BEST)

    def save(self, snapshot: Snapshot) -> None:
        """Save a checkpoint and point `last` to it; one that is whole already stays as it is.

        The state is written first: whatever model can be seen, training can go on from it.

        Raises:
            DivergedError: a parameter is not finite.
            ResourceError: it cannot be written.
        """
        folder = self._model_folder(snapshot.update)
        state = _state_of(folder)
        if not (
            _is_whole(folder, FORMAT, VERSION) and _is_whole(state, STATE_FORMAT, STATE_VERSION)
        ):
            remove(folder)
            remove(state)
            _write_state(state, snapshot)
            fields: dict[str, Json] = {
                "update": snapshot.update,
                "is_scheduled": snapshot.is_scheduled,
                "provenance": snapshot.provenance,
            }
            try:
                write_model(folder, snapshot.model, snapshot.recipe, snapshot.codec, fields, False)
            except NmtkitError:
                if not folder.exists():
                    remove(state)  # it would fill the disk that may be full
                raise
        self._point(LAST, folder)

    def newest_resumable(self, warn: Warn) -> Resumable | None:
        """Return the newest checkpoint that is whole with its state; None if there is none at all.

        `last` names it afterwards.

        Args:
            warn: told of each newer one, and what is wrong with it.

        Raises:
            DamagedError: there are checkpoints, but none to go on from.
        """
        folders = self._model_folders()
        for folder in reversed(folders):
            try:
                resumable = _read_resumable(folder)
            except DamagedError as error:
                warn(f"checkpoint {folder.name} is skipped: {error}")
                continue
            self._point(LAST, folder)
            return resumable
        if folders:
            raise DamagedError(
                f"{self.path}: training can go on from none of its checkpoints; restore one of "
                "them with its state from a copy, or choose another --out"
            )
        return None

    def prune(self, keep: int, best: Collection[int], warn: Warn) -> None:
        """Delete what is no longer needed, and what killed writers left.

        Models stay of the newest scheduled checkpoints, the best ones, the last and the two newest;
        states stay of the last and the two newest, which differ if training has gone on from
        before damaged ones. A checkpoint that cannot be read is let alone.

        Args:
            keep: how many of the newest scheduled checkpoints stay.
            best: updates whose checkpoints stay, beside that which `best` names.
            warn: told what could not be deleted.
        """
        checkpoints = self._readable_checkpoints()
        scheduled = [one.path for one in checkpoints if one.is_scheduled]
        newest = [one.path for one in checkpoints[-NUM_WITH_STATE:]]
        resumable = {folder for folder in (*newest, self.last()) if folder is not None}
        readable = {one.path for one in checkpoints}
        best_ones = {self.best(), *map(self._model_folder, best)}
        models = readable - {*scheduled[-keep:], *resumable, *best_ones}
        unreadable = set(self._model_folders()) - readable
        states = self._states() - {_state_of(folder) for folder in (*resumable, *unreadable)}
        for folder in sorted(models | states):
            _try_to(remove, folder, warn)
        self.clear_leftovers(warn)

    def clear_leftovers(self, warn: Warn) -> None:
        """Delete what killed sessions left half written or half deleted; `warn` as in `prune`."""
        _try_to(remove_leftovers, self._checkpoints_path, warn)

    @property
    def _checkpoints_path(self) -> Path:
        return self.path / _CHECKPOINTS

    def _model_folder(self, update: int) -> Path:
        return self._checkpoints_path / f"{update:08d}"

    def _model_folders(self) -> list[Path]:
        """Return the folders of all checkpoints, damaged ones too, by update."""
        names = [path.name for path in self._checkpoints_path.glob("*") if path.is_dir()]
        updates = sorted(int(name) for name in names if _NAME.fullmatch(name))
        return [self._model_folder(update) for update in updates]

    def _states(self) -> set[Path]:
        """Return the states of all checkpoints, also of those whose model is gone."""
        paths = self._checkpoints_path.glob(f"*{_STATE_SUFFIX}")
        return {path for path in paths if path.is_dir() and _NAME.fullmatch(path.stem)}

    def _readable_checkpoints(self) -> list[Checkpoint]:
        readable = []
        for folder in self._model_folders():
            with suppress(DamagedError):
                readable.append(_read_checkpoint(folder))
        return readable

    def _point(self, pointer: str, folder: Path) -> None:
        if self._pointed(pointer) != folder:
            replace_file(self.path / pointer, f"{folder.name}\n".encode())

    def _pointed(self, pointer: str) -> Path | None:
        """Return the model folder that a pointer names; None if it names none."""
        try:
            name = (self.path / pointer).read_bytes().decode(errors="replace").strip()
        except FileNotFoundError:
            return None
        folder = self._checkpoints_path / name
        return folder if _NAME.fullmatch(name) and (folder / MANIFEST).exists() else None


def is_run(path: Path) -> bool:
    """Tell whether a path is the folder of a run, by what is in it.

    Other programs have folders named checkpoints too: it is a run if there is a checkpoint of
    ours, or nothing yet that is not.
    """
    checkpoints = path / _CHECKPOINTS
    if not checkpoints.is_dir():
        return False
    names = _visible(checkpoints)
    if any(_NAME.fullmatch(name) and (checkpoints / name / MANIFEST).exists() for name in names):
        return True
    return (
        all(_NAME.fullmatch(name.removesuffix(_STATE_SUFFIX)) for name in names)
        and RUN_FILES.issuperset(_visible(path))
        and _has_recipe_or_none(path)
    )


def _visible(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]


def _has_recipe_or_none(path: Path) -> bool:
    try:
        loads((path / CONFIG).read_text("utf-8"), TrainRecipe, CONFIG)
    except FileNotFoundError:
        return True
    except (ConfigError, UnicodeDecodeError):
        return False
    return True


def _state_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _STATE_SUFFIX)


def _is_whole(folder: Path, format: str, version: int) -> bool:
    try:
        verify_files(folder, read_manifest(folder, format, version))
    except DamagedError:
        return False
    return True


def _try_to(delete: Callable[[Path], None], path: Path, warn: Warn) -> None:
    try:
        delete(path)
    except ResourceError as error:
        warn(f"not deleted, though not needed any more: {error}")


def _write_state(folder: Path, snapshot: Snapshot) -> None:
    with new_folder(folder, STATE_FORMAT, STATE_VERSION, overwrite=False) as staged:
        save_tensors(snapshot.state_tensors, staged.path / _STATE_TENSORS)
        text = json.dumps(snapshot.state_values, indent=2) + "\n"
        (staged.path / _STATE_VALUES).write_text(text, encoding="utf-8")
        staged.fields["update"] = snapshot.update


def _read_checkpoint(folder: Path) -> Checkpoint:
    manifest = read_manifest(folder, FORMAT, VERSION)
    update, is_scheduled = manifest.get("update"), manifest.get("is_scheduled")
    if update != int(folder.name) or not isinstance(is_scheduled, bool):
        raise DamagedError(
            f"{folder}: is not the checkpoint of update {int(folder.name)}; move it elsewhere"
        )
    return Checkpoint(update, folder, is_scheduled)


def _read_resumable(folder: Path) -> Resumable:
    checkpoint, described, state = (
        _read_checkpoint(folder),
        describe_model(folder),
        _state_of(folder),
    )
    manifest = read_manifest(state, STATE_FORMAT, STATE_VERSION)
    verify_files(state, manifest)
    values = json.loads((state / _STATE_VALUES).read_text("utf-8"))
    return Resumable(
        path=folder,
        update=checkpoint.update,
        model=read_parameters(folder, described),
        recipe=described.recipe,
        provenance=described.manifest["provenance"],
        state_tensors=load_tensors(state / _STATE_TENSORS),
        state_values=_upgraded(values, manifest["version"]),
    )


def _upgraded(values: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the values of a training state as the newest version names them."""
    if version < 2 and "num_slots" in values:
        values["num_micro_batches"] = values.pop("num_slots")
    return values
