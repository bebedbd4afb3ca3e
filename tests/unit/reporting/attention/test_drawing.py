import dataclasses
import re
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from nmtkit.config.attention import SelectionConfig
from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.drawing import Selection, color_of, color_variables, draw, select
from tests.messages import refuses
from tests.unit.reporting.attention.builders import HOSTILE, example_sentence

SVG = "{http://www.w3.org/2000/svg}"
SEEN, SEEN_OF_WORD = 0.02, 0.005


def selection() -> Selection:
    return select(example_sentence(), SelectionConfig(attention="memory", join_subwords=True))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def drawn(own: Selection, drawing: str) -> ElementTree.Element:
    return ElementTree.fromstring(draw(own, drawing))


@pytest.mark.parametrize("drawing", ["lines", "matrix"])
def test_words_and_title_are_escaped(drawing: str) -> None:
    root = drawn(selection(), drawing)
    found = texts(root)
    assert found[0] == "cross-attention, layer 2 of 3, all 2 heads"
    assert found[-6:] == ["das", "Haus", "</s>", "the", HOSTILE, "</s>"]


def test_a_character_that_xml_cannot_hold_is_replaced() -> None:
    own = dataclasses.replace(selection(), rows=("a\x00b", "\x1b", "\ufffe"))
    assert texts(drawn(own, "lines"))[-6:-3] == ["a\ufffdb", "\ufffd", "\ufffd"]


def test_each_visible_weight_has_a_line() -> None:
    own = selection()
    groups = drawn(own, "lines").findall(f"{SVG}g/{SVG}g")
    assert [group.get("stroke") for group in groups] == [color_of(1), color_of(2)]
    for group, weights in zip(groups, own.weights, strict=True):
        lines = group.findall(f"{SVG}path")
        expected = weights[weights >= SEEN]
        opacities = torch.tensor([float(line.get("stroke-opacity", "")) for line in lines])
        torch.testing.assert_close(opacities, expected, rtol=0, atol=0.0051)


def test_a_line_goes_from_its_row_to_its_column() -> None:
    weights = torch.zeros(1, 3, 3)
    weights[0, 1, 2] = 1
    own = dataclasses.replace(selection(), heads=(2,), weights=weights)
    root = drawn(own, "lines")
    (path,) = root.iter(f"{SVG}path")
    numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d", ""))]
    x1, y1, x2, y2 = numbers
    words = [text for text in root.iter(f"{SVG}text") if text.get("class") != "caption"]
    heights = [float(text.get("y", "")) for text in words]
    assert y1 == pytest.approx(heights[1], abs=6)
    assert y2 == pytest.approx(heights[3 + 2], abs=6)
    assert x1 < x2


def test_a_selected_word_has_only_its_lines_with_marks_at_their_ends() -> None:
    own = dataclasses.replace(selection(), word=1)
    root = drawn(own, "lines")
    expected = [int((weights[1] >= SEEN_OF_WORD).sum()) for weights in own.weights]
    heads = root.findall(f"{SVG}g/{SVG}g")
    for element in ("path", "rect"):
        assert [len(group.findall(SVG + element)) for group in heads] == expected
    opacities = [
        float(mark.get("fill-opacity", "")) for head in heads for mark in head.iter(f"{SVG}rect")
    ]
    seen = [value for value in own.weights[:, 1].flatten().tolist() if value >= SEEN_OF_WORD]
    assert [opacity**2 for opacity in opacities] == pytest.approx(seen, abs=0.011)
    (chosen,) = (text for text in root.iter(f"{SVG}text") if text.get("class") == "chosen")
    assert chosen.text == "Haus"


def test_squares_show_the_mean_of_the_heads() -> None:
    own = selection()
    mean = own.weights.mean(0)
    cells = drawn(own, "matrix").findall(f"{SVG}g/{SVG}rect[@fill-opacity]")
    opacities = torch.tensor([float(cell.get("fill-opacity", "")) for cell in cells])
    torch.testing.assert_close(opacities**2, mean[mean >= SEEN], rtol=0, atol=0.011)


def test_a_matrix_has_a_scale_of_the_weights_in_its_own_colour() -> None:
    for heads, name in (((1, 2), "mean weight of 2 heads"), ((2,), "weight")):
        weights = torch.full((len(heads), 3, 3), 1 / 3)
        own = dataclasses.replace(selection(), heads=heads, weights=weights)
        root = drawn(own, "matrix")
        (scale,) = root.findall(f"{SVG}g/{SVG}g[@class='scale']")
        shades = [float(rect.get("fill-opacity", "")) ** 2 for rect in scale]
        middles = [(number + 0.5) / len(shades) for number in range(len(shades))]
        assert shades == pytest.approx(middles, abs=0.011)
        assert [one.get("fill") for one in root.findall(f"{SVG}g")] == ["currentColor"]
        assert (scale.get("fill"), root.get("color")) == ("currentColor", color_of(heads[0]))
        assert {"0", "1", name} <= {*texts(root)}


def test_every_text_is_within_the_picture() -> None:
    own = select(example_sentence(), SelectionConfig(attention="decoder"))
    short = dataclasses.replace(own, rows=("a",), columns=("b",), weights=own.weights[:, :1, :1])
    for drawing in ("lines", "matrix"):
        root = drawn(short, drawing)
        width, height = float(root.get("width", "")), float(root.get("height", ""))
        (moved,) = root.findall(f"{SVG}g[@transform]")
        (below,) = re.findall(r"translate\(0,(.*)\)", moved.get("transform", ""))
        captions = f"{SVG}text[@class='caption']"
        for texts_of, offset in ((root, 0.0), (moved, float(below))):
            for text in texts_of.findall(captions):
                size = 7 * len(text.text or "")
                x, anchor = float(text.get("x", "")), text.get("text-anchor")
                left = x - size * {"end": 1.0, "middle": 0.5}.get(anchor or "", 0.0)
                assert 0 <= left <= left + size <= width, text.text
                assert float(text.get("y", "")) + offset <= height
        assert len(list(root.iter(f"{SVG}text"))) > len(moved.findall(captions)) > 0


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = draw(selection(), "lines")
    assert not re.search(r"url\(|@import|href|<script", text)
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_light_and_dark_colours_have_the_same_heads_as_drawings() -> None:
    light, dark = (
        dict(re.findall(r"--head-(\d+): (#[0-9a-f]{6});", line))
        for line in color_variables().split("\n")[:2]
    )
    assert light.keys() == dark.keys() == {str(head) for head in range(1, 17)}
    assert "--num-head-colors: 16;" in color_variables()
    assert all(color_of(int(head)) == name for head, name in light.items())
    assert color_of(17) == color_of(1)


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
