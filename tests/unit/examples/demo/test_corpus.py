"""Laws of the demonstration's corpus as a whole."""

from collections import Counter
from pathlib import Path

import pytest

from examples.demo.corpus import distinct, split, write
from examples.demo.lexicon import Phrase

SIZES = {"train": 2000, "valid": 100, "test": 100}


@pytest.fixture(scope="module")
def parts() -> dict[str, list[Phrase]]:
    return split(seed=5, sizes=SIZES)


def all_pairs(parts: dict[str, list[Phrase]]) -> list[Phrase]:
    return [pair for pairs in parts.values() for pair in pairs]


def test_every_part_has_the_size_that_was_asked_for(parts: dict[str, list[Phrase]]) -> None:
    assert {name: len(pairs) for name, pairs in parts.items()} == SIZES


def test_no_sentence_is_repeated_within_or_between_parts(
    parts: dict[str, list[Phrase]],
) -> None:
    pairs = all_pairs(parts)
    assert len({pair.english for pair in pairs}) == len(pairs)
    assert len({pair.german for pair in pairs}) == len(pairs)


def test_the_same_seed_gives_the_same_corpus(parts: dict[str, list[Phrase]]) -> None:
    assert split(seed=5, sizes=SIZES) == parts


def test_a_pair_is_dropped_when_one_side_has_been_seen() -> None:
    pairs = [Phrase("a", "x"), Phrase("a", "y"), Phrase("b", "x"), Phrase("b", "y")]
    assert list(distinct(iter(pairs))) == [Phrase("a", "x"), Phrase("b", "y")]


def test_the_test_set_uses_only_words_that_are_frequent_in_training(
    parts: dict[str, list[Phrase]],
) -> None:
    seen = Counter(word for pair in parts["train"] for word in words(pair.german))
    tested = [word for pair in parts["test"] for word in words(pair.german)]
    # A tenth of the demonstration's training text; numbers and compounds are the rare words.
    assert sum(seen[word] == 0 for word in tested) < 0.03 * len(tested)


def words(text: str) -> list[str]:
    return text.lower().replace(",", " ").rstrip(".?").split()


def test_files_have_one_sentence_per_line(tmp_path: Path) -> None:
    parts = {"valid": [Phrase("She sees it.", "Sie sieht es.")], "test": [Phrase("No.", "Nein.")]}
    write(parts, tmp_path / "corpus")
    assert (tmp_path / "corpus" / "valid.en").read_bytes() == b"She sees it.\n"
    assert (tmp_path / "corpus" / "valid.de").read_bytes() == b"Sie sieht es.\n"
    assert (tmp_path / "corpus" / "test.de").read_bytes() == b"Nein.\n"
