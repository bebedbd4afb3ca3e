"""Files that grow chunk by chunk, can be continued after a kill, and appear when they are complete.

While NAME is written, its bytes are in `NAME.partial`. `NAME.partial.json` is their manifest: how
many bytes are final, their hash, and fields of the writer. A chunk is appended and synced, then the
manifest is replaced; so the partial file always holds at least the recorded bytes. A writer that
continues drops what follows them. At the end, the manifest records that all is written, the
partial file is renamed to NAME, and the manifest is deleted.
"""

# Every change on disk is a call of `os`, so that tests can stop the process before each one.
# ruff: noqa: PTH105

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.signals import block_stop_signals
from nmtkit.storage import manifest as manifests
from nmtkit.storage.disk_changes import (
    held,
    is_at,
    make_folders,
    not_plain_error,
    open_plain,
    remove_all,
    sync,
)
from nmtkit.storage.disk_errors import creation_errors, disk_errors
from nmtkit.storage.durable import replace_file
from nmtkit.storage.hidden_names import LOCK, hidden_name
from nmtkit.storage.manifest import Json
from nmtkit.storage.reading import read_file

_READ_BYTES = 2**20
_CHANGED = "damaged, its content is not what was written"
_ORIGIN = ("format", "version", "nmtkit")


class GrowingFile:
    """A file that is being written; `growing_file` opens it.

    Call `begin` or, if there are `fields`, `resume`; then `append` for each chunk; then `publish`.

    Attributes:
        final: the path at which it appears.
        partial, manifest: the paths of its bytes so far, and of their manifest.
        fields: the recorded fields of the writer; None = nothing has been written yet.
        is_complete: all chunks have been written, and only `publish` remains.
    """

    def __init__(self, final: Path, format: str, version: int, *, overwrite: bool) -> None:
        self.final = final
        self.partial = final.parent / f"{final.name}.partial"
        self.manifest = final.parent / f"{final.name}.partial.json"
        self.fields: dict[str, Any] | None = None
        self.is_complete = False
        self._format, self._version, self._overwrite = format, version, overwrite
        self._num_bytes, self._hash = 0, hashlib.sha256()
        self._recorded_hash = self._hash.hexdigest()
        self._descriptor: int | None = None
        self._read_manifest()
        if not self._is_published():
            self._check_final()

    def begin(self, fields: Mapping[str, Json]) -> None:
        """Record the first fields, and create the partial file.

        Raises:
            ResourceError: no space, no permission, a failing disk.
        """
        assert self.fields is None, "resume it"
        with disk_errors(self.final):
            self._record(fields)
            self._open()

    def resume(self) -> None:
        """Check the recorded bytes, and drop the bytes after them.

        Raises:
            DamagedError: they are missing or damaged.
            ResourceError: no permission, a failing disk; the file is a link, or no file.
        """
        assert self.fields is not None, "begin it"
        with disk_errors(self.final):
            if self._is_published():
                self._check_published()
                return
            if self._num_bytes and not os.path.lexists(self.partial):
                raise self._damaged(self.partial, "missing")
            descriptor = self._open()
            if not self._begins_with_recorded_bytes(descriptor):
                raise self._damaged(self.partial)
            os.ftruncate(descriptor, self._num_bytes)
            os.fsync(descriptor)

    def append(self, data: bytes, fields: Mapping[str, Json]) -> None:
        """Add a chunk; when this returns, it and the new fields survive a kill and a power cut.

        Raises:
            ResourceError: no space, no permission, a failing disk; `resume` continues after the
                chunk before.
        """
        assert self._descriptor is not None, "begin or resume it"
        left = memoryview(data)
        with disk_errors(self.final):
            while left:  # a disk that becomes full writes a part first, then fails
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        self._num_bytes += len(data)
        self._hash.update(data)
        self._record(fields)

    def publish(self) -> None:
        """Rename the partial file to its final path, and delete the manifest.

        Raises:
            ConfigError: another file has appeared there, and may not be replaced.
            DamagedError: somebody has deleted or replaced the partial file.
        """
        assert self.fields is not None, "begin it"
        if not self.is_complete:
            self._record(self.fields, is_complete=True)
        with disk_errors(self.final), block_stop_signals():
            if self._descriptor is not None:
                self._check_final()
                if not is_at(self._descriptor, self.partial):
                    raise self._damaged(self.partial, "not the file that was written")
                os.replace(self.partial, self.final)
                sync(self.final.absolute().parent)
            remove_all(self.manifest)
            sync(self.final.absolute().parent)

    def close(self) -> None:
        """Close the partial file, wherever its writing has ended."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _is_published(self) -> bool:
        """Return whether a writer was killed after the renaming."""
        return self.is_complete and not os.path.lexists(self.partial)

    def _check_final(self) -> None:
        """Raise ConfigError unless the final path is free, or a file that may be replaced."""
        if not os.path.lexists(self.final):
            return
        if not stat.S_ISREG(os.lstat(self.final).st_mode):
            raise ConfigError(
                f"{self.final}: exists and is not a plain file, so it is not replaced; choose "
                "another name"
            )
        if not self._overwrite:
            raise ConfigError(
                f"{self.final}: already exists; choose another name or add --overwrite"
            )

    def _read_manifest(self) -> None:
        """Read the recorded state, if there is one."""
        if not os.path.lexists(self.manifest):
            if os.path.lexists(self.partial):
                raise ConfigError(
                    f"{self.partial}: exists without {self.manifest.name}, so it is not "
                    "continued; delete it, or choose another name for the output"
                )
            return
        if not stat.S_ISREG(os.lstat(self.manifest).st_mode):
            raise not_plain_error(self.manifest)
        try:
            loaded = manifests.parse(read_file(self.manifest))
        except ValueError:
            raise self._damaged(self.manifest) from None
        content = manifests.unseal(loaded, self._format, self._version, self.manifest)
        if content is None:
            raise self._damaged(self.manifest)
        written = content.pop("written")
        self.fields = {name: value for name, value in content.items() if name not in _ORIGIN}
        self.is_complete = written["is_complete"]
        self._num_bytes, self._recorded_hash = written["bytes"], written["sha256"]

    def _record(self, fields: Mapping[str, Json], *, is_complete: bool = False) -> None:
        """Replace the manifest."""
        written: dict[str, Json] = {
            "bytes": self._num_bytes,
            "sha256": self._hash.hexdigest(),
            "is_complete": is_complete,
        }
        content = manifests.seal(self._format, self._version, {**fields, "written": written})
        replace_file(self.manifest, content)
        self.fields, self.is_complete = {**fields}, is_complete

    def _open(self) -> int:
        """Open the partial file, created if missing; its name then survives a power cut."""
        self._descriptor = open_plain(self.partial, os.O_RDWR | os.O_APPEND)
        sync(self.partial.absolute().parent)
        return self._descriptor

    def _check_published(self) -> None:
        """Raise DamagedError unless the file at the final path is the one that was written."""
        if not os.path.lexists(self.final):
            raise self._damaged(self.partial, "missing")
        is_it = stat.S_ISREG(os.lstat(self.final).st_mode)
        if is_it:
            with self.final.open("rb") as stream:
                is_whole = os.fstat(stream.fileno()).st_size == self._num_bytes
                is_it = is_whole and self._begins_with_recorded_bytes(stream.fileno())
        if not is_it:
            raise DamagedError(
                f"{self.final}: not the file that {self.manifest.name} describes; delete "
                f"{self.manifest.name} to begin again"
            )

    def _begins_with_recorded_bytes(self, descriptor: int) -> bool:
        num_left = self._num_bytes
        while num_left and (data := os.read(descriptor, min(num_left, _READ_BYTES))):
            self._hash.update(data)
            num_left -= len(data)
        return self._hash.hexdigest() == self._recorded_hash

    def _damaged(self, path: Path, what: str = _CHANGED) -> DamagedError:
        return DamagedError(
            f"{path}: {what}; delete {self.partial.name} and {self.manifest.name} to begin again"
        )


@contextmanager
def growing_file(
    final: Path, format: str, version: int, *, overwrite: bool
) -> Iterator[GrowingFile]:
    """Yield a file that grows, alone: no other process can write it meanwhile.

    Args:
        final: the path at which it appears; missing parents are made.
        format, version: name and version of the format, for the manifest.
        overwrite: replace a file at the final path, at the end.

    Raises:
        ConfigError: `final` exists and may not be replaced, `final.partial` exists without a
            manifest, the path is impossible, or another process is writing the file.
        DamagedError: the manifest is damaged, of another format, or of a later version.
        ResourceError: no space, no permission, a failing disk; or a link, pipe or folder in the
            place of the partial file or its manifest.
    """
    with disk_errors(final), creation_errors(final):
        make_folders(final.absolute().parent)
    with ExitStack() as held_until_end:
        with disk_errors(final):
            held_until_end.enter_context(held(hidden_name(final, LOCK), final))
            file = GrowingFile(final, format, version, overwrite=overwrite)
        try:
            yield file
        finally:
            file.close()
