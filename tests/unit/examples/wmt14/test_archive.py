"""Archives are not trusted: damage is found, and paths that lead out are refused."""

import gzip
import io
import tarfile
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from examples.wmt14.archive import check_digest, record_digest, unpack
from examples.wmt14.errors import DAMAGED, FetchError
from tests.downloads import write_tar
from tests.messages import refuses

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
    with refuses(FetchError, path) as caught:
        unpack(tmp_path / "a.tgz", ["training/a.en"], out)
    assert caught.value.exit_code == DAMAGED
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_is_not_followed(tmp_path: Path, out: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("training/a.en")
    link.type, link.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tar:
        tar.addfile(link)
    with refuses(FetchError, "training/a.en"):
        unpack(tmp_path / "a.tgz", ["training/a.en"], out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.9999])
def test_a_truncated_archive_is_an_error(tmp_path: Path, out: Path, share: float) -> None:
    path = tmp_path / "a.tgz"
    write_tar(path, FILES)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with refuses(FetchError, "a.tgz") as caught:
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


def test_another_digest_than_the_recorded_one_is_an_error(tmp_path: Path) -> None:
    archive = tmp_path / "a.tgz"
    archive.write_bytes(b"first")
    digest = check_digest(archive, tmp_path)
    archive.write_bytes(b"second")
    assert check_digest(archive, tmp_path) != digest  # nothing is recorded yet
    record_digest("a.tgz", digest, tmp_path)
    record_digest("b.tgz", "0" * 64, tmp_path)
    with refuses(FetchError, "a.tgz SHA-256 SHA256SUMS") as caught:
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


def header(kind: bytes, size: int, name: str = "training/a.en") -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def block(content: bytes) -> bytes:
    return content + bytes(-len(content) % tarfile.BLOCKSIZE)


def pax_record(key: bytes, value: bytes) -> bytes:
    rest = b" " + key + b"=" + value + b"\n"
    size = len(rest)
    while len(str(size)) + len(rest) != size:
        size = len(str(size)) + len(rest)
    return str(size).encode() + rest


def forged(*records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """Return an archive with one file, after a pax header of these records."""
    content = b"".join(records)
    file = header(tarfile.REGTYPE, 2) + block(b"x\n") + bytes(2 * tarfile.BLOCKSIZE)
    return header(kind, len(content), "pax") + block(content) + file


SPARSE = (pax_record(b"GNU.sparse.major", b"1"), pax_record(b"GNU.sparse.minor", b"0"))
FORGED = {
    "a sparse map": forged(pax_record(b"GNU.sparse.map", b"x")),
    "a sparse map of 5000 digits": forged(pax_record(b"GNU.sparse.map", b"9" * 5000)),
    "a global sparse map": forged(pax_record(b"GNU.sparse.map", b""), kind=tarfile.XGLTYPE),
    "a sparse size": forged(pax_record(b"GNU.sparse.size", b"1,2")),
    "sparse data": forged(*SPARSE, pax_record(b"GNU.sparse.name", b"training/a.en")),
    "an old sparse file": header(tarfile.GNUTYPE_SPARSE, 0, "training/a.en"),
    "a character set": forged(pax_record(b"hdrcharset", b"\xff")),
    "headers of headers": block(header(tarfile.GNUTYPE_LONGNAME, 1) + b"x") * 3000,
    "many members": header(tarfile.REGTYPE, 0, "empty") * 10_001,
    "a header of 2 MiB": header(tarfile.XHDTYPE, 2**21) + bytes(2**21),
    "a name of 2 MiB": header(tarfile.GNUTYPE_LONGNAME, 2**21) + b"x" * 2**21,
}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
def test_a_forged_archive_is_an_error(tmp_path: Path, out: Path, data: bytes) -> None:
    (tmp_path / "a.tgz").write_bytes(gzip.compress(data, 1))
    with refuses(FetchError, "a.tgz") as caught:
        unpack(tmp_path / "a.tgz", ["training/a.en"], out)
    assert caught.value.exit_code == DAMAGED


def test_a_sparse_file_is_no_file(tmp_path: Path, out: Path) -> None:
    size = pax_record(b"GNU.sparse.size", str(2**50).encode())
    (tmp_path / "a.tar").write_bytes(forged(size, pax_record(b"GNU.sparse.map", b"0,2")))
    with refuses(FetchError, "a.tar training/a.en"):
        unpack(tmp_path / "a.tar", ["training/a.en"], out)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("seed", range(50))
def test_any_changed_bytes_of_an_archive_are_read_or_an_error(
    tmp_path: Path, out: Path, seed: int
) -> None:
    random, content = Random(seed), io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("training/a.en")
        member.size, member.pax_headers = 2, {"mtime": "1.5", "GNU.sparse.size": "2"}
        tar.addfile(member, io.BytesIO(b"x\n"))
    data = bytearray(content.getvalue())
    for _ in range(random.choice((1, 5))):
        data[random.randrange(4 * tarfile.BLOCKSIZE)] = random.randrange(256)
    (tmp_path / "a.tar").write_bytes(data)
    with suppress(FetchError):
        unpack(tmp_path / "a.tar", ["training/a.en"], out)


def test_digests_in_a_damaged_file_are_read_as_far_as_they_are_text(tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_bytes(b"\xff\n")
    (tmp_path / "a.tgz").write_bytes(b"x")
    digest = check_digest(tmp_path / "a.tgz", tmp_path)
    record_digest("a.tgz", digest, tmp_path)
    assert check_digest(tmp_path / "a.tgz", tmp_path) == digest
