"""The folder of a training run: the name and place of everything in it.

RUN/config.toml                   the recipe of the latest session
RUN/metrics.jsonl                 the records of training
RUN/tensorboard/                  the same records for TensorBoard
RUN/micro_batches.json            increases of the number of micro-batches
RUN/pieces.json                   such increases, as version 0.1 wrote them
RUN/checkpoints/00001000/         the model after update 1000, a model folder
RUN/checkpoints/00001000.state/   the training state after update 1000
RUN/last, RUN/best                the names of two checkpoints, one line each

All other modules ask here for a path. checkpoint.py writes and reads the checkpoints.
This module does not import torch: reports and the loader's worker processes start without it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps, loads
from nmtkit.errors import ConfigError
from nmtkit.storage.disk_errors import check_path
from nmtkit.storage.durable import make_folder, remove, replace_file
from nmtkit.storage.manifest import MANIFEST

CONFIG = "config.toml"
METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"
MICRO_BATCHES = "micro_batches.json"
PIECES = "pieces.json"
CHECKPOINTS = "checkpoints"
LAST, BEST = "last", "best"

RUN_FILES = {CONFIG, METRICS, TENSORBOARD, MICRO_BATCHES, PIECES, CHECKPOINTS, LAST, BEST}
"""Names that the folder of a run may hold; a folder with any other is not taken for one."""

_UPDATE = re.compile(r"[0-9]{8,}")
_STATE_SUFFIX = ".state"


class RunFolder:
    """The folder of a training run; whoever writes to it holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_path = path / CONFIG
        self.metrics_path = path / METRICS
        self.tensorboard_dir = path / TENSORBOARD
        self.micro_batches_path = path / MICRO_BATCHES
        self.pieces_path = path / PIECES
        self.checkpoints_dir = path / CHECKPOINTS

    @staticmethod
    def create_or_open(path: Path) -> "RunFolder":
        """Return the run at a path; a new one where there is nothing, or an empty folder.

        Raises:
            ConfigError: there is something else, or the path is one that no weights can be under.
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

    def write_recipe(self, recipe: TrainRecipe) -> None:
        """Write the recipe of this session to `config.toml`."""
        replace_file(self.config_path, dumps(recipe).encode())

    def model_dir(self, update: int) -> Path:
        """Return the model folder of the checkpoint after an update, which need not exist."""
        return self.checkpoints_dir / f"{update:08d}"

    def model_dirs(self) -> list[Path]:
        """Return the model folders of all checkpoints, damaged ones too, by update."""
        names = [path.name for path in self.checkpoints_dir.glob("*") if path.is_dir()]
        updates = sorted(int(name) for name in names if _UPDATE.fullmatch(name))
        return [self.model_dir(update) for update in updates]

    def state_dirs(self) -> set[Path]:
        """Return the training states of all checkpoints, also of those whose model is gone."""
        paths = self.checkpoints_dir.glob(f"*{_STATE_SUFFIX}")
        return {path for path in paths if path.is_dir() and _UPDATE.fullmatch(path.stem)}

    def last(self) -> Path | None:
        """Return the model folder that `last` names, or else the newest; None if there is none."""
        return self._read_pointer(LAST) or next(reversed(self.model_dirs()), None)

    def best(self) -> Path | None:
        """Return the model folder that validated best; None if there is none."""
        return self._read_pointer(BEST)

    def point_last(self, update: int) -> None:
        """Let `last` name the checkpoint after an update."""
        self._write_pointer(LAST, self.model_dir(update))

    def point_best(self, best_first: Sequence[int]) -> None:
        """Let `best` name the first of some updates that has a checkpoint; no file if none has."""
        for update in best_first:
            folder = self.model_dir(update)
            if (folder / MANIFEST).exists():
                self._write_pointer(BEST, folder)
                return
        remove(self.path / BEST)

    def _write_pointer(self, name: str, folder: Path) -> None:
        if self._read_pointer(name) != folder:
            replace_file(self.path / name, f"{folder.name}\n".encode())

    def _read_pointer(self, name: str) -> Path | None:
        """Return the model folder that a pointer names; None if it names none."""
        try:
            found = (self.path / name).read_bytes().decode(errors="replace").strip()
        except FileNotFoundError:
            return None
        folder = self.checkpoints_dir / found
        return folder if _UPDATE.fullmatch(found) and (folder / MANIFEST).exists() else None


def state_dir_of(model_dir: Path) -> Path:
    """Return the folder of the training state of a checkpoint, next to its model folder."""
    return model_dir.with_name(model_dir.name + _STATE_SUFFIX)


def is_run(path: Path) -> bool:
    """Return whether a path is the folder of a run, by what is in it.

    Other programs have folders named checkpoints too: it is a run if there is a checkpoint of
    ours, or nothing yet that is not.
    """
    checkpoints = path / CHECKPOINTS
    if not checkpoints.is_dir():
        return False
    names = _visible(checkpoints)
    if any(_UPDATE.fullmatch(name) and (checkpoints / name / MANIFEST).exists() for name in names):
        return True
    return (
        all(_UPDATE.fullmatch(name.removesuffix(_STATE_SUFFIX)) for name in names)
        and RUN_FILES.issuperset(_visible(path))
        and _has_recipe_or_none(path)
    )


def _visible(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]


def _has_recipe_or_none(path: Path) -> bool:
    try:
        loads((path / CONFIG).read_text("utf-8"), TrainRecipe, CONFIG)
    except FileNotFoundError:
        return True
    except (ConfigError, UnicodeDecodeError):
        return False
    return True
