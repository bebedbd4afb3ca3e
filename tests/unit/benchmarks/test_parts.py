"""The times of the parts of an update add up to that of all of it."""

from itertools import count
from typing import Any

import pytest
import torch

from benchmarks.parts import PARTS, REST, Clock, timed_parts

CPU = torch.device("cpu")


class Worker:
    def work(self, result: int) -> int:
        return result


class Ticking(Clock):
    """A second goes by from mark to mark."""

    ticks = count()

    def mark(self) -> Any:
        return float(next(self.ticks))


def test_what_is_in_no_part_is_the_host_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTS, "forward", [(Worker, "work")])
    clock = Ticking(CPU)
    with timed_parts(clock):
        begin = clock.mark()  # 0
        assert [Worker().work(result) for result in (5, 6)] == [5, 6]  # 1 to 2, 3 to 4
        assert clock.read(begin) == 5.0
    assert clock.seconds["forward"] == 2.0
    assert clock.seconds[REST] == 3.0
    assert sum(clock.seconds.values()) == 5.0


def test_functions_are_themselves_again_after_the_block() -> None:
    before = {place: vars(place[0])[place[1]] for places in PARTS.values() for place in places}
    with timed_parts(Clock(CPU)):
        assert all(vars(owner)[name] != own for (owner, name), own in before.items())
    assert all(vars(owner)[name] is own for (owner, name), own in before.items())
