"""The composition root of training: from a recipe, a dataset and a folder to a run.

`train` decides everything before it makes the trainer: device, precision, where the run
continues, and the number of micro-batches per update.
"""

import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote

import torch

from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training_rules import with_alignment_head
from nmtkit.data.batch import eos_batch, make_batch
from nmtkit.data.binary import Dataset
from nmtkit.data.languages import language_identifier
from nmtkit.data.sampler import (
    check_budget,
    describe_directions,
    direction_pairs,
    epoch_tokens,
    with_temperature,
)
from nmtkit.errors import RESTORE, ConfigError, DamagedError
from nmtkit.model.kernels import unpadded
from nmtkit.model.transformer import Transformer
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import Log, SessionRecord, ValidationRecord
from nmtkit.progress.reporter import ProgressReporter, make_reporter
from nmtkit.progress.tensorboard import TensorboardLog
from nmtkit.runtime.devices import (
    background_thread,
    choose_precision,
    device_name,
    make_deterministic,
    set_up,
)
from nmtkit.runtime.processor import keep_freed_memory, processor_name
from nmtkit.signals import StopRequest
from nmtkit.storage.checkpoint import Resumable, clear_leftovers, read_resumable
from nmtkit.storage.json_data import JsonError, decode
from nmtkit.storage.manifest import hash_of_content
from nmtkit.storage.run_folder import RunFolder
from nmtkit.text.codec import TextCodec
from nmtkit.training.checkpointing import open_newest_checkpoint, point_best_or_report, restore
from nmtkit.training.distributed import Ranks, end_with_launcher, join_ranks
from nmtkit.training.fit_memory import decide_micro_batches
from nmtkit.training.initialization import Origin, Parent, no_weights
from nmtkit.training.micro_batches import initial_seed
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import describe_frozen, freeze, highest_learning_rate
from nmtkit.training.state import (
    Progress,
    RunContext,
    TrainState,
    is_complete,
    needs_validation,
)
from nmtkit.training.text_hook import TrainingText
from nmtkit.training.trainer import Trainer
from nmtkit.training.updates import UpdateLoader, open_updates
from nmtkit.training.validation import (
    ValidationHistory,
    Validator,
    check_symbols,
    make_validation_metrics,
    validated_directions,
)
from nmtkit.version import __version__

SHARED_FOLDER_S, SHARED_FOLDER_POLL_S = 60.0, 0.2
"""Longest time until all machines see what one has made in a shared folder; interval of looking."""


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
    recipe = with_alignment_head(recipe)
    keep_freed_memory()
    device = set_up(recipe.runtime)
    if recipe.engine.deterministic:
        make_deterministic()
    with StopRequest() as stop, join_ranks(device, recipe.ranks.rank_timeout, clock) as ranks:
        reporter = make_reporter(sys.stderr) if ranks.is_first else ProgressReporter()
        reporter.message(f"verifying the dataset {data_dir}")
        dataset = ranks.read(
            "dataset",
            lambda: open_dataset(recipe, data_dir),
            lambda one: one.fingerprint + one.valid_fingerprint,
        )
        ranks.run_on_first(lambda: RunFolder.create_or_open(run_dir))
        folder = RunFolder(run_dir)
        ranks.run_on_all(lambda: await_shared(folder, clock))
        with _locked(folder, ranks):
            begun = _read_run(recipe, dataset, folder, parent, ranks, reporter.message)
            progress = _progress_of(begun.checkpoint) if begun.checkpoint else Progress()
            history = ValidationHistory(recipe.validation.best_metric, begun.validations)
            if is_complete(recipe, progress, history) and not needs_validation(
                recipe, progress, history
            ):
                ranks.run_on_first(lambda: _report_complete(folder, progress, history, reporter))
                ranks.run_on_first(lambda: folder.write_recipe(recipe))
                return
            session = describe_session(progress.update, dataset, device, ranks)
            context = RunContext(
                recipe=recipe,
                dataset=dataset,
                folder=folder,
                device=device,
                low_precision=choose_precision(
                    recipe.engine.precision, device, recipe.model.model_size
                ),
                ranks=ranks,
                stop=stop,
                reporter=reporter,
                logs=_logs(recipe, folder, session) if ranks.is_first else (),
                parents=begun.origin.parents,
                clock=clock,
            )
            train_state = make_train_state(context, progress, begun.origin.copy_to)
            restore(train_state, begun.checkpoint)
            begun.checkpoint = None  # the training state has copies of its tensors
            ranks.run_on_first(lambda: folder.write_recipe(recipe))
            trainer = make_trainer(context, train_state, history)
            announce(trainer)
            if describe is not None:
                reporter.message(describe(recipe.model, dataset.codec))
            _fit(trainer, begun.validations)


def make_trainer(
    context: RunContext, train_state: TrainState, history: ValidationHistory
) -> Trainer:
    """Make the trainer of a run, with a number of micro-batches that fits into memory.

    Raises:
        StoppedError, InterruptedByUserError: a signal requested a stop.
        ConfigError, ResourceError: see `decide_micro_batches`.
    """
    recipe, dataset, ranks = context.recipe, context.dataset, context.ranks
    objective = Objective(train_state.model, recipe.training, context.low_precision).train()
    schedule = decide_micro_batches(context, train_state, objective)
    context.end_if_stop_requested(train_state.progress.update)
    example = eos_batch([1, 1], [1, 1], context.device)
    parallel = ranks.wrap(objective, lambda module: module(example).loss.backward())
    validator = Validator(
        Objective(train_state.published, recipe.training, context.low_precision),
        dataset,
        recipe.search,
        make_validation_metrics(
            recipe.validation,
            dataset.codec,
            validated_directions(dataset),
            context.reporter.message,
        ),
        recipe.training.max_tokens or recipe.training.update_tokens // schedule.initial,
        context.reporter.message,
        ranks,
    )
    loader = make_loader(recipe, dataset, ranks, context.device)
    return Trainer(context, train_state, parallel, schedule, loader, validator, history)


def make_loader(
    recipe: TrainRecipe, dataset: Dataset, ranks: Ranks, device: torch.device
) -> UpdateLoader:
    """Make the loader of a rank's updates."""
    open_stream, is_ahead = open_updates(recipe, dataset, ranks.rank, ranks.size, device.type)
    background = background_thread("loader") if is_ahead else None
    return UpdateLoader(open_stream, partial(make_batch, device=device), background)


def make_train_state(
    context: RunContext,
    progress: Progress,
    initialize: Callable[[Transformer], Iterable[str]] = no_weights,
) -> TrainState:
    """Make the training state before the first update: a new model and its optimiser.

    Args:
        context: of the run.
        progress: of the run.
        initialize: copies weights into the model, and yields lines to report.

    Raises:
        ConfigError: --freeze leaves nothing to train.
        DamagedError: the weights to copy are damaged.
    """
    recipe, codec = context.recipe, context.dataset.codec
    torch.manual_seed(initial_seed(recipe.seed.seed))
    model = Transformer(
        recipe.model,
        codec.source.size,
        codec.target.size,
        codec.is_shared,
        activation_checkpointing=recipe.engine.activation_checkpointing,
    )
    for line in context.ranks.run_on_all(lambda: [*initialize(model)]):
        context.reporter.message(line)
    if parts := recipe.training.freeze:
        freeze(model, parts)
        context.reporter.message(context.ranks.run_on_all(lambda: describe_frozen(model, parts)))
    return TrainState.of(model.to(context.device), recipe.training, progress)


def await_shared(folder: RunFolder, clock: Callable[[], float]) -> None:
    """Wait until this rank sees the folder that rank 0 has made.

    Raises:
        ConfigError: it does not appear in time.
    """
    deadline = clock() + SHARED_FOLDER_S
    while not folder.checkpoints_dir.is_dir():
        if clock() > deadline:
            raise ConfigError(
                f"{folder.path}: not the folder that rank 0 has made; give --out in a folder that "
                "all machines share"
            )
        time.sleep(SHARED_FOLDER_POLL_S)


def open_dataset(recipe: TrainRecipe, data_dir: Path) -> Dataset:
    """Open a dataset, and check that the recipe can train on it.

    Raises:
        ConfigError: a pair is too long for an update or for learned positions; or noise, subword
            sampling, annotations or a metric do not fit the dataset.
        DamagedError: the dataset is damaged.
    """
    temperature = recipe.training.sampling_temperature
    dataset = with_temperature(Dataset.open(data_dir), temperature)
    if temperature != 1 and len({*dataset.directions}) < 2:
        raise ConfigError(
            f"sampling_temperature ({temperature:g}) has no effect: {data_dir} has one direction; "
            "leave it out [training.sampling_temperature]"
        )
    weight = recipe.training.guided_alignment_weight
    if weight and not dataset.has_links:
        raise ConfigError(
            f"guided_alignment_weight ({weight}) needs word alignments, and {data_dir} has none; "
            "make it with `nmtkit preprocess --alignments`, or leave the weight out "
            "[training.guided_alignment_weight]"
        )
    check_budget(dataset.train, recipe.training.update_tokens)
    check_positions(recipe, dataset)
    TrainingText.of(recipe, dataset)  # errors are those of the recipe
    directions = validated_directions(dataset)
    # Missing packages are reported later.
    if make_validation_metrics(recipe.validation, dataset.codec, directions, lambda _: None):
        check_symbols(dataset)
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


@dataclass
class _Begun:
    """The state of a run when a session begins, as every rank reads it.

    Attributes:
        checkpoint: the checkpoint from which it continues; None for a new run.
        origin: the origin of its weights.
        validations: up to this checkpoint.
    """

    checkpoint: Resumable | None
    origin: Origin
    validations: Sequence[ValidationRecord]


def _read_run(
    recipe: TrainRecipe,
    dataset: Dataset,
    folder: RunFolder,
    parent: Parent | None,
    ranks: Ranks,
    warn: Callable[[str], None],
) -> _Begun:
    """Read a run, after rank 0 has dropped what is left over from updates that run again."""
    ranks.run_on_first(lambda: clear_leftovers(folder, warn))

    def open_newest() -> Resumable | None:
        return open_newest_checkpoint(folder, recipe, dataset, warn) if ranks.is_first else None

    newest = ranks.run_on_all(open_newest)
    # The others read the same one by its name: their listing of a shared folder may be old.
    update = ranks.gather(newest.update if newest else -1)[0]
    checkpoint = newest
    if update >= 0:
        checkpoint = ranks.read(
            "checkpoint",
            lambda: newest or read_resumable(folder.model_dir(update)),
            lambda one: one.fingerprint,
        )
    origin = ranks.read(
        "parent",
        lambda: Origin.find(parent, folder.path, recipe.model, dataset, checkpoint),
        lambda one: hash_of_content({"parents": one.parents}),
    )
    log = MetricsLog(folder.metrics_path)

    def rewind() -> None:
        if checkpoint is not None:
            folder.point_last(checkpoint.update)
        log.drop_after(checkpoint.update if checkpoint else 0)

    ranks.run_on_first(rewind)
    validations = ranks.read(
        "log",
        log.validations,
        lambda found: json.dumps([[one.update, one.nll, one.scores] for one in found]),
    )
    return _Begun(checkpoint, origin, validations)


def _progress_of(checkpoint: Resumable) -> Progress:
    """Return the progress at a checkpoint; DamagedError if its training state has none."""
    try:
        return decode(Progress, checkpoint.state_values)
    except JsonError as error:
        raise DamagedError(f"{checkpoint.path}: its training state: {error}; {RESTORE}") from None


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
    context.reporter.message(_done(context, progress.update))


def _done(context: RunContext, update: int) -> str:
    """Return the last line of a run: its best checkpoint, and the next command."""
    best, run, data = context.folder.best(), context.folder.path, context.dataset.folder
    named = f"; the best checkpoint is {best}" if best else ""
    command = f"translate {quote(str(run))} < TEXT"
    if not context.recipe.training.is_averaged:
        paths = f"{quote(str(run))} --data {quote(str(data))}"
        command = f"average-checkpoints {paths} --out MODEL"
    return f"done after update {update}{named}; next: `nmtkit {command}`"


def announce(trainer: Trainer) -> None:
    """Report the sizes of model and data, the devices, and where the run continues."""
    context, progress = trainer.context, trainer.train_state.progress
    recipe, dataset = context.recipe, context.dataset
    parameters = sum(p.numel() for p in trainer.train_state.model.parameters())
    planned, warmup = planned_updates(recipe, dataset), recipe.training.warmup_updates
    peak = highest_learning_rate(recipe.model.model_size, recipe.training, planned)
    precision = context.low_precision or torch.float32
    context.reporter.message(
        f"parameters={parameters} pairs={dataset.num_train_pairs} "
        f"source_entries={dataset.codec.source.size} target_entries={dataset.codec.target.size} "
        f"peak_learning_rate={peak:.3g} "
        f"device={context.device} ranks={context.ranks.size} threads={torch.get_num_threads()} "
        f"micro_batches={trainer.schedule.at(progress.update + 1)} "
        f"precision={str(precision).removeprefix('torch.')} "
        f"attention={_attention(recipe.model, context.device, precision)}"
    )
    for line in describe_directions(dataset):
        context.reporter.message(line)
    if dataset.directions and trainer.validator.metrics and not language_identifier():
        context.reporter.message(
            "the languages of validation outputs are not measured; `pip install 'nmtkit[audit]'` "
            "adds that"
        )
    if planned < warmup:
        end = "max_updates" if planned == recipe.training.max_updates else "max_epochs"
        about = "" if end == "max_updates" else f", about {planned:,} updates"
        context.reporter.message(
            f"the run ends within its warm-up of {warmup:,} updates, with a learning rate of "
            f"{peak:.3g}: {end} is {getattr(recipe.training, end):,}{about}; give more "
            f"--{end.replace('_', '-')}, or fewer --warmup-updates in a new run"
        )
    if progress.update:
        context.reporter.message(f"continuing after update {progress.update}")


def describe_session(
    update: int, dataset: Dataset, device: torch.device, ranks: Ranks
) -> SessionRecord:
    """Describe when, on what and with what a session starts after an update."""
    return SessionRecord(
        update=update,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        data=str(dataset.folder),
        device=device_name(device),
        processor=processor_name(),
        threads=torch.get_num_threads(),
        ranks=ranks.size,
        nmtkit=__version__,
        torch=torch.__version__,
        python=platform.python_version(),
        directions=direction_pairs(dataset) if dataset.directions else {},
    )


def planned_updates(recipe: TrainRecipe, dataset: Dataset) -> int:
    """Return the number of updates until --max-updates or --max-epochs ends the run.

    Epochs are counted as if each update had --update-tokens on one side; they have a few percent
    more updates.
    """
    training = recipe.training
    if not training.max_epochs:
        return training.max_updates
    of_epochs = math.ceil(training.max_epochs * epoch_tokens(dataset) / training.update_tokens)
    return min(training.max_updates, of_epochs)


def _attention(config: ModelConfig, device: torch.device, precision: torch.dtype) -> str:
    """Return the implementation of self-attention: flash, windowed or padded."""
    if unpadded.is_flash_supported(device, precision, config.head_sizes, config.attention_dropout):
        return "flash"
    return "windowed" if config.window else "padded"
