"""A file that grows chunk by chunk, is continued after a kill, and appears when it is complete.

While NAME is written, its lines are in `NAME.partial`, and `NAME.partial.json` records what
determines them. A chunk is synced before the next one is written, so a power cut can damage only
the last one: it is kept if all its lines are there and are text without a NUL.

When all chunks are there, the manifest records that. Then the partial file is compressed if NAME
ends in `.gz`, and renamed to NAME, and the manifest is deleted. So a file at NAME next to a partial
file is somebody else's.
"""

# Every change on disk is a call of `os`, so that tests can stop the process before each one.
# ruff: noqa: PTH105

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.storage import manifest as manifests
from nmtkit.storage.disk import (
    LOCK,
    Lock,
    creation_errors,
    disk_errors,
    held,
    hidden_name,
    is_at,
    make_folders,
    open_plain,
    remove_all,
    sync,
)
from nmtkit.storage.durable import replace_file
from nmtkit.storage.manifest import Json

FORMAT, VERSION = "nmtkit-partial-translation", 2

_GZIP = 31  # zlib's number of gzip; its header has no name and no time
_MAGIC = b"\x1f\x8b"
_READ_BYTES = 2**20


class GrowingFile:
    """A file that is being written; `growing_file` opens it.

    Call `resume`, unless it `is_complete`; `begin` and `append` for each chunk that is missing;
    then `publish`.

    Attributes:
        partial, manifest: the paths of the lines so far, and of the manifest.
        work: what determines the lines, as recorded; None = nothing has been written yet.
        is_complete: all lines have been written, and only `publish` remains.
    """

    work: dict[str, Json] | None = None
    is_complete = False

    def __init__(self, final: Path, lock: Lock, *, overwrite: bool) -> None:
        self.partial = final.parent / f"{final.name}.partial"
        self.manifest = final.parent / f"{final.name}.partial.json"
        self._final, self._lock, self._overwrite = final, lock, overwrite
        self._descriptor = -1
        if self.manifest.exists():
            self._read_manifest()
        elif os.path.lexists(self.partial):
            raise ConfigError(
                f"{self.partial}: exists without {self.manifest.name}, so it is not continued; "
                "delete it, or choose another name for the output"
            )
        if not self.is_complete or os.path.lexists(self.partial):
            self._check_final()

    def resume(self, ends_of: Callable[[Iterable[bytes]], Mapping[int, int]]) -> int:
        """Keep the whole chunks, and return the number of items in them.

        Args:
            ends_of: returns the ends of the chunks of lines: numbers of items, and of bytes.

        Raises:
            ResourceError: no permission, a failing disk; the file is a link, or no file.
        """
        if self.work is None:
            return 0
        with disk_errors(self._final):
            self._descriptor = self._open()
            with os.fdopen(self._descriptor, "rb", closefd=False) as stream:
                whole_lines = takewhile(lambda line: line.endswith(b"\n"), stream)
                ends = [(0, 0), (0, 0), *ends_of(whole_lines).items()]
                (before, begin), (num_items, end) = ends[-2:]
                stream.seek(begin)
                last = stream.read(end - begin)
            if b"\0" in last or last.decode(errors="ignore").encode() != last:
                num_items, end = before, begin
            os.ftruncate(self._descriptor, end)
            os.fsync(self._descriptor)
        return num_items

    def begin(self, work: Mapping[str, Json]) -> None:
        """Record what determines the lines, and create the partial file, unless that is done.

        Raises:
            LostFolderError: the folder was renamed, deleted or replaced.
            ResourceError: no space, no permission, a failing disk.
        """
        with disk_errors(self._final):
            if self.work != work:
                self._record(work, is_complete=False)
            if self._descriptor < 0:
                self._descriptor = self._open()

    def append(self, lines: Iterable[str]) -> None:
        """Add a chunk; when this returns, it survives a kill and a power cut.

        Raises:
            LostFolderError: the folder was renamed, deleted or replaced.
            ResourceError: no space, no permission, a failing disk.
        """
        with disk_errors(self._final):
            self._lock.check()
            with os.fdopen(self._descriptor, "ab", closefd=False) as stream:
                stream.write("".join(f"{line}\n" for line in lines).encode())
            os.fsync(self._descriptor)

    def publish(self) -> None:
        """Let the file appear under its name, and delete everything else.

        Raises:
            ConfigError: another file has appeared there, and may not be replaced.
            DamagedError: somebody has deleted or replaced the partial file.
            LostFolderError: the folder was renamed, deleted or replaced.
        """
        with disk_errors(self._final):
            if not self.is_complete:
                assert self.work is not None, "begin it"
                self._check_final()
                if not is_at(self._descriptor, self.partial):
                    raise self._damaged(self.partial)
                self._record(self.work, is_complete=True)
            self._lock.check()
            if os.path.lexists(self.partial):
                with os.fdopen(self._open(), "rb") as lines:
                    # No text in UTF-8 begins as gzip does.
                    if self._final.suffix == ".gz" and lines.read(len(_MAGIC)) != _MAGIC:
                        lines.seek(0)
                        replace_file(self.partial, _compressed(lines))
                self._check_final()
                os.replace(self.partial, self._final)
                sync(self._final.absolute().parent)
            remove_all(self.manifest)
            sync(self.manifest.absolute().parent)

    def close(self) -> None:
        """Close the partial file, wherever its writing has ended."""
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _read_manifest(self) -> None:
        try:
            content = manifests.read_sealed(self.manifest, FORMAT, VERSION) or {}
            self.work, self.is_complete = content["work"], content["is_complete"]
        except KeyError:
            raise self._damaged(self.manifest) from None
        if not self.partial.exists() and not self._final.exists():
            self.is_complete = False  # the output has been moved away since

    def _record(self, work: Mapping[str, Json], *, is_complete: bool) -> None:
        self._lock.check()
        fields: dict[str, Json] = {"work": work, "is_complete": is_complete}
        replace_file(self.manifest, manifests.seal(FORMAT, VERSION, fields))
        self.work, self.is_complete = {**work}, is_complete

    def _check_final(self) -> None:
        """Raise ConfigError unless the final path is free, or a file that may be replaced."""
        place = self._final
        may_be_replaced = self._overwrite and place.is_file() and not place.is_symlink()
        if os.path.lexists(place) and not may_be_replaced:
            how = "choose another name or add --overwrite, which replaces plain files"
            raise ConfigError(f"{place}: already exists; {how}")

    def _open(self) -> int:
        """Open the partial file, created if missing; its name then survives a power cut."""
        descriptor = open_plain(self.partial, os.O_RDWR | os.O_APPEND)
        sync(self.partial.absolute().parent)
        return descriptor

    def _damaged(self, path: Path) -> DamagedError:
        names = f"{self.partial.name} and {self.manifest.name}"
        return DamagedError(f"{path}: not what was written; delete {names} to begin again")


def _compressed(lines: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a gzip file that depends on the lines only."""
    packer = zlib.compressobj(wbits=_GZIP)
    yield from map(packer.compress, iter(partial(lines.read, _READ_BYTES), b""))
    yield packer.flush()


@contextmanager
def growing_file(final: Path, *, overwrite: bool) -> Iterator[GrowingFile]:
    """Yield a file that grows, alone: no other process can write it meanwhile.

    Args:
        final: the path at which it appears; missing parents are made.
        overwrite: replace a file at the final path, at the end.

    Raises:
        ConfigError: `final` exists and may not be replaced, `final.partial` exists without a
            manifest, the path is impossible, or another process is writing the file.
        DamagedError: the manifest is damaged, of another format or version.
        ResourceError: no space, no permission, a failing disk; or a link, pipe
            or folder in the place of the partial file.
    """
    with ExitStack() as held_until_end:
        with disk_errors(final):
            with creation_errors(final):
                make_folders(final.absolute().parent)
            lock = held_until_end.enter_context(held(hidden_name(final, LOCK), final))
            file = GrowingFile(final, lock, overwrite=overwrite)
        held_until_end.callback(file.close)
        yield file
