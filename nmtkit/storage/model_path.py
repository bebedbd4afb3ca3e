"""The model at a path: a model folder, a run, or the file `best` or `last` of a run."""

from pathlib import Path

from nmtkit.errors import DamagedError
from nmtkit.storage.run_folder import BEST, LAST, RunFolder, is_run


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
