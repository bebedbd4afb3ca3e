"""Linear layers equal torch's own; low-precision training uses few numbers of rows."""

import pytest
import torch
from torch import Tensor, nn

from nmtkit.model.kernels.training import Linear
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
    for num_rows in range(700, 1025):
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
