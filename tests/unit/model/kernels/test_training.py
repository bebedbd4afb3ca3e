"""Linear layers equal torch's own, in few numbers of rows; the laws of dropout."""

import math

import pytest
import torch
from torch import Tensor, nn

from nmtkit.model.cost import CHUNK_LOGITS, MIN_CHUNK_TOKENS, chunk_size
from nmtkit.model.kernels.cross_entropy import row_length
from nmtkit.model.kernels.training import (
    BLOCK_ROWS,
    INFERENCE_SIZES,
    TRAINING_SIZES,
    Dropout,
    Linear,
    RowSizes,
    padded_size,
)
from tests.doubles import Products

INPUTS, OUTPUTS = 24, 40
ROWS = [1, 63, 64, 65, 500, 1024, 1025, 3000]


def trained(linear: nn.Linear, x: Tensor, gradient: Tensor) -> list[Tensor]:
    """Return the output for x, and the gradients of x, weight and bias for a gradient of it."""
    x = x.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        output = linear(x)
    wanted = (x, linear.weight, linear.bias)
    return [output, *torch.autograd.grad(output, wanted, gradient.to(output.dtype))]


def twins() -> tuple[Linear, nn.Linear]:
    """Return a linear layer, and torch's own of the same weights."""
    linear, plain = Linear(INPUTS, OUTPUTS), nn.Linear(INPUTS, OUTPUTS)
    plain.load_state_dict(linear.state_dict())
    return linear, plain


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_rows", ROWS)
def test_outputs_and_gradients_equal_torchs(num_rows: int, dtype: torch.dtype) -> None:
    linear, plain = twins()
    x, gradient = torch.randn(num_rows, INPUTS).to(dtype), torch.randn(num_rows, OUTPUTS)
    # Roundings to 8 bits may differ; gradients of weight and bias are sums over the rows.
    of_sums = 1e-2 * num_rows**0.5
    tolerances = (1e-2, 1e-2, of_sums, of_sums)
    pairs = zip(trained(linear, x, gradient), trained(plain, x, gradient), tolerances, strict=True)
    for own, other, tolerance in pairs:
        assert own.dtype == other.dtype
        assert own.shape == other.shape
        torch.testing.assert_close(own, other, rtol=2e-2, atol=tolerance)


def test_the_gradient_of_the_bias_is_rounded_after_summing() -> None:
    linear, _ = twins()
    gradient = torch.randn(3000, OUTPUTS).bfloat16()
    *_, of_bias = trained(linear, torch.randn(3000, INPUTS), gradient)
    rounded = gradient.double().sum(0).bfloat16().float()
    torch.testing.assert_close(of_bias, rounded, rtol=1e-5, atol=1e-4)


def test_leading_dimensions_are_kept() -> None:
    linear, plain = twins()
    x, gradient = torch.randn(3, 5, INPUTS), torch.randn(3, 5, OUTPUTS)
    own, other = trained(linear, x, gradient), trained(plain, x, gradient)
    assert [tensor.shape for tensor in own] == [tensor.shape for tensor in other]


def test_products_have_few_numbers_of_rows() -> None:
    linear, _ = twins()
    seen = set()
    for num_rows in range(700, 1025, 7):
        x, gradient = torch.randn(num_rows, INPUTS), torch.randn(num_rows, OUTPUTS)
        with Products() as products:
            trained(linear, x, gradient)
        assert len(products.shapes) == 3
        seen |= {*products.shapes}
    assert len(seen) == 3 * 6  # 704, 768, 832, 896, 960, 1024


@pytest.mark.parametrize("has_gradients", [False, True])
def test_other_products_are_not_padded(has_gradients: bool) -> None:
    linear, plain = twins()
    x = torch.randn(65, INPUTS)
    if has_gradients:  # in float32
        with Products() as products:
            output = linear(x)
        expected = plain(x)
    else:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            with Products() as products:
                output = linear(x)
            expected = plain(x)
    assert torch.equal(output, expected)
    assert [left for left, _ in products.shapes] == [(65, INPUTS)]


def test_autocast_does_not_convert_float64() -> None:
    linear = Linear(INPUTS, OUTPUTS).double()
    x = torch.randn(65, INPUTS, dtype=torch.float64)
    expected = nn.functional.linear(x, linear.weight, linear.bias)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear(x), expected)


# ------------------------------------------------------------------------------------------ dropout


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


# ---------------------------------------------------------------------------------- numbers of rows


@pytest.mark.parametrize("row_sizes", [TRAINING_SIZES, INFERENCE_SIZES])
def test_permitted_sizes_are_kept_and_others_grow_to_the_next(row_sizes: RowSizes) -> None:
    sizes = [padded_size(num_rows, row_sizes) for num_rows in range(1, 30_000)]
    assert sizes == sorted(sizes)
    assert all(padded_size(size, row_sizes) == size for size in set(sizes))
    for num_rows, size in enumerate(sizes, 1):
        smallest_step = max(row_sizes.step, num_rows / row_sizes.per_doubling)
        assert num_rows <= size < num_rows + smallest_step


def test_training_has_few_sizes() -> None:
    sizes = {padded_size(num_rows, TRAINING_SIZES) for num_rows in range(1, 30_000)}
    assert len(sizes) < 100
    assert len({size for size in sizes if size <= 1024}) == 16
    assert min(sizes) == 64


def test_inference_has_few_sizes_that_are_near() -> None:
    sizes = {rows: padded_size(rows, INFERENCE_SIZES) for rows in range(1, BLOCK_ROWS + 1)}
    assert all(rows <= size <= max(2 * rows - 1, 1) for rows, size in sizes.items())
    assert all(size <= rows * 1.5 for rows, size in sizes.items() if rows > 32)
    assert len(set(sizes.values())) == 24
    assert len({size for size in sizes.values() if size <= 128}) == 12
    assert max(sizes.values()) == BLOCK_ROWS


@pytest.mark.parametrize("vocabulary", [8, 8000, 32_000, 37_000, 1_000_000])
def test_a_chunk_has_a_bounded_size_that_is_a_multiple_of_the_step(vocabulary: int) -> None:
    tokens = chunk_size(vocabulary, "cpu")
    assert tokens >= MIN_CHUNK_TOKENS
    assert tokens == MIN_CHUNK_TOKENS or tokens * vocabulary <= CHUNK_LOGITS["cpu"]
    assert tokens % TRAINING_SIZES.step == 0


@pytest.mark.parametrize(("vocabulary", "expected"), [(1, 64), (64, 64), (36_549, 36_608)])
def test_rows_of_logits_are_aligned_on_gpus(vocabulary: int, expected: int) -> None:
    assert row_length(vocabulary, "cuda") == expected
    assert row_length(vocabulary, "cpu") == vocabulary
