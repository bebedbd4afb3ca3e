"""Archives are not trusted: damage is found, and paths that lead out are refused."""

import tarfile
from pathlib import Path
from random import Random

import pytest

from examples.wmt14.archive import check_digest, record_digest, unpack
from examples.wmt14.errors import DAMAGED, FetchError
from tests.downloads import write_tar

NOISE = Random(1).randbytes(50_000)
FILES = {"training/a.en": NOISE, "training/b.en": b"other\n", "training/a.de": b"zwei\n"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", ["a.tgz", "a.tar"])
def test_members_are_unpacked_in_the_given_order(tmp_path: Path, out: Path, name: str) -> None:
    write_tar(tmp_path / name, FILES)
    files = unpack(tmp_path / name, ["training/a.de", "training/a.en"], out)
    assert [file.read_bytes() for file in files] == [b"zwei\n", NOISE]
    assert len(list(out.iterdir())) == 2


@pytest.mark.parametrize("path", ["../evil", "/tmp/evil", "training/../../evil", ".."])
def test_a_path_that_leads_out_is_an_error(tmp_path: Path, out: Path, path: str) -> None:
    write_tar(tmp_path / "a.tgz", {"training/a.en": b"x\n", path: b"evil"})
    with pytest.raises(FetchError, match=f"{path} leads out of the archive; do not") as caught:
        unpack(tmp_path / "a.tgz", ["training/a.en"], out)
    assert caught.value.exit_code == DAMAGED
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_is_not_followed(tmp_path: Path, out: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("training/a.en")
    link.type, link.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tar:
        tar.addfile(link)
    with pytest.raises(FetchError, match=r"has no file training/a\.en; check"):
        unpack(tmp_path / "a.tgz", ["training/a.en"], out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.9999])
def test_a_truncated_archive_is_an_error(tmp_path: Path, out: Path, share: float) -> None:
    path = tmp_path / "a.tgz"
    write_tar(path, FILES)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FetchError, match=r"a\.tgz: damaged .*; delete it to download") as caught:
        unpack(path, ["training/a.en"], out)
    assert caught.value.exit_code == DAMAGED


def test_every_changed_byte_of_a_compressed_archive_is_found(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "a.tgz"
    write_tar(path, {"training/a.en": b"x" * 1000})
    content = bytearray(path.read_bytes())
    header = 10 + len("a.tar") + 1  # of gzip: what nothing depends on, and a name
    for place in range(header, len(content)):
        changed = bytearray(content)
        changed[place] ^= 4
        path.write_bytes(changed)
        with pytest.raises(FetchError):
            unpack(path, ["training/a.en"], out)


def test_a_web_page_is_not_an_archive(tmp_path: Path, out: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(b"<html>please log in</html>" * 100)
    with pytest.raises(FetchError, match="damaged"):
        unpack(tmp_path / "a.tgz", ["training/a.en"], out)


def test_another_digest_than_the_recorded_one_is_an_error(tmp_path: Path) -> None:
    archive = tmp_path / "a.tgz"
    archive.write_bytes(b"first")
    digest = check_digest(archive, tmp_path)
    archive.write_bytes(b"second")
    assert check_digest(archive, tmp_path) != digest  # nothing is recorded yet
    record_digest("a.tgz", digest, tmp_path)
    record_digest("b.tgz", "0" * 64, tmp_path)
    with pytest.raises(
        FetchError, match=r"SHA-256 is .*, but .* has .*delete the archive"
    ) as caught:
        check_digest(archive, tmp_path)
    assert caught.value.exit_code == DAMAGED
    archive.write_bytes(b"first")
    assert check_digest(archive, tmp_path) == digest


def test_digests_equal_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(b"abc")
    record_digest("a.tgz", check_digest(tmp_path / "a.tgz", tmp_path), tmp_path)
    # The first example of FIPS 180-2.
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (tmp_path / "SHA256SUMS").read_text() == f"{digest}  a.tgz\n"
