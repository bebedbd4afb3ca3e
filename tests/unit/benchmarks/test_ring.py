"""The model of several devices is right where the answer is known without it."""

import pytest

from benchmarks.ring import (
    BUCKET_BYTES,
    Bucket,
    Compute,
    Exchange,
    Link,
    fill_buckets,
    update_seconds,
)

COMPUTE = Compute(least_s=0.0, fixed_s=1.0, token_s=0.01, backward=0.5, apply_s=0.5)
HALVES = [Bucket(100, 0.5), Bucket(100, 1.0)]


@pytest.mark.parametrize(
    ("exchange", "seconds"),
    [
        # Passes of 2 s, whose last second is the backward pass; buckets at 1.5 s and 2 s.
        (None, 2.0 + 0.5),
        (Exchange(0.0, 0.002, overlaps=True), 2.2 + 0.5),  # the first is over before the second
        (Exchange(0.0, 0.01, overlaps=True), 1.5 + 1 + 1 + 0.5),  # the second waits for the first
        (Exchange(0.0, 0.002, overlaps=False), 2.4 + 0.5),
        (Exchange(0.1, 0.0, overlaps=True), 2.0 + 0.1 + 0.2 + 0.5),
        # A ring of two sends all bytes once: 3 s a bucket, and 2 s for each of the last two sums.
        (Exchange.by_ring(Link(bytes_s=100.0, latency_s=1.0), 2), 1.5 + 3 + 3 + 2 * 2 + 0.5),
    ],
)
def test_buckets_are_exchanged_during_the_backward_pass(
    exchange: Exchange | None, seconds: float
) -> None:
    assert update_seconds(100, COMPUTE, exchange, HALVES) == pytest.approx(seconds)


def test_buckets_hold_all_gradients_and_the_embeddings_come_last() -> None:
    layers = [1 << 20] * 60
    buckets = fill_buckets(layers, embeddings=7)
    assert sum(bucket.num_bytes for bucket in buckets) == sum(layers) + 7
    assert buckets[0] == Bucket(1 << 20, 1 / 60)
    assert buckets[1] == Bucket(BUCKET_BYTES, 26 / 60)
    assert buckets[-1].ready == 1.0
    assert [bucket.ready for bucket in buckets] == sorted(bucket.ready for bucket in buckets)
