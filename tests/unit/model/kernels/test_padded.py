"""Attention in padded blocks equals torch's own in double precision, up to rounding."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from nmtkit.model.kernels import padded
from nmtkit.model.kernels.padded import (
    MAX_STORED_WEIGHTS,
    attend,
    heads_first,
    split_heads,
    weights,
)
from nmtkit.model.kernels.training import draw_dropout_mask

SENTENCES, HEADS, KEY_SIZE, VALUE_SIZE = 2, 3, 8, 16

LENGTHS = (1, 7, 40)

ROUNDING = {torch.bfloat16: 2e-2, torch.float32: 1e-5}
"""Some units in the last place of values of about 1: bfloat16 has 8 bits, float32 24."""


def sides(queries: int, keys: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((queries, KEY_SIZE), (keys, KEY_SIZE), (keys, VALUE_SIZE))
    query, key, value = (
        torch.randn(SENTENCES, HEADS, *shape).to(dtype).requires_grad_() for shape in shapes
    )
    return query, key, value


def assert_equals_exact(
    given: tuple[Tensor, Tensor, Tensor], mask: Tensor | None, is_causal: bool, rounding: float
) -> None:
    """Compare values, and gradients, with torch's own attention in double precision."""
    exact = [side.detach().double().requires_grad_() for side in given]
    query, key, value = exact
    ours = attend(*given, mask, is_causal, 0.0)
    oracle = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=is_causal)
    direction = torch.randn_like(oracle).to(ours.dtype)
    ours.backward(direction)
    oracle.backward(direction.double())
    assert ours.dtype == given[0].dtype
    pairs = [(ours, oracle)] + [
        (own.grad, other.grad) for own, other in zip(given, exact, strict=True)
    ]
    for own, other in pairs:
        assert own is not None
        assert other is not None
        largest = float(other.detach().abs().max())
        torch.testing.assert_close(
            own.detach().double(), other.detach(), rtol=0.0, atol=rounding * max(largest, 1.0)
        )


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("keys", LENGTHS)
@pytest.mark.parametrize("queries", LENGTHS)
def test_full_attention(queries: int, keys: int, dtype: torch.dtype) -> None:
    assert_equals_exact(sides(queries, keys, dtype), None, False, ROUNDING[dtype])


@pytest.mark.parametrize("dtype", ROUNDING)
def test_padding_is_masked(dtype: torch.dtype) -> None:
    mask = (torch.arange(9) < torch.tensor([[4], [9]]))[:, None, None, :]
    assert_equals_exact(sides(5, 9, dtype), mask, False, ROUNDING[dtype])


@pytest.mark.parametrize(
    "leading", [(), (1,), (HEADS,), (1, 1), (SENTENCES, 1), (SENTENCES, HEADS)]
)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_masks_may_differ_by_sentence_head_and_query(
    dtype: torch.dtype, leading: tuple[int, ...]
) -> None:
    mask = torch.rand(*leading, 5, 9) < 0.5
    mask[..., 3] = True  # every query sees one key
    assert_equals_exact(sides(5, 9, dtype), mask, False, ROUNDING[dtype])


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("length", LENGTHS)
def test_causal_attention(length: int, dtype: torch.dtype) -> None:
    assert_equals_exact(sides(length, length, dtype), None, True, ROUNDING[dtype])


@pytest.mark.parametrize(("dropout", "mask_bytes"), [(0.0, 0), (0.1, 1)])
def test_only_arguments_weights_and_masks_are_saved_for_the_backward_pass(
    dropout: float, mask_bytes: int
) -> None:
    given = sides(30, 20, torch.bfloat16)
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        attend(*given, None, False, dropout)
    num_weights = SENTENCES * HEADS * 30 * 20
    num_given = sum(side.numel() for side in given)
    assert sum(kept.values()) == 2 * (num_given + num_weights) + mask_bytes * num_weights


def test_weights_of_long_sequences_are_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded, "_MathAttention", None)  # must not be used
    query, key, value = sides(2, MAX_STORED_WEIGHTS // 2 + 1, torch.bfloat16)
    assert attend(query, key, value, None, False, 0.0).shape == (SENTENCES, HEADS, 2, VALUE_SIZE)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_dropout_removes_weights_and_scales_up_the_others(dtype: torch.dtype) -> None:
    query, key, _ = sides(20, 20, dtype)
    value = torch.eye(20, dtype=dtype).expand(SENTENCES, HEADS, 20, 20)
    whole, dropped = (attend(query, key, value, None, False, rate) for rate in (0.0, 0.5))
    is_kept = dropped != 0
    assert 0.45 < float(is_kept.float().mean()) < 0.55  # 2400 draws: within 5 deviations
    torch.testing.assert_close(
        dropped[is_kept].float(), 2 * whole[is_kept].float(), rtol=2e-2, atol=1e-6
    )


def test_gradients_with_dropout_are_those_of_the_kept_weights() -> None:
    given = sides(30, 20, torch.bfloat16)
    torch.manual_seed(2)
    ours = attend(*given, None, False, 0.5)
    torch.manual_seed(2)
    is_kept = draw_dropout_mask(torch.Size((SENTENCES * HEADS, 30, 20)), 0.5)
    is_kept = is_kept.view(SENTENCES, HEADS, 30, 20)
    exact = [side.detach().double().requires_grad_() for side in given]
    oracle = (weights(exact[0], exact[1], None) * is_kept * 2) @ exact[2]
    direction = torch.randn_like(oracle).bfloat16()
    pairs = zip(
        (ours, *torch.autograd.grad(ours, given, direction)),
        (oracle, *torch.autograd.grad(oracle, exact, direction.double())),
        strict=True,
    )
    for own, other in pairs:
        rounding = ROUNDING[torch.bfloat16] * max(float(other.detach().abs().max()), 1.0)
        torch.testing.assert_close(own.double(), other, rtol=0.0, atol=rounding)


@pytest.mark.parametrize("heads", [1, HEADS])
@pytest.mark.parametrize("length", [1, 7])
@pytest.mark.parametrize("dtype", ROUNDING)
def test_split_heads_and_their_gradients_equal_views(
    dtype: torch.dtype, length: int, heads: int
) -> None:
    for sizes in ((heads * KEY_SIZE,), (heads * KEY_SIZE, heads * KEY_SIZE, heads * VALUE_SIZE)):
        block = torch.randn(SENTENCES, length, sum(sizes)).to(dtype).requires_grad_()
        own = list(split_heads(block, heads, sizes))
        views = [heads_first(side, heads) for side in block.split(sizes, -1)]
        gradients = [torch.randn_like(view) for view in views]
        torch.testing.assert_close(own, views, rtol=0.0, atol=0.0)
        torch.testing.assert_close(
            torch.autograd.grad(own, block, gradients),
            torch.autograd.grad(views, block, gradients),
            rtol=0.0,
            atol=0.0,
        )


def test_training_sums_weights_in_float32() -> None:
    query = torch.zeros(1, 1, 1, 8).bfloat16().requires_grad_()
    key, value = (torch.randn(1, 1, 1000, 8).bfloat16() for _ in range(2))
    context = attend(query, key, value, None, False, 0.0)
    mean = value.double().mean(2, keepdim=True)
    torch.testing.assert_close(context.double(), mean, rtol=2**-6, atol=2e-4)
    (gradient,) = torch.autograd.grad(context.sum(), query)
    products = (value.double() - mean).sum(-1, keepdim=True)
    expected = (products * key.double()).mean(2, keepdim=True) * 8**-0.5
    torch.testing.assert_close(gradient.double(), expected, rtol=2**-6, atol=1e-3)


def test_weights_are_summed_in_float32() -> None:
    """A thousand equal scores: in bfloat16 sums of weights would be off by per cents."""
    query, key = torch.zeros(1, 1, 1, 8), torch.randn(1, 1, 1000, 8)
    found = weights(query.bfloat16(), key.bfloat16(), None)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, torch.full_like(found, 1e-3))
