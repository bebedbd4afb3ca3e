"""The methods of a rank that need no other rank."""

import pytest
import torch
from torch.distributed import HashStore, ProcessGroup

from nmtkit.errors import LostRankError, NmtkitError, ReportedElsewhereError
from nmtkit.runtime.host_copies import HostCopy
from nmtkit.training import distributed
from nmtkit.training.distributed import Ranks
from tests.messages import refuses


class Lost(HostCopy):
    """Values of a GPU that never arrive."""

    def has_arrived(self) -> bool:
        return False


def test_an_exchange_between_devices_that_does_not_end_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distributed, "ROLL_CALL_S", 0.02)
    store = HashStore()
    store.set("answers/1", "present")  # its host answers
    control = ProcessGroup(store, 0, 2)
    ranks = Ranks(0, 2, store, control, timeout_s=0.01)
    with refuses(LostRankError, "update 3"):
        ranks.read(Lost(torch.zeros(2)), "in update 3")


@pytest.mark.parametrize("kind", [HostCopy, Lost])
def test_one_rank_has_no_other_that_could_hang(kind: type[HostCopy]) -> None:
    assert Ranks().read(kind(torch.tensor([1.5, 2.0])), "in update 3") == [1.5, 2.0]


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
    ranks = Ranks(rank, 3, store, ProcessGroup(store, rank, 3), timeout_s=0.01)
    with pytest.raises(error, match=message) as raised:
        ranks.read(Lost(torch.zeros(2)), "in update 3")
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
