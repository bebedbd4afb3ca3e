import errno
import gzip
import io
import math
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmtkit.errors import ConfigError, DataError, ResourceError
from nmtkit.text import lines
from nmtkit.text.lines import (
    _SIGNATURES,
    MAX_LINE_BYTES,
    TOO_LONG,
    count_lines,
    decode_lines,
    facts_of,
    numbered_chunks,
    one_line,
    open_bytes,
    pair_lines,
    raw_lines,
    read_lines,
    read_list,
    read_pair,
    read_whole,
    resolve,
)
from tests.messages import refuses
from tests.tiny import never_warn

if TYPE_CHECKING:
    from typing_extensions import Buffer

TEXTS = st.binary().filter(lambda data: not data.startswith(tuple(_SIGNATURES)))
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def lines_of(data: bytes) -> list[str]:
    return list(decode_lines(io.BytesIO(data), "x"))


def replaced(data: bytes) -> tuple[list[str], list[str]]:
    warnings: list[str] = []
    lines = list(decode_lines(io.BytesIO(data), "x", warnings.append))
    return lines, warnings


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@given(st.lists(st.text().map(lambda line: line.replace("\n", "") + "|")))
def test_lines_that_are_written_are_read(lines: list[str]) -> None:
    assert lines_of("".join(f"{line}\n" for line in lines).encode()) == [
        line.removeprefix("\ufeff") if number == 0 else line for number, line in enumerate(lines)
    ]


@given(TEXTS.filter(lambda data: not data.startswith(b"\xef\xbb\xbf")))
def test_each_line_feed_and_an_unterminated_rest_give_one_line(data: bytes) -> None:
    expected = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert len(replaced(data)[0]) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r\r\n", ["a\rb\r"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa", ["\ufeffa"]),
        (b"a\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
    ],
)
def test_only_a_line_feed_ends_a_line(data: bytes, expected: list[str]) -> None:
    assert lines_of(data) == expected


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"good\nbad \x80 x\n", "x:2 byte 5 0x80"),
        (b"\xef\xbb\xbfa\xff\n", "x:1 byte 5 0xff"),  # from the start of the file
        *((b"a" + bad + b"\n", "x:1 byte 2") for bad in (b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80")),
    ],
)
def test_text_that_is_not_strict_utf8_is_an_error_that_names_line_and_byte(
    data: bytes, keys: str
) -> None:
    with refuses(DataError, f"{keys} UTF-8; iconv"):
        lines_of(data)


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ("\ufeffA man.\n".encode("utf-16-le"), "UTF-16; iconv"),
        ("\ufeffA man.\n".encode("utf-16-be"), "UTF-16; iconv"),
        (b"PK\x03\x04\x14\x00", "zip; text"),
        (b"%PDF-1.7\n", "PDF; text"),
        (b"\xfd7zXZ\x00", "xz; xzcat"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd; zstdcat"),
    ],
)
def test_what_is_not_text_is_recognized_by_its_first_bytes(data: bytes, keys: str) -> None:
    with refuses(DataError, f"x {keys}"):
        replaced(data)
    assert replaced(b"\n" + data)  # only as first bytes


def test_of_lines_with_invalid_bytes_the_first_is_named_and_the_others_are_counted() -> None:
    lines, warnings = replaced(b"good\nbad \x80 x\nworse \xff\xc3\nlast")
    assert lines == ["good", "bad \ufffd x", "worse \ufffd\ufffd", "last"]
    first = (
        "x:2: not valid UTF-8 at byte 5 of the line (0x80); invalid bytes are replaced by U+FFFD, "
        "here and in later lines"
    )
    assert warnings == [first, "x: and 1 more line is not valid UTF-8"]
    assert replaced(b"good\nbad \x80 x\nlast")[1] == [first]
    assert replaced(3 * b"\x80\n")[1][1:] == ["x: and 2 more lines are not valid UTF-8"]


def test_replaced_lines_can_be_encoded_again() -> None:
    for line in replaced(b"a \xed\xa0\x80 b\n\xed\xbf\xbf\n")[0]:
        assert line.encode().decode() == line


def test_a_line_of_the_largest_size_is_read_and_a_longer_one_is_an_error_with_its_number() -> None:
    largest = "x" * MAX_LINE_BYTES
    assert lines_of(f"{largest}\n{largest}\na".encode()) == [largest, largest, "a"]
    for end in ("", "\n", "\na\n"):
        with refuses(DataError, "x:2 1MiB"):
            lines_of(f"a\n{largest}x{end}".encode())


def test_lines_are_yielded_as_soon_as_they_are_read() -> None:
    stream = io.BytesIO(b"a\n" + b"b" * 10 + b"\xff")
    assert next(decode_lines(stream, "x")) == "a"


def test_gzip_is_recognized_under_any_name(tmp_path: Path) -> None:
    data = b"a\nb\n"
    plain = written(tmp_path / "plain.gz", data)
    compressed = written(tmp_path / "compressed.txt", gzip.compress(data) + gzip.compress(b"c"))
    assert list(read_lines(plain)) == ["a", "b"]
    assert list(read_lines(compressed)) == ["a", "b", "c"]


def test_a_connection_that_is_reset_is_a_resource_that_fails() -> None:
    class Reset(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            if line := super().readline(size):
                return line
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    lines = decode_lines(Reset(b"a\n"), "x")
    assert next(lines) == "a"
    with refuses(ResourceError, "x; connection"):
        next(lines)


def test_closing_a_gzip_stream_closes_its_file(tmp_path: Path) -> None:
    # An open file would warn, and warnings are errors.
    with open_bytes(written(tmp_path / "x.gz", gzip.compress(b"a"))) as stream:
        assert stream.read() == b"a"


def test_a_damaged_gzip_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(range(256)).replace(b"\n", b"").hex().encode())
    flipped = bytes([*whole[:-8], whole[-8] ^ 1, *whole[-7:]])
    for data in (whole[:-10], flipped, whole[:12] + b"\xff" * 20):
        path = written(tmp_path / "x.gz", data)
        with refuses(DataError, path):
            list(read_lines(path))


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_path_without_a_file_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with refuses(ConfigError, path):
        open_bytes(path)


def test_pairs_are_read_in_lock_step(tmp_path: Path) -> None:
    source = written(tmp_path / "x.en", b"a\n\nc")
    target = written(tmp_path / "x.de", b"A\nB\n\n")
    assert list(read_pair(source, target)) == [("a", "A"), ("", "B"), ("c", "")]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_pairs_stay_in_lock_step_around_a_line_that_is_too_long(
    tmp_path: Path, number: int
) -> None:
    lines = [b"a", b"b", b"c"]
    target = written(tmp_path / "x.de", b"\n".join(lines).upper())
    expected = list(zip("abc", "ABC", strict=True))
    expected[number] = (TOO_LONG, expected[number][1])
    lines[number] = b"x" * (3 * MAX_LINE_BYTES + number)
    for compress in (bytes, gzip.compress):
        source = written(tmp_path / "x.en", compress(b"\n".join(lines)))
        assert list(read_pair(source, target)) == expected
        assert count_lines(source) == 3


@pytest.mark.parametrize(("first", "second"), [(b"a\nb\nc\nd", b"a\n"), (b"", b"a\nb\n")])
def test_unequal_files_are_refused_with_both_names_and_counts(
    tmp_path: Path, first: bytes, second: bytes
) -> None:
    source, target = written(tmp_path / "x.en", first), written(tmp_path / "x.de", second)
    for one, other in ((source, target), (target, source)):
        with refuses(DataError, f"{one} {count_lines(one)} {other} {count_lines(other)}"):
            list(read_pair(one, other))


def test_two_empty_files_are_refused(tmp_path: Path) -> None:
    source, target = written(tmp_path / "x.en", b""), written(tmp_path / "x.de", b"")
    with refuses(DataError, f"{source} {target}"):
        list(read_pair(source, target))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_lines_are_counted_as_they_are_read(tmp_path: Path, data: bytes) -> None:
    assert count_lines(written(tmp_path / "x", data)) == len(replaced(data)[0])


@given(st.lists(st.sampled_from([b"", b"a", b"\xff", b"b\r"]), max_size=6), st.integers(1, 8))
def test_lines_before_the_first_are_counted_and_not_decoded(lines: list[bytes], first: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    warnings: list[str] = []
    stream = io.BytesIO(data)
    found = list(decode_lines(stream, "x", warnings.append, first_line=first))
    assert found == list(decode_lines(io.BytesIO(data), "x", lambda _: None))[first - 1 :]
    invalid = [
        number for number, line in enumerate(lines, 1) if line == b"\xff" and number >= first
    ]
    assert [one.split(":")[1] for one in warnings[:1]] == [*map(str, invalid[:1])]


def test_the_facts_of_a_text_are_those_of_its_lines() -> None:
    facts = facts_of(raw_lines(io.BytesIO(b"a\nb\n"), "x", 10))
    assert facts.num_lines == 2
    for same in (b"a\nb", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n"):
        assert facts_of(raw_lines(io.BytesIO(same), "x", 10)) == facts
    for other in (b"a\nb\n\n", b"ab\n\n", b"a\nc\n", b"a b\n", b""):
        assert facts_of(raw_lines(io.BytesIO(other), "x", 10)) != facts
    compressed = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(b"a\nb\n")))
    assert facts_of(raw_lines(cast(BinaryIO, compressed), "x", 10)) == facts


def test_raw_lines_have_no_mark_and_no_line_ends() -> None:
    text = io.BytesIO(b"\xef\xbb\xbfa\r\n\n\xffb")
    assert [*raw_lines(text, "x", 10)] == [b"a", b"", b"\xffb"]


def test_the_facts_of_a_text_include_its_faults() -> None:
    with refuses(DataError, "x:2 0MiB"):
        facts_of(raw_lines(io.BytesIO(b"a\n" + b"b" * 11), "x", 10))
    torn = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(b"a\nb\n")[:-9]))
    with refuses(DataError, "x"):
        facts_of(raw_lines(cast(BinaryIO, torn), "x", 10))


def test_a_prefix_is_resolved_to_the_plain_or_compressed_file(tmp_path: Path) -> None:
    prefix = str(tmp_path / "train.tok")
    compressed = written(tmp_path / "train.tok.en.gz", b"")
    assert resolve(prefix, "en") == compressed
    plain = written(tmp_path / "train.tok.en", b"")
    assert resolve(prefix, "en") == plain


def test_a_prefix_without_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    prefix = tmp_path / "train"
    with refuses(ConfigError, f"{prefix}.en {prefix}.en.gz"):
        resolve(str(prefix), "en")


@given(st.text())
def test_one_line_has_no_line_end_of_any_kind(text: str) -> None:
    result = one_line(text)
    assert len(result.splitlines()) <= 1
    assert len(result) == len(text)
    assert all(
        new == old or (new == " " and old in LINE_ENDS)
        for new, old in zip(result, text, strict=True)
    )


def test_lines_are_paired_without_reading_ahead() -> None:
    read: list[str] = []

    def lines(text: str) -> Iterator[str]:
        for line in text:
            read.append(line)
            yield line

    pairs = pair_lines(lines("abc"), lines("ABC"), ("x", "X"))
    assert next(pairs) == ("a", "A")
    assert read == ["a", "A"]
    assert list(pairs) == [("b", "B"), ("c", "C")]


@pytest.mark.parametrize(
    ("source", "target", "keys"),
    [
        (["a"], ["A", "B", "C"], "x 1 X"),
        (["a", "b"], [], "X 0 x"),
    ],
)
def test_texts_of_unequal_length_are_an_error_with_their_names(
    source: list[str], target: list[str], keys: str
) -> None:
    with refuses(DataError, keys):
        list(pair_lines(source, target, ("x", "X")))


@given(st.integers(0, 20), st.integers(1, 7))
def test_all_chunks_except_the_last_are_full_and_have_the_number_of_their_first_item(
    num_items: int, size: int
) -> None:
    chunks = list(numbered_chunks(range(1, num_items + 1), size))
    assert [item for _, chunk in chunks for item in chunk] == list(range(1, num_items + 1))
    assert all(chunk[0] == first for first, chunk in chunks)
    assert all(len(chunk) == size for _, chunk in chunks[:-1])
    assert all(1 <= len(chunk) <= size for _, chunk in chunks)


def test_chunks_grow_by_a_factor_of_4_up_to_their_size() -> None:
    def sizes(size: int, first_size: int) -> list[int]:
        return [len(chunk) for _, chunk in numbered_chunks(range(1000), size, first_size)]

    assert sizes(400, 10) == [10, 40, 160, 400, 390]
    assert sizes(400, 1000) == [400, 400, 200]
    assert sizes(1, 64) == [1] * 1000


@pytest.mark.parametrize("num_items", [0, 1, 2, 3, 7])
def test_items_before_an_error_come_first(num_items: int) -> None:
    def items() -> Iterator[int]:
        yield from range(num_items)
        raise DataError("the next line is malformed")

    with pytest.raises(DataError, match="the next line is malformed"):
        list(numbered_chunks(items(), 3))
    chunks = numbered_chunks(items(), 3, until_error=True)
    read = [item for _ in range(math.ceil(num_items / 3)) for item in next(chunks)[1]]
    assert read == [*range(num_items)]
    with pytest.raises(DataError, match="the next line is malformed"):
        next(chunks)


@pytest.mark.parametrize("warn", [None, never_warn])
def test_compressed_text_of_a_stream_is_refused(warn: Callable[[str], None] | None) -> None:
    lines = decode_lines(io.BytesIO(gzip.compress(b"a")), "standard input", warn)
    with refuses(DataError, "input gzip; zcat"):
        next(lines)


def test_a_chunk_is_read_only_when_requested() -> None:
    items = iter(range(10))
    chunks = numbered_chunks(items, 3)
    next(chunks)
    assert next(items) == 3


class Endless(io.RawIOBase):
    """Bytes without a line feed and without an end."""

    def __init__(self) -> None:
        self.num_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        view = memoryview(buffer)
        view[:] = bytes(len(view))
        self.num_read += len(view)
        return len(view)


def test_a_line_without_an_end_is_refused_at_the_limit() -> None:
    endless = Endless()
    with refuses(DataError, "x:1 1MiB; break"):
        next(decode_lines(io.BufferedReader(endless), "x"))
    assert endless.num_read < MAX_LINE_BYTES + 2**16


def test_a_line_that_is_skipped_has_a_limit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_SKIPPED_BYTES", 3 * MAX_LINE_BYTES)
    long, other = tmp_path / "long", tmp_path / "other"
    other.write_bytes(b"a\nb\n")
    long.write_bytes(b"x" * (4 * MAX_LINE_BYTES) + b"\nb\n")
    assert list(read_pair(long, other)) == [(TOO_LONG, "a"), ("b", "b")]
    long.write_bytes(b"x" * (6 * MAX_LINE_BYTES) + b"\nb\n")
    with refuses(DataError, f"{long}:1 3MiB; break"):
        list(read_pair(long, other))


def test_a_list_has_a_limit_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_FILE_BYTES", 10)
    path = tmp_path / "list"
    path.write_bytes("a\nb\n\u20ac\n\n\n".encode())
    assert list(read_list(path)) == ["a", "b", "\u20ac", "", ""]
    for data in (path.read_bytes() + b"\n", gzip.compress(path.read_bytes() + b"\n")):
        path.write_bytes(data)
        with refuses(DataError, f"{path}:6 0MiB; file"):
            list(read_list(path))


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**21])
def test_a_whole_file_is_read_up_to_its_limit(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    monkeypatch.setattr(lines, "MAX_FILE_BYTES", size)
    assert read_whole(path) == b"x" * size
    path.write_bytes(b"x" * (size + 1))
    with refuses(DataError, f"{path} {size // 2**20}MiB; file"):
        read_whole(path)


def test_a_whole_file_may_be_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    data = bytes(range(256)) * 2**10
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
    writer.start()
    assert read_whole(tmp_path / "pipe") == data
    writer.join()
