"""The logger for TensorBoard.

A module of its own: TensorBoard is an optional extra, which only this module imports.
"""

import dataclasses
import secrets
from pathlib import Path

from nmtkit.errors import ConfigError
from nmtkit.progress.records import Record, SkippedRecord
from nmtkit.storage.disk_errors import disk_errors


class TensorboardLog:
    """Writes the numbers and scores of each record under "training/" and "validation/"."""

    def __init__(self, folder: Path, update: int) -> None:
        """Open the log of a run that resumes after an update; later records are removed.

        Args:
            folder: the folder of the log, with no other files.
            update: the last update whose records are kept.

        Raises:
            ConfigError: TensorBoard is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                "tensorboard: the package is not installed; pip install 'nmtkit[tensorboard]', or "
                "omit --tensorboard [logging.tensorboard]"
            ) from error
        with disk_errors(folder):
            # TensorBoard follows links. Nobody can have put one at a name that is random.
            suffix = f".{secrets.token_hex(8)}"
            self._writer = SummaryWriter(str(folder), purge_step=update + 1, filename_suffix=suffix)

    def append(self, record: Record) -> None:
        """Add the numbers of a record; ResourceError if they cannot be written."""
        if isinstance(record, SkippedRecord):
            return  # training records have their number
        values = dataclasses.asdict(record)
        values |= values.get("scores", {})
        with disk_errors(Path(self._writer.log_dir)):
            for name, value in values.items():
                if isinstance(value, int | float) and name != "update":
                    self._writer.add_scalar(f"{record.event}/{name}", value, record.update)
            self._writer.flush()
