"""A model of the time of an update that several devices share.

Each device computes its part of the pairs. The backward pass finishes gradients in buckets, which
are exchanged one after another while it continues; then all devices apply the same update. A ring
of W devices adds up a bucket in 2 (W - 1) steps, each of which sends a W-th of it to the next
device.
Source: Patarasuk and Yuan 2009, https://doi.org/10.1016/j.jpdc.2008.09.002
"""

from collections.abc import Sequence
from dataclasses import dataclass

FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
"""What DistributedDataParallel gathers before it exchanges."""


@dataclass(frozen=True)
class Compute:
    """What one device takes for an update by itself.

    Attributes:
        least_s: shortest time, in which the host launches the work of a GPU.
        fixed_s, token_s: for a forward and backward pass, and a token of either side more.
        backward: share of that which is in the backward pass.
        apply_s: norm and optimiser.
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
    """What carries gradients from a device to the next.

    Attributes:
        bytes_s: bytes a second.
        latency_s: from sending a message to its arrival.
    """

    bytes_s: float
    latency_s: float


@dataclass(frozen=True)
class Exchange:
    """What it takes to add up the tensors of all devices.

    Attributes:
        fixed_s, byte_s: however small they are; a byte more.
        overlaps: it needs no part of the device that computes meanwhile.
    """

    fixed_s: float
    byte_s: float
    overlaps: bool

    @staticmethod
    def by_ring(link: Link, devices: int) -> "Exchange":
        """Return what a ring takes."""
        steps = 2 * (devices - 1)
        return Exchange(steps * link.latency_s, steps / devices / link.bytes_s, overlaps=True)

    def seconds(self, num_bytes: float) -> float:
        """Return the time for a number of bytes."""
        return self.fixed_s + self.byte_s * num_bytes


@dataclass(frozen=True)
class Bucket:
    """Gradients that are exchanged together.

    Attributes:
        num_bytes: how large they are.
        ready: when they are there, as a share of the backward pass.
    """

    num_bytes: int
    ready: float


def fill_buckets(layers: Sequence[int], embeddings: int) -> list[Bucket]:
    """Return the buckets that the gradients of a model are exchanged in.

    Args:
        layers: bytes of each parameter but the embeddings, the one that is finished first in front;
            its part of the backward pass is taken to be as large as it is.
        embeddings: bytes of those, which are finished last, as the encoder's input is among them.
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
        tokens: a side, of each device's share.
        compute: of one device.
        exchange: with the others; None = there are none.
        buckets: what is exchanged.
    """
    passes = compute.seconds(tokens)
    end = passes
    if exchange is not None:
        backward = compute.backward * passes
        is_free = 0.0  # when the link is
        for bucket in buckets:
            ready = passes - backward * (1 - bucket.ready) if exchange.overlaps else passes
            is_free = max(is_free, ready) + exchange.seconds(bucket.num_bytes)
        # The losses and the tokens are summed as well.
        end = is_free + 2 * exchange.fixed_s
    return end + compute.apply_s
