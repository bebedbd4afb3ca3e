"""The composition root of training: a recipe, a dataset and a folder become a run.

Read `train` from top to bottom: it builds the parts and hands them to the trainer.
"""

import sys
from pathlib import Path

import torch

from nmtkit.checkpoint import Resumable, RunFolder
from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Sampler, check_budget
from nmtkit.durable import locked
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model.transformer import Transformer
from nmtkit.model_folder import restore_parameters
from nmtkit.progress import MetricsLog, ProgressReporter, make_reporter
from nmtkit.runtime import set_up
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import learning_rate, make_adam, restore_optimizer
from nmtkit.training.saving import Saver, Trained
from nmtkit.training.seeds import initial_seed
from nmtkit.training.state import RunState
from nmtkit.training.stopping import StopRequest
from nmtkit.training.trainer import Parts, Trainer
from nmtkit.training.validation import Validator


def train(recipe: TrainRecipe, data_dir: Path, run_dir: Path) -> None:
    """Train a model, or go on with a run that stopped.

    Args:
        recipe: all settings.
        data_dir: a dataset made by `nmtkit preprocess`.
        run_dir: the run's folder; created if it does not exist, continued if it does.

    Raises:
        ConfigError: the folder holds another run, or something else.
        DamagedError: the dataset or every checkpoint is damaged.
        StoppedError, InterruptedByUserError, DivergedError, ResourceError: see `Trainer.fit`.
    """
    device = set_up(recipe.runtime)
    dataset = Dataset.open(data_dir)
    check_budget(dataset.train, recipe.training.update_tokens)
    check_positions(recipe, dataset)
    folder = RunFolder.create_or_open(run_dir)
    reporter = make_reporter(sys.stderr)
    with locked(run_dir), StopRequest() as stop:
        parts = build(recipe, dataset, folder, reporter, stop, device)
        state = resume(parts, folder)
        folder.write_recipe(recipe)
        trainer = Trainer(parts, state)
        if trainer.history.best_update:  # a session may have been killed before it said so
            parts.saver.point_best(trainer.history.best_update)
        if trainer.is_finished() and not trainer.owes_validation():
            reporter.message(
                f"already complete after update {state.update}; to go on, raise what ended it: "
                "--max-updates, --max-epochs, --max-minutes or --patience"
            )
            return
        _announce(parts, state)
        try:
            trainer.fit()
        finally:
            reporter.close()
        reporter.message(f"done after update {state.update}")


def build(
    recipe: TrainRecipe,
    dataset: Dataset,
    folder: RunFolder,
    reporter: ProgressReporter,
    stop: StopRequest,
    device: torch.device,
) -> Parts:
    """Build the parts of a trainer, its parameters as they are before the first update."""
    codec, training = dataset.codec, recipe.training
    torch.manual_seed(initial_seed(recipe.seed.seed))
    model = Transformer(recipe.model, codec.source.size, codec.target.size, codec.is_shared)
    objective = Objective(model.to(device), training.label_smoothing)
    optimizer = make_adam(model, training)
    search = recipe.search if recipe.validation.validate_bleu else None
    trained = Trained(model, optimizer, recipe, codec, {"dataset": dataset.fingerprint})
    return Parts(
        recipe=recipe,
        dataset=dataset,
        sampler=Sampler(dataset.train, training.update_tokens, recipe.seed.seed),
        objective=objective,
        optimizer=optimizer,
        validator=Validator(objective, dataset, search, training.max_tokens, reporter.message),
        saver=Saver(folder, trained, reporter),
        reporter=reporter,
        log=MetricsLog(folder.metrics_path),
        stop=stop,
    )


def resume(parts: Parts, folder: RunFolder) -> RunState:
    """Put the newest whole checkpoint into the parts; returns where the run stands."""
    state = RunState()
    resumable = folder.newest_resumable(parts.reporter.message)
    if resumable is not None:
        check_same_run(resumable, parts.recipe, parts.dataset)
        model = parts.objective.model
        restore_parameters(model, resumable.model, resumable.path)
        restore_optimizer(parts.optimizer, model, resumable.state_tensors)
        state = RunState.from_json(resumable.state_values)
    parts.log.cut(state.update)
    return state


def check_same_run(resumable: Resumable, recipe: TrainRecipe, dataset: Dataset) -> None:
    """Refuse to continue a run with settings or data that would make it another one."""
    fields, old, new = fields_of(TrainRecipe), values_of(resumable.recipe), values_of(recipe)
    changed = [
        f"{name} was {old[name]!r} and is now {new[name]!r}"
        for name, field in fields.items()
        if field.setting.on_resume == "fixed" and old[name] != new[name]
    ]
    if changed:
        raise ConfigError(
            f"{resumable.path.parent.parent}: cannot continue this run with other settings: "
            f"{'; '.join(changed)}; run the same command again, or choose another --out"
        )
    if resumable.provenance["dataset"] != dataset.fingerprint:
        raise DamagedError(
            f"{resumable.path.parent.parent}: this run was begun with other data or another "
            "vocabulary; give it its own dataset, or choose another --out"
        )


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


def _announce(parts: Parts, state: RunState) -> None:
    """Say what is trained and where the run begins."""
    recipe, dataset, reporter = parts.recipe, parts.dataset, parts.reporter
    parameters = sum(p.numel() for p in parts.objective.parameters())
    warmup = recipe.training.warmup_updates
    peak = learning_rate(warmup, recipe.model.model_size, recipe.training)
    pairs = sum(len(shard) for shard in dataset.train)
    reporter.message(
        f"parameters={parameters} pairs={pairs} source_entries={dataset.codec.source.size} "
        f"target_entries={dataset.codec.target.size} peak_learning_rate={peak:.3g} "
        f"device={parts.objective.model.output_weight.device} threads={torch.get_num_threads()}"
    )
    if state.update:
        reporter.message(f"continuing after update {state.update}")
    reporter.start(recipe.training.max_updates, state.update)
