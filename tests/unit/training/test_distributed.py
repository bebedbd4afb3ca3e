"""The methods of a rank that need no other rank."""

import pytest
import torch
from torch.distributed import DistError, HashStore, ProcessGroup

from nmtkit.errors import LostRankError, NmtkitError, ReportedElsewhereError
from nmtkit.training import distributed
from nmtkit.training.distributed import Ranks


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
