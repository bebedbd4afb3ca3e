"""Variables of the process and its children; which folders may hold code."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError
from nmtkit.runtime import environment
from nmtkit.runtime.environment import (
    SPIN_COUNT,
    cache_folder,
    environment_of_users,
    python_command,
    set_environment,
    shorten_spinning,
    use_own_compiler_cache,
)
from tests.messages import refuses

ROOT = Path(__file__).parents[3]
WAITING = {"GOMP_SPINCOUNT": str(SPIN_COUNT), "KMP_BLOCKTIME": "1"}
STRANGER = 12345


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin without variables of the user and without torch; return the home."""
    for name in ("OMP_WAIT_POLICY", *WAITING, "PYTHONSAFEPATH", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")  # restored at the end, also what the code under test sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
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


def test_the_cache_is_made_for_the_user_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        folder = cache_folder("code")
    finally:
        os.umask(before)
    assert folder == home / ".cache/nmtkit/code"
    for one in (folder, folder.parent):
        assert one.stat().st_mode & 0o777 == 0o700
    assert cache_folder("code") == folder


def open_to_a_group(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.chmod(0o770)


def open_to_all(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.chmod(0o702)


def of_a_stranger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(folder, STRANGER, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


@pytest.mark.parametrize("parents", [0, 1])
@pytest.mark.parametrize("change", [open_to_a_group, open_to_all, of_a_stranger])
def test_a_cache_that_others_can_write_to_is_refused(
    change: Callable[[Path, pytest.MonkeyPatch], None],
    parents: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = cache_folder("code")
    changed = [folder, folder.parent][parents]
    change(changed, monkeypatch)
    named = folder.parent if os.geteuid() == STRANGER else changed
    with refuses(ConfigError, f"{named}: ; mode owner XDG_CACHE_HOME"):
        cache_folder("code")


def test_a_relative_cache_is_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache_folder("code") == home / ".cache/nmtkit/code"


def test_a_cache_that_cannot_be_made_is_named(home: Path) -> None:
    (home / ".cache").write_text("a file", encoding="ascii")
    reason = os.strerror(errno.ENOTDIR)
    with refuses(ConfigError, f"{home}/.cache {reason}; XDG_CACHE_HOME"):
        cache_folder("code")


def test_the_compiler_keeps_code_in_the_cache_of_the_user(home: Path) -> None:
    use_own_compiler_cache()
    folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    assert folder.parent == home / ".cache/nmtkit/torchinductor"


def test_machines_that_share_a_home_do_not_share_code(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = set()
    for name in ("old", "new"):
        monkeypatch.setattr(environment, "processor_name", lambda name=name: name)
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")  # empty is not set
        use_own_compiler_cache()
        folders.add(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    assert len(folders) == 2
    assert all(Path(folder).is_relative_to(home) for folder in folders)


def test_without_a_home_another_folder_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with refuses(ConfigError, "home; XDG_CACHE_HOME"):
        cache_folder("code")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder("code") == tmp_path / "cache/nmtkit/code"


def test_a_folder_that_the_user_chose_for_the_compiler_is_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/chosen")
    use_own_compiler_cache()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/chosen"
    assert not [*home.iterdir()]
