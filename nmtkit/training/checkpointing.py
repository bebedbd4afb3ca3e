"""When a run saves checkpoints, how it handles failed saves, and how it resumes.

`nmtkit.storage.checkpoint` writes and reads the files.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from torch import Tensor

from nmtkit.config.schema import TrainRecipe, fields_of, values_of
from nmtkit.config.training_rules import TAGS, annotation_probabilities
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError, ResourceError
from nmtkit.runtime.devices import background_thread
from nmtkit.storage.checkpoint import (
    Resumable,
    Snapshot,
    newest_resumable,
    prune,
    write_checkpoint,
)
from nmtkit.storage.json_data import encode
from nmtkit.storage.model_folder import restore_parameters
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.state import RunContext, TrainState
from nmtkit.units import SECONDS_PER_MINUTE


def open_newest_checkpoint(
    folder: RunFolder, recipe: TrainRecipe, dataset: Dataset, warn: Callable[[str], None]
) -> Resumable | None:
    """Read the newest undamaged checkpoint of a run; None for a new run.

    Raises:
        ConfigError: the checkpoint has other settings.
        DamagedError: it is from other data; or no checkpoint can be resumed, though there are some.
    """
    resumable = newest_resumable(folder, warn)
    if resumable is not None:
        check_same_run(folder.path, resumable, recipe, dataset)
    return resumable


def restore(train_state: TrainState, resumable: Resumable | None) -> None:
    """Copy the weights and moments of a checkpoint, if there is one, into a training state."""
    if resumable is not None:
        restore_parameters(train_state.published, resumable.model, resumable.path)
        train_state.restore(resumable.state_tensors)


def check_same_run(
    run_dir: Path, resumable: Resumable, recipe: TrainRecipe, dataset: Dataset
) -> None:
    """Refuse to continue a run with other data, or other settings that must not change.

    Raises:
        ConfigError: settings that are fixed for a run have other values.
        DamagedError: the dataset is another one.
    """
    fields, old, new = fields_of(TrainRecipe), values_of(resumable.recipe), values_of(recipe)
    changed = [
        f"{name} was {old[name]!r} and is now {new[name]!r}"
        for name, field in fields.items()
        if not field.may_change_on_resume and old[name] != new[name]
    ]
    if changed:
        raise ConfigError(
            f"{run_dir}: cannot continue this run with other settings: {'; '.join(changed)}; "
            "run the same command again, or choose another --out"
        )
    if resumable.provenance["dataset"] != dataset.fingerprint:
        raise DamagedError(
            f"{run_dir}: this run has other data or another vocabulary; give the dataset of the "
            "run, or choose another --out"
        )


class Saver:
    """Saves checkpoints of a run every N updates, by time, and on request.

    A background thread writes a copy of the state while training continues. The next save, the end
    of a validation and the end of the run wait until the checkpoint is written. Only rank 0 writes.
    """

    def __init__(self, context: RunContext, train_state: TrainState) -> None:
        self._context = context
        self._train_state = train_state
        self._config = context.recipe.checkpoints
        self._longest_s = self._config.save_minutes * SECONDS_PER_MINUTE
        # Seconds of training, which all ranks agree on.
        self._last_save = train_state.progress.seconds
        self._failing_since = math.inf
        self._thread = background_thread("saver")
        self._writing: Future[None] | None = None
        self._writing_update = 0
        self._best: Sequence[int] = ()

    def is_scheduled(self) -> bool:
        """Return whether --save-every or --every-epoch schedules a checkpoint after this update.

        Update 0 is none of its checkpoints.
        """
        update = self._train_state.progress.update
        return update > 0 and (self.is_epoch_end() or update % self._config.save_every == 0)

    def is_epoch_end(self) -> bool:
        """Return whether --every-epoch asks for a checkpoint and a validation after this update."""
        return self._config.every_epoch and self._train_state.progress.ends_epoch

    def is_due(self) -> bool:
        """Return whether to save: scheduled, or --save-minutes of training after the last save."""
        age = self._train_state.progress.seconds - self._last_save
        return self.is_scheduled() or 0 < self._longest_s <= age

    def save_if_due(self) -> None:
        """Save if due; first report the previous save if it has failed.

        Raises:
            ResourceError: saves have failed for --save-minutes: the first of them in a row began
                this long before the last.
            DivergedError: the parameters are not finite.
        """
        if self._writing is not None and self._writing.done():
            self.finish()
        if self.is_due():
            self._start()

    def save_now(self) -> None:
        """Save where a single failure is an error; raises as `save_if_due`."""
        with suppress(ResourceError):  # this save makes up for one that has failed
            self._await_write()
        self._start()
        self._await_write()

    def keep_best(self, best_first: Sequence[int]) -> None:
        """Keep the checkpoints of the first --keep-best updates; `best` points to the first."""
        if not self._context.ranks.is_first:
            return
        self._best = best_first
        point_best_or_report(self._context.folder, best_first, self._report)

    def finish(self) -> None:
        """Wait for the checkpoint that is being written, if any; raises as `save_if_due`."""
        if self._writing is None:
            return
        try:
            self._await_write()
        except ResourceError as error:
            self._failing_since = min(self._failing_since, self._last_save)
            if self._last_save - self._failing_since >= self._longest_s:
                raise
            self._report(f"update={self._writing_update} not saved, training continues: {error}")
        else:
            self._failing_since = math.inf

    def close(self) -> None:
        """End the thread, after it has written its checkpoint."""
        self._thread.shutdown()

    def _start(self) -> None:
        """Copy the state, and write it in the background; rank 0 only."""
        self.finish()
        self._last_save = self._train_state.progress.seconds
        if self._context.ranks.is_first:
            self._writing_update = self._train_state.progress.update
            self._writing = self._thread.submit(self._write, self._snapshot())

    def _await_write(self) -> None:
        """Wait for the checkpoint that is being written, if any, and raise its error."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _copied(self, *groups: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Copy named tensors to the host; a tensor with several names is copied once."""
        unique = {tensor.data_ptr(): tensor for group in groups for tensor in group.values()}
        copies = {at: tensor.detach().to("cpu", copy=True) for at, tensor in unique.items()}
        return [
            {name: copies[tensor.data_ptr()] for name, tensor in group.items()} for group in groups
        ]

    def _write(self, snapshot: Snapshot) -> None:
        folder, config = self._context.folder, self._config
        write_checkpoint(folder, snapshot)
        try:  # training continues if an old checkpoint cannot be deleted
            prune(folder, config.keep, self._best[: config.keep_best], self._report)
        except ResourceError as error:
            self._report(f"old checkpoints not deleted: {error}")

    def _report(self, text: str) -> None:
        self._context.reporter.message(text)

    def _snapshot(self) -> Snapshot:
        """Copy the state to the host."""
        dataset, codec = self._context.dataset, self._context.dataset.codec
        state = self._train_state
        kinds = {*annotation_probabilities(self._context.recipe.training.annotate)}
        kinds |= {TAGS} if dataset.has_markup else set()
        model, state_tensors = self._copied(state.published.state_dict(), state.state_tensors())
        return Snapshot(
            update=self._train_state.progress.update,
            is_scheduled=self.is_scheduled(),
            model=model,
            recipe=self._context.recipe,
            codec=codec,
            provenance={
                "dataset": dataset.fingerprint,
                "languages": f"{codec.source_lang}-{codec.target_lang}",
                "validation_text": dataset.valid_fingerprint,
                "validation_pairs": len(dataset.valid),
                **({"marks": sorted(kinds)} if kinds else {}),
                **({"parents": self._context.parents} if self._context.parents else {}),
            },
            state_tensors=state_tensors,
            state_values=encode(self._train_state.progress),
        )


def point_best_or_report(
    folder: RunFolder, best_first: Sequence[int], report: Callable[[str], None]
) -> None:
    """Point `best` to the first of these updates that has a checkpoint, or report why not."""
    try:
        folder.point_best(best_first)
    except ResourceError as error:
        report(f"`best` still points to the previous checkpoint: {error}")
