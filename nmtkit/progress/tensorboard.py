"""The logger for TensorBoard, an optional extra that only this module imports."""

import dataclasses
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from nmtkit.errors import ConfigError
from nmtkit.progress.records import Record, Sample, SkippedRecord, ValidationRecord
from nmtkit.storage.disk import disk_errors

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorboardLog:
    """Writes the numbers, scores and samples of records under "training/" and "validation/"."""

    def __init__(self, folder: Path, update: int) -> None:
        """Open the log of a run that resumes after an update; later records are removed.

        Args:
            folder: the folder of the log, with no other files.
            update: the last update whose records are kept.

        Raises:
            ConfigError: TensorBoard is not installed.
        """
        self._folder = folder
        self._writer: SummaryWriter | None = self._open(update + 1)

    def append(self, record: Record) -> None:
        """Add the numbers of a record; ResourceError if they cannot be written.

        A file that failed may end within a record, so the next record begins another one.
        """
        if isinstance(record, SkippedRecord):
            return  # training records have their number
        values = dataclasses.asdict(record)
        values |= values.get("scores", {})
        writer, self._writer = self._writer or self._open(record.update), None
        with disk_errors(self._folder):
            for name, value in values.items():
                if isinstance(value, int | float) and name != "update":
                    writer.add_scalar(f"{record.event}/{name}", value, record.update)
            if isinstance(record, ValidationRecord) and record.samples:
                text = "\n".join(map(_markdown, record.samples))
                writer.add_text(f"{record.event}/samples", text, record.update)
            writer.flush()
        self._writer = writer

    def _open(self, update: int) -> "SummaryWriter":
        """Begin a file of events; it removes records from `update` on of earlier files."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                "tensorboard: the package is not installed; pip install 'nmtkit[tensorboard]', or "
                "omit --tensorboard [logging.tensorboard]"
            ) from error
        with disk_errors(self._folder):
            # TensorBoard follows links. Nobody can have put one at a name that is random.
            suffix = f".{secrets.token_hex(8)}"
            return SummaryWriter(str(self._folder), purge_step=update, filename_suffix=suffix)


def _markdown(sample: Sample) -> str:
    """Return a sample as Markdown; TensorBoard shows an indented line unchanged."""
    texts = [f"    {name}: {text}\n" for name, text in sample.shown().items()]
    return f"line {sample.line}\n\n{''.join(texts)}"
