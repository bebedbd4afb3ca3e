"""Parts of a dataset that are made apart, such as on one machine each: every n-th shard."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One of several parts.

    Attributes:
        number: which, from 1.
        count: how many there are.
    """

    number: int
    count: int

    def has(self, shard: int) -> bool:
        """Tell whether a shard is made in this part."""
        return shard % self.count == self.number - 1


WHOLE = Part(1, 1)
