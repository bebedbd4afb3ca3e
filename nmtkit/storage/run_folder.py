"""The folder of a training run: names and paths of its files.

RUN/config.toml                   the recipe of the latest session
RUN/metrics.jsonl                 the records of training
RUN/tensorboard/                  the same records for TensorBoard
RUN/micro_batches.json            increases of the number of micro-batches
RUN/pieces.json                   the same increases, as version 0.1 wrote them
RUN/checkpoints/00001000/         the model after update 1000, a model folder
RUN/checkpoints/00001000.state/   the training state after update 1000
RUN/last, RUN/best                the names of two checkpoints, one line each

All other modules get the paths from here. checkpoint.py writes and reads the checkpoints.
This module does not import torch: reports and the loader's worker processes start without it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps, loads, read_text
from nmtkit.errors import ConfigError
from nmtkit.storage.disk_changes import Lock
from nmtkit.storage.disk_errors import check_path, disk_errors
from nmtkit.storage.durable import locked, make_folder, remove, replace_file
from nmtkit.storage.manifest import MANIFEST
from nmtkit.storage.reading import check_is_file, read_file

CONFIG = "config.toml"
METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"
MICRO_BATCHES = "micro_batches.json"
PIECES = "pieces.json"
CHECKPOINTS = "checkpoints"
LAST, BEST = "last", "best"

RUN_FILES = {CONFIG, METRICS, TENSORBOARD, MICRO_BATCHES, PIECES, CHECKPOINTS, LAST, BEST}
"""Names that a run folder without checkpoints may contain; others mean that it is no run."""

_UPDATE = re.compile(r"[0-9]{8,}")
_STATE_SUFFIX = ".state"


class RunFolder:
    """The folder of a training run; its writer holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_path = path / CONFIG
        self.metrics_path = path / METRICS
        self.tensorboard_dir = path / TENSORBOARD
        self.micro_batches_path = path / MICRO_BATCHES
        self.pieces_path = path / PIECES
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
