"""The laws of dropout: rate, mean, gradient, repetition, and silence outside of training."""

import math

import pytest
import torch

from nmtkit.model.kernels.training import Dropout

SIZE = (1000, 401)  # not a multiple of the numbers in a random word


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.99])
def test_elements_are_dropped_at_the_rate_and_the_others_scaled(rate: float) -> None:
    torch.manual_seed(3)
    dropped = Dropout(rate)(torch.ones(SIZE))
    is_kept = dropped != 0
    assert torch.allclose(dropped[is_kept], torch.tensor(1 / (1 - rate)))
    # Five standard deviations of a binomial share.
    tolerance = 5 * math.sqrt(rate * (1 - rate) / dropped.numel())
    assert float((~is_kept).float().mean()) == pytest.approx(rate, abs=tolerance)


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(4)
    is_kept = (Dropout(0.5)(torch.ones(SIZE)) != 0).float().flatten()
    for distance in (1, 2, 3, 4, 401):
        both = (is_kept[distance:] * is_kept[:-distance]).mean()
        assert float(both) == pytest.approx(0.25, abs=5 * math.sqrt(0.1875 / len(is_kept)))


def test_the_gradient_passes_where_the_element_did() -> None:
    torch.manual_seed(5)
    x = torch.randn(64, 33, dtype=torch.float64, requires_grad=True)
    dropped = Dropout(0.2)(x)
    dropped.sum().backward()
    expected = torch.where(dropped != 0, 1 / 0.8, 0.0).double()
    assert x.grad is not None
    assert torch.allclose(x.grad, expected, rtol=0, atol=1e-12)


def test_a_seed_repeats_the_mask_and_another_call_does_not() -> None:
    x, dropout = torch.ones(50, 50), Dropout(0.1)
    torch.manual_seed(6)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(6)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero() -> None:
    x = torch.randn(7, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
