"""The checkpoints of a run on disk: write, list, read, delete.

A checkpoint is a model folder and, next to it, a training state: the tensors and values that
resumed training needs. `RunFolder` holds their paths. `nmtkit.training.checkpointing` decides when
to write a checkpoint and which one to resume from.
"""

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import DamagedError, NmtkitError, ResourceError
from nmtkit.storage.disk import read_file
from nmtkit.storage.durable import new_folder, read_manifest, remove, remove_leftovers
from nmtkit.storage.manifest import Json, hash_of_content, verify_files
from nmtkit.storage.model_description import FORMAT, VERSION, describe_model
from nmtkit.storage.model_folder import load_tensors, read_parameters, save_tensors, write_model
from nmtkit.storage.run_folder import RunFolder, state_dir_of
from nmtkit.text.codec import TextCodec

STATE_FORMAT = "nmtkit-training-state"
STATE_VERSION = 2

NUM_WITH_STATE = 2
"""Number of newest checkpoints that keep their training state, in case one is damaged."""

_STATE_TENSORS, _STATE_VALUES = "state.safetensors", "state.json"

Warn = Callable[[str], None]


@dataclass(frozen=True)
class Snapshot:
    """The content of a checkpoint to write.

    Attributes:
        update: number of updates done.
        is_scheduled: whether --save-every asks for it; see `newest_saves`.
        model: the parameters under the names of `Transformer.state_dict`.
        recipe, codec: settings and codec of the model folder.
        provenance: facts about the run for the manifest.
        state_tensors, state_values: the training state.
    """

    update: int
    is_scheduled: bool
    model: Mapping[str, Tensor]
    recipe: TrainRecipe
    codec: TextCodec
    provenance: Mapping[str, Json]
    state_tensors: Mapping[str, Tensor]
    state_values: Mapping[str, Json]


@dataclass(frozen=True)
class Resumable:
    """A complete checkpoint as read: its model folder, and its content as in `Snapshot`.

    Attributes:
        fingerprint: hash of both manifests, which have the hashes of all files.
    """

    path: Path
    fingerprint: str
    update: int
    model: dict[str, Tensor]
    recipe: TrainRecipe
    provenance: dict[str, Json]
    state_tensors: dict[str, Tensor]
    state_values: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in a list: its update, its model folder, and whether --save-every made it."""

    update: int
    path: Path
    is_scheduled: bool


def write_checkpoint(run: RunFolder, snapshot: Snapshot) -> None:
    """Write a checkpoint and make `last` name it; a complete one stays unchanged.

    The training state is written before the model, so every visible model can be resumed.

    Raises:
        DivergedError: a parameter is not finite.
        DamagedError: a complete checkpoint with other parameters or another state is there.
        ResourceError: the disk is full, fails or may not be written to.
        LostFolderError: the run's folder was renamed, deleted or replaced.
    """
    folder = run.model_dir(snapshot.update)
    state = state_dir_of(folder)
    run.check_lock()
    if not _is_written(folder, snapshot):
        remove(folder)
        remove(state)
        _write_state(state, snapshot)
        fields: dict[str, Json] = {
            "update": snapshot.update,
            "is_scheduled": snapshot.is_scheduled,
            "provenance": snapshot.provenance,
        }
        run.check_lock()
        try:
            write_model(folder, snapshot.model, snapshot.recipe, snapshot.codec, fields, False)
        except NmtkitError:
            if not folder.exists():
                remove(state)  # a state without a model only fills the disk
            raise
    run.point_last(snapshot.update)


def list_checkpoints(run: RunFolder) -> list[Checkpoint]:
    """Return all checkpoints, sorted by update; DamagedError if one of them cannot be read."""
    return [_read_checkpoint(folder) for folder in run.model_dirs()]


def newest_saves(run: RunFolder, count: int) -> list[Checkpoint]:
    """Return the newest checkpoint and the newest scheduled ones, `count` at most, by update.

    Raises:
        DamagedError: one of them, or a newer checkpoint, cannot be read.
    """
    found: list[Checkpoint] = []
    for folder in reversed(run.model_dirs()):
        checkpoint = _read_checkpoint(folder)
        if checkpoint.is_scheduled or not found:
            found.append(checkpoint)
        if len(found) == count:
            break
    return found[::-1]


def newest_resumable(run: RunFolder, warn: Warn) -> Resumable | None:
    """Return the newest intact checkpoint that has its state; None if there are no checkpoints.

    Args:
        run: the folder of the run.
        warn: called with one line for each newer checkpoint that cannot be resumed.

    Raises:
        DamagedError: there are checkpoints, but each is damaged or has no training state.
    """
    folders = run.model_dirs()
    for folder in reversed(folders):
        try:
            return read_resumable(folder)
        except DamagedError as error:
            warn(f"checkpoint {folder.name} is skipped: {error}")
    if folders:
        raise DamagedError(
            f"{run.path}: training cannot continue from any of its checkpoints; restore one of "
            "them with its state from a copy, or choose another --out"
        )
    return None


def prune(run: RunFolder, keep: int, best: Collection[int], warn: Warn) -> None:
    """Delete the checkpoints that are not needed, and the leftovers of killed writers.

    Kept models: the `keep` newest scheduled checkpoints, the best ones, the last, the two newest.
    Kept training states: the last and the two newest. The last is not among the two newest if
    training resumed from before damaged checkpoints. A checkpoint that cannot be read is kept.

    Args:
        run: the folder of the run.
        keep: number of newest scheduled checkpoints to keep.
        best: updates whose checkpoints are kept, in addition to the one that `best` names.
        warn: called with one line for each folder that cannot be deleted.

    Raises:
        LostFolderError: the run's folder was renamed, deleted or replaced.
    """
    checkpoints = _readable_checkpoints(run)
    scheduled = [one.path for one in checkpoints if one.is_scheduled]
    newest = [one.path for one in checkpoints[-NUM_WITH_STATE:]]
    resumable = {folder for folder in (*newest, run.last()) if folder is not None}
    readable = {one.path for one in checkpoints}
    best_ones = {run.best(), *map(run.model_dir, best)}
    models = readable - {*scheduled[-keep:], *resumable, *best_ones}
    unreadable = set(run.model_dirs()) - readable
    states = run.state_dirs() - {state_dir_of(folder) for folder in (*resumable, *unreadable)}
    for folder in sorted(models | states):
        run.check_lock()
        _try_to(remove, folder, warn)
    run.check_lock()
    clear_leftovers(run, warn)


def clear_leftovers(run: RunFolder, warn: Warn) -> None:
    """Delete the half-written and half-deleted folders of killed sessions; `warn` as in `prune`."""
    _try_to(remove_leftovers, run.checkpoints_dir, warn)


def _readable_checkpoints(run: RunFolder) -> list[Checkpoint]:
    readable = []
    for folder in run.model_dirs():
        with suppress(DamagedError):
            readable.append(_read_checkpoint(folder))
    return readable


def _read_checkpoint(folder: Path) -> Checkpoint:
    manifest = read_manifest(folder, FORMAT, VERSION)
    update, is_scheduled = manifest.get("update"), manifest.get("is_scheduled")
    if update != int(folder.name) or not isinstance(is_scheduled, bool):
        raise DamagedError(
            f"{folder}: is not the checkpoint of update {int(folder.name)}; move it elsewhere"
        )
    return Checkpoint(update, folder, is_scheduled)


def read_resumable(folder: Path) -> Resumable:
    """Read a checkpoint with its state; DamagedError if it is damaged or has none."""
    checkpoint, described = _read_checkpoint(folder), describe_model(folder)
    state = state_dir_of(folder)
    manifest = read_manifest(state, STATE_FORMAT, STATE_VERSION)
    verify_files(state, manifest)
    return Resumable(
        path=folder,
        fingerprint=hash_of_content({"model": described.manifest, "state": manifest}),
        update=checkpoint.update,
        model=read_parameters(folder, described),
        recipe=described.recipe,
        provenance=described.manifest["provenance"],
        state_tensors=load_tensors(state / _STATE_TENSORS),
        state_values=json.loads(read_file(state / _STATE_VALUES)),
    )


def _write_state(folder: Path, snapshot: Snapshot) -> None:
    with new_folder(folder, STATE_FORMAT, STATE_VERSION, overwrite=False) as staged:
        save_tensors(snapshot.state_tensors, staged.path / _STATE_TENSORS)
        text = json.dumps(snapshot.state_values, indent=2) + "\n"
        (staged.path / _STATE_VALUES).write_text(text, encoding="utf-8")
        staged.fields["update"] = snapshot.update


def _is_written(folder: Path, snapshot: Snapshot) -> bool:
    """Return whether a checkpoint is complete; DamagedError if it is not the snapshot's."""
    try:
        stored = read_resumable(folder)
    except DamagedError:
        return False
    if not (
        _are_equal(stored.model, snapshot.model)
        and _are_equal(stored.state_tensors, snapshot.state_tensors)
    ):
        raise DamagedError(
            f"{folder}: not the checkpoint of this run after update {snapshot.update}, so it is "
            f"not replaced; move it and {state_dir_of(folder).name} elsewhere, and run the same "
            "command again"
        )
    return True


def _are_equal(some: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    return some.keys() == others.keys() and all(
        some[name].dtype == others[name].dtype and torch.equal(some[name], others[name])
        for name in some
    )


def _try_to(delete: Callable[[Path], None], path: Path, warn: Warn) -> None:
    try:
        delete(path)
    except ResourceError as error:
        warn(f"not deleted, although no longer needed: {error}")
