"""The model of several devices is right where the answer is known without it."""

from dataclasses import replace

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


def test_one_device_computes_and_applies() -> None:
    assert update_seconds(100, COMPUTE, None, HALVES) == pytest.approx(1 + 1 + 0.5)
    slow_host = replace(COMPUTE, least_s=3.0)
    assert update_seconds(100, slow_host, None, HALVES) == pytest.approx(3.5)


def test_a_ring_of_two_sends_all_bytes_once_and_a_large_one_nearly_twice() -> None:
    link = Link(bytes_s=10.0, latency_s=1.0)
    assert Exchange.by_ring(link, 2).seconds(100) == pytest.approx(2 * 1.0 + 100 / 10)
    assert Exchange.by_ring(link, 1000).byte_s == pytest.approx(0.2, rel=0.002)


@pytest.mark.parametrize(
    ("exchange", "seconds"),
    [
        # Passes of 2 s, whose last second is the backward pass; buckets at 1.5 s and 2 s.
        (Exchange(0.0, 0.002, overlaps=True), 2.2 + 0.5),  # the first is over before the second
        (Exchange(0.0, 0.01, overlaps=True), 1.5 + 1 + 1 + 0.5),  # the second waits for the first
        (Exchange(0.0, 0.002, overlaps=False), 2.4 + 0.5),
        (Exchange(0.1, 0.0, overlaps=True), 2.0 + 0.1 + 0.2 + 0.5),
    ],
)
def test_buckets_are_exchanged_while_the_backward_pass_goes_on(
    exchange: Exchange, seconds: float
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
