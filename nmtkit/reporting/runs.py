"""A training run as read from its folder: settings, records, facts of its newest checkpoint."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmtkit.config.metrics import METRICS, NLL, cost
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import loads
from nmtkit.errors import ConfigError
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import TrainingRecord, ValidationRecord
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.manifest import MANIFEST, load
from nmtkit.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes:
        name: its unique name in a report.
        recipe: the settings of its latest session.
        training: its training records, at least one.
        validations: its validation records.
        num_parameters: of its model; None without a checkpoint.
        codec: the fingerprint of its vocabulary; None without a checkpoint.
        languages: such as "en-de"; None without a checkpoint, and in old checkpoints.
    """

    name: str
    recipe: TrainRecipe
    training: Sequence[TrainingRecord]
    validations: Sequence[ValidationRecord]
    num_parameters: int | None
    codec: str | None
    languages: str | None

    @property
    def last(self) -> TrainingRecord:
        """The last training record."""
        return self.training[-1]

    @property
    def operations(self) -> float | None:
        """Floating-point operations, counted from the shape; None where a record has none."""
        return _known_sum(record.operations for record in self.training)

    @property
    def paper_operations(self) -> float | None:
        """The same as the paper counts, by time; None where a record has none."""
        return _known_sum(record.paper_operations for record in self.training)

    def best(self, metric: str) -> ValidationRecord | None:
        """Return the best validation by nll or a metric, the earliest of equal ones, if any."""
        known = [one for one in self.validations if metric == NLL or metric in one.scores]
        return min(known, key=lambda one: cost(metric, one.nll, one.scores), default=None)


def have_one_vocabulary(runs: Sequence[Run]) -> bool:
    """Return whether nll per token is comparable between runs, as far as is known."""
    return len({run.codec for run in runs} - {None}) <= 1


def validated_metrics(runs: Sequence[Run]) -> list[str]:
    """Return the metrics that a run was validated by, in the order of the table."""
    found = {name for run in runs for record in run.validations for name in record.scores}
    return [name for name in METRICS if name in found]


def signatures(runs: Sequence[Run], metric: str) -> list[str]:
    """Return the signatures of a metric in validations, each once."""
    found = (record.signatures.get(metric) for run in runs for record in run.validations)
    return list(dict.fromkeys(_printable(signature) for signature in found if signature))


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Read runs, in their order.

    Raises:
        ConfigError: a path is not the folder of a run, or is given twice; a run has no records,
            or settings that cannot be read.
        DamagedError: a log or the manifest of a checkpoint is damaged.
        ResourceError: no permission, a failing disk.
    """
    for path, times in Counter(path.absolute() for path in paths).items():
        if times > 1:
            raise ConfigError(f"{path}: is given {times} times; give each run once")
    return [_read(path, name) for path, name in zip(paths, _names(paths), strict=True)]


def _read(path: Path, name: str) -> Run:
    run = RunFolder(path)
    config_path = run.config_path
    with disk_errors(path):
        if not path.is_dir():
            raise ConfigError(f"{path}: no such folder; check the path")
        if not config_path.is_file():
            raise ConfigError(
                f"{path}: is not the folder of a run, for it has no {config_path.name}; give "
                "what --out of `nmtkit train` named"
            )
        recipe = loads(config_path.read_text("utf-8", "replace"), TrainRecipe, str(config_path))
        records = list(MetricsLog(run.metrics_path).records())
        manifest = _newest_manifest(run)
    training = [record for record in records if isinstance(record, TrainingRecord)]
    if not training:
        raise ConfigError(
            f"{path}: has no records of training in {run.metrics_path.name}; give the folder "
            "of a run that has reported progress, which `nmtkit train` does after every "
            "--log-every updates"
        )
    return Run(
        name=name,
        recipe=recipe,
        training=training,
        validations=[record for record in records if isinstance(record, ValidationRecord)],
        num_parameters=manifest.get("parameters"),
        codec=manifest.get("codec"),
        languages=manifest.get("provenance", {}).get("languages"),
    )


def _newest_manifest(run: RunFolder) -> dict[str, Any]:
    """Return the manifest of the newest checkpoint that has one, or nothing without one."""
    models = [folder for folder in run.model_dirs() if (folder / MANIFEST).exists()]
    return load(models[-1]) if models else {}


def _known_sum(numbers: Iterable[float | None]) -> float | None:
    """Return the sum of some numbers; None where one is not known."""
    known = list(numbers)
    return None if None in known else sum(filter(None, known))


def _names(paths: Sequence[Path]) -> list[str]:
    """Call each run by the name of its folder, or by its path where others have that name."""
    folders = [path.absolute().name for path in paths]
    times = Counter(folders)
    return [
        _printable(str(path) if times[folder] > 1 else folder)
        for path, folder in zip(paths, folders, strict=True)
    ]


def _printable(text: str) -> str:
    """Write what would move a cursor, or is no text at all, as an escape sequence."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )
