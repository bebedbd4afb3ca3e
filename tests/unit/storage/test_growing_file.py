"""Files that grow are continued with the bytes that they had, and appear when they are whole."""

import errno
import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError, ResourceError
from nmtkit.storage.growing_file import GrowingFile, growing_file
from nmtkit.storage.manifest import seal
from tests.faults.harness import Fault, held_by_another_process, run_in_child
from tests.folders import PLANTED, contents, limit_file_size, names_in, planted
from tests.messages import refuses

FORMAT = "test-growing"
CHUNKS = (b"one\n", b"", b"two\nthree\n", b"\x00\xff" * 3)
WHOLE = b"".join(CHUNKS)
UNFINISHED = ["file.partial", "file.partial.json"]


@contextmanager
def opened(path: Path, *, overwrite: bool = False) -> Iterator[GrowingFile]:
    with growing_file(path, FORMAT, 1, overwrite=overwrite) as file:
        yield file


def grow(path: Path, chunks: Sequence[bytes] = CHUNKS, *, overwrite: bool = False) -> None:
    """Write chunks, continued after those that have been recorded."""
    with opened(path, overwrite=overwrite) as file:
        write(file, chunks)


def write(file: GrowingFile, chunks: Sequence[bytes]) -> None:
    if file.fields is None:
        file.begin({"chunks": 0})
    else:
        file.resume()
    assert file.fields is not None
    for number in range(file.fields["chunks"], len(chunks)):
        file.append(chunks[number], {"chunks": number + 1})


def publish(path: Path, chunks: Sequence[bytes] = CHUNKS, *, overwrite: bool = False) -> bytes:
    """Write the chunks that are missing, and return the content of the file."""
    with opened(path, overwrite=overwrite) as file:
        write(file, chunks)
        file.publish()
    return path.read_bytes()


def complete_without_renaming(path: Path) -> None:
    """Leave what a writer leaves that is killed before the renaming."""
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if target == path:
            raise OSError(errno.EROFS, "")
        replace(source, target)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(ResourceError):
            publish(path)
    assert names_in(path.parent) == UNFINISHED


def test_a_file_appears_whole_when_it_is_published_and_nothing_else_remains(tmp_path: Path) -> None:
    grow(tmp_path / "deep" / "file")
    assert names_in(tmp_path / "deep") == UNFINISHED
    assert (tmp_path / "deep" / "file.partial").read_bytes() == WHOLE
    assert publish(tmp_path / "deep" / "file") == WHOLE
    assert names_in(tmp_path / "deep") == ["file"]


@pytest.mark.parametrize("tail", [b"", b"torn", bytes(1000)])
def test_a_writer_that_continues_after_any_chunk_writes_the_same_file(
    tail: bytes, tmp_path: Path
) -> None:
    for number in range(len(CHUNKS) + 1):
        path = tmp_path / str(number) / "file"
        grow(path, CHUNKS[:number])
        with (path.parent / "file.partial").open("ab") as stream:
            stream.write(tail)  # what was appended, but not recorded
        with opened(path) as file:
            assert file.fields == {"chunks": number}
        assert publish(path) == WHOLE
        assert names_in(path.parent) == ["file"]


def test_a_writer_without_chunks_makes_an_empty_file(tmp_path: Path) -> None:
    assert publish(tmp_path / "file", ()) == b""


def test_a_writer_that_was_killed_before_its_first_byte_begins_again(tmp_path: Path) -> None:
    grow(tmp_path / "file", ())
    (tmp_path / "file.partial").unlink()  # the manifest is written first
    assert publish(tmp_path / "file") == WHOLE


def test_an_existing_file_is_replaced_at_the_end_and_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with refuses(ConfigError, "file; --overwrite"):
        grow(path)
    assert contents(tmp_path) == {"file": b"old"}
    grow(path, CHUNKS[:2], overwrite=True)
    assert path.read_bytes() == b"old"
    with refuses(ConfigError, "file; --overwrite"):
        grow(path)
    assert publish(path, overwrite=True) == WHOLE


def test_a_file_that_has_appeared_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with opened(path) as file:
        write(file, CHUNKS)
        path.write_bytes(b"theirs")
        with refuses(ConfigError, "file; --overwrite"):
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
    with refuses(ConfigError, name):
        grow(Path(name), overwrite=True)
    assert names_in(tmp_path) == ["inner"]


# ------------------------------------------------------- killed at the end


def test_a_writer_killed_before_the_renaming_is_completed(tmp_path: Path) -> None:
    complete_without_renaming(tmp_path / "file")
    with opened(tmp_path / "file") as file:
        assert file.is_complete
    assert publish(tmp_path / "file") == WHOLE
    assert names_in(tmp_path) == ["file"]


def test_a_writer_killed_after_the_renaming_is_completed(tmp_path: Path) -> None:
    complete_without_renaming(tmp_path / "file")
    (tmp_path / "file.partial").rename(tmp_path / "file")
    for overwrite in (False, True):
        with opened(tmp_path / "file", overwrite=overwrite) as file:
            assert file.is_complete
            file.resume()
    assert publish(tmp_path / "file") == WHOLE
    assert names_in(tmp_path) == ["file"]


@pytest.mark.parametrize("content", [WHOLE[:-1], WHOLE + b"1", b"", bytes(len(WHOLE)), None])
def test_a_file_that_is_not_the_published_one_is_refused(
    content: bytes | None, tmp_path: Path
) -> None:
    complete_without_renaming(tmp_path / "file")
    (tmp_path / "file.partial").unlink()
    if content is None:
        (tmp_path / "file").mkdir()
    else:
        (tmp_path / "file").write_bytes(content)
    with refuses(DamagedError, "file file.partial.json; file.partial.json"):
        grow(tmp_path / "file", overwrite=True)


def test_a_complete_file_that_is_gone_is_damage(tmp_path: Path) -> None:
    complete_without_renaming(tmp_path / "file")
    (tmp_path / "file.partial").unlink()
    with refuses(DamagedError, "file.partial; file.partial.json"):
        grow(tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_signal_comes_between_the_renaming_and_the_end(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = os.replace

    def replace(source: Path, target: Path) -> None:
        renamed(source, target)
        if target == tmp_path / "file":
            assert number in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    monkeypatch.setattr(os, "replace", replace)
    assert publish(tmp_path / "file") == WHOLE


# ------------------------------------------------------- damage


@pytest.mark.parametrize("is_complete", [False, True])
def test_every_flipped_bit_of_the_partial_file_is_found(is_complete: bool, tmp_path: Path) -> None:
    if is_complete:
        complete_without_renaming(tmp_path / "file")
    else:
        grow(tmp_path / "file")
    partial = tmp_path / "file.partial"
    for place in range(8 * len(WHOLE)):
        changed = bytearray(WHOLE)
        changed[place // 8] ^= 1 << place % 8
        partial.write_bytes(changed)
        with refuses(DamagedError, "file.partial; file.partial.json"):
            grow(tmp_path / "file")
        assert partial.read_bytes() == changed


@pytest.mark.parametrize("num_bytes", range(len(WHOLE)))
def test_a_partial_file_without_its_recorded_bytes_is_found(num_bytes: int, tmp_path: Path) -> None:
    grow(tmp_path / "file")
    (tmp_path / "file.partial").write_bytes(WHOLE[:num_bytes])
    with refuses(DamagedError, "file.partial; file.partial file.partial.json"):
        grow(tmp_path / "file")
    (tmp_path / "file.partial").unlink()
    with refuses(DamagedError, "file.partial; file.partial file.partial.json"):
        grow(tmp_path / "file")


def test_a_flipped_bit_of_any_byte_of_the_manifest_is_found_or_harmless(tmp_path: Path) -> None:
    grow(tmp_path / "file", CHUNKS[:3])
    manifest = tmp_path / "file.partial.json"
    whole = manifest.read_bytes()
    num_found = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        manifest.write_bytes(changed)
        try:
            with opened(tmp_path / "file") as file:
                file.resume()
                assert file.fields == {"chunks": 3}  # white space
        except DamagedError as error:
            assert "file.partial.json: " in str(error)  # noqa: PT017
            num_found += 1
    assert num_found > 0.8 * len(whole)


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (b"", "; file.partial file.partial.json"),
        (b"[]", "; file.partial file.partial.json"),
        (b"[" * 100_000, "; file.partial file.partial.json"),
        (seal("other", 1, {}), "other test-growing"),
        (seal(FORMAT, 2, {}), "version 2 test-growing"),
    ],
)
def test_another_manifest_is_refused(content: bytes, keys: str, tmp_path: Path) -> None:
    (tmp_path / "file.partial.json").write_bytes(content)
    with refuses(DamagedError, f"file.partial.json {keys}"):
        grow(tmp_path / "file")
    assert names_in(tmp_path) == ["file.partial.json"]


def test_a_partial_file_without_manifest_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "file.partial").write_bytes(b"theirs")
    with refuses(ConfigError, "file.partial file.partial.json"):
        grow(tmp_path / "file", overwrite=True)
    assert contents(tmp_path) == {"file.partial": b"theirs"}


def test_a_partial_file_that_is_replaced_meanwhile_is_not_published(tmp_path: Path) -> None:
    for replace in (Path.unlink, lambda path: (path.unlink(), path.write_bytes(b"theirs"))):
        with opened(tmp_path / "file") as file:
            write(file, CHUNKS)
            replace(tmp_path / "file.partial")
            with refuses(DamagedError, "file.partial; file.partial.json"):
                file.publish()
        assert not (tmp_path / "file").exists()
        for path in tmp_path.iterdir():
            path.unlink()


# ------------------------------------------------------- other files, others


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Return an empty folder."""
    (tmp_path / "ours").mkdir()
    return tmp_path / "ours"


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", ["file", *UNFINISHED])
def test_nothing_is_written_through_what_is_not_a_plain_file(
    name: str, kind: str, ours: Path
) -> None:
    """A second name of a file may be replaced: the first one keeps its content."""
    if name == "file.partial":
        grow(ours / "file", CHUNKS[:2])
        (ours / name).unlink()
    with planted(kind, ours / name):
        if (name, kind) == ("file", "second name of a file"):
            assert publish(ours / "file", overwrite=True) == WHOLE
            return
        with pytest.raises((ConfigError, ResourceError, DamagedError), match=rf"ours/{name}: "):
            grow(ours / "file", overwrite=True)


def test_a_second_writer_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    grow(path, CHUNKS[:2])
    with held_by_another_process(opened(path)) as process:
        before = contents(tmp_path)
        with refuses(ConfigError, f"file {process}"):
            grow(path)
        assert contents(tmp_path) == before
    assert publish(path) == WHOLE
    assert names_in(tmp_path) == ["file"]


def test_a_disk_that_becomes_full_loses_no_recorded_chunk(tmp_path: Path) -> None:
    path, chunks = tmp_path / "file", [b"x" * 3000, b"y" * 3000, b"z"]

    def fill() -> None:
        limit_file_size(5000)
        grow(path, chunks)

    outcome = run_in_child(fill, Fault("count", 0))
    assert outcome.exception.startswith(f"ResourceError: {path}: File too large; choose a place")
    assert (tmp_path / "file.partial").stat().st_size == 5000
    with opened(path) as file:
        assert file.fields == {"chunks": 1}
    assert publish(path, chunks) == b"".join(chunks)


def test_the_manifest_follows_the_bytes_that_it_describes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was synced when the manifest was replaced includes the bytes that it records."""
    synced, replaced = 0, os.replace

    def sync(descriptor: int) -> None:
        nonlocal synced
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("file.partial"):  # noqa: PTH115
            synced = os.fstat(descriptor).st_size

    def replace(source: Path, target: Path) -> None:
        if target.name == "file.partial.json":
            assert json.loads(source.read_bytes())["written"]["bytes"] == synced
        replaced(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    assert publish(tmp_path / "file") == WHOLE
    assert synced == len(WHOLE)
