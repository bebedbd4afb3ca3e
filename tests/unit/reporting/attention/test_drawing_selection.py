import dataclasses
from typing import Any

import pytest
import torch

from nmtkit.config.attention import SelectionConfig
from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.drawing import Selection, select
from tests.messages import refuses
from tests.unit.reporting.attention.builders import HOSTILE, example_sentence


def selected(attention: str = "encoder", **settings: Any) -> Selection:
    return select(example_sentence(), SelectionConfig(attention=attention, **settings))


def test_by_default_all_heads_of_the_last_layer_but_one_of_cross_attention_are_selected() -> None:
    found = select(example_sentence(), SelectionConfig())
    assert (found.kind, found.layer, found.num_layers) == ("memory", 2, 3)
    assert (found.heads, found.num_heads, found.word) == ((1, 2), 2, None)
    assert torch.equal(found.weights, example_sentence().attentions[2].weights[1])
    assert found.title == "cross-attention, layer 2 of 3, all 2 heads"


def test_the_default_of_a_source_alone_is_the_encoder() -> None:
    sentence = example_sentence()
    alone = dataclasses.replace(sentence, attentions=sentence.attentions[:1])
    assert select(alone, SelectionConfig()).title.startswith("encoder self-attention")


def test_settings_select_kind_layer_heads_and_word() -> None:
    found = selected(attention="memory", layer=3, heads="2", join_subwords=True)
    assert (found.rows, found.columns) == (("das", "Haus", "</s>"), ("the", HOSTILE, "</s>"))
    assert torch.equal(found.weights, example_sentence().attentions[2].joined[2, [1]])
    assert found.title == "cross-attention, layer 3 of 3, head 2"


def test_heads_are_sorted_without_repetition() -> None:
    assert selected(heads="2,1,2").heads == (1, 2)
    some = dataclasses.replace(selected(), heads=(1, 2), num_heads=8)
    assert some.title.endswith("heads 1, 2")


def test_a_word_is_selected_by_its_text_or_position() -> None:
    assert selected(word="use").word == 2
    assert selected(word="ho").word == 1, "without the symbol for a space"
    assert selected(word="2").word == 1
    assert selected(word="the", join_subwords=True).word == 0


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"layer": 4}, "layer 4 3; 1 3 selection.layer"),
        ({"heads": "1,3"}, "heads 3 2; 1 2 selection.heads"),
        ({"word": "hause"}, "word hause 4; use selection.word"),
        ({"word": "5"}, "word 5 4"),
    ],
)
def test_a_missing_selection_is_refused(settings: dict[str, Any], keys: str) -> None:
    with refuses(ConfigError, keys):
        selected(**settings)


def test_a_repeated_word_is_refused_with_its_positions() -> None:
    sentence = example_sentence()
    rows = dataclasses.replace(sentence.attentions[0].rows, pieces=("a", "b", "a", "</s>"))
    attention = dataclasses.replace(sentence.attentions[0], rows=rows)
    with refuses(ConfigError, "word a positions 1 3"):
        select(dataclasses.replace(sentence, attentions=(attention,)), SelectionConfig(word="a"))


def place_of(word: str, rows: tuple[str, ...]) -> int | None:
    sentence = example_sentence()
    tokens = dataclasses.replace(sentence.attentions[0].rows, pieces=rows)
    weights = torch.zeros(3, 2, len(rows), len(rows))
    attention = dataclasses.replace(sentence.attentions[0], rows=tokens, weights=weights)
    return select(
        dataclasses.replace(sentence, attentions=(attention,)), SelectionConfig(word=word)
    ).word


def test_a_number_in_the_text_is_a_word_not_a_position() -> None:
    assert place_of("7", ("a", "7", "b")) == 1, "no place has that number"
    assert place_of("2", ("a", "2", "b")) == 1, "both are the same"
    assert place_of("2", ("a", "2", "2")) == 1
    assert place_of("3", ("a", "2", "b")) == 2


@pytest.mark.parametrize(
    ("rows", "keys"),
    [
        (("3", "This", "is", "a", "test", "3", "."), "word 3 positions 1 6 is; 01 selection.word"),
        (("\u2581a", "\u25813", "b"), "word 3 position 2 b"),
    ],
)
def test_a_number_that_is_a_word_and_another_word_s_position_is_refused(
    rows: tuple[str, ...], keys: str
) -> None:
    with refuses(ConfigError, keys):
        place_of("3", rows)
    assert place_of("03", rows) == 2
    assert place_of("01", rows) == 0


@pytest.mark.parametrize("kind", ["decoder", "memory"])
def test_a_source_without_translation_has_no_decoder_attention(kind: str) -> None:
    alone = dataclasses.replace(example_sentence(), attentions=example_sentence().attentions[:1])
    with refuses(ConfigError, f"attention {kind} selection.attention; --translate"):
        select(alone, SelectionConfig(attention=kind))
