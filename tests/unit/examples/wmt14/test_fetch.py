"""Fetching ends with parallel text under its final names, or with an error and none of it."""

import errno
import fcntl
import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.wmt14 import fetch as module
from examples.wmt14.errors import BAD_TEXT, DAMAGED, NO_ROOM, USAGE, FetchError
from examples.wmt14.fetch import CORPORA, fetch, main
from tests.downloads import Behaviour, plain_text, serve, write_tar, write_wmt14
from tests.messages import refuses

TRAINING = [(f"Line {n} & more.", f"Zeile {n} & m\u00eahr.") for n in range(40)]
VALID = [(f"valid {n} <b>", f"g\u00fcltig {n} &amp;") for n in range(10)]
TEST = [(f"test {n}", f'Pr\u00fcfung "{n}"') for n in range(16)]
ALL = {
    "de": ["europarl-v7", "commoncrawl", "news-commentary-v9", "news-commentary-v11"],
    "fr": ["europarl-v7", "commoncrawl", "news-commentary-v9", "undoc.2000", "giga-fren"],
}


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    write_wmt14(folder, "de", TRAINING, VALID, TEST)
    return folder


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    return tmp_path / "archives"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "text"


def read(path: Path) -> list[str]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode().removesuffix("\n").split("\n")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("lang", ["de", "fr"])
def test_every_corpus_comes_out_as_it_went_in(
    tmp_path: Path, archives: Path, out: Path, lang: str
) -> None:
    write_wmt14(tmp_path / "mirror", lang, TRAINING, VALID, TEST)
    corpora = [*ALL[lang], "newstest2013", "newstest2014"]
    fetch(("en", lang), corpora, archives, out, str(tmp_path / "mirror"))
    found: list[tuple[str, str]] = []
    for name in ALL[lang]:
        suffix = ".gz" if name == "giga-fren" else ""
        sides = (read(out / f"{name}.{side}{suffix}") for side in ("en", lang))
        found += zip(*sides, strict=True)
    assert sorted(found) == sorted(TRAINING)
    for name, pairs in (("newstest2013", VALID), ("newstest2014", TEST)):
        sides = (read(out / f"{name}.{side}") for side in ("en", lang))
        assert list(zip(*sides, strict=True)) == pairs
    assert len(names(out)) == 2 * len(corpora)


def test_source_and_target_may_change_places(mirror: Path, archives: Path, out: Path) -> None:
    name = "test-full/newstest2014-deen"
    sgm = {
        f"{name}-{role}.{lang}.sgm": f'<seg id="1">{role} {lang}</seg>'.encode()
        for role in ("src", "ref")
        for lang in ("de", "en")
    }
    write_tar(mirror / "test-full.tgz", sgm)
    fetch(("de", "en"), ["newstest2014"], archives, out, str(mirror))
    assert read(out / "newstest2014.de") == ["src de"]
    assert read(out / "newstest2014.en") == ["ref en"]


def test_archive_names_are_unique() -> None:
    addresses = {corpus.address for corpus in CORPORA.values()}
    assert len({address.rpartition("/")[2] for address in addresses}) == len(addresses)


@pytest.fixture
def server(mirror: Path, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    with serve(mirror, behaviour) as address:
        yield address


def test_existing_archives_are_not_downloaded_again(
    server: str, archives: Path, out: Path, behaviour: Behaviour
) -> None:
    fetch(("en", "de"), ["europarl-v7"], archives, out, server)
    fetch(("en", "de"), ["europarl-v7"], archives, out, server)
    (out / "europarl-v7.de").unlink()
    fetch(("en", "de"), ["europarl-v7"], archives, out, f"{server}/")
    assert (out / "europarl-v7.de").exists()
    assert behaviour.asked == [("/training-parallel-europarl-v7.tgz", "")]
    assert names(archives) == {"training-parallel-europarl-v7.tgz", "SHA256SUMS"}


def test_another_archive_than_the_first_is_an_error(
    mirror: Path, archives: Path, out: Path
) -> None:
    fetch(("en", "de"), ["commoncrawl"], archives, out, str(mirror))
    write_wmt14(mirror, "de", TRAINING[::-1], VALID, TEST)
    for path in out.iterdir():
        path.unlink()
    with refuses(FetchError, "training-parallel-commoncrawl.tgz SHA-256 SHA256SUMS") as caught:
        fetch(("en", "de"), ["commoncrawl"], archives, out, str(mirror))
    assert caught.value.exit_code == DAMAGED
    assert not names(out)


def test_a_damaged_archive_leaves_no_text_and_no_digest(
    mirror: Path, archives: Path, out: Path
) -> None:
    path = mirror / "training-parallel-commoncrawl.tgz"
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    with refuses(FetchError, "training-parallel-commoncrawl.tgz"):
        fetch(("en", "de"), ["commoncrawl"], archives, out, str(mirror))
    assert not names(out)
    path.write_bytes(content)
    fetch(("en", "de"), ["commoncrawl"], archives, out, str(mirror))
    assert names(out) == {"commoncrawl.en", "commoncrawl.de"}


def test_sides_of_different_length_are_an_error(mirror: Path, archives: Path, out: Path) -> None:
    source, target = plain_text(TRAINING)
    files = {"commoncrawl.de-en.en": source, "commoncrawl.de-en.de": target + b"one more\n"}
    write_tar(mirror / "training-parallel-commoncrawl.tgz", files)
    with refuses(FetchError, "40 commoncrawl.de-en.en 41") as caught:
        fetch(("en", "de"), ["commoncrawl"], archives, out, str(mirror))
    assert caught.value.exit_code == BAD_TEXT
    assert not names(out)


def test_a_damaged_text_in_a_whole_archive_is_an_error(
    tmp_path: Path, archives: Path, out: Path
) -> None:
    text = gzip.compress(b"line\n" * 1000)
    name = "giga-fren.release2.fixed"
    write_tar(
        tmp_path / "training-giga-fren.tar", {f"{name}.en.gz": text, f"{name}.fr.gz": text[:-9]}
    )
    with refuses(FetchError, "fixed.fr.gz"):
        fetch(("en", "fr"), ["giga-fren"], archives, out, str(tmp_path))
    assert not names(out)


def test_an_archive_that_the_mirror_lacks_is_an_error(
    mirror: Path, archives: Path, out: Path
) -> None:
    with refuses(FetchError, "giga-fren.tar") as caught:
        fetch(("en", "fr"), ["giga-fren"], archives, out, str(mirror))
    assert caught.value.exit_code == USAGE


def test_leftovers_of_a_killed_process_are_removed(mirror: Path, archives: Path, out: Path) -> None:
    (out / ".unpacking").mkdir(parents=True)
    (out / ".unpacking" / "0").write_bytes(b"half of a fi")
    (out / "commoncrawl.en").write_bytes(b"of another time\n")
    fetch(("en", "de"), ["commoncrawl"], archives, out, str(mirror))
    assert names(out) == {"commoncrawl.en", "commoncrawl.de"}
    assert len(read(out / "commoncrawl.en")) == len(read(out / "commoncrawl.de")) == 10


def test_a_place_that_cannot_be_written_to_is_an_error(mirror: Path, out: Path) -> None:
    with refuses(FetchError, "/proc/archives") as caught:
        fetch(("en", "de"), ["commoncrawl"], Path("/proc/archives"), out, str(mirror))
    assert caught.value.exit_code == NO_ROOM


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["fetch", *map(str, arguments)])
    return main()


def test_an_error_of_the_command_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ("--archives", tmp_path / "a", "--out", tmp_path / "b", "--mirror", tmp_path)
    assert run(monkeypatch, "en-de", "commoncrawl", *places) == USAGE
    expected = f"fetch: error: {tmp_path}/training-parallel-commoncrawl.tgz: no such file; "
    assert capsys.readouterr().err.startswith(expected)
    assert run(monkeypatch, "fr-de", "commoncrawl", *places) == USAGE
    expected = "fetch: error: fr-de: not a language pair with English; use one such as en-de\n"
    assert capsys.readouterr().err == expected


def test_a_disk_that_is_full_leaves_no_text(
    mirror: Path, archives: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("examples.wmt14.archive.copy", fill)
    with refuses(FetchError, f"text {os.strerror(errno.ENOSPC)}") as caught:
        fetch(("en", "de"), ["commoncrawl"], archives, out, str(mirror))
    assert caught.value.exit_code == NO_ROOM
    assert not names(out)


def test_two_processes_do_not_write_to_the_same_downloads(
    archives: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock(*_: object) -> None:
        descriptor = os.open(archives, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(module, "fetch_one", lock)
        with pytest.raises(BlockingIOError):
            fetch(("en", "de"), ["commoncrawl"], archives, out, "")
    lock()  # it is free again
