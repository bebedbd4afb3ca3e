import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmtkit.decoding.alignment import aligning_layer, between_words, joined, links, pharaoh

# "das Haus </s>" in rows; "the ho use </s>" in columns.
ATTENTION = torch.tensor([
    [0.50, 0.20, 0.20, 0.10],
    [0.40, 0.25, 0.30, 0.05],
    [0.05, 0.05, 0.10, 0.80],
])  # fmt: skip


@pytest.mark.parametrize(("num_layers", "layer"), [(1, 0), (2, 0), (3, 1), (6, 4)])
def test_the_last_layer_but_one_aligns(num_layers: int, layer: int) -> None:
    assert aligning_layer(num_layers) == layer


def test_a_target_is_linked_to_the_source_it_attends_to_most() -> None:
    assert links(ATTENTION) == [(0, 0), (0, 1)]


def test_end_symbols_take_no_part_however_much_they_draw() -> None:
    all_to_the_end = torch.tensor([[0.1, 0.0, 0.9], [0.0, 0.2, 0.8], [0.9, 0.0, 0.1]])
    assert links(all_to_the_end) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("attention", [torch.ones(3, 1), torch.full((1, 3), 1 / 3)])
def test_a_blank_side_has_no_links(attention: Tensor) -> None:
    assert links(attention) == []


def test_words_attend_to_the_sum_of_pieces_where_no_piece_alone_has_most() -> None:
    words = between_words(ATTENTION, [0, 1, 1], [0, 1])
    expected = torch.tensor([[0.5, 0.4, 0.1], [0.4, 0.55, 0.05], [0.05, 0.15, 0.8]])
    torch.testing.assert_close(words, expected)
    assert links(words) == [(0, 0), (1, 1)]


def test_a_target_word_attends_as_its_pieces_do_on_average() -> None:
    words = between_words(ATTENTION, [0, 1, 2], [0, 0])
    torch.testing.assert_close(words[0], (ATTENTION[0] + ATTENTION[1]) / 2)
    torch.testing.assert_close(words[1], ATTENTION[2])


WORD_SIZES = st.lists(st.integers(1, 4), max_size=6)


@given(WORD_SIZES, WORD_SIZES)
def test_rows_between_words_are_distributions(sources: list[int], targets: list[int]) -> None:
    source, target = (
        [word for word, size in enumerate(sizes) for _ in range(size)]
        for sizes in (sources, targets)
    )
    attention = torch.rand(len(target) + 1, len(source) + 1).softmax(-1)
    words = between_words(attention, source, target)
    assert words.shape == (len(targets) + 1, len(sources) + 1)
    torch.testing.assert_close(words.sum(1), torch.ones(len(targets) + 1))


def test_where_each_token_is_a_word_nothing_changes() -> None:
    torch.testing.assert_close(between_words(ATTENTION, [0, 1, 2], [0, 1]), ATTENTION)


def test_all_layers_and_heads_are_joined_as_each_alone() -> None:
    weights = torch.rand(2, 3, 4, 5, dtype=torch.float64).softmax(-1)
    rows, columns = [0, 0, 1, 2], [0, 1, 1, 1, 2]
    together = joined(weights, rows, columns)
    assert together.shape == (2, 3, 3, 3)
    torch.testing.assert_close(together.sum(-1), torch.ones(2, 3, 3).double())
    for layer in range(2):
        for head in range(3):
            alone = joined(weights[layer, head], rows, columns)
            torch.testing.assert_close(together[layer, head], alone)
    first, middle = weights[..., :2, :].mean(-2), weights[..., 1:4].sum(-1)
    torch.testing.assert_close(together[..., 0, 1], first[..., 1:4].sum(-1))
    torch.testing.assert_close(together[..., 2, 1], middle[..., 3])


def test_links_are_written_source_first() -> None:
    assert pharaoh([(0, 0), (2, 1), (11, 2)]) == "0-0 2-1 11-2"
    assert pharaoh([]) == ""
