"""When checkpoints are written, and what happens when one cannot be."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from torch import Tensor

from nmtkit.checkpoint import RunFolder, Snapshot
from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ResourceError
from nmtkit.progress import ProgressReporter
from nmtkit.runtime import background_thread
from nmtkit.text.codec import TextCodec
from nmtkit.training.learner import Learner
from nmtkit.training.state import RunState

MAX_FAILURES_IN_A_ROW = 2
"""Training goes on after a failed save, but not after so many in a row."""


@dataclass(frozen=True)
class Trained:
    """What a checkpoint is taken from.

    Attributes:
        learner: the model, and what training needs beside it.
        recipe, codec: what makes a model folder complete.
        provenance: facts about the run for the manifest.
    """

    learner: Learner
    recipe: TrainRecipe
    codec: TextCodec
    provenance: dict[str, str]


class Saver:
    """Saves checkpoints of a run by updates, by time, and on request.

    A checkpoint is written by a thread, from a copy, while training goes on. The next save, the
    end, and whoever needs the checkpoint wait until it is written.
    """

    def __init__(
        self, folder: RunFolder, trained: Trained, reporter: ProgressReporter, writes: bool
    ) -> None:
        """Store the parts.

        Args:
            folder: the run.
            trained: what checkpoints are taken from.
            reporter: told what goes wrong.
            writes: false on all ranks but the first, for which the others do nothing.
        """
        self.folder = folder
        self.trained = trained
        self.reporter = reporter
        self._writes = writes
        self._last_save = time.monotonic()
        self._num_failures = 0
        self._thread = background_thread("saver")
        self._writing: Future[None] | None = None
        self._writing_update = 0
        self._best: Sequence[int] = ()

    def is_scheduled(self, state: RunState) -> bool:
        """Tell whether the checkpoint after this update is one that averaging takes."""
        return state.update % self.trained.recipe.checkpoints.save_every == 0

    def is_due(self, state: RunState) -> bool:
        """Tell whether to save: this update is scheduled, or the last save was too long ago."""
        minutes = self.trained.recipe.checkpoints.save_minutes
        is_overdue = 0 < minutes * 60 <= time.monotonic() - self._last_save
        return self.is_scheduled(state) or is_overdue

    def save_if_due(self, state: RunState) -> None:
        """Save if it is due.

        Raises:
            ResourceError: it cannot be written, and neither could the one before.
            DivergedError: the parameters are not finite.
        """
        if self._writing is not None and self._writing.done():
            self.finish()
        if self.is_due(state):
            self._start(state)

    def save_now(self, state: RunState) -> None:
        """Save where the run ends; unlike in its middle, a failure is an error at once."""
        self.finish()
        if state.update == 0:
            return  # there is nothing that a new run would not do again
        self._num_failures = MAX_FAILURES_IN_A_ROW
        self._start(state)
        self.finish()

    def point_best(self, best_first: Sequence[int]) -> None:
        """Have the run's `best` name the first checkpoint that there is of some updates."""
        if not self._writes:
            return
        self._best = best_first
        try:
            self.folder.point_best(best_first)
        except ResourceError as error:
            self.reporter.message(f"`best` still names the one before: {error}")

    def finish(self) -> None:
        """Wait for the checkpoint that is being written, if any; raises as `save_if_due`."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            writing.result()
        except ResourceError as error:
            self._num_failures += 1
            if self._num_failures >= MAX_FAILURES_IN_A_ROW:
                raise
            self.reporter.message(
                f"update={self._writing_update} not saved, training goes on: {error}"
            )
        else:
            self._num_failures = 0

    def close(self) -> None:
        """Wait until nothing is being written any more, whatever came of it."""
        self._thread.shutdown()

    def _start(self, state: RunState) -> None:
        """Copy what a checkpoint holds, and have it written."""
        self.finish()
        self._last_save = time.monotonic()
        if self._writes:
            self._writing_update = state.update
            self._writing = self._thread.submit(self._write, self._snapshot(state))

    def _write(self, snapshot: Snapshot) -> None:
        config = self.trained.recipe.checkpoints
        self.folder.save(snapshot)
        try:  # what cannot be deleted does no harm
            self.folder.prune(config.keep, self._best[: config.keep_best], self.reporter.message)
        except ResourceError as error:
            self.reporter.message(f"not tidied up: {error}")

    def _snapshot(self, state: RunState) -> Snapshot:
        trained = self.trained
        return Snapshot(
            update=state.update,
            is_scheduled=self.is_scheduled(state),
            model=_copied(trained.learner.published.state_dict()),
            recipe=trained.recipe,
            codec=trained.codec,
            provenance=trained.provenance,
            state_tensors=_copied(trained.learner.state_tensors()),
            state_values=state.to_json(),
        )


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors to the host, one that has several names once."""
    copies: dict[int, Tensor] = {}
    for tensor in tensors.values():
        if tensor.data_ptr() not in copies:
            copies[tensor.data_ptr()] = tensor.detach().to("cpu", copy=True)
    return {name: copies[tensor.data_ptr()] for name, tensor in tensors.items()}
