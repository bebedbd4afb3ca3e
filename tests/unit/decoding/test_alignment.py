import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from nmtkit.decoding.alignment import (
    all_attention_weights,
    links,
    pool_words,
    word_attention,
)
from nmtkit.errors import DamagedError, DataError
from nmtkit.model.attention import CrossAttention, SelfAttention
from nmtkit.model.transformer import Transformer
from nmtkit.symbols import EOS_ID
from tests.messages import refuses
from tests.tiny import tiny_codec, tiny_model

SOURCE, TARGET = [3, 4, 5, 6, EOS_ID], [7, 8, 9, EOS_ID]
TOLERANCE = 1e-6
"""The model computes in float64, and the weights are returned as float32."""


@pytest.fixture(scope="module")
def model() -> Transformer:
    return tiny_model(tiny_codec()).double()


def passes(attentions: Sequence[nn.Module], model: Transformer) -> list[tuple[Tensor, Tensor]]:
    """Return the attended vectors and the output of each attention in a forward pass."""
    seen: list[tuple[Tensor, Tensor]] = []

    def see(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], out: Tensor) -> None:
        memory = named.get("memory")
        seen.append((arguments[0] if memory is None else memory.values, out))

    handles = [one.register_forward_hook(see, with_kwargs=True) for one in attentions]
    all_attention_weights(model, SOURCE, TARGET)
    for handle in handles:
        handle.remove()
    return seen


def values(attention: SelfAttention | CrossAttention, attended: Tensor) -> Tensor:
    """Return the values of each head: (H, S, U)."""
    joint = (
        attention.query_key_value if isinstance(attention, SelfAttention) else attention.key_value
    )
    projected: Tensor = joint(attended).split(attention.sizes, -1)[-1]
    heads: Tensor = projected.unflatten(-1, (attention.heads, -1))
    return heads.transpose(0, 1)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "memory"])
def test_weights_times_values_are_what_the_model_computes(kind: str, model: Transformer) -> None:
    attentions: dict[str, list[SelfAttention | CrossAttention]] = {
        "encoder": [layer.self_attention for layer in model.encoder],
        "decoder": [layer.self_attention for layer in model.decoder],
        "memory": [layer.memory_attention for layer in model.decoder],
    }
    found = dataclasses.asdict(all_attention_weights(model, SOURCE, TARGET))[kind].double()
    lengths = {"encoder": (5, 5), "decoder": (4, 4), "memory": (4, 5)}
    assert found.shape == (2, 2, *lengths[kind])
    seen = passes(attentions[kind], model)
    with torch.inference_mode():
        for own, weights, (attended, output) in zip(attentions[kind], found, seen, strict=True):
            context = (weights @ values(own, attended)).transpose(0, 1).flatten(1)
            torch.testing.assert_close(own.output(context), output, rtol=0, atol=TOLERANCE)


def test_rows_sum_to_1_and_the_decoder_does_not_look_ahead(model: Transformer) -> None:
    found = all_attention_weights(model, SOURCE, TARGET)
    assert found.decoder is not None
    assert found.memory is not None
    for weights in (found.encoder, found.decoder, found.memory):
        assert weights.dtype == torch.float32
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert not found.decoder.triu(1).any()
    assert found.encoder.triu(1).any()


def test_a_source_alone_has_the_encoders_attention_only(model: Transformer) -> None:
    alone, with_target = (
        all_attention_weights(model, SOURCE, None),
        all_attention_weights(model, SOURCE, TARGET),
    )
    assert (alone.decoder, alone.memory) == (None, None)
    assert torch.equal(alone.encoder, with_target.encoder)


def test_a_damaged_model_is_an_error() -> None:
    model = tiny_model(tiny_codec())
    nn.init.constant_(model.encoder[1].self_attention.query_key_value.weight, float("nan"))
    with refuses(DamagedError, "attention"):
        all_attention_weights(model, SOURCE, None)


def test_a_sequence_beyond_the_learned_positions_is_refused() -> None:
    codec = tiny_codec()
    plain = tiny_model(codec)
    config = dataclasses.replace(plain.config, positions="learned", max_positions=4)
    model = Transformer(config, codec.source.size, codec.target.size, codec.is_shared).eval()
    with refuses(DataError, "5 4; --max-positions"):
        all_attention_weights(model, SOURCE, None)


# "das Haus </s>" in rows; "the ho use </s>" in columns.
ATTENTION = torch.tensor([
    [0.50, 0.20, 0.20, 0.10],
    [0.40, 0.25, 0.30, 0.05],
    [0.05, 0.05, 0.10, 0.80],
])  # fmt: skip


def test_a_target_is_linked_to_the_source_it_attends_to_most() -> None:
    assert links(ATTENTION, 0) == [(0, 0), (0, 1)]


def test_end_symbols_are_never_aligned() -> None:
    all_to_the_end = torch.tensor([[0.1, 0.0, 0.9], [0.0, 0.2, 0.8], [0.9, 0.0, 0.1]])
    assert links(all_to_the_end, 0) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("attention", [torch.ones(3, 1), torch.full((1, 3), 1 / 3)])
def test_a_blank_side_has_no_links(attention: Tensor) -> None:
    assert links(attention, 0) == []


def each(*words: int) -> list[range]:
    """Return the words of tokens that have one each."""
    return [range(word, word + 1) for word in words]


def test_a_token_of_several_words_counts_in_equal_parts() -> None:
    words = word_attention(ATTENTION, [range(2), range(2, 3), range(2, 3)], [range(1), range(1, 3)])
    expected = torch.tensor(
        [[0.25, 0.25, 0.4, 0.1], *[[0.2, 0.2, 0.55, 0.05]] * 2, [0.025, 0.025, 0.15, 0.8]]
    )
    torch.testing.assert_close(words, expected)
    assert links(words, 0) == [(2, 0), (2, 1), (2, 2)]


def test_words_attend_to_the_sum_of_their_tokens() -> None:
    words = word_attention(ATTENTION, each(0, 1, 1), each(0, 1))
    expected = torch.tensor([[0.5, 0.4, 0.1], [0.4, 0.55, 0.05], [0.05, 0.15, 0.8]])
    torch.testing.assert_close(words, expected)
    assert links(words, 0) == [(0, 0), (1, 1)]


def test_a_target_word_attends_as_its_tokens_do_on_average() -> None:
    words = word_attention(ATTENTION, each(0, 1, 2), each(0, 0))
    torch.testing.assert_close(words[0], (ATTENTION[0] + ATTENTION[1]) / 2)
    torch.testing.assert_close(words[1], ATTENTION[2])


WORD_SIZES = st.lists(st.integers(1, 4), max_size=6)


@given(WORD_SIZES, WORD_SIZES)
def test_rows_between_words_are_distributions(sources: list[int], targets: list[int]) -> None:
    source, target = (
        each(*(word for word, size in enumerate(sizes) for _ in range(size)))
        for sizes in (sources, targets)
    )
    attention = torch.rand(len(target) + 1, len(source) + 1).softmax(-1)
    words = word_attention(attention, source, target)
    assert words.shape == (len(targets) + 1, len(sources) + 1)
    torch.testing.assert_close(words.sum(1), torch.ones(len(targets) + 1))


def test_pooling_changes_nothing_if_each_token_is_a_word() -> None:
    torch.testing.assert_close(word_attention(ATTENTION, each(0, 1, 2), each(0, 1)), ATTENTION)


def test_all_layers_and_heads_are_pooled_as_each_alone() -> None:
    weights = torch.rand(2, 3, 4, 5, dtype=torch.float64).softmax(-1)
    rows, columns = each(0, 0, 1, 2), each(0, 1, 1, 1, 2)
    together = pool_words(weights, rows, columns)
    assert together.shape == (2, 3, 3, 3)
    torch.testing.assert_close(together.sum(-1), torch.ones(2, 3, 3).double())
    for layer in range(2):
        for head in range(3):
            alone = pool_words(weights[layer, head], rows, columns)
            torch.testing.assert_close(together[layer, head], alone)
    first, middle = weights[..., :2, :].mean(-2), weights[..., 1:4].sum(-1)
    torch.testing.assert_close(together[..., 0, 1], first[..., 1:4].sum(-1))
    torch.testing.assert_close(together[..., 2, 1], middle[..., 3])
