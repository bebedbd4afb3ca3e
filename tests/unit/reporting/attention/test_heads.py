import pytest
import torch

from nmtkit.reporting.attention.heads import HeadSummary, summarise


def only(weights: list[list[float]], symbol: int) -> HeadSummary:
    ((summary,),) = summarise(torch.tensor([[weights]]), symbol)
    return summary


def test_a_head_that_looks_at_itself() -> None:
    assert only(torch.eye(4).tolist(), 3) == HeadSummary(0.0, 0.0, 1.0, 0.25)


def test_a_head_that_looks_everywhere() -> None:
    summary = only([[0.25] * 4] * 4, 0)
    assert summary.entropy == pytest.approx(2.0)
    # From the ends 0, 1, 2, 3 and from within 1, 0, 1, 2: 10 / 8.
    assert summary.distance == pytest.approx(1.25)
    assert (summary.diagonal, summary.symbol) == (0.25, 0.25)


def test_a_head_that_looks_at_the_token_before() -> None:
    rows = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    summary = only(rows, 2)
    assert summary.distance == pytest.approx(2 / 3)
    assert summary.diagonal == pytest.approx(1 / 3)
    assert summary.symbol == 0


def test_in_a_longer_sequence_the_own_place_is_as_far_along() -> None:
    rows = [[1.0, 0, 0, 0, 0], [0, 0, 1.0, 0, 0], [0, 0, 0, 0, 1.0]]
    summary = only(rows, 4)
    assert (summary.entropy, summary.distance, summary.diagonal) == (0, 0, 1)
    assert summary.symbol == pytest.approx(1 / 3)
    assert only([[0.0, 0.0, 1.0]], 2).distance == 2


def test_layers_and_heads_keep_their_places() -> None:
    weights = torch.zeros(2, 3, 1, 6)
    for layer in range(2):
        for head in range(3):
            weights[layer, head, 0, 3 * layer + head] = 1
    distances = [[head.distance for head in layer] for layer in summarise(weights, 0)]
    assert distances == [[0, 1, 2], [3, 4, 5]]


def test_entropy_is_a_mean_over_rows() -> None:
    summary = only([[0.5, 0.5], [1.0, 0.0]], 0)
    assert summary.entropy == pytest.approx(0.5)
