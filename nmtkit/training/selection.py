"""The checkpoints of a run to average: the last, the best, or the last N for the best N.

Only checkpoints of --save-every are used, so that they are evenly spaced.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from nmtkit.averaging import average, load_mean
from nmtkit.config.metrics import NLL, cost
from nmtkit.config.schema import RuntimeConfig
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model.likelihood import perplexity
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import plain_scores
from nmtkit.runtime.devices import set_up
from nmtkit.storage.checkpoint import list_checkpoints, newest_scheduled
from nmtkit.storage.durable import check_is_free, read_manifest
from nmtkit.storage.model_folder import FORMAT, VERSION, describe_model
from nmtkit.storage.model_path import find_model
from nmtkit.storage.run_folder import RunFolder, is_run
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective
from nmtkit.training.validation import (
    Validation,
    ValidationHistory,
    Validator,
    make_validation_metrics,
)


@dataclass(frozen=True)
class _Trial:
    """Checkpoints, and the validation of their mean."""

    folders: Sequence[Path]
    validation: Validation

    def cost(self, metric: str) -> tuple[float, float]:
        """Return a key that is smaller the better the mean is: by a metric, then by nll."""
        nll, scores = self.validation.nll, self.validation.scores
        return cost(metric, nll, scores), cost(NLL, nll, scores)


def last_checkpoints(run: Path, count: int) -> list[Path]:
    """Return the newest scheduled checkpoints of a run, oldest first.

    Raises:
        ConfigError: there is no such run, or it has fewer of them.
        DamagedError: a checkpoint among them, or newer, is damaged.
    """
    scheduled = newest_scheduled(_open(run), count)
    if len(scheduled) < count:
        raise ConfigError(
            f"{run}: has {len(scheduled)} checkpoints made by --save-every, fewer than {count}; "
            "ask for fewer, or train with a smaller --save-every or a larger --keep"
        )
    return [one.path for one in scheduled]


def best_checkpoints(run: Path, count: int, report: Callable[[str], None]) -> list[Path]:
    """Return the scheduled checkpoints of a run that validated best, oldest first.

    The run's best_metric compares them; of equal ones the earlier comes first.

    Args:
        run: the folder of the run.
        count: how many.
        report: takes a line that names the better ones that were not kept.

    Raises:
        ConfigError: there is no such run, or fewer of its checkpoints were validated.
        DamagedError: a checkpoint, or the log of the run, is damaged.
    """
    folder = _open(run)
    scheduled = {one.update: one.path for one in list_checkpoints(folder) if one.is_scheduled}
    metric = describe_model(find_model(run)).recipe.validation.best_metric
    history = ValidationHistory(metric, MetricsLog(folder.metrics_path).validations())
    validated = [update for update in history.best_first() if update in scheduled]
    if len(validated) < count:
        raise ConfigError(
            f"{run}: has {len(validated)} checkpoints made by --save-every that were validated, "
            f"fewer than {count}; ask for fewer, or train with a smaller --validate-every or a "
            "larger --keep"
        )
    gone = [update for update in history.best_first()[:count] if update not in scheduled]
    if gone:
        report(
            f"{run}: did better after updates {', '.join(map(str, gone))}, which were not kept; "
            f"train with --keep-best {count}"
        )
    return [scheduled[update] for update in sorted(validated[:count])]


def average_best_count(
    run: Path,
    counts: Sequence[int],
    data_dir: Path,
    out: Path,
    overwrite: bool,
    report: Callable[[str], None],
) -> Sequence[Path]:
    """Write the mean of the last N checkpoints of a run, for the N that validates best.

    Each mean is validated as in training and compared by the run's best metric, then by nll; of
    equal ones the first is kept.

    Args:
        run: the folder of the run.
        counts: of last checkpoints.
        data_dir: the dataset that the run was trained on.
        out: the model folder to write; its manifest says what was tried.
        overwrite: replace a model folder that is there.
        report: takes a line for each count, and warnings.

    Returns:
        The checkpoints whose mean did best, oldest first.

    Raises:
        ConfigError: there is no such run, it has fewer checkpoints, or `out` cannot be used.
        DamagedError: a checkpoint or the dataset is damaged, or does not belong to the other.
        ResourceError: `out` cannot be written.
    """
    check_is_free(out, FORMAT, overwrite)
    newest = last_checkpoints(run, max(counts))
    dataset = Dataset.open(data_dir)
    for folder in newest:
        _check_trained_on(folder, dataset, data_dir)
    device = set_up(RuntimeConfig())
    trials = [_try(newest[-count:], dataset, device, report) for count in counts]
    metric = describe_model(newest[-1]).recipe.validation.best_metric
    best = min(trials, key=lambda trial: trial.cost(metric))
    tried = [{"last": len(one.folders), **asdict(one.validation)} for one in trials]
    average(best.folders, out, {"tried": tried}, overwrite)
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


def _try(
    folders: Sequence[Path], dataset: Dataset, device: torch.device, report: Callable[[str], None]
) -> _Trial:
    """Validate the mean of checkpoints by the recipe of their run."""
    loaded = load_mean(folders, device)
    recipe, training = loaded.recipe, loaded.recipe.training
    objective = Objective(loaded.model, training.label_smoothing, low_precision=None)
    metrics = make_validation_metrics(recipe.validation, dataset.codec)
    batch_tokens = training.max_tokens or training.update_tokens
    validator = Validator(objective, dataset, recipe.search, metrics, batch_tokens, report, Ranks())
    validation = validator.validate(lambda: False)
    assert validation is not None, "nothing asks it to stop"
    report(
        f"last={len(folders)} nll={validation.nll:.4f} "
        f"perplexity={perplexity(validation.nll):.2f} {plain_scores(validation.scores)}".rstrip()
    )
    return _Trial(folders, validation)
