"""A field of a record is displayed as it was declared."""

import dataclasses
import io

import pytest

from nmtkit.progress.records import TrainingRecord, shown
from nmtkit.progress.reporter import PlainReporter, TerminalReporter
from tests.records import TRAINING
from tests.unit.progress.streams import Terminal


@dataclasses.dataclass(frozen=True, kw_only=True)
class WithTemperature(TrainingRecord):
    """A record with one more field."""

    temperature: float = shown("temperature={:.1f}", "{:.1f} degrees", row=2)


def test_a_field_is_displayed_by_its_declaration_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    record = WithTemperature(**vars(TRAINING), temperature=36.6)
    lines, terminal = io.StringIO(), Terminal()
    for reporter in (PlainReporter(lines), TerminalReporter(terminal)):
        reporter.start(1000, 0, [])
        reporter.update(record)
        reporter.close()
    assert lines.getvalue().endswith("elapsed=1m05s temperature=36.6\n")
    assert "elapsed 1m05s  36.6 degrees" in terminal.getvalue()
