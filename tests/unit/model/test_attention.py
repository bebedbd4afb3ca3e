import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from nmtkit.config.model import ModelConfig
from nmtkit.model.attention import CrossAttention, Rotation, SelfAttention, recorded_weights
from nmtkit.packed import Layout, Packed
from tests.tiny import randomize
from tests.unit.model.tensors import MODEL_SIZE, assert_same, random_values

CPU = torch.device("cpu")
HEADS = 3
SHAPE = ModelConfig(model_size=MODEL_SIZE, heads=HEADS)
TARGET, SOURCE = [3, 1, 5, 2], [2, 4, 1, 4]


def shape(key_size: int, value_size: int, dropout: float) -> ModelConfig:
    return replace(SHAPE, key_size=key_size, value_size=value_size, attention_dropout=dropout)


def self_attention(key_size: int, value_size: int, dropout: float) -> SelfAttention:
    return randomize(SelfAttention(shape(key_size, value_size, dropout)))


def cross_attention(key_size: int, value_size: int, dropout: float) -> CrossAttention:
    return randomize(CrossAttention(shape(key_size, value_size, dropout)))


def formula(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V, head by head. Source: paper, equation 1."""
    heads = []
    for q, k, v in zip(*(p.chunk(HEADS, -1) for p in (query, key, value)), strict=True):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        if is_causal:
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
        heads.append(scores.softmax(-1) @ v)
    return torch.cat(heads, -1)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("key_size", "value_size"), [(2, 5), (7, 3), (4, 4)])
def test_self_attention_equals_the_formula(key_size: int, value_size: int, is_causal: bool) -> None:
    attention = self_attention(key_size, value_size, 0.0)
    x = random_values(TARGET)
    expected = []
    for sentence in x.split(TARGET):
        sizes = [HEADS * key_size, HEADS * key_size, HEADS * value_size]
        query, key, value = attention.query_key_value(sentence).split(sizes, -1)
        expected.append(attention.output(formula(query, key, value, is_causal)))
    actual = attention(x, Layout(TARGET, CPU), is_causal)
    assert_same(actual, torch.cat(expected))


@pytest.mark.parametrize("lengths", [SOURCE, [3, 3, 3, 3]], ids=["ragged", "rectangular"])
@pytest.mark.parametrize(("key_size", "value_size"), [(2, 5), (7, 3), (4, 4)])
def test_cross_attention_equals_the_formula(
    lengths: list[int], key_size: int, value_size: int
) -> None:
    attention = cross_attention(key_size, value_size, 0.0)
    x, memory = random_values(TARGET), random_values(lengths)
    expected = []
    for sentence, source in zip(x.split(TARGET), memory.split(lengths), strict=True):
        sizes = [HEADS * key_size, HEADS * value_size]
        key, value = attention.key_value(source).split(sizes, -1)
        expected.append(attention.output(formula(attention.query(sentence), key, value, False)))
    actual = attention(x, Layout(TARGET, CPU), Packed(memory, Layout(lengths, CPU)))
    assert_same(actual, torch.cat(expected))


def normalized(x: Tensor, weight: Tensor) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * weight, head by head."""
    heads = x.unflatten(-1, (HEADS, -1))
    mean = heads.mean(-1, keepdim=True)
    variance = ((heads - mean) ** 2).mean(-1, keepdim=True)
    result: Tensor = (heads - mean) / (variance + 1e-5).sqrt() * weight
    return result.flatten(-2)


def test_qk_norm_normalises_the_queries_and_keys_of_each_head() -> None:
    x, memory = random_values(TARGET), random_values(SOURCE)
    config = replace(SHAPE, value_size=3, qk_norm=True)
    own, cross = randomize(SelfAttention(config)), randomize(CrossAttention(config))
    norms = own.query_norm, own.key_norm, cross.query_norm, cross.key_norm
    weights = [weight for norm in norms for weight in norm.parameters()]
    expected, crossed = [], []
    for sentence, source in zip(x.split(TARGET), memory.split(SOURCE), strict=True):
        query, key, value = own.query_key_value(sentence).split(own.sizes, -1)
        query, key = normalized(query, weights[0]), normalized(key, weights[1])
        expected.append(own.output(formula(query, key, value, is_causal=True)))
        key, value = cross.key_value(source).split(cross.sizes, -1)
        query = normalized(cross.query(sentence), weights[2])
        key = normalized(key, weights[3])
        crossed.append(cross.output(formula(query, key, value, is_causal=False)))
    layout, packed = Layout(TARGET, CPU), Packed(memory, Layout(SOURCE, CPU))
    assert_same(own(x, layout, is_causal=True), torch.cat(expected))
    assert_same(cross(x, layout, packed), torch.cat(crossed))
    rows = layout.pack(cross.weights(x, layout, packed)[:, 1])
    assert_same(cross.log_weights(x, layout, packed, head=1).exp(), rows)


def rotated(x: Tensor) -> Tensor:
    """Multiply the channels 2i, 2i + 1 of each head of a sentence by their rotation matrix."""
    heads = x.unflatten(-1, (HEADS, -1, 2))  # (T, H, K/2, 2)
    half = heads.shape[2]
    angles = torch.arange(len(x))[:, None] * 10_000.0 ** -(torch.arange(half).double() / half)
    rows = (angles.cos(), -angles.sin()), (angles.sin(), angles.cos())
    matrices = torch.stack([torch.stack(row, -1) for row in rows], -2)  # (T, K/2, 2, 2)
    return torch.einsum("tiab,thib->thia", matrices, heads).flatten(1)


@pytest.mark.parametrize("is_causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("qk_norm", [False, True])
def test_rotary_positions_rotate_the_queries_and_keys_of_each_head(
    qk_norm: bool, is_causal: bool
) -> None:
    config = replace(SHAPE, key_size=6, value_size=3, qk_norm=qk_norm, positions="rotary")
    attention = randomize(SelfAttention(config))
    norms = [
        partial(normalized, weight=p)
        for p in [*attention.query_norm.parameters(), *attention.key_norm.parameters()]
    ]
    x, layout = random_values(TARGET), Layout(TARGET, CPU)
    expected = []
    for sentence in x.split(TARGET):
        *compared, value = attention.query_key_value(sentence).split(attention.sizes, -1)
        if qk_norm:
            compared = [norm(part) for norm, part in zip(norms, compared, strict=True)]
        query, key = map(rotated, compared)
        expected.append(attention.output(formula(query, key, value, is_causal)))
    actual = attention(x, layout, is_causal)
    # The table of angles is float32.
    torch.testing.assert_close(actual, torch.cat(expected), rtol=0.0, atol=1e-6)


def test_products_of_rotated_queries_and_keys_depend_on_their_distance_alone() -> None:
    rotation = Rotation(6)
    query, key = torch.randn(2, 1, HEADS * 6, dtype=torch.float64)

    def product(query_position: int, key_position: int) -> Tensor:
        (rotated_query,) = rotation([query], torch.tensor([query_position]), query_position + 1)
        (rotated_key,) = rotation([key], torch.tensor([key_position]), key_position + 1)
        products: Tensor = (rotated_query * rotated_key).unflatten(-1, (HEADS, -1)).sum(-1)
        return products

    for distance in (-3, 0, 40):
        near, far = product(50 + distance, 50), product(4000 + distance, 4000)
        torch.testing.assert_close(near, far, rtol=0.0, atol=1e-5)
    assert not torch.allclose(product(50, 50), product(51, 50), atol=0.01)


@pytest.mark.parametrize("is_causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("sizes", [TARGET, [4, 4]], ids=["ragged", "rectangular"])
@pytest.mark.parametrize(
    ("key_size", "value_size", "window"), [(4, 4, 0), (7, 3, 0), (4, 4, 1), (4, 4, 2), (7, 3, 3)]
)
def test_self_attention_equals_its_weights_times_values(
    sizes: list[int], is_causal: bool, key_size: int, value_size: int, window: int
) -> None:
    attention = self_attention(key_size, value_size, 0.5).eval()
    attention.window = window
    x, layout = random_values(sizes), Layout(sizes, CPU)
    block = attention.weights(x, layout, is_causal)
    assert block.shape == (len(sizes), HEADS, max(sizes), max(sizes))
    value = layout.unpack(attention.query_key_value(x).split(attention.sizes, -1)[-1])
    context = block @ value.unflatten(-1, (HEADS, value_size)).transpose(1, 2)
    output = attention.output(layout.pack(context.transpose(1, 2)).flatten(1))
    assert_same(output, attention(x, layout, is_causal))
    for weights, size in zip(block, sizes, strict=True):
        assert_same(weights[:, :size].sum(-1), torch.ones(HEADS, size).double())
        assert not weights[:, :size, size:].any()
        looks_ahead = size > 1 and not is_causal and window != 1
        assert bool(weights[:, :size].triu(1).any()) == looks_ahead


def test_weights_are_recorded_per_pass_and_change_no_output() -> None:
    attention = cross_attention(4, 4, 0.0)
    x, memory = random_values(TARGET), random_values(SOURCE)
    layout, packed = Layout(TARGET, CPU), Packed(memory, Layout(SOURCE, CPU))
    expected = attention(x, layout, packed)
    with recorded_weights(attention) as recorded:
        assert torch.equal(attention(x, layout, packed), expected)
        attention(2 * x, layout=layout, memory=packed)
    attention(x, layout, packed)
    assert len(recorded) == 2
    assert torch.equal(recorded[0], attention.weights(x, layout, packed))
    assert torch.equal(recorded[1], attention.weights(2 * x, layout, packed))


def test_products_of_query_and_key_begin_with_variance_d_k() -> None:
    # Source: paper, section 3.2.1, footnote 4, the reason to divide by sqrt(d_k).
    model_size, heads = 256, 4
    key_size = model_size // heads
    config = ModelConfig(model_size=model_size, heads=heads)
    joint, memory = SelfAttention(config).query_key_value, CrossAttention(config)
    x, y = torch.randn(400, model_size), torch.randn(400, model_size)
    projections = [
        (joint(x)[:, :model_size], joint(y)[:, model_size : 2 * model_size]),
        (memory.query(x), memory.key_value(y)[:, :model_size]),
    ]
    for query, key in projections:
        q, k = query.unflatten(1, (heads, key_size)), key.unflatten(1, (heads, key_size))
        products = torch.einsum("xhk,yhk->hxy", q, k)
        # 640 000 products of 256 x 256 random weights: the variance is within a tenth of d_k.
        assert products.var().item() == pytest.approx(key_size, rel=0.1)
        assert products.mean().item() == pytest.approx(0.0, abs=0.1 * math.sqrt(key_size))


def pass_values_through(attention: SelfAttention | CrossAttention) -> None:
    """Make value and output projections the identity, where HEADS * U = D."""
    joint = (
        attention.query_key_value if isinstance(attention, SelfAttention) else attention.key_value
    )
    with torch.no_grad():
        for linear, rows in ((joint, slice(-MODEL_SIZE, None)), (attention.output, slice(None))):
            linear.weight[rows] = torch.eye(MODEL_SIZE, dtype=torch.float64)
            linear.bias[rows] = 0.0


@pytest.mark.parametrize("kind", ["self", "memory"])
def test_attention_dropout_drops_weights_of_heads_in_training_only(kind: str) -> None:
    # A sentence of one token attends to it with weight 1, which dropout makes 0 or 1 / (1 - p).
    p, sizes = 0.25, [1] * 400
    layout, x = Layout(sizes, CPU), torch.ones(400, MODEL_SIZE, dtype=torch.float64)
    attention = self_attention(4, 4, p) if kind == "self" else cross_attention(4, 4, p)
    pass_values_through(attention)

    def attend() -> Tensor:
        if isinstance(attention, SelfAttention):
            return attention(x, layout, is_causal=False)  # type: ignore[no-any-return]
        return attention(x, layout, Packed(x, layout))  # type: ignore[no-any-return]

    heads = attend().unflatten(1, (HEADS, -1))
    is_dropped = heads == 0
    torch.testing.assert_close(heads[~is_dropped], torch.full_like(heads, 1 / (1 - p))[~is_dropped])
    assert torch.equal(is_dropped.all(-1), is_dropped.any(-1)), "a head is dropped whole"
    # 1200 draws: four standard deviations are 0.05.
    assert is_dropped.double().mean().item() == pytest.approx(p, abs=0.05)
    attention.eval()
    torch.testing.assert_close(attend(), x)


@pytest.mark.parametrize(("window", "num_layers"), [(0, 1), (8, 8)])
def test_layers_from_end_to_end_are_the_length_over_the_neighbourhood(
    window: int, num_layers: int
) -> None:
    length = 33  # 32 / (8 // 2) layers; a gradient is exactly 0 where there is no path
    layer = randomize(SelfAttention(replace(SHAPE, key_size=2, value_size=2, window=window)))
    reached = []
    for depth in (num_layers - 1, num_layers):
        inputs = outputs = random_values([length])
        for _ in range(depth):
            outputs = layer(outputs, Layout([length], CPU), is_causal=False)
        (gradient,) = torch.autograd.grad(outputs[-1].sum(), inputs)
        reached.append(bool((gradient[0] != 0).any()))
    assert reached == [False, True]
