import dataclasses
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
from nmtkit.errors import DamagedError
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


@pytest.mark.parametrize("kind", ["encoder", "decoder", "memory"])
def test_weights_are_those_of_each_layer_in_a_forward_pass(kind: str, model: Transformer) -> None:
    attentions: dict[str, list[SelfAttention | CrossAttention]] = {
        "encoder": [layer.self_attention for layer in model.encoder],
        "decoder": [layer.self_attention for layer in model.decoder],
        "memory": [layer.memory_attention for layer in model.decoder],
    }
    seen: list[Tensor] = []

    def see(own: Any, arguments: tuple[Any, ...], named: dict[str, Any], _: Tensor) -> None:
        seen.append(own.weights(*arguments, **named))

    handles = [one.register_forward_hook(see, with_kwargs=True) for one in attentions[kind]]
    found = dataclasses.asdict(all_attention_weights(model, SOURCE, TARGET))[kind]
    for handle in handles:
        handle.remove()
    lengths = {"encoder": (5, 5), "decoder": (4, 4), "memory": (4, 5)}
    assert found.shape == (2, 2, *lengths[kind])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), torch.cat(seen), rtol=0, atol=TOLERANCE)


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
