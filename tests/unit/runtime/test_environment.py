"""Variables of the process, from its parent and for its children; which folders may hold code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError
from nmtkit.runtime.environment import (
    SPIN_COUNT,
    end_with_parent,
    environment_of_users,
    is_launched,
    num_local_ranks,
    number_from_launcher,
    own_rank,
    python_command,
    set_environment,
    shorten_spinning,
    speaks_for_all_ranks,
)
from tests.messages import refuses
from tests.ranks import from_launcher

ROOT = Path(__file__).parents[3]
WAITING = {"GOMP_SPINCOUNT": str(SPIN_COUNT), "KMP_BLOCKTIME": "1"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin without variables of the user and without torch; return the home."""
    for name in ("OMP_WAIT_POLICY", *WAITING, "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, "")  # restored at the end, also what the code under test sets
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def waiting() -> dict[str, str]:
    return {name: os.environ[name] for name in WAITING if name in os.environ}


def test_waiting_threads_sleep_soon() -> None:
    shorten_spinning()
    assert waiting() == WAITING


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", *WAITING])
def test_how_threads_wait_is_left_to_a_user_who_has_set_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "7")
    before = dict(os.environ)
    shorten_spinning()
    assert dict(os.environ) == before


def test_nothing_is_set_that_torch_would_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    shorten_spinning()
    assert not waiting()


def test_programs_of_users_do_not_get_the_safe_path_of_nmtkit() -> None:
    before = dict(os.environ)
    set_environment()
    assert os.environ["PYTHONSAFEPATH"]
    assert environment_of_users() == {**before, **WAITING}


def test_a_safe_path_of_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    set_environment()
    assert os.environ["PYTHONSAFEPATH"] == environment_of_users()["PYTHONSAFEPATH"] == "1"


def test_a_command_finds_modules_where_this_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's folder is the working directory."""
    for name in ("own", "stranger's"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "answer.py").write_text(
            f"import sys; print({name!r}, __name__, sys.argv[1:])", encoding="ascii"
        )
    (tmp_path / "stranger's/runpy.py").write_text("raise SystemExit('no')", encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    said = subprocess.check_output(
        [*python_command("answer"), "a b", "c"], cwd=tmp_path / "stranger's"
    )
    assert said == b"own __main__ ['a b', 'c']\n"


SCRIPT = """
import neighbour
from nmtkit.runtime.environment import set_environment
from nmtkit.runtime.workers import Worker, ended_early

if __name__ == "__main__":
    set_environment()
    worker = Worker(neighbour.serve, ended_early(""))
    print(worker.receive())
    worker.end()
"""


def test_workers_of_a_script_import_its_neighbours_and_no_strangers(tmp_path: Path) -> None:
    own, strange = tmp_path / "own", tmp_path / "strange"
    for folder in (own, strange):
        folder.mkdir()
    (own / "script.py").write_text(SCRIPT, encoding="ascii")
    (own / "neighbour.py").write_text(
        "def serve(connection): connection.send('served')", encoding="ascii"
    )
    (strange / "multiprocessing.py").write_text("raise SystemExit('no')", encoding="ascii")
    done = subprocess.run(
        [sys.executable, str(own / "script.py")],
        cwd=strange,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")


# ----------------------------------------------------------------- from the process that started it


FROM_LAUNCHER = from_launcher(RANK="3", WORLD_SIZE="8", LOCAL_WORLD_SIZE="4")


def use(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Set these variables, and none of the others that launchers set."""
    for name in FROM_LAUNCHER:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_a_launched_process_has_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, **FROM_LAUNCHER)
    assert is_launched()
    assert own_rank() == "3"
    assert num_local_ranks() == 4
    assert not speaks_for_all_ranks()


@pytest.mark.parametrize("name", FROM_LAUNCHER)
def test_one_variable_makes_no_rank(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs use such names, too."""
    use(monkeypatch, **{name: "x"})
    assert not is_launched()
    assert own_rank() == "0"
    assert num_local_ranks() == 1
    assert speaks_for_all_ranks()


@pytest.mark.parametrize("value", ["", "x", "-1", "1.0", "\u0661"])
def test_a_malformed_number_is_refused_by_its_name(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, **{**FROM_LAUNCHER, "LOCAL_WORLD_SIZE": value})
    with refuses(ConfigError, "LOCAL_WORLD_SIZE"):
        num_local_ranks()
    assert number_from_launcher("RANK", 0) == 3
    assert number_from_launcher("NONE_OF_THEM", 7) == 7


def test_a_process_of_a_living_parent_goes_on() -> None:
    child = os.fork()
    if child == 0:
        end_with_parent(os.getppid())
        os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
