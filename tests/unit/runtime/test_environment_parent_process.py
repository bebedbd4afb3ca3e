"""What a process has from the one that started it."""

import os

import pytest

from nmtkit.errors import ConfigError
from nmtkit.runtime.environment import (
    end_with_parent,
    is_launched,
    num_local_ranks,
    number_from_launcher,
    own_rank,
    speaks_for_all_ranks,
)
from tests.messages import refuses
from tests.ranks import from_launcher

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
