"""What is to tell of a dataset."""

from collections.abc import Iterator
from pathlib import Path

from nmtkit.data.audit import Audit
from nmtkit.data.binary import FORMAT, VERSION, Contents
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.manifest import verify_files


def describe(folder: Path, check: bool) -> Iterator[str]:
    """Yield lines on a dataset: its kind, the table of its counts, examples of dropped pairs.

    Args:
        folder: the dataset.
        check: read every file, and compare it with its hash.

    Raises:
        DamagedError: it is missing or damaged; names the file.
    """
    manifest = read_manifest(folder, FORMAT, VERSION)
    if check:
        verify_files(folder, manifest)
    contents = Contents.from_manifest(manifest)
    sizes = manifest["vocabulary_sizes"]
    entries = f"{sizes['source']}" + ("" if manifest["is_shared"] else f" and {sizes['target']}")
    num_bytes = sum(entry["bytes"] for entry in manifest["files"].values())
    yield f"languages    {manifest['source_lang']} to {manifest['target_lang']}"
    yield f"vocabulary   {entries} entries, {manifest['segmentation']}"
    yield f"train        {sum(map(sum, contents.shards))} pairs in {len(contents.shards)} shards"
    yield f"valid        {contents.valid_lines} lines"
    yield f"on disk      {num_bytes} bytes in {len(manifest['files'])} files"
    yield f"fingerprint  {contents.fingerprint}"
    if check:
        yield "checked      every file is what was written"
    audit = Audit.from_manifest(manifest)
    yield from ("", *audit.table())
    examples = audit.examples()
    if examples:
        yield from ("", "dropped, among others", *examples)
