from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from nmtkit.model.kernels import inference
from nmtkit.model.kernels.inference import InferenceLinear, replace_linears, weight_levels
from nmtkit.model.kernels.training import BLOCK_ROWS, INFERENCE_SIZES, padded_size
from nmtkit.model.layers import Function
from tests.integers import needs_integers

ROWS = [(1,), (3,), (2, 5), (4, 3, 2), (128,), (129,), (1024,), (1100,)]


@pytest.fixture(params=["packed", "plain"])
def _operators(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with this torch's packed operators, and without them."""
    if request.param == "plain":
        monkeypatch.setattr(inference, "_supports_packed", lambda _: False)


def random_linear(inputs: int, outputs: int, has_bias: bool) -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(inputs, outputs, bias=has_bias).requires_grad_(requires_grad=False)


@pytest.fixture(autouse=True)
def _no_intel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let oneDNN multiply by small matrices too, as on other processors."""
    monkeypatch.setattr(inference, "is_intel", lambda: False)


@pytest.mark.parametrize(
    ("dtype", "outputs", "packed_rows"),
    [
        (torch.float32, 256, [17, 200]),
        (torch.float32, 257, [1, 16, 17, 200]),
        (torch.bfloat16, 256, [1, 16, 17, 200]),
        (torch.float64, 257, []),
    ],
)
def test_small_matrices_of_float32_are_plain_for_few_rows_on_intel(
    dtype: torch.dtype, outputs: int, packed_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []

    def pack(weight: Tensor, _bias: Tensor | None) -> Function:
        def multiply(x: Tensor) -> Tensor:
            used.append(len(x))
            return x @ weight.T

        return multiply

    monkeypatch.setattr(inference, "_supports_packed", lambda _: True)
    monkeypatch.setattr(inference, "_packed_linear_function", pack)
    monkeypatch.setattr(inference, "is_intel", lambda: True)
    weight = torch.randn(outputs, 2048, dtype=dtype)
    linear = InferenceLinear(weight, None, dtype)
    for num_rows in (1, 16, 17, 200):
        x = torch.randn(num_rows, 2048, dtype=dtype)
        torch.testing.assert_close(linear(x), x @ weight.T)
    assert used == packed_rows


@pytest.mark.usefixtures("_operators")
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_product_is_that_of_a_linear_layer_in_float64(
    rows: tuple[int, ...], has_bias: bool
) -> None:
    linear = random_linear(19, 37, has_bias)
    x = torch.randn(*rows, 19)
    expected = linear.double()(x.double())
    linear = linear.float()
    for dtype, bits in ((torch.float32, 24), (torch.bfloat16, 8)):
        actual = InferenceLinear(linear.weight, linear.bias, dtype)(x)
        assert actual.dtype == dtype
        # Numbers of about 1, rounded to `bits` bits: x, weights and result.
        torch.testing.assert_close(actual.double(), expected, rtol=0.0, atol=8 * 2.0**-bits)


def test_the_operator_is_called_with_few_numbers_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def operator(x: Tensor, weight: Tensor, *_: object) -> Tensor:
        seen.add(x.shape[:-1].numel())
        return x @ weight.T

    library = SimpleNamespace(
        _reorder_linear_weight=SimpleNamespace(default=lambda weight: weight),
        _linear_pointwise=SimpleNamespace(default=operator),
    )
    monkeypatch.setattr(torch.ops, "mkldnn", library)
    monkeypatch.setattr(inference, "_supports_packed", lambda _: True)
    prepared = InferenceLinear(torch.eye(3), None, torch.float32)
    for rows in range(1, 2 * BLOCK_ROWS):
        x = torch.randn(rows, 3)
        assert torch.equal(prepared(x), x)
    assert seen == {padded_size(rows, INFERENCE_SIZES) for rows in range(1, BLOCK_ROWS + 1)}


@pytest.mark.usefixtures("_operators")
def test_a_prepared_matrix_does_not_follow_changes_of_the_original() -> None:
    linear = random_linear(4, 3, has_bias=True)
    x = torch.randn(2, 4)
    prepared = InferenceLinear(linear.weight.bfloat16(), None, torch.bfloat16)
    before = prepared(x)
    linear.weight.zero_()
    assert torch.equal(prepared(x), before)


def test_float64_is_multiplied_in_float64() -> None:
    linear = random_linear(4, 3, has_bias=True).double()
    x = torch.randn(2, 4, dtype=torch.float64)
    prepared = InferenceLinear(linear.weight, linear.bias, torch.float64)
    torch.testing.assert_close(prepared(x), linear(x), rtol=0.0, atol=1e-14)


def rounded(x: Tensor, levels: int) -> Tensor:
    """Return x (rows, columns) with rows of `levels` positive and negative steps, in float64."""
    step = x.double().abs().amax(-1, keepdim=True) / levels
    return torch.where(step == 0, 0.0, torch.round(x.double() / step) * step)


@needs_integers
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("size", [1, 19, 512])
def test_a_product_of_integers_is_that_of_rounded_rows(size: int, has_bias: bool) -> None:
    linear = random_linear(size, 37, has_bias)
    x = torch.randn(4, 50, size) * torch.rand(4, 50, 1).exp()
    x[0, :3] = torch.tensor([0.0, 1.0, -1.0])[:, None]  # zeros, and the largest sums
    actual = InferenceLinear(linear.weight, linear.bias, torch.int8)(x)
    expected = rounded(x.flatten(0, 1), 127) @ rounded(linear.weight, weight_levels()).T
    if has_bias:
        expected += linear.bias
    assert actual.dtype == torch.float32
    # x is rounded in float32, so a value between two steps can take the other one.
    is_near = (actual.flatten(0, 1) - expected).abs() <= 1e-5 * expected.abs().clamp_min(1)
    assert is_near.float().mean() > 0.99
    torch.testing.assert_close(actual.flatten(0, 1).double(), expected, rtol=0.0, atol=0.1)


@needs_integers
def test_a_row_has_the_same_product_of_integers_in_any_batch() -> None:
    linear = InferenceLinear(torch.randn(300, 70), torch.randn(300), torch.int8)
    x = torch.randn(129, 70) * torch.logspace(-6, 6, 129)[:, None]
    together = linear(x)
    assert torch.equal(torch.cat([linear(row[None]) for row in x]), together)
    assert torch.equal(linear(x.flip(0)).flip(0), together)
    assert linear(x[:0]).shape == (0, 300)


@needs_integers
def test_a_row_that_is_not_a_number_has_no_product_of_integers() -> None:
    x = torch.ones(2, 5)
    x[0, 3] = torch.nan
    product = InferenceLinear(torch.randn(4, 5), None, torch.int8)(x)
    assert product.isnan().all(1).tolist() == [True, False]


def test_integers_that_add_up_in_too_few_bits_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def saturated(_weight: Tensor, _bias: None, levels: int) -> Function:
        return lambda x: torch.full((len(x), 64), 64.0 if levels == smallest else 63.0)

    *_, smallest = inference.WEIGHT_LEVELS
    monkeypatch.setattr(inference, "_integer_linear_function", saturated)
    assert weight_levels.__wrapped__() == smallest


@pytest.mark.parametrize("error", [AttributeError, NotImplementedError, RuntimeError, TypeError])
def test_a_torch_without_products_of_integers_is_detected(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(inference, "_integer_linear_function", fail)
    assert weight_levels.__wrapped__() == 0


def test_only_linear_layers_are_replaced() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)))
    replace_linears(module, torch.float32)
    kinds = [type(one) for one in module.modules() if not isinstance(one, nn.Sequential)]
    assert kinds == [InferenceLinear, nn.LayerNorm, InferenceLinear]


@pytest.mark.parametrize(
    "error", [AttributeError, NotImplementedError, RuntimeError, TypeError, None]
)
def test_a_torch_with_other_or_wrong_operators_is_detected(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None
) -> None:
    def without_bias(weight: Tensor, _bias: Tensor | None) -> Function:
        if error:
            raise error
        return lambda x: x @ weight.T

    monkeypatch.setattr(inference, "_packed_linear_function", without_bias)
    inference._supports_packed.cache_clear()
    assert not inference._supports_packed(torch.float32)
    inference._supports_packed.cache_clear()


@pytest.mark.parametrize("has_bias", [False, True])
def test_sums_of_rounded_factors_are_not_rounded(
    has_bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mm(left: Tensor, right: Tensor, *, out_dtype: torch.dtype) -> Tensor:  # of a GPU
        assert left.dtype == right.dtype == torch.bfloat16
        return left.to(out_dtype) @ right.to(out_dtype)

    monkeypatch.setattr(torch, "mm", mm)
    weight, x = torch.randn(7, 12), torch.randn(3, 5, 12)
    bias = torch.randn(7) if has_bias else None
    product = InferenceLinear(weight, bias, torch.bfloat16, torch.float32)(x)
    exact = nn.functional.linear(x.bfloat16().double(), weight.bfloat16().double())
    expected = exact if bias is None else exact + bias
    assert product.dtype == torch.float32
    torch.testing.assert_close(product.double(), expected, rtol=1e-5, atol=1e-5)
