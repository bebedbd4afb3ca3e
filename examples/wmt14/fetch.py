"""Fetch corpora of WMT as plain parallel text: download, check, unpack.

    python3 -m examples.wmt14.fetch en-de europarl-v7 newstest2014 --archives archives --out text

writes text/europarl-v7.en, text/europarl-v7.de and so on. Needs nothing but Python. What was
finished is not done again; a download that was cut off goes on where it stopped. The SHA-256 of an
archive is recorded in SHA256SUMS, in the folder of the archives, once it has been unpacked without
a fault, and is checked from then on.
"""

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples.wmt14.archive import DAMAGES, check_digest, open_bytes, record_digest, unpack
from examples.wmt14.download import download
from examples.wmt14.testset import write_test_set
from examples.wmt14.trouble import (
    BAD_TEXT,
    DAMAGED,
    INTERRUPTED,
    USAGE,
    FetchError,
    disk_errors,
    say,
)

STATMT = "https://www.statmt.org"
DATA_STATMT = "https://data.statmt.org"


@dataclass(frozen=True)
class Corpus:
    """Parallel text in an archive.

    Attributes:
        address: where the archive is.
        member: the path of a file in it. {lang} is its language, {other} the one of the pair that
            is not English, {role} src or ref. Files .sgm are turned into text, .gz stay as they
            are.
    """

    address: str
    member: str

    def members(self, source: str, target: str) -> tuple[str, str]:
        """Return the paths of source and target in the archive."""
        other = source if target == "en" else target
        return (
            self.member.format(lang=source, other=other, role="src"),
            self.member.format(lang=target, other=other, role="ref"),
        )


CORPORA = {
    "europarl-v7": Corpus(
        f"{STATMT}/wmt13/training-parallel-europarl-v7.tgz",
        "training/europarl-v7.{other}-en.{lang}",
    ),
    "commoncrawl": Corpus(
        f"{STATMT}/wmt13/training-parallel-commoncrawl.tgz", "commoncrawl.{other}-en.{lang}"
    ),
    "news-commentary-v9": Corpus(
        f"{STATMT}/wmt14/training-parallel-nc-v9.tgz",
        "training/news-commentary-v9.{other}-en.{lang}",
    ),
    "news-commentary-v11": Corpus(
        f"{DATA_STATMT}/wmt16/translation-task/training-parallel-nc-v11.tgz",
        "training-parallel-nc-v11/news-commentary-v11.{other}-en.{lang}",
    ),
    "undoc.2000": Corpus(
        f"{STATMT}/wmt13/training-parallel-un.tgz", "un/undoc.2000.{other}-en.{lang}"
    ),
    "giga-fren": Corpus(
        f"{STATMT}/wmt10/training-giga-fren.tar", "giga-fren.release2.fixed.{lang}.gz"
    ),
    "newstest2013": Corpus(f"{STATMT}/wmt13/test.tgz", "test/newstest2013-src.{lang}.sgm"),
    # The whole test set, which papers report; the one of the evaluation itself is a part of it.
    "newstest2014": Corpus(
        f"{STATMT}/wmt14/test-full.tgz", "test-full/newstest2014-{other}en-{role}.{lang}.sgm"
    ),
}


def main() -> int:
    """Read the command line, fetch, and return the exit code."""
    parser = argparse.ArgumentParser(description="Fetch corpora of WMT as plain parallel text.")
    parser.add_argument("pair", help="source and target language, such as en-de")
    parser.add_argument(
        "corpora", nargs="+", choices=CORPORA, metavar="CORPUS", help=f"of {', '.join(CORPORA)}"
    )
    parser.add_argument("--archives", type=Path, required=True, help="folder for downloads")
    parser.add_argument("--out", type=Path, required=True, help="folder for the text")
    parser.add_argument(
        "--mirror",
        default="",
        help="folder, or address of one, to take archives from by their names",
    )
    arguments = parser.parse_args()
    try:
        source, dash, target = arguments.pair.partition("-")
        if not dash or "en" not in (source, target):
            raise FetchError(
                USAGE, f"{arguments.pair}: not a pair of languages with English; such as en-de"
            )
        fetch(
            (source, target), arguments.corpora, arguments.archives, arguments.out, arguments.mirror
        )
    except FetchError as error:
        say(f"fetch: error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("fetch: interrupted; the same command goes on")
        return INTERRUPTED
    return 0


def fetch(
    languages: tuple[str, str], names: Sequence[str], archives: Path, out: Path, mirror: str
) -> None:
    """Write the text of some corpora, where it is not there yet.

    Args:
        languages: source and target.
        names: keys of CORPORA.
        archives: folder for downloads and their SHA256SUMS.
        out: folder for the text, NAME.LANGUAGE, or NAME.LANGUAGE.gz.
        mirror: a folder to read archives from, or the address of one; "" = where they come from.

    Raises:
        FetchError: a download that fails for good, a damaged archive, text that is not parallel, or
            a disk that is full or cannot be written to.
    """
    for folder in (archives, out):
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
    with alone_in(archives):
        for name in names:
            fetch_one(name, languages, archives, out, mirror)


def fetch_one(
    name: str, languages: tuple[str, str], archives: Path, out: Path, mirror: str
) -> None:
    """Write the text of one corpus, where it is not there yet; arguments and errors as `fetch`."""
    corpus = CORPORA[name]
    members = corpus.members(*languages)
    texts = [
        out / f"{name}.{lang}{'.gz' if member.endswith('.gz') else ''}"
        for lang, member in zip(languages, members, strict=True)
    ]
    if all(text.exists() for text in texts):
        return
    archive = obtain(corpus.address, archives, mirror)
    with disk_errors(archive):
        digest = check_digest(archive, archives)
    with disk_errors(out), scratch(out / ".unpacking") as folder:
        files = unpack(archive, members, folder)
        if members[0].endswith(".sgm"):
            write_test_set(files, members)
        num_pairs = count_pairs(files, members)
        for file, text in zip(files, texts, strict=True):
            file.replace(text)
    record_digest(archive.name, digest, archives)
    say(f"{name}: {num_pairs:,} pairs, from {archive.name}")


def obtain(address: str, archives: Path, mirror: str) -> Path:
    """Return the path of an archive, in the mirror if that is a folder, else downloaded."""
    name = address.rpartition("/")[2]
    is_address = mirror.startswith(("http://", "https://"))
    if mirror and not is_address:
        path = Path(mirror) / name
        if not path.is_file():
            raise FetchError(USAGE, f"{path}: not there; put it there, or choose another mirror")
        return path
    path = archives / name
    if not path.exists():
        download(f"{mirror.rstrip('/')}/{name}" if mirror else address, path, time.sleep)
    return path


def count_pairs(files: Sequence[Path], members: Sequence[str]) -> int:
    """Return the number of lines of either of two files.

    Raises:
        FetchError: they have different numbers, or none, or are damaged.
    """
    counts = []
    for file, member in zip(files, members, strict=True):
        try:
            with open_bytes(file) as stream:
                counts.append(sum(1 for _ in stream))
        except DAMAGES as error:
            raise FetchError(
                DAMAGED, f"{member}: damaged ({error}); delete its archive to download it again"
            ) from None
    if counts[0] != counts[1] or not counts[0]:
        told = ", ".join(f"{n:,} of {member}" for member, n in zip(members, counts, strict=True))
        raise FetchError(
            BAD_TEXT, f"numbers of lines differ or are 0: {told}; get the archive from elsewhere"
        )
    return counts[0]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in here with the same folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make an empty folder, which is deleted in the end; what a killed process left goes first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
