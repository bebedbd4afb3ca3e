"""The training loop: one update after another, logged, validated, saved, resumable.

Everything random in an update follows from (seed, update, slot), so there is no generator state to
save, and a resumed run repeats the uninterrupted one bit for bit on a CPU.
"""

import math
import time
from dataclasses import dataclass

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import cut_into_slots, gather, num_slots
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Sampler, Update
from nmtkit.errors import DivergedError, ResourceError
from nmtkit.progress import MetricsLog, ProgressReporter, TrainingRecord, ValidationRecord
from nmtkit.training.history import History
from nmtkit.training.loss import perplexity
from nmtkit.training.meter import Meter, UpdateSums
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import learning_rate
from nmtkit.training.saving import Saver
from nmtkit.training.seeds import slot_seed
from nmtkit.training.state import RunState
from nmtkit.training.stopping import StopRequest
from nmtkit.training.validation import Validator

MAX_SKIPPED_IN_A_ROW = 10
"""So many updates without a finite gradient in a row mean that training has diverged."""

SECONDS_BETWEEN_GLANCES = 5
"""A live display is refreshed this often where reports are further apart."""


@dataclass(frozen=True)
class Parts:
    """What a trainer is made of; `run.py` builds it."""

    recipe: TrainRecipe
    dataset: Dataset
    sampler: Sampler
    objective: Objective
    optimizer: torch.optim.Adam
    validator: Validator
    saver: Saver
    reporter: ProgressReporter
    log: MetricsLog
    stop: StopRequest


class Trainer:
    """Trains from a given state until the recipe's end, a stop request, or early stopping."""

    def __init__(self, parts: Parts, state: RunState) -> None:
        """Store the parts, and where the run stands: its state and its log's validations."""
        self.parts = parts
        self.state = state
        self.history = History(parts.recipe.validation.best_metric, parts.log.validations())
        self.meter = Meter(parts.recipe.training, state)
        self.num_slots = num_slots(
            parts.recipe.training.update_tokens, parts.recipe.training.max_tokens
        )
        self._session_start = time.monotonic() - state.seconds

    def fit(self) -> None:
        """Train to the end.

        Raises:
            StoppedError, InterruptedByUserError: a signal asked for a stop; all is saved.
            DivergedError: no finite gradient any more.
            ResourceError: checkpoints cannot be written any more.
        """
        stop, state = self.parts.stop, self.state
        self.parts.objective.train()
        if self._is_validation_due():  # and was cut short by the end of the last session
            self._validate()
        for position, update in self.parts.sampler.updates(state.position):
            if self.is_finished() or not self._run_update(update):
                break
            state.position = position
            state.seconds = time.monotonic() - self._session_start
            self._after_update()
        if self.meter.num_updates:
            self._report()
        self.parts.saver.save_now(state)
        if self.is_finished() and self.owes_validation():
            self._validate()
        if stop.is_requested:
            raise stop.error(state.update)

    def is_finished(self) -> bool:
        """Tell whether the recipe's end, or that of the run's patience, is reached."""
        config, state = self.parts.recipe.training, self.state
        patience = self.parts.recipe.validation.patience
        return (
            state.update >= config.max_updates
            or 0 < config.max_epochs <= state.position.epoch
            or 0 < config.max_minutes * 60 <= state.seconds
            or 0 < patience <= self.history.num_stale
        )

    def owes_validation(self) -> bool:
        """Tell whether the model as it is should be validated where the run ends."""
        every = self.parts.recipe.validation.validate_every
        return every > 0 and 0 < self.state.update != self.history.last_update

    def _is_validation_due(self) -> bool:
        every = self.parts.recipe.validation.validate_every
        return self.owes_validation() and self.state.update % every == 0

    def _run_update(self, update: Update) -> bool:
        """Do one update; False if a stop request came first, and nothing has changed."""
        parts, state = self.parts, self.state
        sums = UpdateSums(
            epoch=state.position.epoch + 1,
            num_source_tokens=update.num_source_tokens,
            num_target_tokens=update.num_target_tokens,
        )
        pairs = parts.dataset.train[update.shard]
        for slot, indices in enumerate(cut_into_slots(update, self.num_slots)):
            if parts.stop.is_requested:
                parts.optimizer.zero_grad()
                return False
            torch.manual_seed(slot_seed(parts.recipe.seed.seed, state.update + 1, slot))
            batch = gather(pairs, indices, parts.objective.model.output_weight.device)
            losses = parts.objective(batch)
            (losses.smoothed / update.num_target_tokens).backward()
            sums.add(losses)
        state.update += 1
        sums.gradient_norm = self._apply_gradients()
        self.meter.add(sums)
        return True

    def _apply_gradients(self) -> float:
        """Clip, step, clear; skip the step where the gradient is not finite. Returns its norm."""
        parts, state = self.parts, self.state
        config = parts.recipe.training
        norm = torch.nn.utils.clip_grad_norm_(
            parts.objective.parameters(), config.clip_norm or math.inf, foreach=True
        )
        gradient_norm = float(norm)  # the one point of an update where the host waits
        if math.isfinite(gradient_norm):
            for group in parts.optimizer.param_groups:
                group["lr"] = self._learning_rate()
            parts.optimizer.step()
            state.num_skipped_in_a_row = 0
        else:
            self._skip(gradient_norm)
        parts.optimizer.zero_grad()
        return gradient_norm

    def _skip(self, gradient_norm: float) -> None:
        state = self.state
        state.num_skipped += 1
        state.num_skipped_in_a_row += 1
        if state.num_skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise DivergedError(
                f"training diverged: the gradients of {MAX_SKIPPED_IN_A_ROW} updates in a row, "
                f"up to update {state.update}, were not finite; the last checkpoint is kept; begin "
                "again in another --out with a lower --learning-rate-scale, more "
                "--warmup-updates, or --clip-norm"
            )
        self.parts.reporter.message(
            f"update={state.update} skipped: its gradient norm is {gradient_norm}"
        )

    def _after_update(self) -> None:
        """Report, save and validate what is due; `fit` does so where the run ends."""
        if self.state.update % self.parts.recipe.logging.log_every == 0:
            self._report()
        elif self.meter.seconds >= SECONDS_BETWEEN_GLANCES:
            self.parts.reporter.glance(self._record())
        if self.is_finished():
            return
        with self.meter.excluded():
            self.parts.saver.save_if_due(self.state)
            if self._is_validation_due():
                self._validate()

    def _report(self) -> None:
        record = self._record()
        self.meter.clear()
        self._log(record)
        self.parts.reporter.update(record)

    def _record(self) -> TrainingRecord:
        return self.meter.record(self.state, self._learning_rate())

    def _learning_rate(self) -> float:
        recipe = self.parts.recipe
        return learning_rate(self.state.update, recipe.model.model_size, recipe.training)

    def _validate(self) -> None:
        """Validate, and name the checkpoint if it is the best; nothing if asked to stop."""
        parts, update = self.parts, self.state.update
        start = time.monotonic()
        result = parts.validator.validate(lambda: parts.stop.is_requested)
        if result is None:
            return
        record = ValidationRecord(
            update=update,
            loss=result.loss,
            perplexity=perplexity(result.loss),
            bleu=result.bleu,
            signature=result.signature,
            is_best=self.history.add(update, result.loss, result.bleu),
            took_s=time.monotonic() - start,
        )
        self._log(record)
        parts.reporter.validation(record)
        parts.saver.point_best(self.history.best_update)

    def _log(self, record: TrainingRecord | ValidationRecord) -> None:
        """Append to the run's log; training goes on if it cannot be written."""
        try:
            self.parts.log.append(record)
        except ResourceError as error:
            self.parts.reporter.message(f"update={record.update} not logged: {error}")
