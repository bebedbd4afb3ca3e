"""What all tests share: a tiny dataset, a run, one folder, no time limits, outer make or fsync."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.thoroughness import IS_THOROUGH, SAMPLED_FOLDERS, SEED, sample

if TYPE_CHECKING:
    from nmtkit.data.binary import Dataset

pytest_plugins = ["tests.messages"]

# Without a deadline, because machines are shared and noisy.
settings.register_profile("nmtkit", deadline=None, max_examples=100 if IS_THOROUGH else 20)
settings.load_profile("nmtkit")

# A shell starts jobs in the background deaf to Ctrl-C, and nohup to hanging up, which the commands
# under test would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A make that a test starts is no part of the make that may have started the tests: it would take
# over flags and variables, and print its folder.
for _name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(_name, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the cases of this run; see tests/thoroughness.py."""
    groups: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        folder = item.path.relative_to(config.rootpath / "tests").parts[0]
        if folder in SAMPLED_FOLDERS and not any(item.iter_markers("sampled")):
            assert item.parent is not None
            item.parent.add_marker(pytest.mark.sampled(every=SAMPLED_FOLDERS[folder]))
        node, mark = next(item.iter_markers_with_node("sampled"), (item, None))
        every = 1 if mark is None else mark.kwargs.get("every", 1)
        if IS_THOROUGH or item.get_closest_marker("thorough") is None:
            groups.setdefault((node.nodeid.partition("[")[0], every), []).append(item)
    # A file or a test that is named runs with all its cases.
    named = tuple(
        os.path.relpath(config.invocation_params.dir / argument, config.rootpath)
        for argument in config.args
        if ".py" in argument
    )
    selected = {item for item in items if named and item.nodeid.startswith(named)}
    for (name, every), cases in groups.items():
        selected.update(sample(cases, every, name))
    config.hook.pytest_deselected(items=[item for item in items if item not in selected])
    items[:] = [item for item in items if item in selected]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(
        "all cases" if IS_THOROUGH else f"a sample of the cases: NMTKIT_SAMPLE_SEED={SEED}"
    )


@pytest.fixture(autouse=True, scope="module")
def _without_waiting_for_the_disk() -> Iterator[None]:
    """Do no fsync in this process: what tests write need not survive a power cut.

    Tests of when files are synced put their own function in its place.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="module")
def _in_the_same_folder() -> Iterator[None]:
    """Check that no test leaves this process in another folder: later tests would fail there."""
    before = Path.cwd()
    yield
    assert Path.cwd() == before


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny dataset, which tests only read."""
    from tests.tiny import tiny_dataset  # loads torch, which many tests do without

    return tiny_dataset(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def no_training_left() -> Iterator[None]:
    """Kill the training that a test started and, since it failed, has not ended."""
    from tests.launching import kill_all

    yield
    kill_all()


@pytest.fixture(scope="session")
def dataset(data: Path) -> "Dataset":
    from nmtkit.data.binary import Dataset

    return Dataset.open(data)


@pytest.fixture(scope="session")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run on two ranks that nothing disturbed, which tests only read."""
    from tests.launching import train_whole

    return train_whole(data, tmp_path_factory.mktemp("whole") / "run")
