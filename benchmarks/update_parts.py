"""Times of the parts of an update, measured by wrapping the functions of each part.

The wrappers record when a function begins and ends. On a GPU these times are events in the order of
its work, read after the update, so nothing waits for them. The rest of an update belongs to the
host; a GPU is idle then.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from nmtkit.model.transformer import Transformer
from nmtkit.training import objective, trainer
from nmtkit.training.distributed import Ranks
from nmtkit.training.state import TrainState
from nmtkit.training.updates import UpdateLoader

PARTS: dict[str, list[tuple[Any, str]]] = {
    "data": [(UpdateLoader, "load")],
    "forward": [(Transformer, "encode"), (Transformer, "decode")],
    "loss": [(objective, "smoothed_cross_entropy")],
    "backward": [(Tensor, "backward")],
    "reduce": [(Ranks, "sum")],
    "optimiser": [(trainer, "normalize_and_clip_gradients"), (TrainState, "step")],
}
"""The functions of each part: the class or module that holds them, and their names.

The loss projects to the vocabulary and computes the gradients of the projection. Ranks exchange
gradients in the backward pass; reduce sums their losses and numbers of tokens.
"""

REST = "host gaps"


@dataclass
class Clock:
    """Records the times of the parts of updates.

    Attributes:
        device: the device of the updates.
        seconds: seconds by part, summed over all calls of `read`.
    """

    device: torch.device
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*PARTS, REST), 0.0))
    _spans: list[tuple[str, Any, Any]] = field(default_factory=list)

    def mark(self) -> Any:
        """Return the current time; on a GPU, an event after the queued work."""
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        """Return the seconds between two past marks."""
        if self.device.type != "cuda":
            return float(end - begin)
        return float(begin.elapsed_time(end)) / 1000

    def note(self, part: str, begin: Any) -> None:
        """Record a part from a mark to now."""
        self._spans.append((part, begin, self.mark()))

    def read(self, begin: Any) -> float:
        """Add up the parts since a mark.

        Returns:
            All seconds since the mark, also those outside the parts.
        """
        end = self.mark()
        if self.device.type == "cuda":
            end.synchronize()
        whole = self.between(begin, end)
        for part, first, last in self._spans:
            self.seconds[part] += self.between(first, last)
            self.seconds[REST] -= self.between(first, last)
        self.seconds[REST] += whole
        self._spans.clear()
        return whole


@contextmanager
def timed_parts(clock: Clock) -> Iterator[None]:
    """Record the parts of all updates in the block."""
    replaced = []
    for part, places in PARTS.items():
        for owner, name in places:
            function = vars(owner)[name]
            replaced.append((owner, name, function))
            setattr(owner, name, _timed(function, part, clock))
    try:
        yield
    finally:
        for owner, name, function in replaced:
            setattr(owner, name, function)


def _timed(function: Callable[..., Any], part: str, clock: Clock) -> Callable[..., Any]:
    @wraps(function)
    def timed(*arguments: Any, **named: Any) -> Any:
        begin = clock.mark()
        result = function(*arguments, **named)
        clock.note(part, begin)
        return result

    return timed
