from pathlib import Path

import numpy as np
import pytest

from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.data.binary import SIDES, Contents, shard_name, side_paths
from nmtkit.data.vocabulary import MIN_OCCURRENCES, rare_entries
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec

VOCABULARY = Words([f"word{number}" for number in range(96)])  # and three special entries
SHARED = TextCodec("en", "de", VOCABULARY, VOCABULARY, is_shared=True)
SEPARATE = TextCodec("en", "de", VOCABULARY, VOCABULARY, is_shared=False)


def write_ids(folder: Path, *shards: tuple[list[int], list[int]]) -> Contents:
    """Write the ids of both sides of shards."""
    for number, sides in enumerate(shards):
        for side, ids in zip(SIDES, sides, strict=True):
            path, _ = side_paths(folder / f"{shard_name(number)}.{side}")
            path.write_bytes(np.array(ids, "<u2").tobytes())
    return Contents("uint16", (1.0,), ((1,),) * len(shards), 1, 1, False, False, "", "")


def findings(codec: TextCodec, folder: Path, contents: Contents, **settings: str) -> list[str]:
    found = rare_entries(VocabularyConfig(**settings), codec, folder, contents)  # type: ignore[arg-type]
    return [*map(str, found)]


def frequent(first: int, number: int) -> list[int]:
    return [*range(first, first + number)] * MIN_OCCURRENCES


@pytest.mark.parametrize(("number", "is_reported"), [(46, True), (47, False)])
def test_half_of_the_entries_of_a_joint_vocabulary_have_to_be_frequent_on_both_sides_together(
    number: int, is_reported: bool, tmp_path: Path
) -> None:
    # Each side and each shard has a part of the occurrences; unknown words count as an entry.
    ids = frequent(3, number)
    parts = np.array_split(np.array(ids), 4)
    shards = [(parts[0].tolist(), parts[1].tolist()), (parts[2].tolist(), parts[3].tolist())]
    found = findings(SHARED, tmp_path, write_ids(tmp_path, *shards))
    expected = (
        f"vocabulary: only {number + 3} of 99 entries occur at least 10 times, or "
        "have to exist; the others are too rare: give --vocab-size 50"
    )
    assert found == [expected] * is_reported
    rare: list[tuple[list[int], list[int]]] = [(ids[:-1], []), ([], [])]
    assert len(findings(SHARED, tmp_path, write_ids(tmp_path, *rare))) == 1


def test_a_separate_vocabulary_is_reported_with_its_flag(tmp_path: Path) -> None:
    contents = write_ids(tmp_path, (frequent(3, 60), frequent(3, 20)))
    (found,) = findings(SEPARATE, tmp_path, contents)
    assert found.startswith("target vocabulary: only 23 of 99 entries occur")
    assert found.endswith("give --target-vocab-size 30")
    contents = write_ids(tmp_path, (frequent(3, 5), frequent(3, 60)))
    (found,) = findings(SEPARATE, tmp_path, contents)
    assert found.endswith("give --vocab-size 8")


@pytest.mark.parametrize(
    "settings",
    [
        {"vocabulary_of": "model"},
        {"source_vocabulary": "a", "target_vocabulary": "a"},
        {"segmentation": "words"},
    ],
)
def test_a_given_vocabulary_and_one_of_words_are_not_reported(
    settings: dict[str, str], tmp_path: Path
) -> None:
    assert not findings(SEPARATE, tmp_path, write_ids(tmp_path, ([3], [3])), **settings)


def test_a_large_text_is_read_until_enough_entries_are_frequent(tmp_path: Path) -> None:
    contents = write_ids(tmp_path, (frequent(3, 60), []), ([], []))
    for path in tmp_path.glob(f"{shard_name(1)}.*"):
        path.unlink()
    assert not findings(SHARED, tmp_path, contents)
