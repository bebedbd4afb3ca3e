"""Links of training pairs through noise and subword sampling."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.data.binary import Dataset, PairIds
from nmtkit.errors import ConfigError
from nmtkit.text.links import words_of_pieces
from nmtkit.text.words import words_of
from tests.messages import refuses
from tests.tiny import (
    prepared,
    tiny_corpus,
    tiny_recipe,
    tiny_subword_dataset,
    write_lines,
)
from tests.unit.data.test_prepare import write_pairs
from tests.unit.training.test_text_hook import SAMPLED, SCRIPTS, TAG, every, split_ids, text_of

pytestmark = pytest.mark.sampled(every=3)

SENTENCES = {
    "en": ("The small house isn't here.", "It rains!"),
    "de": ("Das kleine Haus ist nicht da.", "Es regnet!"),
    **{
        lang: (f"{first}a {first}", f"{second} bc!") for lang, (first, second, _) in SCRIPTS.items()
    },
}


def diagonal(source: str, target: str) -> str:
    """Return links of the words with the same number."""
    count = min(len(words_of(source)), len(words_of(target)))
    return " ".join(f"{number}-{number}" for number in range(count))


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Return a dataset of pairs in several scripts, with links of words."""
    folder = tmp_path_factory.mktemp("linked")
    texts = [text for both in SENTENCES.values() for text in both]
    pairs = [*zip(texts, [*texts[2:], *texts[:2]], strict=True)]
    train = write_pairs(folder, "train", pairs)
    links = write_lines(folder / "links", [diagonal(*pair) for pair in pairs])
    recipe = tiny_recipe(train, train)
    corpus = replace(recipe.corpus, alignments=(str(links),), tag=(f"{train}={TAG}",))
    vocabulary = VocabularyConfig(segmentation="bpe", vocab_size=480, marks=4)
    prepared(replace(recipe, corpus=corpus, vocabulary=vocabulary), folder / "data")
    return Dataset.open(folder / "data")


def linked_words(dataset: Dataset, ids: list[int], target: list[int], links: list[int]) -> set[str]:
    """Return the linked words of a line, in capitals, without the tag."""
    source_words, target_words = (
        words_of_pieces(side, own[:-1], words_of(side.decode(own[:-1])))
        for side, own in ((dataset.codec.source, ids), (dataset.codec.target, target))
    )
    texts = [words_of(dataset.codec.source.decode(own[:-1])) for own in (ids, target)]
    return {
        f"{texts[0][one]}-{texts[1][other]}".upper()
        for s, t in zip(links[::2], links[1::2], strict=True)
        for one in source_words[s]
        for other in target_words[t]
    }


def all_links(dataset: Dataset, found: PairIds) -> list[set[str]]:
    assert found.links is not None
    parts = map(split_ids, (found.source, found.target, found.links))
    return [linked_words(dataset, *line) for line in zip(*parts, strict=True)]


@pytest.mark.parametrize(
    "settings", [SAMPLED, {"noise": "upper=1"}, {"noise": "title=0.5", **SAMPLED}]
)
def test_links_stay_between_the_same_words(linked: Dataset, settings: dict[str, object]) -> None:
    pairs = linked.train[0]
    text = text_of(linked, guided_alignment_weight=0.1, **settings)
    expected = all_links(linked, pairs.take(every(pairs)))
    for update in range(1, 6):
        found = text.read(pairs, text.draw(pairs, every(pairs), update), update)
        assert all_links(linked, found) == expected


def test_links_of_joined_lines_are_those_of_both(linked: Dataset) -> None:
    pairs = linked.train[0]
    text = text_of(linked, guided_alignment_weight=0.1, noise="join-lines=1")
    stored = all_links(linked, pairs.take(np.arange(len(pairs))))
    lines = text.draw(pairs, every(pairs), 1)
    found = all_links(linked, text.read(pairs, lines, 1))
    assert len(found) == len(pairs) // 2
    for first, second, links in zip(lines.first, lines.second, found, strict=True):
        expected = stored[first] | stored[second]
        assert links >= expected
        # In scripts without spaces, a piece may have characters of both.
        if max("".join(links)) < "\u0e00":
            assert links == expected


def test_links_of_dropped_marks_are_dropped(linked: Dataset) -> None:
    pairs = linked.train[0]
    text = text_of(linked, guided_alignment_weight=0.1, noise="drop-final-punctuation=1")
    stored = all_links(linked, pairs.take(every(pairs)))
    found = all_links(linked, text.read(pairs, text.draw(pairs, every(pairs), 1), 1))
    marks = str.maketrans("", "", ".!\u3002\u0964")
    for old, new in zip(stored, found, strict=True):
        assert {one.translate(marks) for one in new} <= {one.translate(marks) for one in old}
        assert len(new) >= len(old) - 1


ANNOTATED = "tags=0.5,placeholders=0.5,terms=0.5"


def lines_of(found: PairIds) -> list[tuple[list[int], ...]]:
    parts = [found.source, found.target, *([found.links] if found.links else [])]
    return [*zip(*map(split_ids, parts), strict=True)]


@pytest.mark.parametrize("settings", [{}, SAMPLED, {"noise": "upper=0.5,join-lines=0.5"}])
def test_annotations_leave_text_and_links(linked: Dataset, settings: dict[str, object]) -> None:
    pairs, marks = linked.train[0], linked.codec.source.marks
    assert marks
    plain = text_of(linked, guided_alignment_weight=0.1, **settings)
    text = text_of(linked, guided_alignment_weight=0.1, annotate="tags=0.5,terms=0.5", **settings)
    updates = [
        [one.read(pairs, one.draw(pairs, every(pairs), n), n) for n in range(1, 6)]
        for one in (plain, text)
    ]
    num_marked = 0
    for old, new in zip(*(chain(*map(lines_of, one)) for one in updates), strict=True):
        places = [[*marks.places_of_text(ids)] for ids in new[:2]]
        assert [[new[n][place] for place in places[n]] for n in (0, 1)] == [*old[:2]]
        moved = [
            (places[0][s], places[1][t]) for s, t in zip(old[2][::2], old[2][1::2], strict=True)
        ]
        links = [*zip(new[2][::2], new[2][1::2], strict=True)]
        assert [(s, t) for s, t in links if new[1][t] not in marks.ids] == moved
        num_marked += new != old
        assert new[0][0] == old[0][0]  # the tag of the text
    assert num_marked > len(pairs)


def test_annotations_depend_on_the_update_alone(linked: Dataset) -> None:
    pairs, text = linked.train[0], text_of(linked, annotate=ANNOTATED)
    lines = [text.draw(pairs, every(pairs), update) for update in (1, 2)]
    first, second = (text.read(pairs, own, n) for n, own in enumerate(lines, 1))
    assert lines_of(first) != lines_of(second)
    assert first.links is None
    places = np.arange(len(pairs))[::-2]  # those of another rank, in another order
    again = text_of(linked, annotate=ANNOTATED).read(pairs, lines[0].at(places), 1)
    assert lines_of(again) == [lines_of(first)[place] for place in places]


def test_annotations_that_do_not_fit_the_length_are_left_out(linked: Dataset) -> None:
    pairs = linked.train[0]
    longest = int(max(side.lengths().max() for side in (pairs.source, pairs.target)))
    text = text_of(linked, annotate="tags=1", update_tokens=longest)
    for update in range(1, 6):
        found = text.read(pairs, text.draw(pairs, every(pairs), update), update)
        assert max(found.source.lengths.max(), found.target.lengths.max()) <= longest


@pytest.mark.parametrize("name", ["tags", "terms", "placeholders"])
def test_annotations_need_marks_and_links(name: str, tmp_path: Path) -> None:
    data = tiny_subword_dataset(tmp_path)
    with refuses(ConfigError, f"annotate {name}; --marks training.annotate"):
        text_of(Dataset.open(data), annotate=f"{name}=0.1")
    vocabulary = VocabularyConfig(segmentation="bpe", vocab_size=290, marks=2)
    recipe = tiny_recipe(*tiny_corpus(tmp_path))
    prepared(replace(recipe, vocabulary=vocabulary), tmp_path / "marked")
    if name == "placeholders":
        text_of(Dataset.open(tmp_path / "marked"), annotate=f"{name}=0.1")
        return
    with refuses(ConfigError, f"annotate {name}; --alignments training.annotate"):
        text_of(Dataset.open(tmp_path / "marked"), annotate=f"{name}=0.1")


def test_without_guided_alignment_no_links_are_read(linked: Dataset) -> None:
    pairs = linked.train[0]
    text = text_of(linked)
    assert text.read(pairs, text.draw(pairs, every(pairs), 1), 1).links is None
