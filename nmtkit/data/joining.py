"""Joining of the parts of a dataset; files are hard-linked, not copied."""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.data.audit import Audit
from nmtkit.data.binary import FORMAT, PART_FORMAT, TRAIN, VERSION, Contents, fingerprint_of
from nmtkit.data.findings import Finding
from nmtkit.data.vocabulary_size import rare_entries
from nmtkit.errors import RESTORE, ConfigError, DamagedError, DataError, ResourceError
from nmtkit.storage.durable import new_folder, read_manifest
from nmtkit.storage.manifest import verify_files
from nmtkit.text.codec import TextCodec

_MOST_SHOWN = 10
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)
_PART_FIELDS = ("counts", "files", "fingerprint", "format", "nmtkit", "part", "shards", "version")


@dataclass(frozen=True)
class _PartFolder:
    """The folder of a part.

    Attributes:
        folder: its path.
        manifest: its manifest.
    """

    folder: Path
    manifest: dict[str, Any]

    @property
    def number(self) -> int:
        """Number of the part, from 1."""
        return int(self.manifest["part"]["number"])

    @property
    def count(self) -> int:
        """Number of parts of the dataset."""
        return int(self.manifest["part"]["count"])


def join(
    folders: Sequence[Path], out: Path, overwrite: bool, report: Callable[[str], None]
) -> None:
    """Join all parts into the dataset that a single `nmtkit preprocess` would have made.

    Its files are hard links to those of the parts, whose folders may be deleted afterwards.

    Args:
        folders: the parts, in any order.
        out: folder of the dataset, on the same file system; it appears whole or not at all.
        overwrite: replace an existing dataset.
        report: receives the lines of the table of counts.

    Raises:
        ConfigError: a part is missing, repeated, or of another text or recipe; or `out` exists.
        DamagedError: a part is damaged.
        DataError: no training pairs are left.
        ResourceError: hard links cannot be made there, or the disk is full.
    """
    with new_folder(out, FORMAT, VERSION, overwrite=overwrite) as staged:
        parts = [
            _PartFolder(folder, read_manifest(folder, PART_FORMAT, VERSION)) for folder in folders
        ]
        parts.sort(key=lambda part: part.number)
        _check_complete(parts)
        for part in parts:
            verify_files(part.folder, part.manifest)
        first = parts[0].manifest
        hashes = _link_files(parts, staged.path)
        contents = [Contents.from_manifest(part.manifest) for part in parts]
        num_shards = sum(len(part.shards) for part in contents)
        shards = [contents[i % len(parts)].shards[i // len(parts)] for i in range(num_shards)]
        audit = _add([Audit.from_manifest(part.manifest) for part in parts])
        if not audit.train.kept:
            raise DataError(
                "all pairs of all parts were dropped; check the files, or relax the filters "
                "[filters]"
            )
        whole = replace(
            contents[0],
            shards=tuple(shards),
            fingerprint=fingerprint_of(contents[0].codec, hashes, contents[0].weights, shards),
        )
        rare = list(_rare_entries(first, staged.path, whole))
        staged.fields.update({name: first[name] for name in first if name not in _PART_FIELDS})
        staged.fields.update(whole.to_manifest())
        staged.fields["counts"] = audit.to_manifest()
        staged.fields["findings"] = [
            *first.get("findings", ()),
            *(finding.to_manifest() for finding in rare),
        ]
    for finding in rare:
        report(f"warning: {finding}")
    for line in audit.table():
        report(line)


def _rare_entries(
    manifest: Mapping[str, Any], folder: Path, contents: Contents
) -> Iterator[Finding]:
    """Yield the findings that need the ids of all parts, which are linked into a folder."""
    config = VocabularyConfig(**manifest["recipe"]["vocabulary"])
    yield from rare_entries(config, TextCodec.load(folder / "codec"), folder, contents)


def _check_complete(parts: Sequence[_PartFolder]) -> None:
    """Check that the parts are all parts of one dataset, each given once."""
    for part in parts:
        if not 1 <= part.number <= part.count:
            raise DamagedError(
                f"{part.folder}: part {part.number} of {part.count} in its manifest; {RESTORE}"
            )
        if part.count != parts[0].count:
            raise ConfigError(
                f"{parts[0].folder} is a part of {parts[0].count}, and {part.folder} of "
                f"{part.count}; make all parts with the same N of --shard I/N"
            )
    for part, later in pairwise(parts):
        if part.number == later.number:
            raise ConfigError(
                f"{part.folder} and {later.folder} are both part {part.number}; give each part once"
            )
    for part in parts[1:]:
        for name, what in (("recipe", "recipe"), ("texts", "text"), ("codec", "codec")):
            found, first = part.manifest.get(name), parts[0].manifest.get(name)
            is_known = name != "texts" or (found and first)  # parts of version 0.1 have none
            if is_known and found != first:
                raise ConfigError(
                    f"{part.folder}: its {what} differs from {parts[0].folder}; make all parts of "
                    "the same files, with the same command except --shard and --out"
                )
    count = parts[0].count
    if len(parts) < count:
        numbers = {part.number for part in parts}
        missing = [*islice((one for one in range(1, count + 1) if one not in numbers), _MOST_SHOWN)]
        num_more = count - len(parts) - len(missing)
        is_one = len(missing) == 1
        raise ConfigError(
            f"{'part' if is_one else 'parts'} {_listed(missing, num_more)} of {count} "
            f"{'is' if is_one else 'are'} missing; make {'it' if is_one else 'them'} with "
            f"{_listed([f'--shard {number}/{count}' for number in missing], num_more)}, "
            f"or name {'its folder' if is_one else 'their folders'} too"
        )


def _listed(items: Sequence[object], num_more: int) -> str:
    """Return items as text: "1", "1 and 2", "1, 2 and 3", "1, 2 and 7 more"."""
    *others, last = [*map(str, items), *([f"{num_more:,} more"] if num_more else [])]
    return f"{', '.join(others)} and {last}" if others else last


def _link_files(parts: Sequence[_PartFolder], folder: Path) -> dict[str, bytes]:
    """Hard-link the files of all parts into a folder; returns the hash of each by name."""
    hashes: dict[str, bytes] = {}
    for part in parts:
        files: Mapping[str, Any] = part.manifest["files"]
        for name in files:
            if name not in hashes and (name.startswith(f"{TRAIN}.") or part is parts[0]):
                _link(part.folder / name, folder / name)
                hashes[name] = bytes.fromhex(files[name]["sha256"])
    return hashes


def _link(path: Path, name: Path) -> None:
    """Make a hard link NAME to the file PATH."""
    name.parent.mkdir(exist_ok=True)
    try:
        name.hardlink_to(path.resolve())  # of the file, where PATH is a link to it
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise ResourceError(
            f"{path}: cannot be linked into the joined dataset ({error.strerror}); choose an --out "
            "on the same file system, which must support hard links"
        ) from error


def _add(audits: Sequence[Audit]) -> Audit:
    """Add the training counts of parts; each part has the counts of the whole validation text."""
    first, *rest = audits
    corpora = list(first.corpora)
    for audit in rest:
        corpora = [one + other for one, other in zip(corpora, audit.corpora, strict=True)]
    return Audit(corpora, first.valid_prefix, first.valid, first.unknown_name)
