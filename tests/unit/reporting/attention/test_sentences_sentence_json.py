import base64
import json
from array import array

import pytest
import torch

from nmtkit.reporting.attention.sentences import (
    SUMMARY,
    as_object,
    json_line,
    packed,
    summarize,
)
from tests.unit.reporting.attention.builders import HOSTILE, example_sentence


def test_an_object_has_all_fields_of_a_sentence() -> None:
    line = json_line(example_sentence())
    assert "\n" not in line
    values = json.loads(line)
    assert (values["source"], values["translation"]) == (HOSTILE, "das Haus")
    for attention, written in zip(example_sentence().attentions, values["attentions"], strict=True):
        assert written["kind"] == attention.kind
        for side, tokens in (("rows", attention.rows), ("columns", attention.columns)):
            assert written[side]["pieces"] == list(tokens.pieces)
            assert written[side]["word_of"] == list(tokens.word_of)
            assert written[side]["words"] == list(tokens.words)
        torch.testing.assert_close(
            torch.tensor(written["weights"]), attention.weights, rtol=0, atol=6e-7
        )
        assert {*written["summary"][2][1]} == {"entropy", "distance", "diagonal", "symbol"}


def test_numbers_are_written_with_six_digits_at_most() -> None:
    text = json_line(example_sentence())
    numbers = [part for part in text.replace("]", ",").replace("[", ",").split(",") if "0." in part]
    assert len(numbers) > 100
    assert all(len(number.strip().partition(".")[2]) <= 7 for number in numbers)


@pytest.mark.parametrize(("kind", "place"), [("encoder", 3), ("decoder", 0), ("memory", 3)])
def test_the_symbol_figure_is_the_mean_of_its_column(kind: str, place: int) -> None:
    (attention,) = (
        attention for attention in example_sentence().attentions if attention.kind == kind
    )
    values = as_object(example_sentence(), packed)
    (written,) = (one for one in values["attentions"] if one["kind"] == kind)
    expected = attention.weights[..., place].mean(-1)
    found = [[head["symbol"] for head in layer] for layer in written["summary"]]
    torch.testing.assert_close(torch.tensor(found), expected, rtol=0, atol=1e-5)


def test_packed_weights_are_exact_to_half_of_a_65535th() -> None:
    weights = torch.cat([torch.rand(3, 2, 4, 5), torch.ones(1, 2, 4, 5), torch.zeros(1, 2, 4, 5)])
    numbers = array("H", base64.b64decode(packed(weights)))
    restored = torch.tensor(numbers.tolist()).view(5, 2, 4, 5) / 65535
    torch.testing.assert_close(restored, weights, rtol=0, atol=0.51 / 65535)
    assert (numbers[-41], numbers[-1]) == (65535, 0)


def only(weights: list[list[float]], symbol: int) -> dict[str, float]:
    ((summary,),) = summarize(torch.tensor([[weights]]), symbol).tolist()
    return dict(zip(SUMMARY, summary, strict=True))


def test_the_summary_of_a_head_that_attends_to_its_own_position() -> None:
    assert only(torch.eye(4).tolist(), 3) == dict(zip(SUMMARY, (0, 0, 1, 0.25), strict=True))


def test_the_summary_of_a_head_that_attends_uniformly() -> None:
    summary = only([[0.25] * 4] * 4, 0)
    assert summary["entropy"] == pytest.approx(2.0)
    # From the ends 0, 1, 2, 3 and from within 1, 0, 1, 2: 10 / 8.
    assert summary["distance"] == pytest.approx(1.25)
    assert (summary["diagonal"], summary["symbol"]) == (0.25, 0.25)


def test_the_summary_of_a_head_that_attends_to_the_previous_token() -> None:
    rows = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    summary = only(rows, 2)
    assert summary["distance"] == pytest.approx(2 / 3)
    assert summary["diagonal"] == pytest.approx(1 / 3)
    assert summary["symbol"] == 0


def test_in_a_longer_sequence_the_own_position_is_proportional() -> None:
    rows = [[1.0, 0, 0, 0, 0], [0, 0, 1.0, 0, 0], [0, 0, 0, 0, 1.0]]
    summary = only(rows, 4)
    assert (summary["entropy"], summary["distance"], summary["diagonal"]) == (0, 0, 1)
    assert summary["symbol"] == pytest.approx(1 / 3)
    assert only([[0.0, 0.0, 1.0]], 2)["distance"] == 2


def test_layers_and_heads_keep_their_order() -> None:
    weights = torch.zeros(2, 3, 1, 6)
    for layer in range(2):
        for head in range(3):
            weights[layer, head, 0, 3 * layer + head] = 1
    distances = summarize(weights, 0)[..., SUMMARY.index("distance")].tolist()
    assert distances == [[0, 1, 2], [3, 4, 5]]


def test_entropy_is_a_mean_over_rows() -> None:
    summary = only([[0.5, 0.5], [1.0, 0.0]], 0)
    assert summary["entropy"] == pytest.approx(0.5)
