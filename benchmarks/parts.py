"""How long the parts of an update take, measured from outside of the code that does them.

The functions of each part are replaced by ones that note when they begin and end. A GPU notes that
itself, in order with its work, so that nothing waits for it: its marks are read when the update is
done. What of an update is in no part is the host's: gaps in which, on a GPU, nothing runs.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
from nmtkit.training.reading import Reader
from nmtkit.training.updating import Updater
from torch import Tensor

from nmtkit.model.transformer import Transformer
from nmtkit.training import objective
from nmtkit.training.distributed import Ranks

PARTS: dict[str, list[tuple[Any, str]]] = {
    "data": [(Reader, "_take")],
    "forward": [(Transformer, "encode"), (Transformer, "decode")],
    "loss": [(objective, "smoothed_cross_entropy")],
    "backward": [(Tensor, "backward")],
    "reduce": [(Ranks, "sum")],
    "optimiser": [(Updater, "_average_gradients"), (Updater, "apply")],
}
"""Where each part is: objects, and the names of their functions.

The loss projects to the vocabulary, and computes the gradients of that at once. Ranks exchange
gradients within the backward pass; reduce is what they sum beside them. The optimiser's part begins
with the norm of the gradients.
"""

REST = "host gaps"


@dataclass
class Clock:
    """Notes the times of parts.

    Attributes:
        seconds: of each part, of the spans that were read.
    """

    device: torch.device
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*PARTS, REST), 0.0))
    _spans: list[tuple[str, Any, Any]] = field(default_factory=list)

    def mark(self) -> Any:
        """Return a mark of this moment; on a GPU, of when it comes to what it is told next."""
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        """Return the seconds between two marks that have come."""
        if self.device.type != "cuda":
            return float(end - begin)
        return float(begin.elapsed_time(end)) / 1000

    def note(self, part: str, begin: Any) -> None:
        """Note that a part that began at a mark ends now."""
        self._spans.append((part, begin, self.mark()))

    def read(self, begin: Any) -> float:
        """Add up the parts of an update that began at a mark, and has been waited for.

        Returns:
            the seconds of all of it.
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

    def forget(self) -> None:
        """Begin anew."""
        self._spans.clear()
        self.seconds.update(dict.fromkeys(self.seconds, 0.0))


@contextmanager
def timed_parts(clock: Clock) -> Iterator[None]:
    """Have a clock note the parts of each update while the block lasts."""
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
