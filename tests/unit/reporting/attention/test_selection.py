import dataclasses
from typing import Any

import pytest
import torch

from nmtkit.config.attention import SelectionConfig
from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.selection import Selection, select
from tests.unit.reporting.attention.scenes import HOSTILE, scene


def selected(**settings: Any) -> Selection:
    return select(scene(), SelectionConfig(**settings))


def test_unless_told_otherwise_all_heads_of_the_encoders_last_layer_but_one() -> None:
    found = selected()
    assert (found.kind, found.layer, found.num_layers) == ("encoder", 2, 3)
    assert (found.heads, found.num_heads, found.word) == ((1, 2), 2, None)
    assert torch.equal(found.weights, scene().views[0].weights[1])
    assert found.title == "encoder self-attention, layer 2 of 3, all 2 heads"


def test_what_is_asked_for_is_found() -> None:
    found = selected(attention="memory", layer=3, heads="2", join_subwords=True)
    assert (found.rows, found.columns) == (("das", "Haus", "</s>"), ("the", HOSTILE, "</s>"))
    assert torch.equal(found.weights, scene().views[2].joined[2, [1]])
    assert found.title == "memory attention, layer 3 of 3, head 2"


def test_heads_are_told_in_their_order_and_once() -> None:
    assert selected(heads="2,1,2").heads == (1, 2)
    some = dataclasses.replace(selected(), heads=(1, 2), num_heads=8)
    assert some.title.endswith("heads 1, 2")


def test_a_word_is_named_by_itself_or_by_its_place() -> None:
    assert selected(word="use").word == 2
    assert selected(word="ho").word == 1, "without the symbol for a space"
    assert selected(word="2").word == 1
    assert selected(word="the", join_subwords=True).word == 0


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"layer": 4},
            "layer (4): encoder attention has 3 layers; give a number up to that [selection.layer]",
        ),
        ({"heads": "1,3"}, "heads (3): the model has 2 heads; give numbers up to that ["),
        ({"word": "hause"}, "word ('hause') is none of the 4 that attend; did you mean 'use'? ["),
        ({"word": "5"}, "word ('5') is none of the 4 that attend; known are: \u2581the, "),
    ],
)
def test_what_is_not_there_is_told(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        selected(**settings)
    assert told in str(caught.value)


def test_a_word_that_stands_twice_is_told_with_its_places() -> None:
    sentence = scene()
    rows = dataclasses.replace(sentence.views[0].rows, pieces=("a", "b", "a", "</s>"))
    view = dataclasses.replace(sentence.views[0], rows=rows)
    with pytest.raises(ConfigError, match=r"word \('a'\) stands at the places 1, 3; give one of"):
        select(dataclasses.replace(sentence, views=(view,)), SelectionConfig(word="a"))


def place_of(word: str, rows: tuple[str, ...]) -> int | None:
    sentence = scene()
    tokens = dataclasses.replace(sentence.views[0].rows, pieces=rows)
    weights = torch.zeros(3, 2, len(rows), len(rows))
    view = dataclasses.replace(sentence.views[0], rows=tokens, weights=weights)
    return select(dataclasses.replace(sentence, views=(view,)), SelectionConfig(word=word)).word


def test_a_number_that_is_written_is_a_word_and_a_place_no_more() -> None:
    assert place_of("7", ("a", "7", "b")) == 1, "no place has that number"
    assert place_of("2", ("a", "2", "b")) == 1, "both are the same"
    assert place_of("2", ("a", "2", "2")) == 1
    assert place_of("3", ("a", "2", "b")) == 2


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            ("3", "This", "is", "a", "test", "3", "."),
            "word ('3') stands at the places 1, 6, but place 3 has 'is'; give the place that is "
            "meant with a zero before it, such as 01 [selection.word]",
        ),
        (
            ("\u2581a", "\u25813", "b"),
            "word ('3') stands at the place 2, but place 3 has 'b'; give",
        ),
    ],
)
def test_a_number_that_is_a_word_and_another_words_place_is_refused(
    rows: tuple[str, ...], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        place_of("3", rows)
    assert told in str(caught.value)
    assert place_of("03", rows) == 2
    assert place_of("01", rows) == 0


@pytest.mark.parametrize("kind", ["decoder", "memory"])
def test_a_source_alone_has_no_attention_of_the_decoder(kind: str) -> None:
    alone = dataclasses.replace(scene(), views=scene().views[:1])
    with pytest.raises(ConfigError, match=r"has no translation; give it behind a tab, or add"):
        select(alone, SelectionConfig(attention=kind))
