"""The methods of a rank that need no other rank."""

import pytest
import torch
from torch.distributed import HashStore, ProcessGroup

from nmtkit.errors import LostRankError
from nmtkit.training import distributed
from nmtkit.training.distributed import Ranks


class Event:
    """An event of a GPU that is never done."""

    def record(self) -> None:
        pass

    def query(self) -> bool:
        return False


def test_an_exchange_between_devices_that_does_not_end_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(distributed, "ROLL_CALL_S", 0.02)
    store = HashStore()
    store.set("answers/1", "present")  # its host answers
    control = ProcessGroup(store, 0, 2)
    ranks = Ranks(0, 2, store, control, timeout_s=0.01)
    with pytest.raises(LostRankError, match="the connection between ranks was lost in update 3"):
        ranks.await_device("in update 3")


def test_one_rank_waits_for_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    Ranks().await_device("in update 3")
