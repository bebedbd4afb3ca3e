"""Links of training pairs through noise and subword sampling."""

from dataclasses import replace

import numpy as np
import pytest

from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.data.binary import Dataset, PairIds
from nmtkit.text.links import words_of_pieces
from nmtkit.text.words import words_of
from tests.tiny import prepared, tiny_recipe, write_lines
from tests.unit.data.test_prepare import write_pairs
from tests.unit.training.test_text_hook import SAMPLED, SCRIPTS, TAG, every, text_of

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
    vocabulary = VocabularyConfig(segmentation="bpe", vocab_size=480)
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
    parts = [
        [own.tolist() for own in np.split(side.ids, np.cumsum(side.lengths, dtype=np.int64)[:-1])]
        for side in (found.source, found.target, found.links)
    ]
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


def test_without_guided_alignment_no_links_are_read(linked: Dataset) -> None:
    pairs = linked.train[0]
    text = text_of(linked)
    assert text.read(pairs, text.draw(pairs, every(pairs), 1), 1).links is None
