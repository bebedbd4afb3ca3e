"""Datasets of text with tags: pairs whose tags pair have marks, the others are plain."""

from pathlib import Path

import pytest

from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DataError
from tests.messages import refuses
from tests.tiny import prepared, tiny_recipe, with_settings, write_lines
from tests.unit.data.test_prepare import write_pairs

PAIRS = [
    ("a <b>b</b> &amp; <i>c</i>", "<i>C</i> &amp; A <b>B</b>"),  # in another order
    ("d <x/> e", "<b>D</b> E"),  # that do not pair
    ("f <b>g <i>h</i></b>", "<b>F <i>G</i></b> H"),
    ("plain a b c", "PLAIN A B C"),
]
MARKED = [
    ("a<mark:1>b</mark:1>&<mark:2>c</mark:2>", "<mark:2>C</mark:2>&A<mark:1>B</mark:1>"),
    ("de", "DE"),
    ("f<mark:1>g<mark:2>h</mark:2></mark:1>", "<mark:1>F<mark:2>G</mark:2></mark:1>H"),
    ("plainabc", "PLAINABC"),
]


def make(folder: Path, pairs: list[tuple[str, str]], marks: int, **corpus: object) -> list[str]:
    train = write_pairs(folder, "train", pairs)
    recipe = tiny_recipe(train, write_pairs(folder, "valid", pairs[:1]))
    recipe = with_settings(
        recipe, segmentation="bpe", vocab_size=300, marks=marks, markup="xml", **corpus
    )
    messages: list[str] = []
    prepared(recipe, folder / "data", messages.append)
    return messages


def test_tags_of_both_sides_become_marks(tmp_path: Path) -> None:
    links = write_lines(tmp_path / "links", ["1-3 3-0", "0-0", "0-0", ""])
    messages = make(tmp_path, PAIRS, 2, alignments=(str(links),))
    dataset = Dataset.open(tmp_path / "data")
    (shard,) = dataset.train
    vocabulary = dataset.codec.source
    marks = vocabulary.marks
    assert marks
    found = []
    for index in range(len(shard)):
        sides = [[*side[index].tolist()][:-1] for side in (shard.source, shard.target)]
        texts = []
        for ids in sides:
            pieces = [
                vocabulary.piece(one) if one in marks.ids else text
                for one, text in zip(ids, vocabulary.texts(ids), strict=True)
            ]
            texts.append("".join("".join(pieces).split()))
        found.append((texts[0], texts[1]))
        assert shard.links is not None
        own = shard.links[index].reshape(-1, 2).tolist()
        linked = {(vocabulary.texts(sides[0])[s], vocabulary.texts(sides[1])[t]) for s, t in own}
        texts_of_links = [(one.strip().upper(), other.strip()) for one, other in linked]
        assert all(one == other for one, other in texts_of_links if one and other)
        of_marks = [(sides[0][s], sides[1][t]) for s, t in own if sides[1][t] in marks.ids]
        assert all(one == other for one, other in of_marks)
        assert len(of_marks) == (sum(one in marks.ids for one in sides[1]) if own else 0)
    assert sorted(found) == sorted(MARKED)
    assert [one for one in messages if "no marks" in one] == [
        "warning: 1 pairs have no marks: their tags differ, or are too many"
    ]
    assert dataset.valid_source == ["a b & c"]
    assert dataset.has_markup


def test_markup_needs_marks_and_lines(tmp_path: Path) -> None:
    with refuses(ConfigError, "markup xml; --marks corpus.markup"):
        make(tmp_path, PAIRS, 0)
    with refuses(DataError, "document; extract"):
        make(tmp_path, [("<!DOCTYPE html>", "a b c"), *PAIRS], 2)


def test_too_many_tags_are_left_out(tmp_path: Path) -> None:
    messages = make(tmp_path, PAIRS, 1)
    assert any("3 pairs have no marks" in one for one in messages)


@pytest.mark.parametrize(
    "lines", [("<b>a</b>", "<b>A</b><b/>"), ("<b><i>a</i></b>", "<i><b>A</b></i>")]
)
def test_tags_that_do_not_nest_alike_do_not_pair(lines: tuple[str, str], tmp_path: Path) -> None:
    messages = make(tmp_path, [lines, *PAIRS[:1], *PAIRS[3:]], 3)
    assert any("1 pairs have no marks" in one for one in messages)
