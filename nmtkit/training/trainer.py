"""The training loop: updates, logging, validation and checkpoints of a run.

`Trainer.update` runs one update; `Trainer.fit` runs all. The host reads the results of an update
while the device computes the next one, or when they are logged. The device decides whether an
update is skipped. The random numbers of an update follow from
(seed, update, micro-batch), so there is no generator state to save. On a CPU, a resumed run is
bit-identical to the uninterrupted one. Every rank runs the same loop: all decisions follow from
values that are the same on all ranks.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmtkit.data.batch import Batch
from nmtkit.data.sampler import epoch_pairs
from nmtkit.errors import ResourceError, is_out_of_memory
from nmtkit.model.likelihood import perplexity
from nmtkit.progress.records import Record, SkippedRecord, TrainingRecord, ValidationRecord
from nmtkit.runtime.host_copies import HostCopy
from nmtkit.runtime.memory import peak_memory
from nmtkit.training.checkpointing import Saver
from nmtkit.training.loader import BatchLoader, LoadedUpdate
from nmtkit.training.meter import (
    Costs,
    Meter,
    RunningUpdate,
    UpdateResult,
    UpdateSize,
    device_rate,
)
from nmtkit.training.micro_batches import MicroBatch, MicroBatchSchedule
from nmtkit.training.optimizer import learning_rate, normalize_and_clip_gradients
from nmtkit.training.seeds import micro_batch_seed
from nmtkit.training.state import (
    RunContext,
    TrainState,
    is_complete,
    needs_validation,
    too_many_skipped,
)
from nmtkit.training.validation import ValidationHistory, Validator, choose_samples

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
        loader: BatchLoader,
        validator: Validator,
        history: ValidationHistory,
    ) -> None:
        """Store the parts.

        Args:
            context: settings, data, folder and ranks of the run.
            train_state: weights, optimiser, EMA and progress.
            objective: batch -> loss sums; its backward pass averages the gradients of all ranks.
            schedule: the number of micro-batches of each update.
            loader: loads the updates.
            validator: validates the published model.
            history: the run's validations so far.
        """
        self.context = context
        self.train_state = train_state
        self.objective = objective
        self.micro_batches = schedule
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
            Costs(
                recipe.model,
                context.dataset.codec.target.size,
                device_rate(device, context.execution.precision),
            ),
            context.clock,
        )
        self._session_start = context.clock() - train_state.progress.seconds
        self._running: RunningUpdate | None = None
        self._last_refresh = -math.inf  # the first update is shown immediately

    def begin(self) -> None:
        """Save and validate update 0: the weights before the first update.

        Raises:
            StoppedError, InterruptedByUserError, ResourceError, LostRankError,
                ReportedElsewhereError: see `fit`.
        """
        self.context.ranks.run_on_first(self.saver.save_now)
        if self.context.recipe.validation.validate_every and self.history.last_update is None:
            with self.meter.excluded():
                self._validate()
        self.context.end_if_stop_requested(0)

    def fit(self) -> None:
        """Train to the end.

        Raises:
            StoppedError, InterruptedByUserError: a signal requested a stop; everything is saved.
            DivergedError: the gradients are not finite any more.
            ResourceError: checkpoints cannot be written any more, or memory does not suffice.
            LostFolderError: the run's folder was renamed, deleted or replaced.
            LostRankError: another rank died or does not answer.
            ReportedElsewhereError: another rank reports the error.
        """
        # A killed session may not have set `best`, or that checkpoint may be damaged now.
        self.saver.keep_best(self.history.best_first())
        if self._is_validation_due():  # the last session ended during this validation
            with self.meter.excluded():
                self._validate()
        while not self._is_complete() and self.update():
            self._after_update()
        self.finish_update()
        self._end_if_diverged(self.train_state.progress.update)
        if self.meter.num_updates:
            self._log_training()
        if self.train_state.progress.update:  # update 0 is saved by `begin` or not at all
            self.context.ranks.run_on_first(self.saver.save_now)
        if self._is_complete() and self._needs_validation():
            self._validate()
        self.context.end_if_stop_requested(self.train_state.progress.update)

    def update(self) -> bool:
        """Run the next update: load, forward and backward, normalize and clip, step.

        The results of the previous update are read after the first forward pass. An update that
        does not fit into memory runs again in more micro-batches.

        Returns:
            False if a rank was asked to stop; then the training state is unchanged.

        Raises:
            DivergedError: too many updates in a row were skipped, up to the previous one.
            LostRankError, ReportedElsewhereError, ResourceError: see `fit`.
        """
        context, state, progress = self.context, self.train_state, self.train_state.progress
        number, results = progress.update + 1, None
        num_pairs = context.recipe.training.update_tokens  # at most, until they are known
        while results is None:
            try:
                with context.ranks.exchange(f"in update {number}"):
                    loaded = self.loader.load(
                        progress.position, number, self.micro_batches.at(number)
                    )
                    num_pairs = len(loaded.update.pairs)
                    last = loaded.micro_batches[-1]
                    losses = [
                        self._forward_backward(micro_batch, number, micro_batch is last)
                        for micro_batch in loaded.micro_batches
                        if self._is_needed(micro_batch is last)
                    ]
                    is_stopped, seconds, size = self._exchange_size(loaded)
                    results = self._normalize_and_clip(losses, size.num_target_tokens)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                state.clear_gradients()
                message = self.micro_batches.double(number, num_pairs, context.ranks)
                context.reporter.message(message)
        if is_stopped:
            state.clear_gradients()
            return False
        self._end_if_diverged(progress.update)
        progress.update, progress.seconds = number, seconds
        progress.position = loaded.next_position
        with context.ranks.exchange(f"in update {number}"):
            state.step(self._learning_rate(), is_skipped=~results[-1].isfinite())
            self._running = RunningUpdate(number, loaded.update, size, HostCopy(results))
        return True

    def finish_update(self) -> None:
        """Read the results of the last update, if not done yet: count it, and report a skipped one.

        This waits for the device. Only rank 0 shows a live display, so ranks may do it at different
        points; `_end_if_diverged` ends them together.

        Raises:
            LostRankError, ReportedElsewhereError: see `Ranks.read`.
        """
        if self._running is None:
            return
        when = f"in update {self.train_state.progress.update}"
        running, values = self._running, self.context.ranks.read(self._running.result, when)
        self._running = None
        result = UpdateResult(*values)
        if math.isfinite(result.gradient_norm):
            self.train_state.progress.num_skipped_in_a_row = 0
        else:
            self._report_skipped(running, result.gradient_norm)
        self.meter.add(running.size, result)

    def close(self) -> None:
        """Close the loader and the saver; nothing is read or written afterwards."""
        with closing(self.saver):
            self.loader.close()

    def _is_needed(self, is_last: bool) -> bool:
        """Return whether to compute a micro-batch.

        After a stop request, only the last one is computed, and only if other ranks wait for its
        exchange of gradients.
        """
        return not self.context.stop.is_requested or (is_last and not self.context.ranks.is_alone)

    def _forward_backward(
        self, micro_batch: MicroBatch[Batch], number: int, is_last: bool
    ) -> Tensor:
        """Accumulate the gradients of a micro-batch; return its sums of loss and nll, (2,)."""
        ranks, seed = self.context.ranks, self.context.recipe.seed.seed
        torch.manual_seed(
            micro_batch_seed(seed, number, micro_batch.number, self.micro_batches.initial)
        )
        with self._exchanging_gradients(is_last):
            losses = self.objective(micro_batch.pairs)
            # Here the device has work, and its queue has room even if another rank hangs.
            self.finish_update()
            if is_last:
                ranks.count_exchange()
            # DDP sums the gradients of the ranks and divides them by W.
            (losses.loss * (micro_batch.weight * ranks.size)).backward()
        return torch.stack((losses.loss.detach(), losses.nll)).double() * micro_batch.weight

    def _exchanging_gradients(self, is_last: bool) -> AbstractContextManager[None]:
        """Return a context in which DDP exchanges gradients only if this is the last backward."""
        if is_last or not isinstance(self.objective, DistributedDataParallel):
            return nullcontext()
        return self.objective.no_sync()

    def _exchange_size(self, loaded: LoadedUpdate) -> tuple[bool, float, UpdateSize]:
        """Sum stop requests and token counts over all ranks.

        Returns:
            Whether a rank was asked to stop; the seconds of training of the run so far, by the
            clock of rank 0; and the size of the update.
        """
        context, update = self.context, loaded.update
        seconds = context.clock() - self._session_start if context.ranks.is_first else 0.0
        shared = [*context.stop.requests, seconds, *loaded.num_tokens]
        *requests, seconds, num_source, num_target = context.ranks.sum(
            torch.tensor(shared, dtype=torch.float64)
        ).tolist()
        context.stop.note(requests)
        size = UpdateSize(
            num_pairs=len(update.pairs),
            num_source_tokens=int(num_source),
            num_target_tokens=int(num_target),
            num_planned_tokens=update.num_source_tokens + update.num_target_tokens,
            epoch=self.train_state.progress.position.epoch + 1,
        )
        return any(requests), seconds, size

    def _normalize_and_clip(self, losses: Sequence[Tensor], num_target_tokens: int) -> Tensor:
        """Sum the losses over all ranks, divide the gradients by tokens, and clip them.

        Returns:
            (3,), float64: the fields of `UpdateResult`.
        """
        context = self.context
        zeros = torch.zeros(2, dtype=torch.float64, device=context.device)
        totals = context.ranks.sum(sum(losses, zeros))
        norm = normalize_and_clip_gradients(
            self.train_state.model.parameters(),
            num_target_tokens,
            context.recipe.training.clip_norm,
        ).to(totals)  # on the CPU if there are no gradients, as after a stop request
        return torch.cat((totals, norm[None]))

    def _report_skipped(self, update: RunningUpdate, gradient_norm: float) -> None:
        """Count and log an update that was skipped."""
        progress, context = self.train_state.progress, self.context
        pairs = update.pairs.pairs.tolist()
        self._log(SkippedRecord(update=update.number, shard=update.pairs.shard, pairs=pairs))
        progress.num_skipped += 1
        progress.num_skipped_in_a_row += 1
        context.reporter.message(
            f"update={update.number} skipped: its gradient norm is {gradient_norm}; "
            "metrics.jsonl has its pairs"
        )

    def _end_if_diverged(self, update: int) -> None:
        """Raise DivergedError if too many updates in a row, up to this one, were skipped."""
        if self.train_state.progress.has_diverged:
            self.saver.finish()
            raise self.context.ranks.report_once(too_many_skipped(update))

    def _after_update(self) -> None:
        """Log, save and validate if due; at the end of the run, `fit` saves and validates."""
        context, update = self.context, self.train_state.progress.update
        is_logged = update % context.recipe.logging.log_every == 0
        is_save_due = self.saver.is_due()  # once: the answer depends on the time
        # The log must hold all updates of a checkpoint before it is written.
        if is_logged or is_save_due:
            self._log_training()
        elif context.clock() - self._last_refresh >= SECONDS_BETWEEN_REFRESHES:
            self._last_refresh = context.clock()
            context.reporter.refresh(self._record)
        if self._is_complete() or self.train_state.progress.has_diverged:
            return
        with self.meter.excluded():
            if self.saver.is_scheduled():
                self.train_state.check_agreement(context.ranks)
            self.saver.save_if(is_save_due)
            if self._is_validation_due():
                self._validate()

    def _log_training(self) -> None:
        record = self._record()
        self.meter.clear(self.train_state.progress)
        self._log(record)
        self.context.reporter.update(record)

    def _record(self) -> TrainingRecord:
        self.finish_update()
        return self.meter.record(self.train_state.progress, self._learning_rate())

    def _learning_rate(self) -> float:
        recipe, update = self.context.recipe, self.train_state.progress.update
        return learning_rate(update, recipe.model.model_size, recipe.training)

    def _validate(self) -> None:
        """Validate, log the result, and update `best`; no result if asked to stop."""
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
        self._log(record)
        reporter.validation(record)
        self.saver.keep_best(self.history.best_first())

    def _log(self, record: Record) -> None:
        """Append a record to the run's logs; training continues if a log cannot be written."""
        for log in self.context.logs:
            try:
                self.context.folder.check_lock()
                log.append(record)
            except ResourceError as error:
                self.context.reporter.message(f"update={record.update} not logged: {error}")

    def _is_complete(self) -> bool:
        return is_complete(self.context.recipe, self.train_state.progress, self.history)

    def _needs_validation(self) -> bool:
        return needs_validation(self.context.recipe, self.train_state.progress, self.history)

    def _is_validation_due(self) -> bool:
        every = self.context.recipe.validation.validate_every
        return self._needs_validation() and (
            self.saver.is_epoch_end() or self.train_state.progress.update % every == 0
        )
