"""Manifests: the format of a folder, and the size and SHA-256 hash of each of its files.

A manifest is sealed by a hash of its own content. `nmtkit.storage.durable` writes manifests, and
its `read_manifest` reads them; `nmtkit.storage.growing_file` has those of files.
"""

import hashlib
import json
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from nmtkit.errors import RESTORE, DamagedError
from nmtkit.storage.disk import disk_errors, read_file
from nmtkit.storage.json_data import JsonError, decode_text
from nmtkit.version import __version__

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MANIFEST = "manifest.json"

_FILE_NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def describe(folder: Path, format: str, version: int, fields: Mapping[str, Json]) -> bytes:
    """Return the bytes of a manifest for the present files of a folder.

    Args:
        folder: the folder, without a manifest.
        format, version: name and version of its format.
        fields: further fields of the manifest.
    """
    files: dict[str, Json] = {}
    for path in sorted(files_in(folder)):
        name = path.relative_to(folder).as_posix()
        assert _is_file_name(name), name
        files[name] = {"bytes": path.stat().st_size, "sha256": _hash(path)}
    assert "files" not in fields, fields
    return seal(format, version, {**fields, "files": files})


def seal(format: str, version: int, fields: Mapping[str, Json]) -> bytes:
    """Return the bytes of a manifest: the origin, the fields, and the hash of both."""
    origin = {"format": format, "version": version, "nmtkit": __version__}
    assert not fields.keys() & {*origin, "sha256"}, fields
    content = {**origin, **fields}
    sealed = {**content, "sha256": hash_of_content(content)}
    return (json.dumps(sealed, indent=2) + "\n").encode()


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the path of every file in a folder, at any depth."""
    return (path for path in folder.rglob("*") if not path.is_dir())


def read(folder: Path, format: str, version: int) -> dict[str, Any]:
    """Return the checked manifest of a folder; other files' contents are not read.

    Args:
        folder: the folder.
        format: the format it must have.
        version: the version that it must have.

    Raises:
        DamagedError: no such folder; manifest missing or damaged, of another format or a later
            version; a file missing or of another size.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "no such folder"
        raise DamagedError(f"{folder}: {what}; check the path")
    manifest = load(folder)
    content = _unseal(manifest, format, version, folder)
    if content is None or not _names_good_files(content):
        raise _damaged(folder / MANIFEST)
    _check_sizes(folder, content)
    return content


def read_sealed(path: Path, format: str, version: int) -> dict[str, Any] | None:
    """Return the content of a file that holds what `seal` returned; None if it does not.

    Args:
        path: the file.
        format, version: as in `read`.

    Raises:
        DamagedError: it is of another format or version, or no file.
        OSError: the file is missing, or cannot be read.
    """
    try:
        manifest = decode_text(dict[str, Any], read_file(path))
    except JsonError:
        return None
    return _unseal(manifest, format, version, path)


def load(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder unchecked; DamagedError if it is no file, or no object."""
    path = folder / MANIFEST
    try:
        return decode_text(dict[str, Any], read_file(path))
    except FileNotFoundError:
        raise DamagedError(f"{path}: missing; check the path, or {RESTORE}") from None
    except JsonError:
        raise _damaged(path) from None


def verify_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Check the hash of every file against the manifest that `read_manifest` returned.

    Raises:
        DamagedError: a file's content differs from what was written; the message names the file.
        ResourceError: no permission, a failing disk.
    """
    with disk_errors(folder):
        for name, entry in manifest["files"].items():
            if _hash(folder / name) != entry["sha256"]:
                raise _damaged(folder / name)


def missing_file_error(path: Path) -> DamagedError:
    """Return the error for a file that disappeared while its folder was read.

    Training deletes old checkpoints.
    """
    return DamagedError(
        f"{path}: is gone; restore the folder from a copy; for a checkpoint of a run that is still "
        "training, try again or raise --keep"
    )


def _unseal(
    manifest: Mapping[str, Any], format: str, version: int, path: Path
) -> dict[str, Any] | None:
    """Return the content of a manifest; None if it is not what was sealed.

    Args:
        manifest: the manifest, with its hash.
        format, version: as in `read`.
        path: what the manifest describes, for messages.

    Raises:
        DamagedError: it is of another format or version.
    """
    found, found_version = manifest.get("format"), manifest.get("version")
    if found != format:
        raise DamagedError(f"{path}: is of format {found!r}, not {format!r}; check the path")
    if isinstance(found_version, int) and found_version != version:
        raise DamagedError(
            f"{path}: is of version {found_version} of {format}, and this nmtkit reads version "
            f"{version}; use the nmtkit that wrote it, or make it again"
        )
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return content if manifest.get("sha256") == hash_of_content(content) else None


def _damaged(path: Path) -> DamagedError:
    return DamagedError(f"{path}: damaged, its content is not what was written; {RESTORE}")


def _check_sizes(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Check that each file exists and has its size; links are followed."""
    for name, entry in manifest["files"].items():
        path = folder / name
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise DamagedError(f"{path}: missing; {RESTORE}") from None
        if not stat.S_ISREG(found.st_mode):
            raise DamagedError(f"{path}: not a file; {RESTORE}")
        if found.st_size != entry["bytes"]:
            raise DamagedError(
                f"{path}: damaged, {found.st_size} bytes instead of {entry['bytes']}; {RESTORE}"
            )


def _names_good_files(manifest: Mapping[str, Any]) -> bool:
    """Return whether `files` has only names inside the folder, each with size and hash."""
    files = manifest.get("files")
    return isinstance(files, dict) and all(
        _is_file_name(name)
        and isinstance(entry, dict)
        and isinstance(entry.get("bytes"), int)
        and _SHA256.fullmatch(str(entry.get("sha256")))
        for name, entry in files.items()
    )


def _is_file_name(name: str) -> bool:
    parts = name.split("/")
    return bool(_FILE_NAME.fullmatch(name)) and {".", ".."}.isdisjoint(parts) and name != MANIFEST


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise missing_file_error(path) from None


def hash_of_content(content: Mapping[str, Any]) -> str:
    """Return the hash of a manifest's content; order and white space do not change it."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
