"""When a run saves, what follows if it cannot, and what it resumes from.

`nmtkit.storage.checkpoint` writes and reads the checkpoints.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path

from torch import Tensor

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError, ResourceError
from nmtkit.runtime.threads import background_thread
from nmtkit.storage.checkpoint import (
    Resumable,
    Snapshot,
    clear_leftovers,
    newest_resumable,
    prune,
    write_checkpoint,
)
from nmtkit.storage.model_folder import restore_parameters
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.state import RunContext, TrainState
from nmtkit.units import SECONDS_A_MINUTE

MAX_FAILURES_IN_A_ROW = 2
"""Training continues after a failed save, but ends after this many in a row."""


def open_newest_checkpoint(
    folder: RunFolder, recipe: TrainRecipe, dataset: Dataset, warn: Callable[[str], None]
) -> Resumable | None:
    """Read the newest whole checkpoint of a run, and delete what killed sessions left.

    Returns:
        The checkpoint, which `last` names now; None for a new run.

    Raises:
        ConfigError: the checkpoint was made with other settings.
        DamagedError: it was made from other data; or there are checkpoints, and none is whole.
    """
    clear_leftovers(folder, warn)
    resumable = newest_resumable(folder, warn)
    if resumable is not None:
        check_same_run(folder.path, resumable, recipe, dataset)
    return resumable


def restore(train_state: TrainState, resumable: Resumable | None) -> dict[str, Tensor]:
    """Put a checkpoint's weights and moments, if there is one, into a training state.

    Returns:
        The tensors restored next to the model's, without their values.
    """
    if resumable is None:
        return {}
    restore_parameters(train_state.published, resumable.model, resumable.path)
    train_state.restore(resumable.state_tensors)
    return {name: tensor.to("meta") for name, tensor in resumable.state_tensors.items()}


def check_same_run(
    run_dir: Path, resumable: Resumable, recipe: TrainRecipe, dataset: Dataset
) -> None:
    """Refuse to continue a run with settings or data that would make it another one."""
    fields, old, new = fields_of(TrainRecipe), values_of(resumable.recipe), values_of(recipe)
    changed = [
        f"{name} was {old[name]!r} and is now {new[name]!r}"
        for name, field in fields.items()
        if field.setting.on_resume == "fixed" and old[name] != new[name]
    ]
    if changed:
        raise ConfigError(
            f"{run_dir}: cannot continue this run with other settings: {'; '.join(changed)}; "
            "run the same command again, or choose another --out"
        )
    if resumable.provenance["dataset"] != dataset.fingerprint:
        raise DamagedError(
            f"{run_dir}: this run was begun with other data or another vocabulary; give it its "
            "own dataset, or choose another --out"
        )


class Saver:
    """Saves checkpoints of a run by updates, by time, and on request.

    A background thread writes a checkpoint from a copy while training continues. The next save,
    the end of the run, and whoever needs the checkpoint wait until it is written. On ranks other
    than the first nothing is written.
    """

    def __init__(self, context: RunContext, train_state: TrainState) -> None:
        self._context = context
        self._train_state = train_state
        self._config = context.recipe.checkpoints
        self._last_save = context.clock()
        self._num_failures = 0
        self._thread = background_thread("saver")
        self._writing: Future[None] | None = None
        self._writing_update = 0
        self._best: Sequence[int] = ()

    def is_scheduled(self) -> bool:
        """Return whether --save-every asks for a checkpoint after this update."""
        return self._train_state.progress.update % self._config.save_every == 0

    def is_due(self) -> bool:
        """Return whether to save: it is scheduled, or the last save was too long ago."""
        longest = self._config.save_minutes * SECONDS_A_MINUTE
        return self.is_scheduled() or 0 < longest <= self._context.clock() - self._last_save

    def save_if(self, is_due: bool) -> None:
        """Save if it is due; first report a failed save that has ended by now.

        Args:
            is_due: as `is_due` answered, before the log was written.

        Raises:
            ResourceError: it cannot be written, and neither could the checkpoint before.
            DivergedError: the parameters are not finite.
        """
        if self._writing is not None and self._writing.done():
            self.finish()
        if is_due:
            self._start()

    def save_now(self) -> None:
        """Save where the run ends; here one failure is an error."""
        self.finish()
        if self._train_state.progress.update == 0:
            return  # nothing that a new run would not do again
        self._num_failures = MAX_FAILURES_IN_A_ROW
        self._start()
        self.finish()

    def keep_best(self, best_first: Sequence[int]) -> None:
        """Keep the checkpoints of the first --keep-best updates; let `best` name the first."""
        if not self._context.ranks.is_first:
            return
        self._best = best_first
        point_best_or_report(self._context.folder, best_first, self._report)

    def finish(self) -> None:
        """Wait for the checkpoint that is being written, if any; raises as `save_if`."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            writing.result()
        except ResourceError as error:
            self._num_failures += 1
            if self._num_failures >= MAX_FAILURES_IN_A_ROW:
                raise
            self._report(f"update={self._writing_update} not saved, training continues: {error}")
        else:
            self._num_failures = 0

    def close(self) -> None:
        """Wait until nothing is being written any more, even after a failure."""
        self._thread.shutdown()

    def _start(self) -> None:
        """Copy what a checkpoint holds, and have it written."""
        self.finish()
        self._last_save = self._context.clock()
        if self._context.ranks.is_first:
            self._writing_update = self._train_state.progress.update
            self._writing = self._thread.submit(self._write, self._snapshot())

    def _write(self, snapshot: Snapshot) -> None:
        folder, config = self._context.folder, self._config
        write_checkpoint(folder, snapshot)
        try:  # a checkpoint that cannot be deleted does no harm
            prune(folder, config.keep, self._best[: config.keep_best], self._report)
        except ResourceError as error:
            self._report(f"not tidied up: {error}")

    def _report(self, text: str) -> None:
        self._context.reporter.message(text)

    def _snapshot(self) -> Snapshot:
        dataset, codec = self._context.dataset, self._context.dataset.codec
        return Snapshot(
            update=self._train_state.progress.update,
            is_scheduled=self.is_scheduled(),
            model=_copied(self._train_state.published.state_dict()),
            recipe=self._context.recipe,
            codec=codec,
            provenance={
                "dataset": dataset.fingerprint,
                "languages": f"{codec.source_lang}-{codec.target_lang}",
            },
            state_tensors=_copied(self._train_state.state_tensors()),
            state_values=asdict(self._train_state.progress),
        )


def point_best_or_report(
    folder: RunFolder, best_first: Sequence[int], report: Callable[[str], None]
) -> None:
    """Let `best` name the first of these updates that has a checkpoint, or report why not."""
    try:
        folder.point_best(best_first)
    except ResourceError as error:
        report(f"`best` still names the checkpoint before: {error}")


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors to the host; a tensor with several names is copied once."""
    copies: dict[int, Tensor] = {}
    for tensor in tensors.values():
        if tensor.data_ptr() not in copies:
            copies[tensor.data_ptr()] = tensor.detach().to("cpu", copy=True)
    return {name: copies[tensor.data_ptr()] for name, tensor in tensors.items()}
