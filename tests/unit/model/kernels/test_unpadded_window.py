"""Self-attention within a window equals full attention under a mask, with less memory."""

from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nmtkit.config.model import ModelConfig
from nmtkit.model.attention import SelfAttention
from nmtkit.model.kernels.unpadded import (
    CAUSAL,
    FULL,
    Window,
    attend_in_window,
    self_attention_window,
)
from nmtkit.packed import Layout

CPU = torch.device("cpu")
MODEL_SIZE, HEADS, KEY_SIZE, VALUE_SIZE = 6, 2, 3, 4
TOLERANCE = 1e-12
"""In float64 another order of summation changes less than this."""


def window_mask(lengths: Sequence[int], size: int, is_causal: bool) -> Tensor:
    """(X, X) mask of a window, token by token. Source: paper, section 4."""
    places = [(number, place) for number, length in enumerate(lengths) for place in range(length)]
    rows = []
    for own, i in places:
        window = (
            range(i - size + 1, i + 1) if is_causal else range(i - size // 2, i + size // 2 + 1)
        )
        rows.append([other == own and j in window for other, j in places])
    return torch.tensor(rows)


def masked_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Attend with torch's own attention and a mask over all tokens: (X, H, K)."""
    q, k, v = (part.transpose(0, 1) for part in (query, key, value))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(0, 1)


def random_parts(num_tokens: int, value_size: int) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (
        torch.randn(num_tokens, HEADS, size, dtype=torch.float64, requires_grad=True)
        for size in (KEY_SIZE, KEY_SIZE, value_size)
    )
    return query, key, value


def self_attention(size: int, dropout: float = 0.0) -> SelfAttention:
    config = ModelConfig(
        model_size=MODEL_SIZE,
        heads=HEADS,
        key_size=KEY_SIZE,
        value_size=KEY_SIZE,
        attention_dropout=dropout,
        window=size,
    )
    attention = SelfAttention(config)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention.double()


@pytest.mark.parametrize(
    ("size", "is_causal", "longest", "expected"),
    [
        (0, False, 10**6, FULL),
        (0, True, 10**6, CAUSAL),
        (1, False, 2, Window(0, 0)),
        (1, True, 2, Window(0, 0)),
        (5, False, 4, Window(2, 2)),
        (4, False, 4, Window(2, 2)),
        (4, True, 5, Window(3, 0)),
        (5, False, 3, FULL),
        (4, True, 4, CAUSAL),
        (1, False, 1, FULL),
    ],
)
def test_a_window_is_half_on_either_side_or_causal(
    size: int, is_causal: bool, longest: int, expected: Window
) -> None:
    window = self_attention_window(size, is_causal, longest)
    assert window == expected
    assert window.is_limited is (expected not in (FULL, CAUSAL))


@pytest.mark.parametrize("value_size", [KEY_SIZE, VALUE_SIZE])
@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    size=st.integers(1, 26),
    is_causal=st.booleans(),
    block=st.integers(1, 20),
)
def test_blocks_of_any_size_equal_masked_attention_and_its_gradients(
    value_size: int, lengths: list[int], size: int, is_causal: bool, block: int
) -> None:
    window = self_attention_window(size, is_causal, longest=10**6)
    parts = random_parts(sum(lengths), value_size)
    actual = attend_in_window(*parts, Layout(lengths, CPU), window, 0.0, block)
    expected = masked_attention(*parts, window_mask(lengths, size, is_causal))
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=TOLERANCE)
    weights = torch.randn_like(expected)
    gradients = torch.autograd.grad((actual * weights).sum(), parts)
    expected_gradients = torch.autograd.grad((expected * weights).sum(), parts)
    for own, other in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(own, other, rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("is_causal", [False, True])
def test_training_blocks_in_bfloat16_equal_float64_up_to_rounding(is_causal: bool) -> None:
    lengths = [7, 12, 1, 9]
    window = self_attention_window(5, is_causal, max(lengths))
    exact = random_parts(sum(lengths), VALUE_SIZE)
    query, key, value = low = [part.detach().bfloat16().requires_grad_() for part in exact]
    actual = attend_in_window(query, key, value, Layout(lengths, CPU), window, 0.0, 6)
    expected = masked_attention(*exact, window_mask(lengths, 5, is_causal))
    direction = torch.randn_like(expected)
    pairs = zip(
        (actual, *torch.autograd.grad(actual, low, direction.bfloat16())),
        (expected, *torch.autograd.grad(expected, exact, direction)),
        strict=True,
    )
    for own, other in pairs:
        largest = max(float(other.detach().abs().max()), 1.0)
        torch.testing.assert_close(own.double(), other, rtol=0.0, atol=2e-2 * largest)


@pytest.mark.parametrize("lengths", [[7, 2, 5, 1], [7, 7]], ids=["ragged", "rectangular"])
@pytest.mark.parametrize(("is_causal", "whole"), [(False, 2 * 7 - 2), (True, 7)])
def test_a_window_that_covers_the_longest_sequence_is_full_attention(
    lengths: list[int], is_causal: bool, whole: int
) -> None:
    layout = Layout(lengths, CPU)
    x = torch.randn(sum(lengths), MODEL_SIZE, dtype=torch.float64)
    full = self_attention(0)

    def difference(size: int) -> float:
        restricted = self_attention(size)
        restricted.load_state_dict(full.state_dict())
        difference: Tensor = restricted(x, layout, is_causal) - full(x, layout, is_causal)
        return difference.abs().max().item()

    assert max(map(difference, (whole, 2 * 7 - 1, 100))) < TOLERANCE
    # The next smaller window hides one position, from the farthest one only.
    assert difference(whole - 1) > 1e-6


def saved_bytes(attention: SelfAttention, num_tokens: int) -> int:
    """Return the bytes that a forward pass saves for the backward pass, each storage once."""
    storages = {}

    def keep(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    x = torch.randn(num_tokens, MODEL_SIZE, dtype=torch.float64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = attention(x, Layout([num_tokens], CPU), is_causal=False)
    assert output.requires_grad
    return sum(storages.values())


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_memory_grows_linearly_with_the_tokens(dropout: float) -> None:
    attention = self_attention(16, dropout)
    small, large = saved_bytes(attention, 1024), saved_bytes(attention, 4096)
    assert large / small == pytest.approx(4, rel=0.05)


def test_attention_dropout_within_a_window_drops_weights() -> None:
    # In a window of one, a token attends to itself with weight 1: dropout makes 0 or 1 / (1 - p).
    p, num_tokens = 0.25, 400
    window, parts = Window(0, 0), random_parts(num_tokens, KEY_SIZE)
    context = attend_in_window(*parts, Layout([num_tokens], CPU), window, p)
    is_dropped = context == 0
    kept_values = (parts[2] / (1 - p))[~is_dropped]
    torch.testing.assert_close(context[~is_dropped], kept_values, rtol=0.0, atol=TOLERANCE)
    # 800 draws: four standard deviations are 0.06.
    assert is_dropped.all(-1).double().mean().item() == pytest.approx(p, abs=0.06)
