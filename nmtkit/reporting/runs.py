"""Training runs read from their folders: settings, records, facts about the newest checkpoint."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmtkit.config.metrics import METRICS, NLL, cost
from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ConfigError
from nmtkit.evaluation.metric import Statistics
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import SessionRecord, TrainingRecord, ValidationRecord
from nmtkit.storage.disk import disk_errors
from nmtkit.storage.manifest import load
from nmtkit.storage.run_folder import CHECKPOINTS, RunFolder, ValidationLines
from nmtkit.units import printable


@dataclass(frozen=True)
class Run:
    """A run as reports use it.

    Attributes:
        name: its unique name in a report.
        recipe: the settings of its latest session.
        training: its training records, at least one.
        validations: its validation records.
        sessions: its session records.
        lines: by metric, lines of a validation; see `statistics`.
        num_parameters: parameters of its model; None without a checkpoint.
        codec: the fingerprint of its codec; None without a checkpoint.
        dataset: the fingerprint of its training data; None without a checkpoint.
        languages: such as "en-de"; None without a checkpoint.
        validation_text: the fingerprint of its validation text; None as for languages.
        validation_pairs: the number of pairs whose nll is measured; None as for languages.
    """

    name: str
    recipe: TrainRecipe
    training: Sequence[TrainingRecord]
    validations: Sequence[ValidationRecord]
    sessions: Sequence[SessionRecord]
    lines: Mapping[str, ValidationLines]
    num_parameters: int | None
    codec: str | None
    dataset: str | None
    languages: str | None
    validation_text: str | None
    validation_pairs: int | None

    @property
    def last(self) -> TrainingRecord:
        """The last training record."""
        return self.training[-1]

    @property
    def operations(self) -> float:
        """Floating-point operations, counted from the shape."""
        return sum(record.operations for record in self.training)

    def best(self, metric: str) -> ValidationRecord | None:
        """Return the best validation by nll or a metric, the earliest of equals; or None."""
        return _best(metric, self.validations)

    def cost(self, metric: str) -> float:
        """Return the result of the best validation by a metric as a cost, as `cost` does."""
        best = self.best(metric)
        return math.inf if best is None else cost(metric, best.nll, best.scores)

    def statistics(self, metric: str) -> Statistics | None:
        """Return the statistics of the lines of the best validation by a metric, if it has them."""
        best, lines = self.best(metric), self.lines.get(metric)
        if best is None or lines is None:
            return None
        logged = best.update, best.scores[metric], best.signatures.get(metric)
        is_best = logged == (lines.update, lines.score, lines.signature)
        return lines.statistics if is_best else None

    @property
    def best_with_samples(self) -> ValidationRecord | None:
        """The best validation, by --best-metric, of those with samples; None if none has any."""
        sampled = [record for record in self.validations if record.samples]
        return _best(self.recipe.validation.best_metric, sampled)


def _best(metric: str, validations: Sequence[ValidationRecord]) -> ValidationRecord | None:
    known = [one for one in validations if metric == NLL or metric in one.scores]
    return min(known, key=lambda one: cost(metric, one.nll, one.scores), default=None)


def value_of(metric: str, record: ValidationRecord) -> float:
    """Return nll or a score of a validation; NaN if it has none."""
    return record.nll if metric == NLL else record.scores.get(metric, math.nan)


def validated_metrics(runs: Sequence[Run]) -> list[str]:
    """Return the metrics of all validations, in the order of METRICS; then those of directions."""
    found = {name for run in runs for record in run.validations for name in record.scores}
    return [*(name for name in METRICS if name in found), *sorted(found - METRICS.keys())]


def signatures(runs: Sequence[Run], metric: str) -> list[str]:
    """Return the distinct signatures of a metric in all validations."""
    found = (record.signatures.get(metric) for run in runs for record in run.validations)
    return list(dict.fromkeys(printable(signature) for signature in found if signature))


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Read the runs at some paths, in the same order.

    Raises:
        ConfigError: a path is not a run or is given twice; a run has no training records, or
            its settings cannot be read.
        DamagedError: a log or the manifest of the newest checkpoint is damaged.
        ResourceError: no permission, or a failing disk.
    """
    for path, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise ConfigError(f"{path}: given {times} times; give each run once")
    return [_read(path, name) for path, name in zip(paths, _names(paths), strict=True)]


def _read(path: Path, name: str) -> Run:
    run = RunFolder(path)
    with disk_errors(path):
        if not path.is_dir():
            raise ConfigError(f"{path}: no such folder; check the path")
        if path.parent.name == CHECKPOINTS and RunFolder(path.parent.parent).config_path.is_file():
            raise ConfigError(f"{path}: a checkpoint; give its run, {path.parent.parent}")
        if not run.config_path.is_file():
            raise ConfigError(
                f"{path}: not the folder of a run: it has no {run.config_path.name}; give the "
                "--out folder of `nmtkit train`"
            )
        recipe = run.read_recipe()
        records = list(MetricsLog(run.metrics_path).records())
        model = run.newest_model()
        # Unchecked: a report also covers runs whose newest weights are damaged.
        manifest = load(model) if model else {}
    training = [record for record in records if isinstance(record, TrainingRecord)]
    if not training:
        raise ConfigError(
            f"{path}: no training records in {run.metrics_path.name}; `nmtkit train` writes the "
            "first after --log-every updates"
        )
    provenance = manifest.get("provenance", {})
    return Run(
        name=name,
        recipe=recipe,
        training=training,
        validations=[record for record in records if isinstance(record, ValidationRecord)],
        sessions=[record for record in records if isinstance(record, SessionRecord)],
        lines=run.read_validation_lines(),
        num_parameters=manifest.get("parameters"),
        codec=manifest.get("codec"),
        dataset=provenance.get("dataset"),
        languages=provenance.get("languages"),
        validation_text=provenance.get("validation_text"),
        validation_pairs=provenance.get("validation_pairs"),
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the folder name of each run, with as much of its path as names it alone."""
    parts = [path.absolute().parts for path in paths]

    def is_unique(end: tuple[str, ...]) -> bool:
        return sum(one[-len(end) :] == end for one in parts) == 1

    ends = ((one[-count:] for count in range(1, len(one) + 1)) for one in parts)
    return [printable(str(Path(*next(filter(is_unique, one))))) for one in ends]
