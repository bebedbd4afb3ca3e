from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.data import filters as module
from nmtkit.data.filters import PairFlags, find_duplicates
from nmtkit.text.corpus import Corpus
from tests.tiny import write_lines

PAIRS = st.lists(st.tuples(*[st.sampled_from(["a", "b", " a ", "a b", "a  b"])] * 2), min_size=1)


def corpus(folder: Path, name: str, pairs: list[tuple[str, str]]) -> Corpus:
    for side, lang in enumerate(("en", "de")):
        write_lines(folder / f"{name}.{lang}", [pair[side] for pair in pairs])
    return Corpus.find(str(folder / name), "en", "de")


@given(st.lists(PAIRS, min_size=1, max_size=3), st.integers(1, 7), st.integers(1, 5))
def test_all_but_the_first_of_equal_pairs_are_duplicates(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[list[tuple[str, str]]],
    part_pairs: int,
    batch_pairs: int,
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    corpora = [corpus(folder, str(number), pairs) for number, pairs in enumerate(texts)]
    with mock.patch.multiple(module, _PART_PAIRS=part_pairs, _BATCH_PAIRS=batch_pairs):
        duplicates = find_duplicates(corpora, folder)
    normalized = [tuple(" ".join(s.split()) for s in pair) for pairs in texts for pair in pairs]
    expected = [pair in normalized[:number] for number, pair in enumerate(normalized)]
    assert duplicates.flags_of(0, len(expected)).tolist() == expected


def test_nothing_stays_on_disk(tmp_path: Path) -> None:
    one = corpus(tmp_path, "x", [("a", "b")] * 3)
    before = sorted(tmp_path.iterdir())
    find_duplicates([one], tmp_path)
    assert sorted(tmp_path.iterdir()) == before


@given(st.lists(st.booleans(), min_size=1, max_size=50), st.data())
def test_flags_of_any_range_are_returned(flags: list[bool], data: st.DataObject) -> None:
    duplicates = PairFlags(len(flags))
    duplicates.flag(np.flatnonzero(flags).astype(np.uint64))
    first = data.draw(st.integers(0, len(flags) - 1))
    count = data.draw(st.integers(1, len(flags) - first))
    assert duplicates.flags_of(first, count).tolist() == flags[first : first + count]
