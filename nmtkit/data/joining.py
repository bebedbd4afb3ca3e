"""Parts of a dataset that were made apart become one, without copying: files are linked."""

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from nmtkit.data.audit import Audit
from nmtkit.data.binary import FORMAT, PART_FORMAT, TRAIN, VERSION, Contents, fingerprint_of
from nmtkit.errors import ConfigError, DataError, ResourceError
from nmtkit.storage.durable import new_folder, read_manifest
from nmtkit.storage.manifest import verify_files

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)
_OF_PARTS = ("counts", "files", "fingerprint", "format", "nmtkit", "part", "shards", "version")


@dataclass(frozen=True)
class _Made:
    """A part that was made.

    Attributes:
        folder: where.
        manifest: what it says.
    """

    folder: Path
    manifest: dict[str, Any]

    @property
    def number(self) -> int:
        """Which part it is, from 1."""
        return int(self.manifest["part"]["number"])


def join(
    folders: Sequence[Path], out: Path, overwrite: bool, report: Callable[[str], None]
) -> None:
    """Make a dataset of all its parts; it is the one that a single call would have made.

    Its files are further names of the parts' files, whose folders may be deleted afterwards.

    Args:
        folders: the parts, in any order.
        out: the dataset's folder, on the same file system; it appears whole or not at all.
        overwrite: replace a dataset that stands there.
        report: takes the lines of what was read and kept.

    Raises:
        ConfigError: a part is missing, there twice, or of another text or recipe; or `out` exists.
        DamagedError: a part is damaged.
        DataError: no pair is left to train with.
        ResourceError: no links can be made there, or no room on disk.
    """
    with new_folder(out, FORMAT, VERSION, overwrite=overwrite) as staged:
        parts = [_Made(folder, read_manifest(folder, PART_FORMAT, VERSION)) for folder in folders]
        parts.sort(key=lambda part: part.number)
        _check_complete(parts)
        for part in parts:
            verify_files(part.folder, part.manifest)
        first = parts[0].manifest
        hashes = _link_files(parts, staged.path)
        contents = [Contents.from_manifest(part.manifest) for part in parts]
        num_shards = sum(len(one.shards) for one in contents)
        shards = [contents[i % len(parts)].shards[i // len(parts)] for i in range(num_shards)]
        audit = _add([Audit.from_manifest(part.manifest) for part in parts])
        if not audit.train.kept:
            raise DataError(
                "all pairs of all parts were dropped; check the files, or drop fewer [filters]"
            )
        staged.fields.update({name: first[name] for name in first if name not in _OF_PARTS})
        staged.fields["shards"] = shards
        staged.fields["counts"] = audit.to_manifest()
        staged.fields["fingerprint"] = fingerprint_of(
            contents[0].codec, hashes, contents[0].weights, shards
        )
    for line in audit.table():
        report(line)


def _check_complete(parts: Sequence[_Made]) -> None:
    """Check that the parts are those of one dataset, all of them."""
    count = parts[0].manifest["part"]["count"]
    numbers = [part.number for part in parts]
    for part, later in pairwise(parts):
        if part.number == later.number:
            raise ConfigError(
                f"{part.folder} and {later.folder} are both part {part.number}; give each part once"
            )
    for part in parts[1:]:
        for name in ("recipe", "codec"):
            if part.manifest[name] != parts[0].manifest[name]:
                raise ConfigError(
                    f"{part.folder}: its {name} is not that of {parts[0].folder}; make all parts "
                    "with the same command but for --shard and --out"
                )
    missing = [str(number) for number in range(1, count + 1) if number not in numbers]
    if missing or len(parts) != count:
        raise ConfigError(
            f"of {count} parts, {', '.join(missing)} are missing; make them with --shard"
        )


def _link_files(parts: Sequence[_Made], folder: Path) -> dict[str, bytes]:
    """Give the files of parts names in a folder; returns the hash of each."""
    hashes: dict[str, bytes] = {}
    for part in parts:
        files: Mapping[str, Any] = part.manifest["files"]
        for name in files:
            if name not in hashes and (name.startswith(f"{TRAIN}.") or part is parts[0]):
                _link(part.folder / name, folder / name)
                hashes[name] = bytes.fromhex(files[name]["sha256"])
    return hashes


def _link(path: Path, name: Path) -> None:
    """Give a file another name."""
    name.parent.mkdir(exist_ok=True)
    try:
        name.hardlink_to(path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise ResourceError(
            f"{path}: cannot be linked into the joined dataset ({error.strerror}); choose an --out "
            "on the same file system, which must have hard links"
        ) from error


def _add(audits: Sequence[Audit]) -> Audit:
    """Add the counts of parts; all have all of the validation text."""
    first, *rest = audits
    corpora = list(first.corpora)
    for audit in rest:
        corpora = [one + other for one, other in zip(corpora, audit.corpora, strict=True)]
    return Audit(corpora, first.valid_prefix, first.valid, first.unknown_name)
