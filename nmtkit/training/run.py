"""The composition root of training: from a recipe, a dataset and a folder to a run.

`train` decides everything before it makes the trainer: device, precision, compilation, where the
run continues, and the number of micro-batches per update.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import ModelConfig
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import check_budget, epoch_tokens
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model.transformer import Transformer
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import Log, SessionRecord, ValidationRecord
from nmtkit.progress.reporter import ProgressReporter, SilentReporter, make_reporter
from nmtkit.progress.tensorboard import TensorboardLog
from nmtkit.runtime.devices import make_deterministic, set_up
from nmtkit.runtime.memory import reset_peak_memory
from nmtkit.storage.checkpoint import Resumable
from nmtkit.storage.run_folder import RunFolder
from nmtkit.text.codec import TextCodec
from nmtkit.training.announcement import announce, describe_session
from nmtkit.training.checkpointing import open_newest_checkpoint, point_best_or_report, restore
from nmtkit.training.compiling import (
    Execution,
    choose_common_execution,
    eos_batch,
)
from nmtkit.training.distributed import Ranks, end_with_launcher, join_ranks
from nmtkit.training.freezing import describe_frozen, freeze
from nmtkit.training.initialization import Origin, Parent, no_weights
from nmtkit.training.loader import BatchLoader
from nmtkit.training.memory_search import (
    NoisedLengths,
    WorstCases,
    find_num_micro_batches,
    increase_until_fits,
    reserve_adam_memory,
)
from nmtkit.training.micro_batches import (
    MicroBatchSchedule,
    fewest_micro_batches,
    read_increases,
)
from nmtkit.training.noise import Noise
from nmtkit.training.objective import Objective
from nmtkit.training.seeds import initial_seed
from nmtkit.training.state import (
    Progress,
    RunContext,
    TrainState,
    is_complete,
    needs_validation,
)
from nmtkit.training.stopping import StopRequest
from nmtkit.training.subword_sampling import SubwordSampling
from nmtkit.training.trainer import Trainer
from nmtkit.training.validation import ValidationHistory, Validator, make_validation_metrics


def train(
    recipe: TrainRecipe,
    data_dir: Path,
    run_dir: Path,
    clock: Callable[[], float] = time.monotonic,
    describe: Callable[[ModelConfig, TextCodec], str] | None = None,
    parent: Parent | None = None,
) -> None:
    """Train a model, or continue a run, together with the other ranks.

    Args:
        recipe: all settings.
        data_dir: a dataset made by `nmtkit preprocess`.
        run_dir: the run's folder; created if it does not exist, else the run continues.
        clock: seconds from an arbitrary start, never going back.
        describe: returns a line about the model to report at the start; None = no line.
        parent: the model whose weights a new run begins with; None = random weights.

    Raises:
        ConfigError: the folder holds a run with other settings or another parent, or something
            else; or the parent does not fit the settings or the dataset.
        DamagedError: the dataset or the parent is damaged, no checkpoint can be resumed, or the run
            or another rank has another dataset.
        StoppedError, InterruptedByUserError, DivergedError, ResourceError, LostFolderError,
            LostRankError, ReportedElsewhereError: see `Trainer.fit`.
    """
    end_with_launcher()
    device = set_up(recipe.runtime)
    if recipe.engine.deterministic:
        make_deterministic()
    with StopRequest() as stop, join_ranks(device, recipe.ranks.rank_timeout, clock) as ranks:
        reporter = make_reporter(sys.stderr) if ranks.is_first else SilentReporter()
        reporter.message(f"verifying the dataset {data_dir}")
        dataset = _open_same_dataset(recipe, data_dir, ranks)
        path = ranks.run_on_first(lambda: str(RunFolder.create_or_open(run_dir).path))
        folder = RunFolder(Path(path))
        with _locked(folder, ranks):
            warn = reporter.message
            checkpoint = cache(lambda: open_newest_checkpoint(folder, recipe, dataset, warn))
            progress = Progress.of(ranks.run_on_first(lambda: _saved_values(checkpoint())))
            find = partial(Origin.find, parent, run_dir, recipe.model, dataset)
            origin = cache(lambda: find(checkpoint()))
            parents = ranks.run_on_first(lambda: origin().parents)
            logged = ranks.run_on_first(lambda: _truncated_validations(folder, progress))
            validations = [ValidationRecord(**values) for values in logged]
            history = ValidationHistory(recipe.validation.best_metric, validations)
            if is_complete(recipe, progress, history) and not needs_validation(
                recipe, progress, history
            ):
                ranks.run_on_first(lambda: _report_complete(folder, progress, history, reporter))
                ranks.run_on_first(lambda: folder.write_recipe(recipe))
                return
            session = describe_session(progress.update, data_dir, device, ranks)
            size = dataset.codec.target.size
            execution = choose_common_execution(recipe, size, device, ranks, progress, warn)
            context = RunContext(
                recipe=recipe,
                dataset=dataset,
                folder=folder,
                device=device,
                execution=execution,
                ranks=ranks,
                stop=stop,
                reporter=reporter,
                logs=_logs(recipe, folder, session) if ranks.is_first else (),
                parents=parents,
                clock=clock,
            )
            train_state = make_train_state(context, progress, lambda model: origin().copy_to(model))
            ranks.run_on_first(lambda: restore(train_state, checkpoint()))
            checkpoint.cache_clear()  # the training state has copies of its tensors
            train_state.copy_from_first(ranks)
            ranks.run_on_first(lambda: folder.write_recipe(recipe))
            trainer = make_trainer(context, train_state, history)
            announce(trainer)
            if describe is not None:
                reporter.message(describe(recipe.model, dataset.codec))
            _fit(trainer, validations)


def make_trainer(
    context: RunContext, train_state: TrainState, history: ValidationHistory
) -> Trainer:
    """Make the trainer of a run, with a number of micro-batches that fits into memory.

    Raises:
        StoppedError, InterruptedByUserError: a signal requested a stop during the memory search.
        ConfigError, ResourceError: see `decide_micro_batches`.
    """
    recipe, dataset, ranks = context.recipe, context.dataset, context.ranks
    objective = make_objective(recipe, train_state.model, context.execution).train()
    example = eos_batch(2, 1, context.device)
    parallel = ranks.wrap(objective, lambda module: module(example).loss.backward())
    schedule = decide_micro_batches(context, train_state, objective)
    context.end_if_stop_requested(train_state.progress.update)
    validator = Validator(
        make_objective(recipe, train_state.published, context.execution),
        dataset,
        recipe.search,
        make_validation_metrics(recipe.validation, dataset.codec),
        recipe.training.max_tokens or recipe.training.update_tokens // schedule.initial,
        context.reporter.message,
        ranks,
    )
    loader = BatchLoader.of(recipe, dataset, ranks, context.device)
    return Trainer(context, train_state, parallel, schedule, loader, validator, history)


def decide_micro_batches(
    context: RunContext, train_state: TrainState, objective: Objective
) -> MicroBatchSchedule:
    """Decide the number of micro-batches per update.

    The first session uses --max-tokens, or searches for the number that fits into memory. Later
    sessions keep the number, and double it only if it does not fit into a GPU any more.

    Raises:
        ConfigError: the run has fewer micro-batches per update than there are ranks now.
        ResourceError: not even one pair at a time fits into memory.
        StoppedError, InterruptedByUserError: a signal requested a stop during the search.
    """
    recipe, progress, ranks = context.recipe, train_state.progress, context.ranks
    training, number = recipe.training, progress.num_micro_batches
    report = context.reporter.message
    if 0 < number < ranks.size:
        raise ranks.report_once(
            ConfigError(
                f"the updates of this run have {number} micro-batches, too few for {ranks.size} "
                f"ranks; continue with at most {number} ranks"
            )
        )

    def is_stopping() -> bool:
        return context.stop.is_requested

    def searched(found: int | None) -> int:
        context.end_if_stop_requested(progress.update)
        assert found is not None, "a search ends early only where a stop was requested"
        return found

    is_searched = not number and not training.max_tokens
    if not number and training.max_tokens:
        # A checkpoint without the number is from one device.
        num_ranks = 1 if progress.update else ranks.size
        tokens = training.update_tokens
        if not progress.update:  # a small text does not fill an update
            tokens = min(tokens, int(epoch_tokens(context.dataset, math.ceil)))
        number = fewest_micro_batches(tokens, training.max_tokens, num_ranks)
    with reserve_adam_memory(train_state.optimizer):
        if is_searched:
            report("looking for the number of micro-batches that fits into memory")
            worst_cases = find_worst_cases(recipe, context.dataset)
            number = searched(find_num_micro_batches(objective, worst_cases, ranks, is_stopping))
        increases = ranks.run_on_first(lambda: read_increases(context.folder, number))
        schedule = MicroBatchSchedule(context.folder, number, increases)
        if context.device.type == "cuda" and not is_searched:
            report("checking that the largest micro-batches fit into memory")
            current = schedule.at(progress.update + 1)
            worst_cases = find_worst_cases(recipe, context.dataset)
            needed = searched(
                increase_until_fits(objective, worst_cases, current, ranks, is_stopping)
            )
            if needed > current:
                report(
                    f"micro-batches do not fit into memory; updates have {needed}, not {current}"
                )
                schedule.increase(progress.update + 1, needed, is_writer=ranks.is_first)
    progress.num_micro_batches = number
    reset_peak_memory(context.device)
    return schedule


def make_objective(recipe: TrainRecipe, model: Transformer, execution: Execution) -> Objective:
    """Make the objective by which a model is trained and validated."""
    return Objective(model, recipe.training.label_smoothing, execution.precision, execution.softmax)


def make_train_state(
    context: RunContext,
    progress: Progress,
    initialize: Callable[[Transformer], Iterable[str]] = no_weights,
) -> TrainState:
    """Make the training state before the first update: a new model and its optimiser.

    Args:
        context: of the run.
        progress: of the run.
        initialize: copies weights into the model, and yields lines to report; on rank 0 only.

    Raises:
        ConfigError: --freeze leaves nothing to train.
        DamagedError: the weights to copy are damaged.
    """
    recipe, codec, execution = context.recipe, context.dataset.codec, context.execution
    torch.manual_seed(initial_seed(recipe.seed.seed))
    model = Transformer(
        recipe.model,
        codec.source.size,
        codec.target.size,
        codec.is_shared,
        tail=execution.tail,
        activation_checkpointing=recipe.engine.activation_checkpointing,
    )
    context.ranks.run_on_first(lambda: [*map(context.reporter.message, initialize(model))])
    if parts := recipe.training.freeze:
        context.reporter.message(context.ranks.run_on_first(lambda: describe_frozen(model, parts)))
        freeze(model, parts)
    return TrainState.of(model.to(context.device), recipe.training, progress)


def find_worst_cases(recipe: TrainRecipe, dataset: Dataset) -> WorstCases:
    """Find the training pairs that need the most memory, with noise and subword sampling."""
    subword_sampling, noise = SubwordSampling.of(recipe, dataset.codec), Noise.of(recipe, dataset)
    worst_cases = WorstCases.of(dataset.train, recipe.training.update_tokens)
    growth = subword_sampling.growth(next(shard for shard in dataset.train if len(shard)))
    noised = NoisedLengths(noise.share, noise.growth, noise.longest) if noise.is_active else None
    return replace(worst_cases.lengthened(growth, subword_sampling.longest), noise=noised)


def open_dataset(recipe: TrainRecipe, data_dir: Path) -> Dataset:
    """Open a dataset, and check that the recipe can train on it.

    Raises:
        ConfigError: a pair is too long for an update or for learned positions; subword sampling
            or noise has no effect; or noise or a metric does not fit the dataset.
        DamagedError: the dataset is damaged.
    """
    dataset = Dataset.open(data_dir)
    check_budget(dataset.train, recipe.training.update_tokens)
    check_positions(recipe, dataset)
    SubwordSampling.of(recipe, dataset.codec)  # rank 0 reports its errors, once
    Noise.of(recipe, dataset)
    make_validation_metrics(recipe.validation, dataset.codec)
    return dataset


def check_positions(recipe: TrainRecipe, dataset: Dataset) -> None:
    """Raise ConfigError if a sentence is longer than the model's learned positions."""
    counts = dataset.manifest["counts"]
    longest = max(
        counts[part][side]["longest"]
        for part in ("train", "valid")
        for side in ("source", "target")
    )
    limit = recipe.model.longest_sequence
    if longest > limit:
        raise ConfigError(
            f"the longest sentence has {longest} tokens, more than the {limit} learned positions; "
            f"set --max-positions to at least {longest}"
        )


def _open_same_dataset(recipe: TrainRecipe, data_dir: Path, ranks: Ranks) -> Dataset:
    """Open the dataset; DamagedError if rank 0 has another one."""
    opened = cache(lambda: open_dataset(recipe, data_dir))  # so rank 0 verifies it only once
    fingerprint = ranks.run_on_first(lambda: opened().fingerprint)
    if opened().fingerprint != fingerprint:
        raise DamagedError(
            f"{data_dir}: not the dataset that rank 0 trains on; give all ranks the same dataset"
        )
    return opened()


def _saved_values(checkpoint: Resumable | None) -> dict[str, Any]:
    """Return the values of a checkpoint's training state; none for a new run."""
    return checkpoint.state_values if checkpoint else {}


def _truncated_validations(folder: RunFolder, progress: Progress) -> list[dict[str, Any]]:
    """Drop the log records after the last checkpoint, and return the fields of the validations.

    The updates of the dropped records run again. Ranks decide by scores, so no samples are sent.
    """
    log = MetricsLog(folder.metrics_path)
    log.drop_after(progress.update)
    return [asdict(replace(record, samples=[])) for record in log.validations()]


def _report_complete(
    folder: RunFolder, progress: Progress, history: ValidationHistory, reporter: ProgressReporter
) -> None:
    """Report that the run is complete, and set `best`: a killed session may not have done so."""
    point_best_or_report(folder, history.best_first(), reporter.message)
    reporter.message(
        f"already complete after update {progress.update}; to continue, raise the setting that "
        "ended it: --max-updates, --max-epochs, --max-minutes or --patience"
    )


def _logs(recipe: TrainRecipe, folder: RunFolder, session: SessionRecord) -> list[Log]:
    metrics = MetricsLog(folder.metrics_path)
    metrics.begin(session)
    if not recipe.logging.tensorboard:
        return [metrics]
    return [metrics, TensorboardLog(folder.tensorboard_dir, session.update)]


@contextmanager
def _locked(folder: RunFolder, ranks: Ranks) -> Iterator[None]:
    """Hold the lock of the run, on rank 0, while the context lasts."""
    with ExitStack() as held:
        ranks.run_on_first(lambda: held.enter_context(folder.locked()))
        yield


def _fit(trainer: Trainer, validations: Sequence[ValidationRecord]) -> None:
    """Train to the end; nothing is written after the lock is released."""
    context, progress = trainer.context, trainer.train_state.progress
    max_updates = context.recipe.training.max_updates
    with closing(context.reporter), closing(trainer):
        context.reporter.start(max_updates, progress.update, validations)
        if context.parents and not progress.update:
            trainer.begin()
        trainer.fit()
    context.reporter.message(f"done after update {progress.update}")
