"""The folder of a training run: names and paths of its files.

RUN/config.toml                   the recipe of the latest session
RUN/metrics.jsonl                 the records of training
RUN/validation_lines.json         line by line, what the best scores are computed from
RUN/tensorboard/                  the same records for TensorBoard
RUN/micro_batches.json            increases of the number of micro-batches
RUN/checkpoints/00001000/         the model after update 1000, a model folder
RUN/checkpoints/00001000.state/   the training state after update 1000
RUN/last, RUN/best                the names of two checkpoints, one line each

A path on the command line names a model folder, a run, or the file `best` or `last` of a run.

All other modules get the paths from here. checkpoint.py writes and reads the checkpoints.
This module does not import torch: reports and the loader's worker processes start without it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps, loads, read_text
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.storage.disk import Lock, check_is_file, check_path, disk_errors, read_file
from nmtkit.storage.durable import locked, make_folder, remove, replace_file
from nmtkit.storage.json_data import decode_text
from nmtkit.storage.manifest import MANIFEST, hash_of_content

CONFIG = "config.toml"
METRICS = "metrics.jsonl"
VALIDATION_LINES = "validation_lines.json"
TENSORBOARD = "tensorboard"
MICRO_BATCHES = "micro_batches.json"
CHECKPOINTS = "checkpoints"
LAST, BEST = "last", "best"

RUN_FILES = {
    CONFIG, METRICS, VALIDATION_LINES, TENSORBOARD, MICRO_BATCHES, CHECKPOINTS, LAST, BEST
}  # fmt: skip
"""Names that a run folder without checkpoints may contain; others mean that it is no run."""

_LINES_FORMAT = {"format": "nmtkit-validation-lines", "version": 1}
_UPDATE = re.compile(r"[0-9]{8,}")
_STATE_SUFFIX = ".state"


@dataclass(frozen=True)
class ValidationLines:
    """The lines of a validation, as a metric counts them.

    Attributes:
        update, score, signature: those of the validation's record.
        statistics: per line, numbers from whose sums the score is computed.
    """

    update: int
    score: float
    signature: str
    statistics: list[list[int | float]]


class RunFolder:
    """The folder of a training run; its writer holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_path = path / CONFIG
        self.metrics_path = path / METRICS
        self.validation_lines_path = path / VALIDATION_LINES
        self.tensorboard_dir = path / TENSORBOARD
        self.micro_batches_path = path / MICRO_BATCHES
        self.checkpoints_dir = path / CHECKPOINTS
        self._lock: Lock | None = None

    @staticmethod
    def create_or_open(path: Path) -> "RunFolder":
        """Return the run at a path; a new run if the path is missing or an empty folder.

        Raises:
            ConfigError: the path is not a run, or not valid UTF-8.
            ResourceError: it cannot be created.
        """
        check_path(path)
        if path.is_dir() and not is_run(path):
            found = set(_visible(path))
            if found:
                raise ConfigError(
                    f"{path}: is not the folder of a run, and holds "
                    f"{min(found - RUN_FILES or found)!r}; "
                    "choose another --out"
                )
        run = RunFolder(path)
        make_folder(run.checkpoints_dir)
        return run

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the run; raises as `nmtkit.storage.durable.locked`."""
        with locked(self.path) as lock:
            self._lock = lock
            try:
                yield
            finally:
                self._lock = None

    def check_lock(self) -> None:
        """Check before a write that the folder at the path is still the one that is locked.

        Raises:
            LostFolderError: it was renamed, deleted or replaced; another run may be there.
            ResourceError: no permission, a failing disk.
        """
        if self._lock is not None:
            with disk_errors(self.path):
                self._lock.check()

    def replace(self, path: Path, data: bytes) -> None:
        """Replace the content of a file of the run; raises as `check_lock` and `replace_file`."""
        self.check_lock()
        replace_file(path, data)

    def write_recipe(self, recipe: TrainRecipe) -> None:
        """Write the recipe of this session to `config.toml`."""
        self.replace(self.config_path, dumps(recipe).encode())

    def read_recipe(self) -> TrainRecipe:
        """Return the recipe of the latest session.

        Raises:
            FileNotFoundError: there is no `config.toml`.
            DamagedError: `config.toml` is not a file.
            ConfigError: `config.toml` is not a recipe of `nmtkit train`.
        """
        try:
            check_is_file(self.config_path)
            text = read_text(self.config_path)
        except UnicodeDecodeError:
            message = f"{self.config_path}: not valid TOML: not UTF-8; correct the file"
            raise ConfigError(message) from None
        return loads(text, TrainRecipe, str(self.config_path))

    def write_validation_lines(self, lines: Mapping[str, ValidationLines]) -> None:
        """Write the lines of the best validation by each metric; raises as `replace`."""
        content = {name: vars(one) for name, one in lines.items()}
        sealed = {**_LINES_FORMAT, "sha256": hash_of_content(content), "metrics": content}
        text = json.dumps(sealed, sort_keys=True, separators=(",", ":"))
        self.replace(self.validation_lines_path, text.encode() + b"\n")

    def read_validation_lines(self) -> dict[str, ValidationLines]:
        """Return the lines of the best validations by metric; none if the file is damaged.

        After a resume, they may be of a later validation that the log does not have any more.
        """
        try:
            sealed = decode_text(dict[str, Any], read_file(self.validation_lines_path))
            content = sealed["metrics"]
            is_whole = sealed["sha256"] == hash_of_content(content)
            is_ours = all(sealed[key] == value for key, value in _LINES_FORMAT.items())
            # The hash stands for the types: to decode each number would take seconds.
            lines = {name: ValidationLines(**one) for name, one in content.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}
        return lines if is_whole and is_ours else {}

    def model_dir(self, update: int) -> Path:
        """Return the path of the model folder after an update; it need not exist."""
        return self.checkpoints_dir / f"{update:08d}"

    def model_dirs(self) -> list[Path]:
        """Return the model folders of all checkpoints, also damaged ones, sorted by update."""
        names = [path.name for path in self.checkpoints_dir.glob("*") if path.is_dir()]
        updates = sorted(int(name) for name in names if _UPDATE.fullmatch(name))
        return [self.model_dir(update) for update in updates]

    def newest_model(self) -> Path | None:
        """Return the newest model folder that has a manifest; None if there is none."""
        return next(filter(_is_model, reversed(self.model_dirs())), None)

    def state_dirs(self) -> set[Path]:
        """Return the training states of all checkpoints, also of those whose model was deleted."""
        paths = self.checkpoints_dir.glob(f"*{_STATE_SUFFIX}")
        return {path for path in paths if path.is_dir() and _UPDATE.fullmatch(path.stem)}

    def last(self) -> Path | None:
        """Return the model folder that `last` names, or else the newest; None if there is none."""
        return self._read_pointer(LAST) or next(reversed(self.model_dirs()), None)

    def best(self) -> Path | None:
        """Return the model folder that validated best; None if there is none."""
        return self._read_pointer(BEST)

    def point_last(self, update: int) -> None:
        """Make `last` name the checkpoint after an update."""
        self._write_pointer(LAST, self.model_dir(update))

    def point_best(self, best_first: Sequence[int]) -> None:
        """Make `best` name the first update that has a checkpoint; delete `best` if none has."""
        for update in best_first:
            folder = self.model_dir(update)
            if _is_model(folder):
                self._write_pointer(BEST, folder)
                return
        self.check_lock()
        remove(self.path / BEST)

    def _write_pointer(self, name: str, folder: Path) -> None:
        if self._read_pointer(name) != folder:
            self.replace(self.path / name, f"{folder.name}\n".encode())

    def _read_pointer(self, name: str) -> Path | None:
        """Return the model folder that `best` or `last` names; None if there is none."""
        try:
            found = read_file(self.path / name).decode(errors="replace").strip()
        except FileNotFoundError:
            return None
        folder = self.checkpoints_dir / found
        return folder if _UPDATE.fullmatch(found) and _is_model(folder) else None


def state_dir_of(model_dir: Path) -> Path:
    """Return the folder of the training state of a checkpoint, next to its model folder."""
    return model_dir.with_name(model_dir.name + _STATE_SUFFIX)


def is_run(path: Path) -> bool:
    """Return whether a path is the folder of a run, judged by its content.

    Other programs have folders named checkpoints too. A run has an nmtkit checkpoint in it, or
    nothing yet except files of a run.
    """
    checkpoints = path / CHECKPOINTS
    if not checkpoints.is_dir():
        return False
    names = _visible(checkpoints)
    if any(_UPDATE.fullmatch(name) and _is_model(checkpoints / name) for name in names):
        return True
    return (
        all(_UPDATE.fullmatch(name.removesuffix(_STATE_SUFFIX)) for name in names)
        and RUN_FILES.issuperset(_visible(path))
        and _has_recipe_or_none(RunFolder(path))
    )


def _is_model(folder: Path) -> bool:
    """Return whether a folder has a manifest, which is written last."""
    return (folder / MANIFEST).exists()


def _visible(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]


def _has_recipe_or_none(run: RunFolder) -> bool:
    try:
        run.read_recipe()
    except FileNotFoundError:
        return True
    except ConfigError:
        return False
    return True


def find_model(path: Path) -> Path:
    """Return the model folder that a path refers to.

    Args:
        path: a model folder; a run, for its best checkpoint, or its last if none was validated;
            or the file `best` or `last` of a run.

    Raises:
        DamagedError: the run has no checkpoint.
    """
    if path.name in (BEST, LAST) and path.is_file() and is_run(path.parent):
        run = RunFolder(path.parent)
        found = run.best() if path.name == BEST else run.last()
    elif is_run(path):
        run = RunFolder(path)
        found = run.best() or run.last()
    else:
        return path
    if found is None:
        raise DamagedError(f"{path}: there is no such checkpoint yet; continue with `nmtkit train`")
    return found
