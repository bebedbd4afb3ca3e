"""Checkpoints of a run to average: the last N, the best N, or the last N with N by validation.

The last ones are scheduled checkpoints (--save-every), because these are evenly spaced. The best
ones are any that were validated.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nmtkit.averaging import average, load_mean
from nmtkit.config.metrics import NLL, cost
from nmtkit.config.schema import RuntimeConfig
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.progress.counting import WorkReporter
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import ValidationProgress, plain_scores
from nmtkit.runtime.devices import choose_precision, set_up
from nmtkit.storage.checkpoint import list_checkpoints, newest_scheduled
from nmtkit.storage.durable import check_is_free, read_manifest
from nmtkit.storage.model_description import FORMAT, VERSION, describe_model
from nmtkit.storage.model_path import find_model
from nmtkit.storage.run_folder import RunFolder, is_run
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective
from nmtkit.training.validation import (
    ShowProgress,
    Validation,
    ValidationHistory,
    Validator,
    make_validation_metrics,
)
from nmtkit.units import perplexity


@dataclass(frozen=True)
class _Trial:
    """Checkpoints and the validation of their mean."""

    folders: Sequence[Path]
    validation: Validation

    def cost(self, metric: str) -> tuple[float, float]:
        """Return a sort key, lower for better means: by a metric, then by nll."""
        nll, scores = self.validation.nll, self.validation.scores
        return cost(metric, nll, scores), cost(NLL, nll, scores)

    def recorded(self) -> dict[str, Any]:
        """Return the number of checkpoints and their result, for the manifest."""
        one = self.validation
        result = {"nll": one.nll, "scores": one.scores, "signatures": one.signatures}
        return {"last": len(self.folders), **result}


def last_checkpoints(run: Path, count: int) -> list[Path]:
    """Return the newest scheduled checkpoints of a run, oldest first.

    Raises:
        ConfigError: there is no such run, or it has fewer than `count`.
        DamagedError: one of these checkpoints, or a newer one, is damaged.
    """
    scheduled = newest_scheduled(_open(run), count)
    if len(scheduled) < count:
        raise ConfigError(
            f"{run}: has {len(scheduled)} scheduled checkpoints, fewer than {count}; ask for "
            "fewer, or train with a smaller --save-every or a larger --keep"
        )
    return [one.path for one in scheduled]


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


def average_best_count(
    run: Path,
    counts: Sequence[int],
    data_dir: Path,
    out: Path,
    overwrite: bool,
    reporter: WorkReporter,
) -> Sequence[Path]:
    """Write the mean of the last N checkpoints of a run, with the N that validates best.

    Each mean is validated as in training, and compared by the run's best metric, then by nll. Of
    equal ones, the first is used.

    Args:
        run: folder of the run.
        counts: numbers of checkpoints to try.
        data_dir: dataset of the run.
        out: model folder to write; its manifest has the results of all numbers.
        overwrite: replace an existing model folder.
        reporter: receives lines per number, warnings, and the progress.

    Returns:
        The checkpoints of the best mean, oldest first.

    Raises:
        ConfigError: there is no such run, it has fewer checkpoints, or `out` cannot be used.
        DamagedError: a checkpoint or the dataset is damaged, or the run has another dataset.
        ResourceError: `out` cannot be written.
    """
    check_is_free(out, FORMAT, overwrite)
    newest = last_checkpoints(run, max(counts))
    dataset = Dataset.open(data_dir)
    for folder in newest:
        _check_trained_on(folder, dataset, data_dir)
    device = set_up(RuntimeConfig())
    trials = [_validate_mean(newest[-count:], dataset, device, reporter) for count in counts]
    metric = describe_model(newest[-1]).recipe.validation.best_metric
    best = min(trials, key=lambda trial: trial.cost(metric))
    tried = [one.recorded() for one in trials]
    average(best.folders, out, {"tried": tried}, overwrite, reporter)
    return best.folders


def _open(run: Path) -> RunFolder:
    if not is_run(run):
        raise ConfigError(f"{run}: is not the folder of a run; --last, --best and --try need one")
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


def _validate_mean(
    folders: Sequence[Path], dataset: Dataset, device: torch.device, reporter: WorkReporter
) -> _Trial:
    """Validate the mean of checkpoints with the recipe of their run, and report the result."""
    reporter.message(f"validating the mean of --last {len(folders)}")
    loaded = load_mean(folders, device, reporter)
    recipe, training = loaded.recipe, loaded.recipe.training
    precision = choose_precision(
        recipe.engine.precision, device, trained_size=recipe.model.model_size
    )
    objective = Objective(loaded.model, training.label_smoothing, low_precision=precision)
    metrics = make_validation_metrics(recipe.validation, dataset.codec)
    batch_tokens = training.max_tokens or training.update_tokens
    validator = Validator(
        objective, dataset, recipe.search, metrics, batch_tokens, reporter.message, Ranks()
    )
    with _counted(reporter) as show:
        validation = validator.validate(lambda: False, show)
    assert validation is not None, "no stop is requested"
    reporter.message(
        f"last={len(folders)} nll={validation.nll:.4f} "
        f"perplexity={perplexity(validation.nll):.2f} {plain_scores(validation.scores)}".rstrip()
    )
    return _Trial(folders, validation)


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
