"""The tests that run each line: a map, and the pytest plugin that makes it.

    COVERAGE_MAP=folder python -m pytest -p tests.mutation.coverage_map tests/unit

Tests are named without their parameters, which a mutant may change. A line counts if a test or its
forks run it, and not if another program does. What runs once for several tests, as in a cached
function or a fixture of the session, counts for the first of them only.
"""

import json
import os
import warnings
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import coverage
import pytest

FOLDERS = tuple(
    f"nmtkit/{name}" for name in ("training", "model", "decoding", "data", "storage", "text")
)
"""What mutants are drawn from."""
LINES, SECONDS = "lines.coverage", "seconds.json"


class CoverageMap:
    """Tests that passed: the CPU seconds of all their parameters, and the lines that they ran."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = json.loads((folder / SECONDS).read_text("utf-8"))
        self.data = coverage.CoverageData(str(folder / LINES))
        self.data.read()

    def tests_of(self, file: str, lines: range | None) -> list[str]:
        """Return the tests that run one of some lines; None = any line of the file."""
        tests_by_line = self.data.contexts_by_lineno(file)
        used = tests_by_line if lines is None else lines
        tests = {test for line in used for test in tests_by_line.get(line, ())}
        return sorted(tests & self.seconds.keys())


class Recorder:
    """The plugin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.passed: set[str] = set()
        self.failed: set[str] = set()
        self.coverage = self.new_coverage(is_part=True)
        self.coverage.start()
        self.exit = os._exit
        os._exit = self.leave_fork

    def new_coverage(self, is_part: bool) -> coverage.Coverage:
        """Return coverage that saves the map's lines, or those of one process."""
        made = coverage.Coverage(
            data_file=self.folder / LINES,
            data_suffix=is_part,
            config_file=False,
            include=[f"{folder}/*" for folder in FOLDERS],
        )
        made.set_option("run:core", "ctrace")  # the only one that can switch contexts
        made.set_option("run:relative_files", True)
        return made

    def leave_fork(self, status: int) -> NoReturn:
        """Save what a fork has run, unless a test limits its files, and end it."""
        try:
            self.coverage.stop()
            self.coverage.save()
        finally:
            self.exit(status)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test in its context."""
        name = without_parameters(item.nodeid)
        self.coverage.switch_context(name)
        begin = sum(os.times()[:4])
        result = yield
        self.seconds[name] += sum(os.times()[:4]) - begin
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether a test passed."""
        if report.failed:
            self.failed.add(without_parameters(report.nodeid))
        elif report.passed and report.when == "call":
            self.passed.add(without_parameters(report.nodeid))

    def pytest_sessionfinish(self) -> None:
        """Write the map."""
        self.coverage.stop()
        self.coverage.save()
        whole = self.new_coverage(is_part=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parts of forks that were killed
            whole.combine()
        whole.save()
        seconds = {name: self.seconds[name] for name in sorted(self.passed - self.failed)}
        (self.folder / SECONDS).write_text(json.dumps(seconds), "utf-8")


def without_parameters(node: str) -> str:
    """Return the name of a test function."""
    return node.partition("[")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record."""
    config.pluginmanager.register(Recorder(Path(os.environ["COVERAGE_MAP"])))
