"""A model of the time of an update that is shared by several devices.

Each device computes its part of the pairs. The backward pass finishes gradients in buckets, which
are exchanged one after another while it continues. Then all devices apply the same update. A ring
of W devices sums a bucket in 2 (W - 1) steps; each step sends a W-th of it to the next device.
Source: Patarasuk and Yuan 2009, https://doi.org/10.1016/j.jpdc.2008.09.002
"""

from collections.abc import Sequence
from dataclasses import dataclass

FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
"""Sizes of DistributedDataParallel's buckets: the first one, and the others."""


@dataclass(frozen=True)
class Compute:
    """The times of one device for an update without exchange.

    Attributes:
        least_s: shortest time, in which the host launches the work of a GPU.
        fixed_s, token_s: time of a forward and backward pass: constant, and per token per side.
        backward: fraction of this time in the backward pass.
        apply_s: time of gradient norm and optimiser.
    """

    least_s: float
    fixed_s: float
    token_s: float
    backward: float
    apply_s: float

    def seconds(self, tokens: float) -> float:
        """Return the time of a forward and backward pass over a number of tokens per side."""
        return max(self.least_s, self.fixed_s + self.token_s * tokens)


@dataclass(frozen=True)
class Link:
    """A connection between two devices.

    Attributes:
        bytes_s: bytes per second.
        latency_s: from sending a message to its arrival.
    """

    bytes_s: float
    latency_s: float


@dataclass(frozen=True)
class Exchange:
    """The time to sum the tensors of all devices.

    Attributes:
        fixed_s, byte_s: constant time, and time per byte.
        overlaps: it does not slow down the computation on the device.
    """

    fixed_s: float
    byte_s: float
    overlaps: bool

    @staticmethod
    def by_ring(link: Link, devices: int) -> "Exchange":
        """Return the times of a ring."""
        steps = 2 * (devices - 1)
        return Exchange(steps * link.latency_s, steps / devices / link.bytes_s, overlaps=True)

    def seconds(self, num_bytes: float) -> float:
        """Return the time for a number of bytes."""
        return self.fixed_s + self.byte_s * num_bytes


@dataclass(frozen=True)
class Bucket:
    """Gradients that are exchanged together.

    Attributes:
        num_bytes: their size.
        ready: when they are finished, as a fraction of the backward pass.
    """

    num_bytes: int
    ready: float


def fill_buckets(layers: Sequence[int], embeddings: int) -> list[Bucket]:
    """Return the buckets of a model's gradients.

    Args:
        layers: bytes of each parameter except the embeddings, in the order of the backward pass;
            the time of each is assumed proportional to its size.
        embeddings: bytes of the embeddings, which come last, because the encoder reads them.
    """
    buckets: list[Bucket] = []
    size, done, limit = 0, 0, FIRST_BUCKET_BYTES
    for num_bytes in layers:
        size, done = size + num_bytes, done + num_bytes
        if size >= limit:
            buckets.append(Bucket(size, done / sum(layers)))
            size, limit = 0, BUCKET_BYTES
    return [*buckets, Bucket(size + embeddings, 1.0)]


def update_seconds(
    tokens: float, compute: Compute, exchange: Exchange | None, buckets: Sequence[Bucket]
) -> float:
    """Return the time of an update.

    Args:
        tokens: tokens per side of each device's part.
        compute: the times of one device.
        exchange: the exchange with other devices; None = no other devices.
        buckets: the exchanged gradients.
    """
    passes = compute.seconds(tokens)
    end = passes
    if exchange is not None:
        backward = compute.backward * passes
        is_free = 0.0  # time when the link is free
        for bucket in buckets:
            ready = passes - backward * (1 - bucket.ready) if exchange.overlaps else passes
            is_free = max(is_free, ready) + exchange.seconds(bucket.num_bytes)
        # Losses and numbers of tokens are summed, too.
        end = is_free + 2 * exchange.fixed_s
    return end + compute.apply_s
