"""The composition root of training: a recipe, a dataset and a folder become a run.

Read `train` from top to bottom: it builds the parts and hands them to the trainer.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from nmtkit.checkpoint import RunFolder
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import ModelConfig
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import check_budget
from nmtkit.durable import locked
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model import flash
from nmtkit.model.layers import attention_shape
from nmtkit.model.transformer import Transformer
from nmtkit.progress import ProgressReporter, SilentReporter, make_reporter
from nmtkit.records import Log, MetricsLog
from nmtkit.runtime import (
    forget_peak,
    low_precision,
    make_deterministic,
    multiplies_bfloat16,
    set_up,
)
from nmtkit.training.compiling import compile_if_wanted
from nmtkit.training.distributed import Ranks, end_with_launcher, joined
from nmtkit.training.learner import Learner
from nmtkit.training.memory import Extremes, pieces_that_fit, room_for_moments, slots_that_fit
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import learning_rate
from nmtkit.training.pieces import Pieces
from nmtkit.training.plan import make_plan
from nmtkit.training.reading import Reader
from nmtkit.training.resuming import decide_slots, resume
from nmtkit.training.saving import Saver, Trained
from nmtkit.training.seeds import initial_seed
from nmtkit.training.segmentation import Segmentation
from nmtkit.training.slots import Cut
from nmtkit.training.state import RunState
from nmtkit.training.stopping import StopRequest
from nmtkit.training.tensorboard import TensorboardLog
from nmtkit.training.trainer import Parts, Trainer
from nmtkit.training.updating import Updater
from nmtkit.training.validation import Validator, make_validation_metrics

WIDE = 256
"""The model size from which on a CPU gains by bfloat16, if it has instructions for it.

In narrower models, what is between the products takes most of the time.
"""


@dataclass(frozen=True)
class Scene:
    """What a run is given: settings, data, a place, and whom to listen and talk to."""

    recipe: TrainRecipe
    dataset: Dataset
    folder: RunFolder
    device: torch.device
    ranks: Ranks
    reporter: ProgressReporter
    stop: StopRequest


def train(recipe: TrainRecipe, data_dir: Path, run_dir: Path) -> None:
    """Train a model, or go on with a run that stopped, together with the other ranks.

    Args:
        recipe: all settings.
        data_dir: a dataset made by `nmtkit preprocess`.
        run_dir: the run's folder; created if it does not exist, continued if it does.

    Raises:
        ConfigError: the folder holds another run, or something else.
        DamagedError: the dataset or every checkpoint is damaged; or ranks have other datasets.
        StoppedError, InterruptedByUserError, DivergedError, ResourceError, LostRankError,
            ToldElsewhereError: see `Trainer.fit`.
    """
    end_with_launcher()
    device = set_up(recipe.runtime)
    if recipe.engine.deterministic:
        make_deterministic()
    with StopRequest() as stop, joined(device, recipe.ranks.rank_timeout) as ranks:
        dataset = _open_alike(recipe, data_dir, ranks)
        folder = ranks.share(lambda: RunFolder.create_or_open(run_dir))
        reporter = make_reporter(sys.stderr) if ranks.is_first else SilentReporter()
        with _locked(run_dir, ranks):
            scene = Scene(recipe, dataset, folder, device, ranks, reporter, stop)
            learner = make_learner(recipe, dataset, device)
            progress = ranks.share(
                lambda: resume(folder, learner, recipe, dataset, reporter.message)
            )
            learner.copy_from_first(ranks, progress.tensors)
            parts = build(scene, learner, progress.state)
            ranks.share(lambda: folder.write_recipe(recipe))
            _run(scene, Trainer(parts, progress.state, progress.validations))


def plan(recipe: TrainRecipe, data_dir: Path) -> Iterator[str]:
    """Yield the lines of what a run will take, after some updates that are thrown away.

    Raises:
        ConfigError, DamagedError, ResourceError: what `train` would raise at its start.
    """
    device = set_up(recipe.runtime)
    dataset = _open(recipe, data_dir)
    learner = make_learner(recipe, dataset, device)
    objective = make_objective(recipe, learner.model).train()
    told: list[str] = []
    compile_if_wanted(objective, recipe, told.append)
    yield from told
    slots = decide_slots(RunState(), recipe, num_ranks=1)
    if not slots:
        with room_for_moments(learner):
            extremes = _extremes(recipe, dataset)
            slots = slots_that_fit(objective, extremes, Ranks(), lambda: False) or 0
    stop = StopRequest()  # which hears of no signal: one ends the plan at once
    updater = Updater(objective, learner, recipe, Ranks(), stop)
    with closing(Reader.of(recipe, dataset, Ranks(), device)) as reader:
        made = make_plan(recipe, dataset, reader, updater, Cut(slots, 1))
    yield from made.lines()


def make_objective(recipe: TrainRecipe, model: Transformer) -> Objective:
    """Make what a model is trained and validated by."""
    device, precision = model.output_weight.device, recipe.engine.precision
    if precision == "auto" and device.type == "cpu" and recipe.model.model_size >= WIDE:
        precision = "bfloat16" if multiplies_bfloat16() else "float32"
    low = low_precision(precision, device)
    return Objective(model, recipe.training.label_smoothing, low)


def make_learner(recipe: TrainRecipe, dataset: Dataset, device: torch.device) -> Learner:
    """Make a model as it is before the first update, and what trains it."""
    codec = dataset.codec
    torch.manual_seed(initial_seed(recipe.seed.seed))
    model = Transformer(recipe.model, codec.source.size, codec.target.size, codec.is_shared)
    model.recomputes_layers = recipe.engine.recompute
    return Learner.of(model.to(device), recipe.training)


def build(scene: Scene, learner: Learner, state: RunState) -> Parts:
    """Build the parts of a trainer."""
    recipe, dataset, folder, ranks = scene.recipe, scene.dataset, scene.folder, scene.ranks
    reporter, training = scene.reporter, recipe.training
    objective = make_objective(recipe, learner.model)
    compile_if_wanted(objective, recipe, reporter.message)
    batch_tokens = training.max_tokens or training.update_tokens
    codec = dataset.codec
    provenance = {
        "dataset": dataset.fingerprint,
        "languages": f"{codec.source_lang}-{codec.target_lang}",
    }
    trained = Trained(learner, recipe, codec, provenance)
    return Parts(
        recipe=recipe,
        dataset=dataset,
        ranks=ranks,
        reader=Reader.of(recipe, dataset, ranks, scene.device),
        updater=Updater(objective, learner, recipe, ranks, scene.stop),
        pieces=ranks.share(lambda: Pieces(folder.path)),
        validator=Validator(
            make_objective(recipe, learner.published),
            dataset,
            recipe.search,
            make_validation_metrics(recipe.validation, codec),
            batch_tokens,
            reporter.message,
            ranks,
        ),
        saver=Saver(folder, trained, reporter, writes=ranks.is_first),
        reporter=reporter,
        logs=_logs(scene, state) if ranks.is_first else (),
        stop=scene.stop,
    )


def _run(scene: Scene, trainer: Trainer) -> None:
    """Train from where the run stands, if it is not complete."""
    state, saver, reporter = trainer.state, trainer.parts.saver, scene.reporter
    # A session may have been killed before it said so; or the best be damaged, and done again.
    saver.point_best(trainer.history.best_first())
    if trainer.is_finished() and not trainer.owes_validation():
        reporter.message(
            f"already complete after update {state.update}; to go on, raise what ended it: "
            "--max-updates, --max-epochs, --max-minutes or --patience"
        )
        return
    with trainer.meter.excluded():
        _make_room(scene, trainer)
    trainer.end_if_asked()
    if not scene.recipe.training.max_tokens:  # what was found to fit holds for validation too
        slot_tokens = scene.recipe.training.update_tokens // state.num_slots
        trainer.parts.validator.batch_tokens = slot_tokens
    _announce(scene, trainer)
    # Nothing is written once the lock is let go.
    with closing(reporter), closing(saver), closing(trainer.parts.reader):
        trainer.fit()
    reporter.message(f"done after update {state.update}")


def _make_room(scene: Scene, trainer: Trainer) -> None:
    """Decide how updates are cut, so that they fit into memory; or not, if asked to stop."""
    recipe, state, parts = scene.recipe, trainer.state, trainer.parts
    objective, ranks = parts.updater.objective, scene.ranks
    state.num_slots = ranks.share(lambda: decide_slots(state, recipe, ranks.size))
    if state.num_slots and scene.device.type != "cuda":
        return
    extremes = _extremes(recipe, scene.dataset)

    def is_stopping() -> bool:
        return scene.stop.is_requested

    with room_for_moments(parts.updater.learner):
        if not state.num_slots:
            state.num_slots = slots_that_fit(objective, extremes, ranks, is_stopping) or 0
        else:
            before = Cut(state.num_slots, parts.pieces.at(state.update + 1))
            pieces = pieces_that_fit(objective, extremes, before, ranks, is_stopping)
            if pieces and pieces > before.num_pieces:
                scene.reporter.message(f"slots do not fit into memory; each is cut in {pieces}")
                parts.pieces.cut(state.update + 1, pieces, writes=ranks.is_first)
    forget_peak(scene.device)


def _extremes(recipe: TrainRecipe, dataset: Dataset) -> Extremes:
    """Find what needs the most memory, as training reads it."""
    segmentation = Segmentation.of(recipe, dataset.codec)
    extremes = Extremes.of(dataset.train, recipe.training.update_tokens)
    growth = segmentation.growth(next(shard for shard in dataset.train if len(shard)))
    return extremes.grown(growth, segmentation.longest)


def _logs(scene: Scene, state: RunState) -> list[Log]:
    logs: list[Log] = [MetricsLog(scene.folder.metrics_path)]
    if scene.recipe.logging.tensorboard:
        logs.append(TensorboardLog(scene.folder.path, state.update))
    return logs


@contextmanager
def _locked(run_dir: Path, ranks: Ranks) -> Iterator[None]:
    """Have rank 0 hold the lock of the run for all."""
    with ExitStack() as held:
        ranks.share(lambda: held.enter_context(locked(run_dir)))
        yield


def _open_alike(recipe: TrainRecipe, data_dir: Path, ranks: Ranks) -> Dataset:
    """Open the dataset, which must be that of rank 0."""
    opened = cache(lambda: _open(recipe, data_dir))  # by rank 0, too, once: it is verified then
    fingerprint = ranks.share(lambda: opened().fingerprint)
    if opened().fingerprint != fingerprint:
        raise DamagedError(
            f"{data_dir}: is another dataset here than rank 0 trains on; give all ranks the same"
        )
    return opened()


def _open(recipe: TrainRecipe, data_dir: Path) -> Dataset:
    dataset = Dataset.open(data_dir)
    check_budget(dataset.train, recipe.training.update_tokens)
    check_positions(recipe, dataset)
    Segmentation.of(recipe, dataset.codec)  # rank 0 alone tells what it raises
    make_validation_metrics(recipe.validation, dataset.codec)
    return dataset


def check_positions(recipe: TrainRecipe, dataset: Dataset) -> None:
    """Refuse data that is longer than the positions that a model can learn."""
    counts = dataset.manifest["counts"]
    longest = max(
        counts[part][side]["longest"]
        for part in ("train", "valid")
        for side in ("source", "target")
    )
    limit = recipe.model.max_positions
    if recipe.model.positions == "learned" and longest > limit:
        raise ConfigError(
            f"the longest sentence has {longest} tokens, more than the {limit} learned positions; "
            f"set --max-positions to at least {longest}"
        )


def _announce(scene: Scene, trainer: Trainer) -> None:
    """Say what is trained, how, and where the run begins."""
    recipe, dataset, reporter, state = scene.recipe, scene.dataset, scene.reporter, trainer.state
    objective = trainer.parts.updater.objective
    parameters = sum(p.numel() for p in objective.parameters())
    warmup = recipe.training.warmup_updates
    peak = learning_rate(warmup, recipe.model.model_size, recipe.training)
    precision = objective.low_precision or torch.float32
    reporter.message(
        f"parameters={parameters} pairs={dataset.num_train_pairs} "
        f"source_entries={dataset.codec.source.size} target_entries={dataset.codec.target.size} "
        f"peak_learning_rate={peak:.3g} "
        f"device={scene.device} ranks={scene.ranks.size} threads={torch.get_num_threads()} "
        f"slots={state.num_slots} precision={str(precision).removeprefix('torch.')} "
        f"attention={_attention(recipe.model, scene.device, precision)} "
        f"compile={'on' if objective.is_compiled else 'off'}"
    )
    if state.update:
        reporter.message(f"continuing after update {state.update}")
    reporter.start(recipe.training.max_updates, state.update, trainer.validations)


def _attention(config: ModelConfig, device: torch.device, precision: torch.dtype) -> str:
    """Return what computes self-attention, as it is announced."""
    *_, key_size, value_size, dropout = attention_shape(config)
    if flash.takes(device, precision, (key_size, value_size), dropout):
        return "flash"
    return "windowed" if config.window else "padded"
