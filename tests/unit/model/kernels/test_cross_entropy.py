import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.kernels import cross_entropy
from nmtkit.model.kernels.cross_entropy import (
    CrossEntropy,
    smoothed_cross_entropy,
)
from tests.doubles import LargestTensor, Products

TOKENS, MODEL_SIZE, VOCABULARY = 23, 6, 17
EXACT = 1e-10
"""In float64 another order of summation changes less than this."""

smoothings = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])


def random_problem(scale: float, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    hidden = (torch.randn(TOKENS, MODEL_SIZE, dtype=dtype) * scale).requires_grad_()
    weight = torch.randn(VOCABULARY, MODEL_SIZE, dtype=dtype, requires_grad=True)
    return hidden, weight, torch.randint(VOCABULARY, (TOKENS,))


def gradients(loss: Tensor, hidden: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss * 0.3, (hidden, weight))  # as if divided by a count of tokens


@smoothings
def test_in_bfloat16_gradients_are_the_exact_ones_rounded(smoothing: float) -> None:
    hidden, weight, targets = random_problem(1.0, torch.float32)
    low = hidden.detach().bfloat16().requires_grad_()
    exact, rounded = low.detach().double(), weight.detach().bfloat16().double()
    exact, rounded = exact.requires_grad_(), rounded.requires_grad_()
    losses = smoothed_cross_entropy(low, weight, targets, smoothing, 7)
    expected = smoothed_cross_entropy(exact, rounded, targets, smoothing, 7)
    pairs = zip(
        gradients(losses.smoothed, low, weight),
        gradients(expected.smoothed, exact, rounded),
        strict=True,
    )
    for actual, other in pairs:
        error = (actual.double() - other).norm() / other.norm()
        assert error.item() < 2**-6  # of logits, of probabilities and of products: 8 bits each


@smoothings
@pytest.mark.parametrize("chunk", [1, 7, 22, 23, 24])
def test_the_loss_and_its_gradients_are_those_of_torch(chunk: int, smoothing: float) -> None:
    hidden, weight, targets = random_problem(1.0, torch.float64)
    losses = smoothed_cross_entropy(hidden, weight, targets, smoothing, chunk)
    logits = hidden @ weight.T
    smoothed = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    nll = F.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(losses, CrossEntropy(smoothed, nll), rtol=0.0, atol=EXACT)
    actual = gradients(losses.smoothed, hidden, weight)
    expected = gradients(smoothed, hidden, weight)
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_loss_does_not_depend_on_the_alignment_of_logits(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, weight, targets = random_problem(3.0, dtype)
    plain = smoothed_cross_entropy(hidden, weight, targets, 0.1, 7)
    monkeypatch.setattr(cross_entropy, "row_length", lambda size, _: size + 51)
    aligned = smoothed_cross_entropy(hidden, weight, targets, 0.1, 7)
    torch.testing.assert_close(aligned, plain)
    torch.testing.assert_close(
        gradients(aligned.smoothed, hidden, weight), gradients(plain.smoothed, hidden, weight)
    )


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_float32_and_large_logits_stay_accurate(scale: float) -> None:
    hidden, weight, targets = random_problem(scale, torch.float32)
    losses = smoothed_cross_entropy(hidden, weight, targets, 0.1, 5)
    logits = hidden.double() @ weight.double().T
    expected = F.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
    # Sums of 23 tokens with 24-bit mantissas.
    torch.testing.assert_close(losses.smoothed.double(), expected, rtol=1e-5, atol=0.0)
    actual = gradients(losses.smoothed, hidden, weight)
    torch.testing.assert_close(actual, gradients(expected, hidden, weight), rtol=1e-4, atol=1e-3)


def test_only_the_smoothed_loss_has_a_gradient_and_without_it_losses_are_the_same() -> None:
    hidden, weight, targets = random_problem(1.0, torch.float64)
    with_gradients = smoothed_cross_entropy(hidden, weight, targets, 0.1, 5)
    assert with_gradients.smoothed.requires_grad
    assert not with_gradients.nll.requires_grad
    with torch.no_grad():
        without = smoothed_cross_entropy(hidden, weight, targets, 0.1, 5)
    torch.testing.assert_close(without, with_gradients, rtol=0.0, atol=EXACT)
    assert not without.smoothed.requires_grad


def test_logits_of_all_tokens_never_exist_together() -> None:
    tokens, vocabulary, chunk = 640, 500, 64
    hidden = torch.randn(tokens, MODEL_SIZE, requires_grad=True)
    weight = torch.randn(vocabulary, MODEL_SIZE, requires_grad=True)
    targets = torch.randint(vocabulary, (tokens,))
    with LargestTensor() as watch:  # type: ignore[no-untyped-call]
        smoothed_cross_entropy(hidden, weight, targets, 0.1, chunk).smoothed.backward()
    assert watch.num_elements == chunk * vocabulary
    with LargestTensor() as watch:  # type: ignore[no-untyped-call]
        F.cross_entropy(hidden @ weight.T, targets, label_smoothing=0.1).backward()
    assert watch.num_elements == tokens * vocabulary, "the watch sees what it looks for"


@pytest.mark.parametrize("needs_hidden", [False, True])
def test_a_side_without_a_gradient_costs_no_product(needs_hidden: bool) -> None:
    hidden = torch.randn(50, MODEL_SIZE, dtype=torch.float64)
    weight = torch.randn(VOCABULARY, MODEL_SIZE, dtype=torch.float64)
    targets = torch.randint(VOCABULARY, (50,))
    for side in (hidden, weight):
        side.requires_grad_(True)
    with Products() as products:
        smoothed_cross_entropy(hidden, weight, targets, 0.1, 64)
    smoothed_cross_entropy(hidden, weight, targets, 0.1, 64).smoothed.backward()
    needed, other = (hidden, weight) if needs_hidden else (weight, hidden)
    expected, needed.grad = needed.grad, None
    other.grad = None
    other.requires_grad_(False)
    with Products() as fewer:
        smoothed_cross_entropy(hidden, weight, targets, 0.1, 64)
    smoothed_cross_entropy(hidden, weight, targets, 0.1, 64).smoothed.backward()
    assert (len(products.shapes), len(fewer.shapes)) == (3, 2)
    assert other.grad is None
    assert expected is not None
    assert needed.grad is not None
    assert torch.equal(needed.grad, expected)


@pytest.mark.parametrize("has_gradients", [False, True])
def test_products_in_bfloat16_see_few_numbers_of_tokens(has_gradients: bool) -> None:
    weight, seen = torch.randn(VOCABULARY, MODEL_SIZE, requires_grad=has_gradients), set()
    for num_tokens in range(700, 1025, 7):
        hidden = torch.randn(num_tokens, MODEL_SIZE).bfloat16().requires_grad_(has_gradients)
        targets = torch.randint(VOCABULARY, (num_tokens,))
        with torch.set_grad_enabled(has_gradients), Products() as products:
            smoothed_cross_entropy(hidden, weight, targets, 0.1, 512)
        seen |= {*products.shapes}
    kinds = 3 if has_gradients else 1
    assert len(seen) == 6 * kinds  # 192, 256, ..., 512


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_products_in_bfloat16_are_summed_in_float32() -> None:
    tokens, model_size, vocabulary = 4096, 64, 512
    hidden = torch.randn(tokens, model_size).bfloat16()
    weight = (torch.randn(vocabulary, model_size) / 8).bfloat16()
    targets = torch.randint(vocabulary, (tokens,))

    def compute(device: str, dtype: torch.dtype) -> tuple[Tensor, ...]:
        h = hidden.to(device, dtype).requires_grad_()
        w = weight.to(device, torch.promote_types(dtype, torch.float32)).requires_grad_()
        losses = smoothed_cross_entropy(h, w, targets.to(device), 0.1, 256)
        return losses.smoothed.cpu(), *torch.autograd.grad(losses.smoothed, (h, w))

    pairs = zip(compute("cuda", torch.bfloat16), compute("cpu", torch.float64), strict=True)
    for actual, expected in pairs:
        error = (actual.cpu().double() - expected).norm() / expected.norm()
        assert error.item() < 2**-7  # of probabilities and of products, each rounded once
