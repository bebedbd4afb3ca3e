"""Tar archives: check their digests and extract members safely.

Paths, owners and links inside an archive are never followed.
"""

import gzip
import hashlib
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from examples.wmt14.errors import DAMAGED, FetchError, disk_errors

CHUNK_BYTES = 2**20
GZIP_MAGIC = b"\x1f\x8b"
# Errors of truncated, corrupt and forged archives; `tarfile` lets the last three escape.
DAMAGES = (
    *(tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error),
    *(ValueError, OverflowError, RecursionError),
)
MAX_MEMBERS, MAX_HEADER_BYTES = 10_000, 2**20
HEADER_TYPES = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


def check_digest(archive: Path, archives: Path) -> str:
    """Return the SHA-256 of an archive.

    Raises:
        FetchError: it differs from the recorded one.
    """
    with archive.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    sums = archives / "SHA256SUMS"
    recorded = read_digests(sums).get(archive.name, digest)
    if digest != recorded:
        raise FetchError(
            DAMAGED,
            f"{archive}: SHA-256 is {digest}, but {sums} has {recorded}; delete the archive to "
            "download it again, or that line to accept a new version",
        )
    return digest


def record_digest(name: str, digest: str, archives: Path) -> None:
    """Record the SHA-256 of an archive in the format of `sha256sum -c`."""
    sums = archives / "SHA256SUMS"
    digests = {**read_digests(sums), name: digest}
    part = archives / "SHA256SUMS.part"
    with disk_errors(sums):
        part.write_text("".join(f"{digests[key]}  {key}\n" for key in sorted(digests)), "utf-8")
        part.replace(sums)


def read_digests(sums: Path) -> dict[str, str]:
    """Return the recorded digests by archive name."""
    lines = sums.read_text("utf-8", "replace").split("\n") if sums.exists() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def unpack(archive: Path, members: Sequence[str], folder: Path) -> list[Path]:
    """Extract members of a tar archive, gzipped or not, into a folder; return their paths.

    The whole archive is read, so that damage anywhere is found.

    Raises:
        FetchError: the archive is damaged, a member is missing or not a plain file, or any path
            leads out of the folder.
    """
    found: dict[str, Path] = {}
    try:
        with open_bytes(archive) as stream:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=Member) as tar:
                for number, member in enumerate(tar):
                    if number == MAX_MEMBERS:
                        raise tarfile.ReadError(f"more than {MAX_MEMBERS:,} members")
                    name = safe_path(member.name, archive)
                    # A sparse file may have any size, of which the archive holds nothing.
                    if name in members and member.isfile() and not member.issparse():
                        found[name] = folder / str(members.index(name))
                        copy(cast(BinaryIO, tar.extractfile(member)), found[name])
            while stream.read(CHUNK_BYTES):  # to the end, where gzip has its checksum
                pass
    except DAMAGES as error:
        raise FetchError(
            DAMAGED, f"{archive}: damaged ({error}); delete it to download it again"
        ) from None
    for name in members:
        if name not in found:
            raise FetchError(
                DAMAGED, f"{archive}: has no file {name}; check that it is the right archive"
            )
    return [found[name] for name in members]


class Member(tarfile.TarInfo):
    """A member of an archive; a header that `tarfile` would hold in memory has a limit."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "Member":
        """Read the block of a header; tarfile.ReadError for one that needs memory."""
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a sparse file")
        if member.type in HEADER_TYPES and member.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {member.size:,} bytes")
        return member


def safe_path(name: str, archive: Path) -> str:
    """Return the normalised path of a member; FetchError if it leads out of the archive.

    `tarfile` has filters for this only from Python 3.11.4 on.
    """
    path = posixpath.normpath(name)
    if path.startswith(("/", "..")):
        raise FetchError(
            DAMAGED, f"{archive}: {name} leads out of the archive; do not trust it, and delete it"
        )
    return path


def copy(content: BinaryIO, path: Path) -> None:
    """Write a member to a file."""
    with content, path.open("wb") as file:
        shutil.copyfileobj(content, file, CHUNK_BYTES)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, uncompressed if it is gzipped."""
    with path.open("rb") as stream:
        is_gzip = stream.read(2) == GZIP_MAGIC
    return cast(BinaryIO, gzip.open(path)) if is_gzip else path.open("rb")
