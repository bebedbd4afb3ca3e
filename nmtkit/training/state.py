"""Where a run stands: what, beside parameters and Adam's moments, a resumed run needs to know."""

from dataclasses import asdict, dataclass, field
from typing import Any

from nmtkit.data.sampler import Position


@dataclass
class RunState:
    """Plain values that change while a run goes on; saved with every checkpoint.

    Attributes:
        update: optimiser updates done, skipped ones counted.
        position: what the sampler gives next.
        seconds: time spent in training, all sessions together.
        num_skipped: updates skipped because a gradient was not finite.
        num_skipped_in_a_row: how many of them the last updates were.
        num_slots: S, into how many slots an update is cut; 0 = not decided yet.
    """

    update: int = 0
    position: Position = field(default_factory=lambda: Position(0, 0, 0))
    seconds: float = 0.0
    num_skipped: int = 0
    num_skipped_in_a_row: int = 0
    num_slots: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> "RunState":
        """Rebuild from what `to_json` returned."""
        position = Position(**values["position"])  # the dataclass names the keys
        return RunState(**{**values, "position": position})
