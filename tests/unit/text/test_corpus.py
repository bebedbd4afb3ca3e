from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DataError
from nmtkit.text.corpus import Corpus, chunks, line_key
from tests.folders import planted
from tests.messages import refuses
from tests.tiny import write_lines


def numbered(folder: Path, name: str, num_lines: int) -> Corpus:
    for lang in ("en", "de"):
        write_lines(folder / f"{name}.{lang}", [f"{name} {lang} {i}" for i in range(num_lines)])
    return Corpus.find(str(folder / name), "en", "de")


def test_a_corpus_is_found_and_counted(tmp_path: Path) -> None:
    corpus = numbered(tmp_path, "x", 3)
    assert corpus.num_pairs == 3
    assert list(corpus.pairs())[1] == ("x en 1", "x de 1")


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_pipe_or_device_is_refused_unread(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    numbered(tmp_path / "ours", "x", 3)
    (tmp_path / "ours" / "x.de").unlink()
    with (
        planted(kind, tmp_path / "ours" / "x.de"),
        refuses(ConfigError, "x.de"),
    ):
        Corpus.find(str(tmp_path / "ours" / "x"), "en", "de")


def test_an_alignment_in_a_pipe_is_refused_unread(tmp_path: Path) -> None:
    corpus = numbered(tmp_path, "x", 3)
    with planted("pipe", tmp_path / "links"), refuses(ConfigError, "links pipe; file"):
        corpus.with_links(tmp_path / "links", None)


def test_a_corpus_is_read_to_its_end_when_it_is_found(tmp_path: Path) -> None:
    numbered(tmp_path, "x", 3)
    with (tmp_path / "x.de").open("ab") as file:
        file.write(b"\xff\n")
    with refuses(DataError, "x.de:4 UTF-8; iconv"):
        Corpus.find(str(tmp_path / "x"), "en", "de")


@pytest.mark.parametrize("lines", [["a", "b"], ["a", "b", "c", "d"], ["a", "b", "d"]])
def test_text_that_changes_after_it_was_found_is_refused(lines: list[str], tmp_path: Path) -> None:
    for lang in ("en", "de"):
        write_lines(tmp_path / f"x.{lang}", ["a", "b", "c"])
    corpus = Corpus.find(str(tmp_path / "x"), "en", "de")
    assert len(list(corpus.pairs())) == 3
    for lang in ("en", "de"):
        write_lines(tmp_path / f"x.{lang}", lines)
    with refuses(DataError, "x.en; again"):
        list(corpus.pairs())


def test_text_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    for lang in ("en", "de"):
        write_lines(tmp_path / f"x.{lang}", ["a", "b", "c"])
    pairs = Corpus.find(str(tmp_path / "x"), "en", "de").pairs()
    next(pairs)
    write_lines(tmp_path / "x.de", ["a", "b", "d"])
    with refuses(DataError, "x.de; again"):
        list(pairs)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Corpus]:
    folder = tmp_path_factory.mktemp("corpora")
    return [numbered(folder, "a", 7), numbered(folder, "b", 1), numbered(folder, "c", 12)]


def test_chunks_hold_all_pairs_in_order(corpora: list[Corpus]) -> None:
    cut = list(chunks(corpora, max_pairs=3))
    assert [(chunk.corpus, chunk.first, chunk.line, len(chunk.pairs)) for chunk in cut] == [
        (0, 0, 1, 3), (0, 3, 4, 3), (0, 6, 7, 1), (1, 7, 1, 1),
        (2, 8, 1, 3), (2, 11, 4, 3), (2, 14, 7, 3), (2, 17, 10, 3),
    ]  # fmt: skip
    assert [pair for chunk in cut for pair in chunk.pairs] == [
        pair for corpus in corpora for pair in corpus.pairs()
    ]


def test_chunks_of_long_lines_are_short(corpora: list[Corpus]) -> None:
    assert max(len(chunk.pairs) for chunk in chunks(corpora, max_characters=20)) == 2


def test_a_key_depends_on_where_a_line_ends() -> None:
    assert line_key("a b", "c") != line_key("a", "b c") != line_key("a b c")
    assert line_key(" a\tb ", "c") == line_key("a b", "c ")
    assert line_key("a") < 2**64
