"""The parent has no sentence that its child is scored on; the parts of the news are disjoint."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.adaptation.text import write_news, write_parent
from nmtkit.errors import ConfigError, DataError
from tests.messages import refuses
from tests.recipes import ROOT
from tests.shared_data import DATA, needs_data
from tests.tiny import write_lines

NEWS = [(f"news {number}", f"nouvelle {number}") for number in range(20)]


def write_pairs(prefix: Path, *langs: str, pairs: Sequence[tuple[str, str]]) -> None:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for lang, lines in zip(langs, zip(*pairs, strict=True), strict=True):
        write_lines(Path(f"{prefix}.{lang}"), lines)


def read_pairs(prefix: Path, *langs: str) -> list[tuple[str, ...]]:
    texts = (Path(f"{prefix}.{lang}").read_bytes().decode() for lang in langs)
    return [*zip(*(text.removesuffix("\n").split("\n") for text in texts), strict=True)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder of the three corpora, with a space in its name."""
    folder = tmp_path / "the corpora"
    learnt = [("Go on.", "Weiter."), ("Stop.", "Halt."), ("Hi.", "Hallo."), ("Stop!", "Halt!")]
    write_pairs(folder / "tatoeba.en-de" / "train", "en", "de", pairs=[*learnt, learnt[0]])
    write_pairs(folder / "tatoeba.en-fr" / "valid", "en", "fr", pairs=[("Stop.", "Hi.")])
    write_pairs(folder / "tatoeba.en-fr" / "test", "en", "fr", pairs=[("Go on.", "Weiter.")])
    news = [*NEWS, ("", "vide"), ("empty", " ")]
    write_pairs(folder / "news-commentary-5k.en-fr" / "train", "en", "fr", pairs=news)
    return folder


def run(corpus: Path, out: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.adaptation.text", corpus, "--out", out, *flags]
    return subprocess.run(
        [*map(str, command)], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )


def test_the_parent_has_no_english_line_of_the_childs_validation_and_test_set(
    corpus: Path, tmp_path: Path
) -> None:
    write_parent(corpus, tmp_path)
    kept = read_pairs(tmp_path / "parent" / "train", "en", "de")
    assert kept == [("Hi.", "Hallo."), ("Stop!", "Halt!")]


@pytest.mark.parametrize(("num_valid", "num_test"), [(3, 5), (1, 1), (10, 9)])
def test_each_pair_of_the_news_with_two_sides_is_in_one_part(
    corpus: Path, tmp_path: Path, num_valid: int, num_test: int
) -> None:
    write_news(corpus, tmp_path, num_valid, num_test)
    parts = {
        name: read_pairs(tmp_path / "news" / name, "en", "fr")
        for name in ("test", "valid", "train")
    }
    sizes = [len(part) for part in parts.values()]
    assert sizes == [num_test, num_valid, len(NEWS) - num_test - num_valid]
    pairs = [pair for part in parts.values() for pair in part]
    assert Counter(pairs) == Counter(NEWS)
    order = [*range(len(NEWS))]
    random.Random(1).shuffle(order)
    assert pairs == [NEWS[number] for number in order]


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ((10, 10), "0 to train, 10 to validate, 10 to test"),
        ((0, 5), "15 to train, 0 to validate, 5 to test"),
        ((5, -1), "16 to train, 5 to validate, -1 to test"),
    ],
)
def test_a_part_without_pairs_is_refused(
    corpus: Path, tmp_path: Path, sizes: tuple[int, int], parts: str
) -> None:
    with refuses(DataError, f"5k.en-fr/train 20 {parts} NEWS_VALID=; --news-valid --news-test"):
        write_news(corpus, tmp_path, *sizes)
    assert not (tmp_path / "news").exists()


def test_the_command_writes_both_texts_and_ends_with_the_errors_code(
    corpus: Path, tmp_path: Path
) -> None:
    done = run(corpus, tmp_path / "text", "--news-valid", "3", "--news-test", "5")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "text: parent: 2 of 5 pairs; the others are held out",
        "text: news: 12 pairs to train, 3 to validate, 5 to test",
    ]
    assert len([*(tmp_path / "text").glob("*/*")]) == 8

    refused = run(corpus, tmp_path / "none")  # 300 and 500 of 20
    assert refused.returncode == DataError.exit_code
    assert refused.stderr.splitlines()[-1].startswith("text: error: ")


@pytest.mark.parametrize("name", ["tatoeba.en-de", "news-commentary-5k.en-fr"])
def test_a_missing_corpus_is_one_line(corpus: Path, tmp_path: Path, name: str) -> None:
    (corpus / name).rename(tmp_path / "elsewhere")
    done = run(corpus, tmp_path / "none")
    assert done.returncode == ConfigError.exit_code
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"text: error: {corpus}: no folder {name}; give the absolute path")
    assert line.endswith("(make: CORPUS=)")
    assert not (tmp_path / "none").exists()


@needs_data
def test_tatoeba_and_news_commentary_have_their_measured_sizes(tmp_path: Path) -> None:
    done = run(DATA / "parallel", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "text: parent: 62475 of 62642 pairs; the others are held out",
        "text: news: 4187 pairs to train, 300 to validate, 500 to test",
    ]
