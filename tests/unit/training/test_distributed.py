"""The methods of a rank that need no other rank."""

import pytest
import torch
from torch.distributed import HashStore, ProcessGroup

from nmtkit.errors import LostRankError
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
