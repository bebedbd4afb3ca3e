"""What a manifest says, and that nothing which differs from it passes."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nmtkit
from nmtkit.errors import DamagedError
from nmtkit.storage.manifest import MANIFEST, describe, read, verify_files
from tests.folders import PLANTED
from tests.messages import refuses

FORMAT = "test-format"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files, described."""
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    (made / "inner" / "one.bin").write_bytes(bytes(range(256)))
    (made / "two").write_bytes(b"")
    (made / MANIFEST).write_bytes(describe(made, FORMAT, 3, {"update": 7}))
    return made


def check(folder: Path) -> dict[str, Any]:
    manifest = read(folder, FORMAT, 3)
    verify_files(folder, manifest)
    return manifest


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a manifest says, as its format documents that it is sealed."""
    content = json.loads((folder / MANIFEST).read_bytes())
    del content["sha256"]
    change(content)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(content))


def test_it_has_format_origin_fields_and_an_entry_per_file(folder: Path) -> None:
    digests = {
        "inner/one.bin": hashlib.sha256(bytes(range(256))).hexdigest(),
        "two": hashlib.sha256().hexdigest(),
    }
    assert check(folder) == {
        "format": FORMAT,
        "version": 3,
        "nmtkit": nmtkit.__version__,
        "update": 7,
        "files": {
            "inner/one.bin": {"bytes": 256, "sha256": digests["inner/one.bin"]},
            "two": {"bytes": 0, "sha256": digests["two"]},
        },
    }


def test_a_resealed_manifest_is_read(folder: Path) -> None:
    rewrite(folder, lambda content: content.update(update=8))
    assert check(folder)["update"] == 8


def test_files_that_it_does_not_name_are_ignored(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    check(folder)


# ------------------------------------------------------------------------------ not a folder of it


def test_a_missing_folder_and_a_file_have_different_errors(folder: Path) -> None:
    with refuses(DamagedError, "nothing"):
        read(folder / "nothing", FORMAT, 3)
    with refuses(DamagedError, "two"):
        read(folder / "two", FORMAT, 3)


def test_a_folder_without_manifest_is_an_error(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    with refuses(DamagedError, "made/manifest.json"):
        read(folder, FORMAT, 3)


def test_another_format_is_an_error_with_its_name(folder: Path) -> None:
    with refuses(DamagedError, "made test-format other"):
        read(folder, "other", 3)


@pytest.mark.parametrize("version", [2, 4])
def test_another_version_is_an_error(version: int, folder: Path) -> None:
    with refuses(DamagedError, f"3 {version}; again"):
        read(folder, FORMAT, version)


# ------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff\xfe{}", b"1" * 5000, b"[" * 100_000, b'{"format": "test-format"}'],
    ids=["empty", "torn", "a list", "UTF-16", "a long number", "deep", "no hash"],
)
def test_other_content_of_a_manifest_is_damage(content: bytes, folder: Path) -> None:
    (folder / MANIFEST).write_bytes(content)
    with refuses(DamagedError, "manifest.json"):
        read(folder, FORMAT, 3)


def test_a_changed_letter_of_a_manifest_is_noticed(folder: Path) -> None:
    content = (folder / MANIFEST).read_bytes()
    for position in range(0, len(content), 3):
        changed = bytearray(content)
        changed[position] ^= 1 << position % 8
        (folder / MANIFEST).write_bytes(changed)
        with pytest.raises(DamagedError):
            check(folder)


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../made/two",
        "inner/../two",
        "./two",
        "inner//one.bin",
        "",
        "a b",
        "manifest.json",
    ],
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, folder: Path) -> None:
    rewrite(folder, lambda content: content["files"].update({name: content["files"]["two"]}))
    with refuses(DamagedError, "manifest.json"):
        read(folder, FORMAT, 3)


@pytest.mark.parametrize(
    "files",
    [None, [], {"two": None}, {"two": {"bytes": "0", "sha256": "0" * 64}}, {"two": {"bytes": 0}}],
)
def test_files_that_are_not_described_are_damage(files: object, folder: Path) -> None:
    rewrite(folder, lambda content: content.update(files=files))
    with refuses(DamagedError, "manifest.json"):
        read(folder, FORMAT, 3)


def remove(path: Path) -> None:
    path.unlink()


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"1")


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def link(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name("moved")))


def link_parent(path: Path) -> None:
    path.parent.symlink_to(path.parent.rename(path.parent.with_name("moved")))


def replace_parent_by_file(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"")


@pytest.mark.parametrize("harm", [remove, replace_parent_by_file, lengthen, shorten])
def test_a_file_that_is_not_as_described_is_named(
    harm: Callable[[Path], object], folder: Path
) -> None:
    harm(folder / "inner" / "one.bin")
    with refuses(DamagedError, "made/inner/one.bin"):
        read(folder, FORMAT, 3)


@pytest.mark.parametrize("name", ["inner/one.bin", MANIFEST])
@pytest.mark.parametrize("kind", ["link to nothing", "link to a device", "pipe", "folder"])
def test_what_is_not_a_file_is_refused_unread(kind: str, name: str, folder: Path) -> None:
    (folder / name).unlink()
    PLANTED[kind](folder / name, folder)
    with refuses(DamagedError, f"made/{name}"):
        read(folder, FORMAT, 3)


def test_changed_content_of_the_same_size_is_named(folder: Path) -> None:
    (folder / "inner" / "one.bin").write_bytes(bytes(256))
    manifest = read(folder, FORMAT, 3)
    with refuses(DamagedError, "one.bin"):
        verify_files(folder, manifest)


# -------------------------------------------------------------------------------------- links


@pytest.mark.parametrize("put_link", [link, link_parent])
def test_links_to_files_are_followed(put_link: Callable[[Path], object], folder: Path) -> None:
    before = check(folder)
    put_link(folder / "inner" / "one.bin")
    put_link(folder / MANIFEST) if put_link is link else None
    assert check(folder) == before


def test_other_content_behind_a_link_is_named(folder: Path) -> None:
    link(folder / "inner" / "one.bin")
    (folder / "inner" / "moved").write_bytes(bytes(256))
    with refuses(DamagedError, "one.bin"):
        check(folder)
