"""A download ends with the complete file, also after interruptions, or with an error."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from examples.wmt14.download import MAX_FAILURES, download
from examples.wmt14.errors import NO_ROOM, TRY_AGAIN, USAGE, FetchError
from tests.downloads import Behaviour, serve
from tests.messages import refuses

CONTENT = Random(1).randbytes(300_000)


@pytest.fixture
def address(tmp_path: Path, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "file").write_bytes(CONTENT)
    with serve(folder, behaviour) as root:
        yield f"{root}/file"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.tgz"


def part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def fetch(address: str, path: Path) -> list[float]:
    """Download; returns how long it paused each time."""
    pauses: list[float] = []
    download(address, path, pauses.append)
    return pauses


def test_a_file_arrives_whole(address: str, path: Path) -> None:
    assert fetch(address, path) == []
    assert path.read_bytes() == CONTENT
    assert not part_of(path).exists()


def test_an_interrupted_download_resumes(address: str, path: Path, behaviour: Behaviour) -> None:
    behaviour.cuts = [100_000, 50_000]
    assert len(fetch(address, path)) == 2
    assert path.read_bytes() == CONTENT
    ranges = [asked for _, asked in behaviour.asked]
    assert ranges == ["", "bytes=100000-", "bytes=150000-"]


def test_a_later_call_resumes_too(address: str, path: Path, behaviour: Behaviour) -> None:
    part_of(path).write_bytes(CONTENT[:7])
    fetch(address, path)
    assert path.read_bytes() == CONTENT
    assert behaviour.asked == [("/file", "bytes=7-")]


def test_a_server_without_ranges_sends_all_of_it_again(
    address: str, path: Path, behaviour: Behaviour
) -> None:
    behaviour.has_ranges = False
    behaviour.cuts = [100_000]
    fetch(address, path)
    assert path.read_bytes() == CONTENT


def test_a_file_of_unknown_length_is_downloaded(
    address: str, path: Path, behaviour: Behaviour
) -> None:
    behaviour.sends_length = False
    fetch(address, path)
    assert path.read_bytes() == CONTENT


def test_a_part_that_is_whole_is_not_downloaded_again(address: str, path: Path) -> None:
    part_of(path).write_bytes(CONTENT)
    assert fetch(address, path) == []
    assert path.read_bytes() == CONTENT


def test_pauses_grow_while_the_server_fails(address: str, path: Path, behaviour: Behaviour) -> None:
    behaviour.failures = [500, 503, 429]
    assert fetch(address, path) == [1, 2, 4]
    assert path.read_bytes() == CONTENT


def test_too_many_failures_in_a_row_are_an_error(
    address: str, path: Path, behaviour: Behaviour
) -> None:
    behaviour.failures = [500] * MAX_FAILURES
    with refuses(FetchError, f"{address} 500") as caught:
        fetch(address, path)
    assert caught.value.exit_code == TRY_AGAIN
    assert not path.exists()


def test_a_server_that_is_not_there_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with refuses(FetchError, "http://127.0.0.1:9/file") as caught:
        fetch("http://127.0.0.1:9/file", path)
    assert caught.value.exit_code == TRY_AGAIN


def test_a_file_that_the_server_does_not_have_is_an_error_without_retries(
    address: str, path: Path, behaviour: Behaviour
) -> None:
    with refuses(FetchError, f"{address}s 404; mirror") as caught:
        fetch(f"{address}s", path)
    assert caught.value.exit_code == USAGE
    assert len(behaviour.asked) == 1


def test_a_disk_without_room_is_an_error_before_the_download(
    address: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    with refuses(FetchError, "archive.tgz.part 0.3 0.1") as caught:
        fetch(address, path)
    assert caught.value.exit_code == NO_ROOM
    assert list(path.parent.glob("archive*")) == []


def test_a_disk_that_fills_up_is_an_error(address: str, path: Path) -> None:
    part_of(path).symlink_to("/dev/full")
    with refuses(FetchError, "archive.tgz.part") as caught:
        fetch(address, path)
    assert caught.value.exit_code == NO_ROOM
    assert not path.exists()
