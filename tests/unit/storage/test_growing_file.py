"""Files that grow are continued after whole chunks, and appear when they are whole."""

import errno
import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError, LostFolderError, NmtkitError, ResourceError
from nmtkit.storage.growing_file import FORMAT, VERSION, GrowingFile, growing_file
from nmtkit.storage.manifest import seal
from tests.faults.harness import Fault, held_by_another_process, run_in_child
from tests.folders import PLANTED, contents, limit_file_size, names_in, planted
from tests.messages import refuses

WORK = {"what": "three chunks of two lines"}
CHUNKS = (["one", ""], ["two", "three"], ["\u00e9" * 9, "six"])
WHOLE = "".join(f"{line}\n" for chunk in CHUNKS for line in chunk).encode()
UNFINISHED = ["file.partial", "file.partial.json"]


@contextmanager
def opened(path: Path, *, overwrite: bool = False) -> Iterator[GrowingFile]:
    with growing_file(path, overwrite=overwrite) as file:
        yield file


def ends_of(lines: Iterable[bytes]) -> dict[int, int]:
    """Return the ends of chunks of two lines."""
    sizes = enumerate(accumulate(map(len, lines)), 1)
    return {number: size for number, size in sizes if number % 2 == 0}


def write(file: GrowingFile, chunks: Sequence[list[str]] = CHUNKS) -> int:
    """Write the chunks that are missing; return the number of lines that were there."""
    num_lines = file.resume(ends_of)
    file.begin(WORK)
    for chunk in chunks[num_lines // 2 :]:
        file.append(chunk)
    return num_lines


def grow(path: Path, chunks: Sequence[list[str]] = CHUNKS, *, overwrite: bool = False) -> int:
    with opened(path, overwrite=overwrite) as file:
        return write(file, chunks)


def publish(path: Path, *, overwrite: bool = False) -> bytes:
    """Write what is missing, and return the content of the file."""
    with opened(path, overwrite=overwrite) as file:
        if not file.is_complete:
            write(file)
        file.publish()
    return path.read_bytes()


def complete_without_publishing(path: Path) -> None:
    """Leave what a writer leaves that is killed before the file appears."""
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if target == path:
            raise OSError(errno.EROFS, "")
        replace(source, target)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(ResourceError):
            publish(path)
    assert names_in(path.parent) == [f"{path.name}.partial", f"{path.name}.partial.json"]


@pytest.mark.parametrize("num_bytes", range(len(WHOLE) + 1))
def test_a_writer_continues_after_the_whole_chunks_that_are_there(
    num_bytes: int, tmp_path: Path
) -> None:
    """What a kill or a full disk leaves of the lines: any beginning of them."""
    for tail in (b"", b"torn", bytes(1000), b"\xff\xfe"):
        path = tmp_path / f"{len(tail)}" / "file"
        grow(path)
        (path.parent / "file.partial").write_bytes(WHOLE[:num_bytes] + tail)
        whole = WHOLE[:num_bytes].count(b"\n") // 2 * 2
        assert grow(path) == whole
        assert publish(path) == WHOLE
        assert names_in(path.parent) == ["file"]


@pytest.mark.parametrize("hole", [b"\0\0\0\0", b"\xff\xfe\xfd\xfc"])
def test_a_last_chunk_that_a_power_cut_damaged_is_written_again(
    hole: bytes, tmp_path: Path
) -> None:
    grow(tmp_path / "file")
    (tmp_path / "file.partial").write_bytes(WHOLE.replace("\u00e9\u00e9".encode(), hole, 1))
    assert grow(tmp_path / "file") == 4
    assert publish(tmp_path / "file") == WHOLE


def test_a_chunk_that_was_synced_may_have_a_nul(tmp_path: Path) -> None:
    grow(tmp_path / "file", (["a\0b", "c"], ["d", "e"]))
    assert grow(tmp_path / "file") == 4


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_a_file_appears_whole_and_nothing_else_remains(name: str, tmp_path: Path) -> None:
    def content(data: bytes) -> bytes:
        return gzip.decompress(data) if name == "file.gz" else data

    for number in range(len(CHUNKS) + 1):
        path = tmp_path / str(number) / name
        grow(path, CHUNKS[:number])
        assert not path.exists()
        assert content(publish(path)) == WHOLE
        assert names_in(path.parent) == [name]
    killed = tmp_path / "killed" / name
    complete_without_publishing(killed)
    assert publish(killed) == path.read_bytes()  # compressed without a time or a name
    # A kill after the compression, and one after the file has appeared.
    for number, last in enumerate((f"{name}.partial", name)):
        after = tmp_path / f"after-{number}"
        complete_without_publishing(after / name)
        (after / f"{name}.partial").unlink()
        (after / last).write_bytes(path.read_bytes())
        assert publish(after / name) == path.read_bytes()
        assert names_in(after) == [name]


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_a_file_of_others_next_to_a_complete_one_is_not_replaced(name: str, tmp_path: Path) -> None:
    complete_without_publishing(tmp_path / name)
    (tmp_path / name).write_bytes(b"theirs")
    with refuses(ConfigError, f"{name}; --overwrite"):
        publish(tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"theirs"
    publish(tmp_path / name, overwrite=True)
    assert names_in(tmp_path) == [name]


def test_a_link_in_the_place_of_a_complete_partial_file_does_not_appear(tmp_path: Path) -> None:
    complete_without_publishing(tmp_path / "file")
    (tmp_path / "file.partial").unlink()
    (tmp_path / "file.partial").symlink_to("/etc/hostname")
    with pytest.raises(ResourceError):
        publish(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_an_error_of_the_caller_is_not_one_of_the_output(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), opened(tmp_path / "file"):
        raise PermissionError(13, "Permission denied", "model")


def test_no_chunk_is_written_into_a_folder_that_was_replaced(tmp_path: Path) -> None:
    def replace_the_folder() -> None:
        with opened(tmp_path / "folder" / "file") as file:
            write(file, CHUNKS[:1])
            (tmp_path / "folder").rename(tmp_path / "moved")
            (tmp_path / "folder").mkdir()
            file.append(CHUNKS[1])

    with pytest.raises(LostFolderError):
        replace_the_folder()


def test_a_complete_file_that_was_moved_away_is_written_again(tmp_path: Path) -> None:
    complete_without_publishing(tmp_path / "file")
    (tmp_path / "file.partial").unlink()
    assert publish(tmp_path / "file") == WHOLE


def test_an_existing_file_is_replaced_at_the_end_and_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with refuses(ConfigError, f"{path}; name --overwrite"):
        grow(path)
    assert contents(tmp_path) == {"file": b"old"}
    grow(path, CHUNKS[:2], overwrite=True)
    (tmp_path / "file.partial").unlink()  # by somebody who does not want to continue
    with refuses(ConfigError, f"{path}; name --overwrite"):
        grow(path)
    assert grow(path, overwrite=True) == 0
    assert path.read_bytes() == b"old"
    assert publish(path, overwrite=True) == WHOLE


def test_a_file_that_has_appeared_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with opened(path) as file:
        write(file)
        path.write_bytes(b"theirs")
        with refuses(ConfigError, f"{path}; name --overwrite"):
            file.publish()
    assert path.read_bytes() == b"theirs"
    path.unlink()
    assert publish(path) == WHOLE


@pytest.mark.parametrize("name", [".", ".."])
def test_a_path_without_a_name_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    with refuses(ConfigError, f"{name}: ; name --overwrite"):
        grow(Path(name), overwrite=True)
    assert names_in(tmp_path) == ["inner"]


# ------------------------------------------------------- damage, other files, others


def test_a_flipped_bit_of_any_byte_of_the_manifest_is_found_or_harmless(tmp_path: Path) -> None:
    grow(tmp_path / "file")
    whole = (tmp_path / "file.partial.json").read_bytes()
    num_found = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        (tmp_path / "file.partial.json").write_bytes(changed)
        try:
            with opened(tmp_path / "file") as file:
                assert file.work == WORK  # white space
        except DamagedError as error:
            assert "file.partial.json: " in str(error)  # noqa: PT017
            num_found += 1
    assert num_found > 0.8 * len(whole)


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (b"[" * 100_000, "; file.partial file.partial.json"),
        (seal(FORMAT, VERSION, {"work": {}, "done": {}}), "; file.partial file.partial.json"),
        (seal("other", 1, {}), f"other {FORMAT}"),
        (seal(FORMAT, VERSION + 1, {}), f"{VERSION + 1} {FORMAT}"),
    ],
    ids=["no JSON", "a field is missing", "another format", "another version"],
)
def test_another_manifest_is_refused(content: bytes, keys: str, tmp_path: Path) -> None:
    (tmp_path / "file.partial.json").write_bytes(content)
    with refuses(DamagedError, f"file.partial.json {keys}"):
        grow(tmp_path / "file")
    assert names_in(tmp_path) == ["file.partial.json"]


def test_a_partial_file_without_manifest_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "file.partial").write_bytes(b"theirs")
    with refuses(ConfigError, "file.partial file.partial.json; delete name"):
        grow(tmp_path / "file", overwrite=True)
    assert contents(tmp_path) == {"file.partial": b"theirs"}


def test_a_partial_file_that_is_replaced_meanwhile_is_not_published(tmp_path: Path) -> None:
    with opened(tmp_path / "file") as file:
        write(file)
        (tmp_path / "file.partial").unlink()
        for _ in range(2):
            with refuses(DamagedError, "file.partial; file.partial file.partial.json"):
                file.publish()
            (tmp_path / "file.partial").write_bytes(b"theirs")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("act", [lambda file: file.begin(WORK), lambda file: file.publish()])
def test_nothing_is_written_into_a_folder_that_was_replaced(
    act: Callable[[GrowingFile], None], tmp_path: Path
) -> None:
    complete_without_publishing(tmp_path / "folder" / "file")

    def replace_the_folder() -> None:
        with opened(tmp_path / "folder" / "file") as file:
            (tmp_path / "folder").rename(tmp_path / "moved")
            (tmp_path / "folder").mkdir()
            file.work = None
            act(file)

    with refuses(LostFolderError, "folder lock; path command"):
        replace_the_folder()
    assert names_in(tmp_path / "folder") == []


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", ["file", *UNFINISHED])
def test_nothing_is_written_through_what_is_not_a_plain_file(
    name: str, kind: str, ours: Path
) -> None:
    """A second name of a file, or a link to no manifest, is replaced."""
    if name == "file.partial":
        grow(ours / "file", CHUNKS[:2])
        (ours / name).unlink()
    with planted(kind, ours / name):
        if (name, kind) in (
            ("file", "second name of a file"),
            ("file.partial.json", "link to nothing"),
        ):
            assert publish(ours / "file", overwrite=True) == WHOLE
            return
        with refuses(NmtkitError, f"ours/{name}:"):
            grow(ours / "file", overwrite=True)


def test_a_second_writer_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    grow(path, CHUNKS[:2])
    with held_by_another_process(opened(path)) as process:
        before = contents(tmp_path)
        with refuses(ConfigError, f"{path} {process}; wait"):
            grow(path)
        assert contents(tmp_path) == before
    assert publish(path) == WHOLE


def test_a_disk_that_becomes_full_loses_no_whole_chunk(tmp_path: Path) -> None:
    path, chunks = tmp_path / "file", [["x" * 2000, "x"], ["y", "y" * 3000]]

    def fill() -> None:
        limit_file_size(4000)
        grow(path, chunks)

    outcome = run_in_child(fill, Fault("count", 0))
    assert outcome.exception.startswith(f"ResourceError: {path}: File too large; choose a place")
    assert (tmp_path / "file.partial").stat().st_size == 4000
    assert grow(path, chunks) == 2
    assert grow(path, chunks) == 4
