"""Who reports lost ranks; values reach every rank unchanged, or are refused by the sender."""

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import torch
from torch.distributed import DistError, HashStore, ProcessGroup

from nmtkit.errors import LostRankError, NmtkitError, ReportedElsewhereError
from nmtkit.training import distributed
from nmtkit.training.distributed import Ranks, join_ranks
from tests.ranks import DONE, run_ranks
from tests.training import CPU


@pytest.mark.parametrize(
    ("rank", "present", "error", "message"),
    [
        (0, (0, 1), LostRankError, "rank 2 was lost"),
        (1, (0, 1), ReportedElsewhereError, None),
        (2, (2,), LostRankError, "rank 0 and rank 1 were lost"),
    ],
)
def test_the_lowest_rank_that_answers_reports_the_lost_ones(
    rank: int,
    present: tuple[int, ...],
    error: type[NmtkitError],
    message: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distributed, "ROLL_CALL_S", 0.02)
    store = HashStore()
    for one in present:
        store.set(f"answers/{one}", "present")
    ranks = Ranks(rank, 3, store, ProcessGroup(store, rank, 3))
    with pytest.raises(error, match=message) as raised, ranks.exchange("in update 3"):
        raise DistError("connection closed")
    assert raised.value.exit_code == LostRankError.exit_code


@pytest.mark.parametrize(
    ("size", "text", "error"),
    [
        (2, "[/pytorch/third_party/gloo/gloo/pair.cc:1] connection closed", LostRankError),
        (2, "sizes do not match", RuntimeError),
        (1, "[/pytorch/third_party/gloo/gloo/pair.cc:1] connection closed", RuntimeError),
    ],
)
def test_only_failed_exchanges_with_others_are_errors_of_lost_ranks(
    size: int, text: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "ROLL_CALL_S", 0.02)
    ranks = Ranks(0, size, HashStore())
    with pytest.raises(error), ranks.exchange("in update 3"):
        raise RuntimeError(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [("CUDA error: out of memory", RuntimeError), ("an illegal memory access", LostRankError)],
)
def test_a_device_without_memory_is_not_lost(text: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised, Ranks().exchange("in update 3"):
        raise torch.AcceleratorError(text)
    assert isinstance(raised.value, LostRankError) == (error is LostRankError)


# ------------------------------------------------------------------------------------------- values


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


def test_every_rank_receives_the_values_of_all() -> None:
    size = 3

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
