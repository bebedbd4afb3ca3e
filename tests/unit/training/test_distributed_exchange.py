"""Values reach every rank unchanged, or are refused by the rank that would send them."""

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from nmtkit.training.distributed import Ranks, join_ranks
from tests.ranks import DONE, run_ranks
from tests.training import CPU

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -(2**70),
    0.1 + 0.2,
    -0.0,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    "",
    "a\n\0\u2028 \u00e4\U0001f600 \udc80",
    [],
    {},
    [[None, 1, 1.5], {"name": [math.nan, "x"]}],
    "long " * 10_000,
)


def on_ranks(size: int, work: Callable[[Ranks], None]) -> None:
    """Call a function on ranks that have joined, and check that each ends well."""

    def join_and_work(_rank: int) -> None:
        with join_ranks(CPU, 0.5, time.monotonic) as ranks:
            work(ranks)

    assert run_ranks(size, join_and_work) == [DONE] * size


def assert_same(found: object, expected: object) -> None:
    """Check that two values are equal and of equal types, at any depth; NaN equals NaN."""
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("size", [2, 3])
def test_every_rank_receives_the_values_of_all(size: int) -> None:
    def exchange_all(ranks: Ranks) -> None:
        for number in range(len(VALUES)):
            rotated = [VALUES[(number + rank) % len(VALUES)] for rank in range(size)]
            assert_same(ranks.gather(rotated[ranks.rank]), rotated)

    on_ranks(size, exchange_all)


class EndsTheProcess:
    """An object whose pickle ends the process that reads it."""

    def __reduce__(self) -> tuple[Callable[[int], None], Sequence[int]]:
        return os._exit, (1,)


def test_a_rank_cannot_make_another_run_code() -> None:
    def send(ranks: Ranks) -> None:
        if ranks.is_first:
            with pytest.raises(TypeError, match="not JSON serializable"):
                ranks.gather(cast(None, EndsTheProcess()))
        assert ranks.gather(ranks.rank) == [0, 1]

    on_ranks(2, send)
