"""Checkpoints of a run to average: the last or the best; their mean next to the best checkpoint.

The last ones are scheduled checkpoints (--save-every), because these are evenly spaced, and the
newest. The best ones are any that were validated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from nmtkit.config.metrics import NLL, cost
from nmtkit.config.schema import RuntimeConfig
from nmtkit.config.training import SCHEDULE_FREE
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.evaluation.metric import Metric
from nmtkit.progress.counting import WorkReporter
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import ValidationProgress, plain_scores
from nmtkit.runtime.devices import choose_precision, set_up
from nmtkit.runtime.processor import keep_freed_memory
from nmtkit.storage.checkpoint import list_checkpoints, newest_saves
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.model_description import FORMAT, VERSION, describe_model
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RunFolder, find_model, is_run
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective
from nmtkit.training.validation import (
    ShowProgress,
    Validation,
    ValidationHistory,
    Validator,
    make_validation_metrics,
    validated_directions,
)
from nmtkit.units import counted, perplexity

NUM_CHECKPOINTS = 5
"""Checkpoints of a mean without a number, at most. Source: paper, section 6.1."""

CONVERGED_FALL = 0.01
"""Largest relative fall of nll across the checkpoints of a mean that raises no doubt."""


def choose(
    run: Path,
    last: int | None,
    best: int | None,
    report: Callable[[str], None],
    warn: Callable[[str], None],
) -> list[Path]:
    """Return checkpoints of a run to average, oldest first; report them, and warn of doubts.

    Args:
        run: folder of the run.
        last, best: number of newest or best ones; without both, see `last_checkpoints`.
        report: prints a line.
        warn: prints a warning.

    Raises:
        ConfigError, DamagedError: see `last_checkpoints` and `best_checkpoints`.
    """
    chosen = best_checkpoints(run, best, warn) if best else last_checkpoints(run, last)
    updates = ", ".join(str(int(folder.name)) for folder in chosen)
    report(f"averaging {counted(len(chosen), 'checkpoints')} of {run}: update {updates}")
    for doubt in _doubts(run, chosen):
        warn(f"{run}: {doubt}")
    return chosen


def last_checkpoints(run: Path, count: int | None) -> list[Path]:
    """Return the newest saves of a run, oldest first: the scheduled ones, and the newest of all.

    Args:
        run: folder of the run.
        count: number of checkpoints; None = at most `NUM_CHECKPOINTS`, none of them from before
            half of the last update.

    Raises:
        ConfigError: there is no such run, or it has fewer than `count`.
        DamagedError: one of these checkpoints, or a newer one, is damaged; or there are none.
    """
    saves = newest_saves(_open(run), count or NUM_CHECKPOINTS)
    if count is None:
        saves = [one for one in saves if 2 * one.update >= saves[-1].update]
    elif len(saves) < count:
        raise ConfigError(
            f"{run}: has {counted(len(saves), 'checkpoints')} of --save-every or its stop, fewer "
            f"than {count}; leave --last out to average those that suit, or train with a smaller "
            "--save-every or a larger --keep"
        )
    return [one.path for one in saves]


def best_checkpoints(run: Path, count: int, report: Callable[[str], None]) -> list[Path]:
    """Return the checkpoints of a run with the best validations, oldest first.

    The run's best_metric compares them; of equal ones, the earlier is used.

    Args:
        run: folder of the run.
        count: number of checkpoints.
        report: prints a line about better checkpoints that were not kept.

    Raises:
        ConfigError: there is no such run, or fewer of its checkpoints were validated.
        DamagedError: a checkpoint, or the log of the run, is damaged.
    """
    folder = _open(run)
    kept = {one.update: one.path for one in list_checkpoints(folder)}
    metric = describe_model(find_model(run)).recipe.validation.best_metric
    history = ValidationHistory(metric, MetricsLog(folder.metrics_path).validations())
    # Update 0 is the model that the run began with.
    best_first = [update for update in history.best_first() if update > 0]
    validated = [update for update in best_first if update in kept]
    if len(validated) < count:
        raise ConfigError(
            f"{run}: has {len(validated)} checkpoints that were validated, fewer than {count}; "
            "ask for fewer, or train with a smaller --validate-every or a larger --keep-best"
        )
    pruned = [update for update in best_first[:count] if update not in kept]
    if pruned:
        report(
            f"{run}: validation was better after updates {', '.join(map(str, pruned))}, whose "
            f"checkpoints were not kept; train with --keep-best {count}"
        )
    return [kept[update] for update in sorted(validated[:count])]


def open_validation_set(run: Path, chosen: Sequence[Path], data_dir: Path) -> Dataset:
    """Open the dataset of a run, to validate the mean of some of its checkpoints.

    Raises:
        ConfigError: there is no such run.
        DamagedError: a checkpoint or the dataset is damaged, or the run has another dataset.
    """
    _open(run)
    dataset = Dataset.open(data_dir)
    for folder in {*chosen, find_model(run)}:
        _check_trained_on(folder, dataset, data_dir)
    return dataset


def compare_with_best(run: Path, mean: Path, dataset: Dataset, reporter: WorkReporter) -> None:
    """Validate a mean and the best single checkpoint of its run, and report which one to use.

    Both are validated as in training, and compared by the run's best metric, then by nll.

    Args:
        run: folder of the run; its last checkpoint is used if none was validated.
        mean: model folder of the mean.
        dataset: see `open_validation_set`.
        reporter: receives the results, warnings, and the progress.

    Raises:
        DamagedError: a model is damaged.
    """
    keep_freed_memory()
    device, single = set_up(RuntimeConfig()), find_model(run)
    config, costs = describe_model(single).recipe.validation, []
    metric = config.best_metric
    directions = validated_directions(dataset)
    metrics = make_validation_metrics(config, dataset.codec, directions, reporter.message)
    for model, name in ((mean, "mean"), (single, f"checkpoint {int(single.name)}")):
        reporter.message(f"validating the {name}")
        one = _validate(model, dataset, metrics, device, reporter)
        reporter.message(
            f"{name}: nll={one.nll:.4f} perplexity={perplexity(one.nll):.2f} "
            f"{plain_scores(one.scores)}".rstrip()
        )
        costs.append((cost(metric, one.nll, one.scores), cost(NLL, one.nll, one.scores)))
    if costs[0] <= costs[1]:
        reporter.message(f"by {metric} the mean is at least as good; translate with {mean}")
    else:
        reporter.message(
            f"by {metric} the single checkpoint is better; translate with {run}, average fewer "
            "checkpoints (--last N), or train longer"
        )


def _doubts(run: Path, chosen: Sequence[Path]) -> Iterator[str]:
    """Yield why the mean of checkpoints may be no better than the best one, and what to do."""
    first, last = int(chosen[0].name), int(chosen[-1].name)
    newest = int(RunFolder(run).model_dirs()[-1].name)
    if describe_model(chosen[-1]).recipe.training.schedule == SCHEDULE_FREE:
        if first != last:
            yield (
                "training without a schedule has averaged the weights, and the mean of its "
                f"checkpoints is usually worse than the last one; translate with {run}"
            )
        return
    if first == last:
        yield "the mean of one checkpoint is this checkpoint; train with a smaller --save-every"
    if 2 * first < newest:
        yield (
            f"update {first} is from before half of the last update, {newest}, when training had "
            "not converged; average fewer checkpoints, or leave --last and --best out"
        )
    validations = MetricsLog(RunFolder(run).metrics_path).validations()
    # Those around the checkpoints: validations may be rarer than saves.
    until_first = [number for number, one in enumerate(validations) if one.update <= first]
    until_last = [number for number, one in enumerate(validations) if one.update < last]
    within = validations[max(until_first, default=0) : len(until_last) + 1]
    if within and within[-1].nll < (1 - CONVERGED_FALL) * within[0].nll:
        yield (
            f"validation nll still falls, from {within[0].nll:.4f} after update "
            f"{within[0].update} to {within[-1].nll:.4f} after update {within[-1].update}, so the "
            "mean may be worse than the best checkpoint; train longer, or compare them with --data"
        )


def _open(run: Path) -> RunFolder:
    if not is_run(run):
        raise ConfigError(f"{run}: is not the folder of a run; --last, --best and --data need one")
    find_model(run)  # a run without checkpoints is refused
    return RunFolder(run)


def _check_trained_on(folder: Path, dataset: Dataset, data_dir: Path) -> None:
    manifest = read_manifest(folder, FORMAT, VERSION)
    facts = {
        "vocabulary": (manifest["codec"], dataset.codec.fingerprint),
        "training text": (manifest["provenance"]["dataset"], dataset.fingerprint),
    }
    for what, (trained_on, given) in facts.items():
        if trained_on != given:
            raise DamagedError(
                f"{data_dir}: its {what} is not that of {folder}; give the dataset of the run"
            )


def _validate(
    path: Path,
    dataset: Dataset,
    metrics: Mapping[str, Metric],
    device: torch.device,
    reporter: WorkReporter,
) -> Validation:
    """Validate a model with the recipe of its run."""
    loaded = load_model(path, device)
    recipe, training = loaded.recipe, loaded.recipe.training
    precision = choose_precision(
        recipe.engine.precision, device, trained_size=recipe.model.model_size
    )
    objective = Objective(loaded.model, training, low_precision=precision)
    batch_tokens = training.max_tokens or training.update_tokens
    validator = Validator(
        objective, dataset, recipe.search, metrics, batch_tokens, reporter.message, Ranks()
    )
    with _counted(reporter) as show:
        validation = validator.validate(lambda: False, show)
    assert validation is not None, "no stop is requested"
    return validation


@contextmanager
def _counted(reporter: WorkReporter) -> Iterator[ShowProgress]:
    """Enter a function that shows a validation: each of its parts is counted."""
    counting, num_done = reporter.counting("validated", "parts"), 0

    def show(progress: ValidationProgress) -> None:
        nonlocal counting, num_done
        if progress.done == 0:  # a part begins
            counting.end()
            counting = reporter.counting("validated", progress.counted, progress.total)
            num_done = 0
        counting.add(progress.done - num_done)
        num_done = progress.done

    try:
        yield show
    finally:
        counting.end()
