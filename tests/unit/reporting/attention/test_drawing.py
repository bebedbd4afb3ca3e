import dataclasses
import re
from xml.etree import ElementTree

import pytest
import torch

from nmtkit.config.attention import SelectionConfig
from nmtkit.reporting.attention.drawing import Selection, color_of, color_variables, draw, select
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


@pytest.mark.parametrize("num_heads", [16, 100])
def test_the_legend_and_the_marks_of_many_heads_are_in_the_picture(num_heads: int) -> None:
    weights = torch.full((num_heads, 3, 3), 1 / 3)
    heads = tuple(range(1, num_heads + 1))
    own = dataclasses.replace(
        selection(),
        columns=("a", "b", "c"),
        heads=heads,
        num_heads=num_heads,
        weights=weights,
        word=1,
    )
    root = drawn(own, "lines")
    rects = list(root.iter(f"{SVG}rect"))
    assert len(rects) == 1 + num_heads + 3 * num_heads  # the paper, the legend, the marks
    for rect in rects:
        assert float(rect.get("width", "")) > 0
        right = float(rect.get("x", "0")) + float(rect.get("width", ""))
        assert right <= float(root.get("width", ""))


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


def test_a_drawing_grows_with_its_words() -> None:
    def width(rows: tuple[str, ...], drawing: str) -> float:
        own = dataclasses.replace(selection(), rows=rows)
        return float(drawn(own, drawing).get("width", ""))

    for drawing in ("lines", "matrix"):
        narrow, wide, widest = (
            width((word, "b", "c"), drawing)
            for word in ("a" * 40, "\u4e2d" * 40, "a\u0301" * 40 + "a" * 160)
        )
        assert narrow < wide < widest
        assert width(("a" * 40, "b", "c"), drawing) < width(("W" * 40, "b", "c"), drawing)
        # A combining mark takes no room.
        assert width(("a\u0301" * 40, "b", "c"), drawing) == narrow


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
