"""The training loop: updates, logging, validation and checkpoints of a run.

`Trainer.update` runs one update; `Trainer.fit` runs all. The results of updates stay on the device
until they are logged or displayed, and are read before every save and validation. The device
decides whether an update is skipped. The random numbers of an update follow from (seed, update,
micro-batch), so there is no generator state to save. On a CPU, a resumed run is bit-identical to
the uninterrupted one. Every rank runs the same loop: all decisions follow from values that are the
same on all ranks.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmtkit.config.metrics import NLL
from nmtkit.data.batch import Batch, eos_batch
from nmtkit.data.sampler import epoch_pairs
from nmtkit.errors import ConfigError, ResourceError, is_out_of_memory
from nmtkit.evaluation.metric import Statistics
from nmtkit.model.cost import training_operations
from nmtkit.progress.records import Record, SkippedRecord, TrainingRecord, ValidationRecord
from nmtkit.runtime.devices import peak_memory
from nmtkit.storage.run_folder import ValidationLines
from nmtkit.training.checkpointing import Saver
from nmtkit.training.meter import Meter, UpdateStats
from nmtkit.training.micro_batches import MicroBatchSchedule, micro_batch_seed
from nmtkit.training.objective import LOSSES
from nmtkit.training.optimizer import learning_rate, normalize_and_clip_gradients
from nmtkit.training.state import (
    MAX_SKIPPED_IN_A_ROW,
    RunContext,
    TrainState,
    is_complete,
    needs_validation,
    too_many_skipped,
)
from nmtkit.training.updates import LoadedUpdate, Start, UpdateLoader
from nmtkit.training.validation import ValidationHistory, Validator, choose_samples
from nmtkit.units import perplexity

SECONDS_BETWEEN_REFRESHES = 5
"""Interval at which a live display is refreshed between reports."""


class Trainer:
    """Trains until the end that the recipe sets, early stopping, or a stop request."""

    def __init__(
        self,
        context: RunContext,
        train_state: TrainState,
        objective: nn.Module,
        schedule: MicroBatchSchedule,
        loader: UpdateLoader,
        validator: Validator,
        history: ValidationHistory,
    ) -> None:
        """Store the parts.

        Args:
            context: settings, data, folder and ranks of the run.
            train_state: weights, optimiser, average and progress.
            objective: batch -> loss sums; its backward pass averages the gradients of all ranks.
            schedule: the number of micro-batches of each update.
            loader: loads the updates.
            validator: validates the published model.
            history: the run's validations so far.
        """
        self.context = context
        self.train_state = train_state
        self.objective = objective
        self.schedule = schedule
        self.loader = loader
        self.validator = validator
        self.history = history
        self.saver = Saver(context, train_state)
        recipe, device = context.recipe, context.device
        self.meter = Meter(
            recipe.training,
            train_state.progress,
            epoch_pairs(context.dataset),
            context.ranks.size,
            lambda: peak_memory(device),
            partial(training_operations, recipe.model, context.dataset.codec.target.size),
            context.clock,
        )
        self._seconds_before = train_state.progress.seconds
        self._last_refresh = -math.inf  # the first update is shown immediately

    def begin(self) -> None:
        """Save and validate update 0: the weights before the first update.

        Raises:
            StoppedError, InterruptedByUserError, ResourceError, LostRankError,
                ReportedElsewhereError: see `fit`.
        """
        self.context.ranks.run_on_first(self.saver.save_now)
        if self.context.recipe.validation.validate_every and self.history.last_update is None:
            self._validate()
        self.context.end_if_stop_requested(0)

    def fit(self) -> None:
        """Train to the end.

        Raises:
            StoppedError, InterruptedByUserError: a signal requested a stop; everything is saved.
            DivergedError: the gradients of the last updates that were read are not finite.
            ResourceError: checkpoints cannot be written any more, or memory does not suffice.
            LostFolderError: the run's folder was renamed, deleted or replaced.
            LostRankError: another rank died or does not answer.
            ReportedElsewhereError: another rank reports the error.
        """
        # A killed session may not have set `best`, or that checkpoint may be damaged now.
        self.saver.keep_best(self.history.best_first())
        if self._is_validation_due():  # the last session ended during this validation
            self._validate()
        while not self._is_complete() and self.update():
            self._after_update()
        if self.meter.num_updates:
            self._log_training()
        if self.train_state.progress.update:  # update 0 is saved by `begin` or not at all
            self.context.ranks.run_on_first(self.saver.save_now)
        if self._is_complete() and self._needs_validation():
            self._validate()
        self.context.end_if_stop_requested(self.train_state.progress.update)

    def update(self) -> bool:
        """Run the next update: load, forward and backward, normalize and clip, step.

        An update that does not fit into memory runs again in more micro-batches.

        Returns:
            False if a rank was asked to stop; then the training state is unchanged.

        Raises:
            LostRankError, ReportedElsewhereError, ResourceError: see `fit`.
        """
        context, state, progress = self.context, self.train_state, self.train_state.progress
        number, when = progress.update + 1, f"in update {progress.update + 1}"
        num_pairs = context.recipe.training.update_tokens  # at most, until they are known
        while True:
            try:
                with context.ranks.exchange(when):
                    start = Start(progress.position, number, self.schedule.at(number))
                    loaded = self.loader.load(start)
                    num_pairs = len(loaded.update.pairs)
                    stats = self._compute(number, loaded)
                break
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                state.clear_gradients()
                message = self.schedule.double(number, num_pairs, context.ranks)
                context.reporter.message(message)
        if stats is None:
            state.clear_gradients()
            return False
        progress.update, progress.seconds = number, stats.seconds
        progress.position = loaded.following.position
        with context.ranks.exchange(when):
            state.step(self._learning_rate(), is_skipped=~stats.gradient_norm.isfinite())
        self.meter.add(stats)
        return True

    def read_results(self) -> None:
        """Read the results of updates, and report those that were skipped; waits for the device.

        Only rank 0 shows a live display, so ranks may do it at different points.
        """
        progress = self.train_state.progress
        with self.context.ranks.exchange(f"in update {progress.update}"):
            read = self.meter.read()
        for stats, gradient_norm in read:
            if math.isfinite(gradient_norm):
                progress.num_skipped_in_a_row = 0
            else:
                self._report_skipped(stats, gradient_norm)

    def close(self) -> None:
        """Close the loader and the saver; nothing is read or written afterwards."""
        with closing(self.saver):
            self.loader.close()

    def _compute(self, number: int, loaded: LoadedUpdate[Batch]) -> UpdateStats | None:
        """Compute the gradients of an update; return None if a rank was asked to stop."""
        context, progress = self.context, self.train_state.progress
        num_source, counts = self._exchange_counts(loaded)
        sums = torch.zeros(1 + len(LOSSES), dtype=torch.float64, device=context.device)
        last = max(loaded.micro_batches, default=-1)
        for j, batch in loaded.micro_batches.items():
            if self._is_needed(j == last):
                seed = context.recipe.seed.seed
                torch.manual_seed(micro_batch_seed(seed, number, j, self.schedule.initial))
                sums += self._forward_backward(batch, counts, is_last=j == last)
        if not loaded.micro_batches:  # the other ranks wait for this one's exchange of gradients
            spare = eos_batch([1], [1], context.device)
            self._forward_backward(spare, counts, is_last=True, weight=0)
        is_stopped, seconds = self._agree_to_stop()
        if is_stopped:
            return None
        parameters, limit = self.train_state.model.parameters(), context.recipe.training.clip_norm
        return UpdateStats(
            number=number,
            update=loaded.update,
            epoch=progress.position.epoch + 1,
            seconds=seconds,
            num_source_tokens=num_source,
            counts=counts,
            sums=context.ranks.sum(sums),
            gradient_norm=normalize_and_clip_gradients(parameters, counts[NLL], limit),
        )

    def _exchange_counts(self, loaded: LoadedUpdate[Batch]) -> tuple[int, dict[str, int]]:
        """Sum the source tokens, and the units of the losses, of an update over all ranks."""
        batches = loaded.micro_batches.values()
        own = [
            sum(batch.sizes[0] for batch in batches),
            *(sum(map(loss.count, batches)) for loss in LOSSES.values()),
        ]
        self.context.ranks.count_exchange()
        num_source, *counts = self.context.ranks.sum(torch.tensor(own)).tolist()
        return num_source, dict(zip(LOSSES, counts, strict=True))

    def _is_needed(self, is_last: bool) -> bool:
        """Return whether to compute a micro-batch.

        After a stop request, only the last one is computed, and only if other ranks wait for its
        exchange of gradients.
        """
        return not self.context.stop.is_requested or (is_last and not self.context.ranks.is_alone)

    def _forward_backward(
        self, batch: Batch, counts: Mapping[str, int], *, is_last: bool, weight: int = 1
    ) -> Tensor:
        """Accumulate the gradients of a micro-batch; return its `UpdateStats.sums`."""
        ranks = self.context.ranks
        with self._exchanging_gradients(is_last):
            losses = self.objective(batch, counts)
            if is_last:
                ranks.count_exchange()
            # DDP sums the gradients of the ranks and divides them by W.
            (losses.loss * (weight * ranks.size)).backward()
        return torch.stack([losses.loss.detach(), *map(losses.sums.__getitem__, LOSSES)]).double()

    def _exchanging_gradients(self, is_last: bool) -> AbstractContextManager[None]:
        """Return a context in which DDP exchanges gradients only if this is the last backward."""
        if is_last or not isinstance(self.objective, DistributedDataParallel):
            return nullcontext()
        return self.objective.no_sync()

    def _agree_to_stop(self) -> tuple[bool, float]:
        """Exchange requests to stop, and the time.

        Returns:
            Whether a rank was asked to stop; and the seconds of training of the run so far, by the
            clock of rank 0.
        """
        context = self.context
        seconds = self._seconds_before + self.meter.seconds if context.ranks.is_first else 0.0
        shared = torch.tensor([*context.stop.requests, seconds], dtype=torch.float64)
        *requests, seconds = context.ranks.sum(shared).tolist()
        context.stop.note(requests)
        return any(requests), seconds

    def _report_skipped(self, stats: UpdateStats, gradient_norm: float) -> None:
        """Count and log an update that was skipped."""
        progress, context, number = self.train_state.progress, self.context, stats.number
        pairs = stats.update.pairs.tolist()
        self._log(SkippedRecord(update=number, shard=stats.update.shard, pairs=pairs))
        progress.num_skipped += 1
        progress.num_skipped_in_a_row += 1
        context.reporter.message(
            f"update={number} skipped: its gradient norm is {gradient_norm}; "
            "metrics.jsonl has its pairs"
        )

    def _end_if_diverged(self) -> None:
        """Read the results of updates; raise DivergedError if too many of the last were skipped."""
        self.read_results()
        progress = self.train_state.progress
        if progress.num_skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            self.saver.finish()
            raise self.context.ranks.report_once(too_many_skipped(progress))

    def _after_update(self) -> None:
        """Log, save and validate if due; at the end of the run, `fit` saves and validates."""
        context, update = self.context, self.train_state.progress.update
        is_logged = update % context.recipe.logging.log_every == 0
        # The log must hold all updates of a checkpoint before it is written.
        if is_logged or self.saver.is_due():
            self._log_training()
        elif context.clock() - self._last_refresh >= SECONDS_BETWEEN_REFRESHES:
            self._last_refresh = context.clock()
            context.reporter.refresh(self._record)
        if self._is_complete():
            return
        with self.meter.excluded():
            if self.saver.is_scheduled():
                self.train_state.check_agreement(context.ranks)
            self.saver.save_if_due()
        if self._is_validation_due():
            self._validate()

    def _log_training(self) -> None:
        """Log the updates since the last record, and end if training has diverged."""
        record = self._record()
        self.meter.clear()
        self._log(record)
        self.context.reporter.update(record)
        self._end_if_diverged()

    def _record(self) -> TrainingRecord:
        self.read_results()
        return self.meter.record(self.train_state.progress, self._learning_rate())

    def _learning_rate(self) -> float:
        recipe, update = self.context.recipe, self.train_state.progress.update
        return learning_rate(update, recipe.model.model_size, recipe.training)

    def _validate(self) -> None:
        """Validate, log the result, and update `best`; no result if asked to stop."""
        self._end_if_diverged()
        with self.meter.excluded():
            context, update = self.context, self.train_state.progress.update
            start, reporter, dataset = context.clock(), context.reporter, context.dataset
            reporter.validating(update, len(dataset.valid_source))
            result = self.validator.validate(
                lambda: context.stop.is_requested, reporter.validation_progress
            )
            if result is None:
                return
            self.saver.finish()
            record = ValidationRecord(
                update=update,
                nll=result.nll,
                perplexity=perplexity(result.nll),
                scores=result.scores,
                signatures=result.signatures,
                is_best=self.history.add(update, result.nll, result.scores),
                took_s=context.clock() - start,
                samples=choose_samples(
                    dataset, result.translations, context.recipe.validation.validate_samples
                ),
            )
            # If it is killed before the log has the record, the validation runs again.
            self._store_lines(record, result.statistics)
            self._log(record)
            reporter.validation(record)
            if worse := self.history.worse_directions():
                reporter.message(
                    f"update={update}: the average of {context.recipe.validation.best_metric} is "
                    f"the best so far, but worse than at the last best one in {', '.join(worse)}"
                )
            self.saver.keep_best(self.history.best_first())

    def _store_lines(self, record: ValidationRecord, statistics: Mapping[str, Statistics]) -> None:
        """Store the statistics of lines by each metric by which a validation is the best so far."""
        folder = self.context.folder
        new = {
            name: ValidationLines(record.update, record.scores[name], record.signatures[name], rows)
            for name, rows in statistics.items()
            if self.history.is_best_by(name)
        }
        if new and self.context.ranks.is_first:
            lines = folder.read_validation_lines() | new
            self._write(record.update, partial(folder.write_validation_lines, lines))

    def _log(self, record: Record) -> None:
        """Append a record to the run's logs."""
        for log in self.context.logs:
            self._write(record.update, partial(log.append, record))

    def _write(self, update: int, write: Callable[[], None]) -> None:
        """Write a file about an update; training continues if it cannot be written."""
        try:
            self.context.folder.check_lock()
            write()
        except (ConfigError, ResourceError) as error:
            self.context.reporter.message(f"update={update} not logged: {error}")

    def _is_complete(self) -> bool:
        return is_complete(self.context.recipe, self.train_state.progress, self.history)

    def _needs_validation(self) -> bool:
        return needs_validation(self.context.recipe, self.train_state.progress, self.history)

    def _is_validation_due(self) -> bool:
        every = self.context.recipe.validation.validate_every
        return self._needs_validation() and (
            self.saver.is_epoch_end() or self.train_state.progress.update % every == 0
        )
