import math
from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn

from nmtkit.model.attention import CrossAttention, SelfAttention, recorded_weights
from nmtkit.packed import Layout, Packed
from tests.tiny import randomize
from tests.unit.model.tensors import MODEL_SIZE, assert_same, random_values

CPU = torch.device("cpu")
HEADS = 3
TARGET, SOURCE = [3, 1, 5, 2], [2, 4, 1, 4]

Attention = TypeVar("Attention", SelfAttention, CrossAttention)


def self_attention(key_size: int, value_size: int, dropout: float) -> SelfAttention:
    return randomize(SelfAttention(MODEL_SIZE, HEADS, key_size, value_size, dropout, 0))


def cross_attention(key_size: int, value_size: int, dropout: float) -> CrossAttention:
    return randomize(CrossAttention(MODEL_SIZE, HEADS, key_size, value_size, dropout))


def torch_attention(in_weight: Tensor, in_bias: Tensor, output: nn.Linear) -> nn.MultiheadAttention:
    oracle = nn.MultiheadAttention(MODEL_SIZE, HEADS, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        oracle.in_proj_weight.copy_(in_weight)
        oracle.in_proj_bias.copy_(in_bias)
        oracle.out_proj.load_state_dict(output.state_dict())
    return oracle


def one_by_one(
    oracle: nn.MultiheadAttention, queries: list[Tensor], memories: list[Tensor], is_causal: bool
) -> Tensor:
    """Attend sentence by sentence: without a batch there is no padding and no leak."""
    outputs = []
    for query, memory in zip(queries, memories, strict=True):
        hidden = torch.ones(len(query), len(memory), dtype=torch.bool).triu(1)
        mask = hidden if is_causal else None
        outputs.append(oracle(query, memory, memory, attn_mask=mask, need_weights=False)[0])
    return torch.cat(outputs)


def assert_same_with_gradients(
    actual: Tensor, expected: Tensor, pairs: list[tuple[Tensor, Tensor]]
) -> None:
    """Compare outputs, and gradients of each (ours, oracle's) pair of leaves."""
    assert_same(actual, expected)
    weights = torch.randn_like(actual)
    ours = torch.autograd.grad((actual * weights).sum(), [own for own, _ in pairs])
    oracles = torch.autograd.grad((expected * weights).sum(), [other for _, other in pairs])
    for own, other in zip(ours, oracles, strict=True):
        assert_same(own, other)


@pytest.mark.parametrize("is_causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("sizes", [TARGET, [4, 4], [1]], ids=["ragged", "rectangular", "single"])
def test_self_attention_equals_torchs(sizes: list[int], is_causal: bool) -> None:
    attention = self_attention(4, 4, 0.0)
    joint = attention.query_key_value
    oracle = torch_attention(joint.weight, joint.bias, attention.output)
    x = random_values(sizes)
    sentences = list(x.split(sizes))
    assert_same_with_gradients(
        attention(x, Layout(sizes, CPU), is_causal),
        one_by_one(oracle, sentences, sentences, is_causal),
        [
            (x, x),
            (joint.weight, oracle.in_proj_weight),
            (joint.bias, oracle.in_proj_bias),
            (attention.output.weight, oracle.out_proj.weight),
        ],
    )


@pytest.mark.parametrize("source", [SOURCE, [3, 3, 3, 3]], ids=["ragged", "rectangular"])
def test_cross_attention_equals_torchs(source: list[int]) -> None:
    attention = cross_attention(4, 4, 0.0)
    in_weight = torch.cat([attention.query.weight, attention.key_value.weight])
    in_bias = torch.cat([attention.query.bias, attention.key_value.bias])
    oracle = torch_attention(in_weight, in_bias, attention.output)
    x, memory = random_values(TARGET), random_values(source)
    assert_same_with_gradients(
        attention(x, Layout(TARGET, CPU), Packed(memory, Layout(source, CPU))),
        one_by_one(oracle, list(x.split(TARGET)), list(memory.split(source)), False),
        [(x, x), (memory, memory), (attention.output.bias, oracle.out_proj.bias)],
    )


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
@pytest.mark.parametrize(("key_size", "value_size"), [(2, 5), (7, 3), (1, 4)])
def test_self_attention_with_unequal_sizes_equals_the_formula(
    key_size: int, value_size: int, is_causal: bool
) -> None:
    attention = self_attention(key_size, value_size, 0.0)
    x = random_values(TARGET)
    expected = []
    for sentence in x.split(TARGET):
        sizes = [HEADS * key_size, HEADS * key_size, HEADS * value_size]
        query, key, value = attention.query_key_value(sentence).split(sizes, -1)
        expected.append(attention.output(formula(query, key, value, is_causal)))
    actual = attention(x, Layout(TARGET, CPU), is_causal)
    assert_same(actual, torch.cat(expected))


@pytest.mark.parametrize(("key_size", "value_size"), [(2, 5), (7, 3), (1, 4)])
def test_cross_attention_with_unequal_sizes_equals_the_formula(
    key_size: int, value_size: int
) -> None:
    attention = cross_attention(key_size, value_size, 0.0)
    x, memory = random_values(TARGET), random_values(SOURCE)
    expected = []
    for sentence, source in zip(x.split(TARGET), memory.split(SOURCE), strict=True):
        sizes = [HEADS * key_size, HEADS * value_size]
        key, value = attention.key_value(source).split(sizes, -1)
        expected.append(attention.output(formula(attention.query(sentence), key, value, False)))
    actual = attention(x, Layout(TARGET, CPU), Packed(memory, Layout(SOURCE, CPU)))
    assert_same(actual, torch.cat(expected))


@pytest.mark.parametrize("source", [SOURCE, [3, 3, 3, 3]], ids=["ragged", "rectangular"])
@pytest.mark.parametrize(("key_size", "value_size"), [(4, 4), (7, 3)])
def test_weights_are_a_softmax_per_sentence_and_head(
    source: list[int], key_size: int, value_size: int
) -> None:
    attention = cross_attention(key_size, value_size, 0.5)
    x, memory = random_values(TARGET), random_values(source)
    layout, packed = Layout(TARGET, CPU), Packed(memory, Layout(source, CPU))
    block = attention.weights(x, layout, packed)
    assert block.shape == (len(TARGET), HEADS, max(TARGET), max(source))
    sentences = zip(block, x.split(TARGET), memory.split(source), strict=True)
    for weights, sentence, own_memory in sentences:
        queries = attention.query(sentence).chunk(HEADS, -1)
        keys = attention.key_value(own_memory)[:, : HEADS * key_size].chunk(HEADS, -1)
        for head, query, key in zip(weights, queries, keys, strict=True):
            expected = (query @ key.T / math.sqrt(key_size)).softmax(-1)
            assert_same(head[: len(query), : len(key)], expected)
            assert not head[: len(query), len(key) :].any()


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


def test_weights_of_self_attention_are_recorded() -> None:
    attention = self_attention(4, 4, 0.0)
    x, layout = random_values(TARGET), Layout(TARGET, CPU)
    with recorded_weights(attention) as recorded:
        attention(x, layout=layout, is_causal=True)
    assert torch.equal(recorded[0], attention.weights(x, layout, is_causal=True))


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
    joint = SelfAttention(model_size, heads, key_size, key_size, 0.0, 0).query_key_value
    memory = CrossAttention(model_size, heads, key_size, key_size, 0.0)
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


def test_other_sentences_have_no_influence_on_a_gradient() -> None:
    attention, memory_layout = cross_attention(4, 4, 0.0), Layout(SOURCE, CPU)
    own = self_attention(4, 4, 0.0)
    x, memory = random_values(TARGET), random_values(SOURCE)
    layout = Layout(TARGET, CPU)
    output = attention(own(x, layout, is_causal=True), layout, Packed(memory, memory_layout))
    last = output.split(TARGET)[3].sum()
    for leaf, sizes in ((x, TARGET), (memory, SOURCE)):
        (gradient,) = torch.autograd.grad(last, leaf, retain_graph=True)
        touched = [bool((part != 0).any()) for part in gradient.split(sizes)]
        assert touched == [False, False, False, True]


@pytest.mark.parametrize(("window", "num_layers"), [(0, 1), (8, 8)])
def test_layers_from_end_to_end_are_the_length_over_the_neighbourhood(
    window: int, num_layers: int
) -> None:
    length = 33  # 32 / (8 // 2) layers; a gradient is exactly 0 where there is no path
    layer = randomize(SelfAttention(MODEL_SIZE, HEADS, 2, 2, 0.0, window))
    reached = []
    for depth in (num_layers - 1, num_layers):
        inputs = outputs = random_values([length])
        for _ in range(depth):
            outputs = layer(outputs, Layout([length], CPU), is_causal=False)
        (gradient,) = torch.autograd.grad(outputs[-1].sum(), inputs)
        reached.append(bool((gradient[0] != 0).any()))
    assert reached == [False, True]
