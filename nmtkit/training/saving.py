"""When checkpoints are written, and what happens when one cannot be."""

import time
from dataclasses import dataclass

import torch

from nmtkit.checkpoint import RunFolder, Snapshot
from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ResourceError
from nmtkit.model.transformer import Transformer
from nmtkit.progress import ProgressReporter
from nmtkit.text.codec import TextCodec
from nmtkit.training.optimizer import optimizer_tensors
from nmtkit.training.state import RunState

MAX_FAILURES_IN_A_ROW = 2
"""Training goes on after a failed save, but not after so many in a row."""


@dataclass(frozen=True)
class Trained:
    """What a checkpoint is taken from.

    Attributes:
        model: its parameters.
        optimizer: its moments.
        recipe, codec: what makes a model folder complete.
        provenance: facts about the run for the manifest.
    """

    model: Transformer
    optimizer: torch.optim.Adam
    recipe: TrainRecipe
    codec: TextCodec
    provenance: dict[str, str]


class Saver:
    """Saves checkpoints of a run by updates, by time, and on request."""

    def __init__(self, folder: RunFolder, trained: Trained, reporter: ProgressReporter) -> None:
        self.folder = folder
        self.trained = trained
        self.reporter = reporter
        self._last_save = time.monotonic()
        self._num_failures = 0

    def save_if_due(self, state: RunState) -> None:
        """Save if this update is scheduled, or if the last save was too long ago."""
        minutes = self.trained.recipe.checkpoints.save_minutes
        is_overdue = 0 < minutes * 60 <= time.monotonic() - self._last_save
        if self._is_scheduled(state) or is_overdue:
            self._try_to_save(state)

    def save_now(self, state: RunState) -> None:
        """Save where the run ends; unlike in its middle, a failure is an error at once."""
        if state.update == 0:
            return  # there is nothing that a new run would not do again
        self._num_failures = MAX_FAILURES_IN_A_ROW
        self._try_to_save(state)

    def point_best(self, update: int) -> None:
        """Have the run's `best` name the checkpoint of an update."""
        try:
            self.folder.point_best(update)
        except ResourceError as error:
            self.reporter.message(f"update={update} is not named the best: {error}")

    def _is_scheduled(self, state: RunState) -> bool:
        return state.update % self.trained.recipe.checkpoints.save_every == 0

    def _try_to_save(self, state: RunState) -> None:
        try:
            self._save(state)
        except ResourceError as error:
            self._num_failures += 1
            if self._num_failures >= MAX_FAILURES_IN_A_ROW:
                raise
            self.reporter.message(f"update={state.update} not saved, training goes on: {error}")
        else:
            self._num_failures = 0
            self._tidy()
        self._last_save = time.monotonic()

    def _tidy(self) -> None:
        """Delete what is no longer needed; what cannot be deleted does no harm."""
        try:
            self.folder.prune(self.trained.recipe.checkpoints.keep, self.reporter.message)
        except ResourceError as error:
            self.reporter.message(f"not tidied up: {error}")

    def _save(self, state: RunState) -> None:
        trained = self.trained
        self.folder.save(
            Snapshot(
                update=state.update,
                is_scheduled=self._is_scheduled(state),
                model=trained.model.state_dict(),
                recipe=trained.recipe,
                codec=trained.codec,
                provenance=trained.provenance,
                state_tensors=optimizer_tensors(trained.optimizer, trained.model),
                state_values=state.to_json(),
            )
        )
