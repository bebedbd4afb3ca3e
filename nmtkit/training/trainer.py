"""The training loop: one update after another, logged, validated, saved, resumable.

Everything random in an update follows from (seed, update, slot), so there is no generator state to
save, and a resumed run repeats the uninterrupted one bit for bit on a CPU. Every rank runs the same
loop; what it decides by follows from the state, which is the same on all.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Update
from nmtkit.errors import (
    DivergedError,
    ResourceError,
    is_out_of_memory,
)
from nmtkit.model.likelihood import perplexity
from nmtkit.progress import ProgressReporter
from nmtkit.records import Log, Record, SkippedRecord, TrainingRecord, ValidationRecord
from nmtkit.runtime import peak_memory
from nmtkit.training.distributed import Ranks
from nmtkit.training.meter import Costs, Meter, device_rate
from nmtkit.training.optimizer import learning_rate
from nmtkit.training.pieces import Pieces
from nmtkit.training.reading import Reader, Reading
from nmtkit.training.saving import Saver
from nmtkit.training.slots import Cut
from nmtkit.training.state import RunState
from nmtkit.training.stopping import StopRequest
from nmtkit.training.updating import Sums, Updater
from nmtkit.training.validation import ValidationHistory, Validator

MAX_SKIPPED_IN_A_ROW = 10
"""So many updates without a finite gradient in a row mean that training has diverged."""

SECONDS_BETWEEN_GLANCES = 5
"""A live display is refreshed this often where reports are further apart."""


@dataclass(frozen=True)
class Parts:
    """What a trainer is made of; `run.py` builds it."""

    recipe: TrainRecipe
    dataset: Dataset
    ranks: Ranks
    reader: Reader
    updater: Updater
    pieces: Pieces
    validator: Validator
    saver: Saver
    reporter: ProgressReporter
    logs: Sequence[Log]
    stop: StopRequest


class Trainer:
    """Trains from a given state until the recipe's end, a stop request, or early stopping."""

    def __init__(
        self, parts: Parts, state: RunState, validations: Sequence[ValidationRecord]
    ) -> None:
        """Store the parts, and where the run stands: its state and its validations so far."""
        self.parts = parts
        self.state = state
        self.validations = validations
        self.history = ValidationHistory(parts.recipe.validation.best_metric, validations)
        objective = parts.updater.objective
        device = objective.model.output_weight.device
        self.meter = Meter(
            parts.recipe.training,
            state,
            parts.dataset.num_train_pairs,
            parts.ranks.size,
            lambda: peak_memory(device),
            Costs(
                parts.recipe.model,
                parts.dataset.codec.target.size,
                device_rate(device, objective.low_precision),
            ),
            time.monotonic,
        )
        self._session_start = time.monotonic() - state.seconds
        self._last_glance = time.monotonic()

    def fit(self) -> None:
        """Train to the end.

        Raises:
            StoppedError, InterruptedByUserError: a signal asked for a stop; all is saved.
            DivergedError: no finite gradient any more.
            ResourceError: checkpoints cannot be written any more, or memory does not suffice.
            LostRankError: another rank is gone.
            ToldElsewhereError: another rank tells the error.
        """
        state, ranks = self.state, self.parts.ranks
        self.parts.updater.objective.train()
        if self._is_validation_due():  # and was cut short by the end of the last session
            with self.meter.excluded():
                self._validate()
        while not self.is_finished() and self._run_update():
            self._after_update()
        if self.meter.num_updates:
            self._report()
        ranks.share(lambda: self.parts.saver.save_now(state))
        if self.is_finished() and self.owes_validation():
            self._validate()
        self.end_if_asked()

    def end_if_asked(self) -> None:
        """End if any rank was asked to stop, be it after the last update; what is done is saved.

        Raises:
            StoppedError, InterruptedByUserError: one was.
        """
        stop = self.parts.stop
        of_all = self.parts.ranks.gather(stop.requests)
        stop.note([sum(numbers) for numbers in zip(*of_all, strict=True)])
        if stop.is_requested:
            raise self.parts.ranks.told_once(stop.error(self.state.update))

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

    def _run_update(self) -> bool:
        """Do one update; False if a stop request came first, and nothing has changed."""
        state = self.state
        reading, sums = self._compute()
        if sums is None:
            return False
        state.update += 1
        state.seconds = sums.elapsed_s
        if math.isfinite(sums.gradient_norm):
            self.parts.updater.apply(state.update, self._learning_rate())
            state.num_skipped_in_a_row = 0
        else:
            self.parts.updater.drop()
            self._skip(reading.update, sums.gradient_norm)
        self.meter.add(reading.update, state.position.epoch + 1, sums)
        state.position = reading.position
        return True

    def _compute(self) -> tuple[Reading, Sums | None]:
        """Compute the gradients of the next update, its slots cut finer if they do not fit."""
        parts, number = self.parts, self.state.update + 1
        num_pairs = parts.recipe.training.update_tokens  # at most, until they are known
        while True:
            cut = Cut(self.state.num_slots, parts.pieces.at(number))
            try:
                with parts.ranks.exchange(f"in update {number}"):
                    reading = parts.reader.read(self.state.position, number, cut)
                num_pairs = len(reading.update.pairs)
                return reading, parts.updater.compute(reading, self._elapsed)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                parts.updater.drop()
                self._cut_finer(number, cut, num_pairs)

    def _cut_finer(self, number: int, cut: Cut, num_pairs: int) -> None:
        """Have an update that did not fit into memory done in smaller pieces.

        Raises:
            ResourceError: there are none; or there are other ranks, which wait for this one in
                vain, so that all must begin again.
        """
        parts = self.parts
        if cut.num_slots * cut.num_pieces >= num_pairs:
            raise ResourceError(
                f"out of memory in update {number}, whose pairs were taken one by one; "
                "take a smaller model or a larger machine"
            )
        num_pieces = 2 * cut.num_pieces
        parts.pieces.cut(number, num_pieces, writes=parts.ranks.is_first_to("cut finer"))
        what = f"update={number} did not fit into memory; slots are cut in {num_pieces} from here"
        if not parts.ranks.is_alone:
            raise ResourceError(f"{what}; run the same command again to continue")
        parts.reporter.message(what)

    def _skip(self, update: Update, gradient_norm: float) -> None:
        state = self.state
        pairs = update.pairs.tolist()
        self._log(SkippedRecord(update=state.update, shard=update.shard, pairs=pairs))
        state.num_skipped += 1
        state.num_skipped_in_a_row += 1
        if state.num_skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            self.parts.saver.finish()
            raise self.parts.ranks.told_once(
                DivergedError(
                    f"training diverged: the gradients of {MAX_SKIPPED_IN_A_ROW} updates in a "
                    f"row, up to update {state.update}, were not finite; the last checkpoint is "
                    "kept; begin again in another --out with a lower --learning-rate-scale, more "
                    "--warmup-updates, or --clip-norm"
                )
            )
        self.parts.reporter.message(
            f"update={state.update} skipped: its gradient norm is {gradient_norm}; metrics.jsonl "
            "has its pairs"
        )

    def _elapsed(self) -> float:
        """Return the seconds of training, all sessions together."""
        return time.monotonic() - self._session_start

    def _after_update(self) -> None:
        """Report, save and validate what is due; `fit` does so where the run ends."""
        is_logged = self.state.update % self.parts.recipe.logging.log_every == 0
        # The log holds all that a checkpoint has behind it, however the session ends.
        if is_logged or self.parts.saver.is_due(self.state):
            self._report()
        elif time.monotonic() - self._last_glance >= SECONDS_BETWEEN_GLANCES:
            self._last_glance = time.monotonic()
            self.parts.reporter.glance(self._record)
        if self.is_finished():
            return
        with self.meter.excluded():
            if self.parts.saver.is_scheduled(self.state):
                self.parts.updater.check_agreement(self.state.update)
            self.parts.saver.save_if_due(self.state)
            if self._is_validation_due():
                self._validate()

    def _report(self) -> None:
        record = self._record()
        self.meter.clear(self.state)
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
        parts.saver.finish()
        record = ValidationRecord(
            update=update,
            nll=result.nll,
            perplexity=perplexity(result.nll),
            scores=result.scores,
            signatures=result.signatures,
            is_best=self.history.add(update, result.nll, result.scores),
            took_s=time.monotonic() - start,
        )
        self._log(record)
        parts.reporter.validation(record)
        parts.saver.point_best(self.history.best_first())

    def _log(self, record: Record) -> None:
        """Append to the run's log; training goes on if it cannot be written."""
        for log in self.parts.logs:
            try:
                log.append(record)
            except ResourceError as error:
                self.parts.reporter.message(f"update={record.update} not logged: {error}")
