"""Fetch corpora of WMT as plain parallel text: download, check, unpack.

    python3 -m examples.wmt14.fetch en-de europarl-v7 newstest2014 --archives archives --out text

writes text/europarl-v7.en, text/europarl-v7.de and so on. Needs only Python. Existing text is not
fetched again, and interrupted downloads resume. When an archive has been unpacked without errors,
its SHA-256 is recorded in SHA256SUMS, in the folder of the archives, and checked from then on.
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
from examples.wmt14.errors import (
    BAD_TEXT,
    DAMAGED,
    INTERRUPTED,
    USAGE,
    FetchError,
    disk_errors,
    say,
)
from examples.wmt14.testset import write_test_set

STATMT = "https://www.statmt.org"
DATA_STATMT = "https://data.statmt.org"


@dataclass(frozen=True)
class Corpus:
    """Parallel text in an archive.

    Attributes:
        address: the address of the archive.
        member: the path of a file in it, with {lang} = its language, {other} = the language of
            the pair that is not English, {role} = src or ref. Files .sgm are converted to text,
            .gz stay unchanged.
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
    # The full test set, as in papers; the evaluation itself used a part of it.
    "newstest2014": Corpus(
        f"{STATMT}/wmt14/test-full.tgz", "test-full/newstest2014-{other}en-{role}.{lang}.sgm"
    ),
}


def main() -> int:
    """Fetch the corpora that the command line names; return the exit code."""
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
        help="folder or address that has the archives under their names",
    )
    arguments = parser.parse_args()
    try:
        source, dash, target = arguments.pair.partition("-")
        if not dash or "en" not in (source, target):
            raise FetchError(
                USAGE, f"{arguments.pair}: not a language pair with English; use one such as en-de"
            )
        fetch(
            (source, target), arguments.corpora, arguments.archives, arguments.out, arguments.mirror
        )
    except FetchError as error:
        say(f"fetch: error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("fetch: interrupted; run the same command again to resume")
        return INTERRUPTED
    return 0


def fetch(
    languages: tuple[str, str], names: Sequence[str], archives: Path, out: Path, mirror: str
) -> None:
    """Write the text of corpora that does not exist yet.

    Args:
        languages: source and target.
        names: keys of CORPORA.
        archives: folder for downloads and their SHA256SUMS.
        out: folder for the text, NAME.LANGUAGE, or NAME.LANGUAGE.gz.
        mirror: a folder or address that has the archives; "" = their own addresses.

    Raises:
        FetchError: a download fails, an archive is damaged, text is not parallel, or the disk is
            full or not writable.
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
    """Write the text of one corpus unless it exists; arguments and errors as `fetch`."""
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
    """Return the path of an archive in a mirror folder, or download it."""
    name = address.rpartition("/")[2]
    is_address = mirror.startswith(("http://", "https://"))
    if mirror and not is_address:
        path = Path(mirror) / name
        if not path.is_file():
            raise FetchError(USAGE, f"{path}: no such file; put it there, or choose another mirror")
        return path
    path = archives / name
    if not path.exists():
        download(f"{mirror.rstrip('/')}/{name}" if mirror else address, path, time.sleep)
    return path


def count_pairs(files: Sequence[Path], members: Sequence[str]) -> int:
    """Return the number of lines that both files have.

    Raises:
        FetchError: the numbers differ or are 0, or a file is damaged.
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
        found = ", ".join(f"{n:,} of {member}" for member, n in zip(members, counts, strict=True))
        raise FetchError(
            BAD_TEXT, f"numbers of lines differ or are 0: {found}; get the archive from elsewhere"
        )
    return counts[0]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder; wait while another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Create an empty temporary folder; remove what a killed process left of it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
