"""What nmtkit sets in the environment of its process and of those that it starts.

Variables of the user are kept. A process is to wait without taking a core from others, to import
nothing from the working directory, and to execute no code that another user may have written.
"""

import os
import stat
import sys
from pathlib import Path

from nmtkit.errors import ConfigError

SPIN_COUNT = 1000
"""Rounds in which a thread of libgomp looks for work before it sleeps; about 10 microseconds.

With libgomp's default of 300 000, threads that wait for others hold cores which these need.
"""

_WAITING = {
    "GOMP_SPINCOUNT": str(SPIN_COUNT),
    # Of libomp and Intel's OpenMP, in milliseconds. 0 would sleep after each parallel region.
    "KMP_BLOCKTIME": "1",
}

WAITING_VARIABLES = ("OMP_WAIT_POLICY", *_WAITING)
"""Variables by which a user may set how threads wait."""

_SAFE_PATH, _OWN = "PYTHONSAFEPATH", "nmtkit"
"""A variable of Python that any value turns on, and the value by which nmtkit knows its own."""

_COMPILER_CACHE = "TORCHINDUCTOR_CACHE_DIR"


def set_environment() -> None:
    """Set the variables of a process that nmtkit owns; call it before torch is imported."""
    shorten_spinning()
    os.environ.setdefault(_SAFE_PATH, _OWN)


def shorten_spinning() -> None:
    """Let waiting threads of OpenMP sleep soon, which OpenMP reads when torch is imported.

    Does nothing if torch is imported already, or if the user has set how threads wait.
    """
    if "torch" not in sys.modules and not os.environ.keys() & WAITING_VARIABLES:
        os.environ.update(_WAITING)


def environment_of_users() -> dict[str, str]:
    """Return the variables for a program of the user, which may import modules next to it."""
    return {
        name: value for name, value in os.environ.items() if (name, value) != (_SAFE_PATH, _OWN)
    }


def python_command(module: str) -> list[str]:
    """Return the command line that runs a module where this process finds modules.

    `python -m` would search the working directory first.
    """
    code = (
        f"import runpy, sys; sys.path = {[*map(str, sys.path)]}; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-P", "-c", code]


def use_own_compiler_cache() -> None:
    """Have torch's compiler keep code in the user's cache; Triton's code is kept there, too.

    By default torch reads code and pickles from /tmp/torchinductor_USER, whoever made that folder.

    Raises:
        ConfigError: as `cache_folder`.
    """
    if _COMPILER_CACHE not in os.environ:
        os.environ[_COMPILER_CACHE] = str(cache_folder("torchinductor"))


def cache_folder(name: str) -> Path:
    """Return a folder for code in nmtkit's part of $XDG_CACHE_HOME or ~/.cache; make it if missing.

    Raises:
        ConfigError: other users can write to it or replace it, or it cannot be made.
    """
    home, base = Path.home().resolve(), Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = (base if base.is_absolute() else home / ".cache") / "nmtkit" / name
    try:
        for one in (*reversed(folder.parents), folder):
            one.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be made ({error.strerror}); set XDG_CACHE_HOME to a folder of your "
            "own"
        ) from error
    folder = folder.resolve()  # a link that is changed later has no effect
    for one in (folder, *folder.parents):
        _refuse_others(one, may_be_sticky=one != folder)
        if one == home:
            break
    return folder


def _refuse_others(folder: Path, *, may_be_sticky: bool) -> None:
    """Raise ConfigError if users other than this one and root can write to a folder.

    Args:
        folder: the folder.
        may_be_sticky: accept one where all can write, but only owners can rename, such as /tmp.
    """
    found = folder.stat()
    is_open = found.st_mode & 0o022 and not (may_be_sticky and found.st_mode & stat.S_ISVTX)
    if is_open or found.st_uid not in (0, os.geteuid()):
        raise ConfigError(
            f"{folder}: compiled code is kept where only you can write, and others can write "
            "here; change its mode or owner, or set XDG_CACHE_HOME to a folder of your own"
        )
