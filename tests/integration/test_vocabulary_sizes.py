"""`nmtkit preprocess` says when a vocabulary is too large for its text, on real text."""

import re
from collections import Counter
from pathlib import Path

import pytest

from nmtkit.data.binary import Dataset
from tests.commands import nmtkit_in_text
from tests.shared_data import DATA, needs_data

WARNING = re.compile(
    r"^warning: vocabulary: only (\d+) of (\d+) entries occur at least 10 times, or have to "
    r"exist; the others are too rare: give --vocab-size (\d+)$",
    re.M,
)


def preprocess(language: str, out: Path, *flags: object) -> list[tuple[int, ...]]:
    """Preprocess Tatoeba from English to a language; return the numbers of the warnings."""
    folder = DATA / "parallel" / f"tatoeba.en-{language}"
    texts = ("--train", folder / "train", "--valid", folder / "valid")
    done = nmtkit_in_text("preprocess", "-s", "en", "-t", language, *texts, "--out", out, *flags)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("vocabulary: only") == len(WARNING.findall(done.stderr))
    return [tuple(map(int, found)) for found in WARNING.findall(done.stderr)]


@pytest.mark.thorough
@needs_data
def test_the_default_is_too_large_for_ten_thousand_pairs_and_the_advice_is_not(
    tmp_path: Path,
) -> None:
    ((enough, size, advised),) = preprocess("fr", tmp_path / "default")
    dataset = Dataset.open(tmp_path / "default")
    vocabulary = dataset.codec.source
    counts = Counter(
        token
        for shard in dataset.train
        for side in (shard.source, shard.target)
        for sentence in range(len(side))
        for token in side[sentence].tolist()
    )
    frequent = {token for token, count in counts.items() if count >= 10}
    characters = {one for one in range(vocabulary.size) if len(vocabulary.piece(one)) == 1}
    assert enough == len(frequent | vocabulary.unknown_ids | characters | {0, 1, 2})
    assert size == vocabulary.size == 32_000
    assert advised == 3000
    assert not preprocess("fr", tmp_path / "advised", "--vocab-size", advised)
