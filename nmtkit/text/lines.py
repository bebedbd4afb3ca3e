"""Lines of text files, read alone or as pairs of two parallel files.

Only LF ends a line. One CR at the end of a line and a UTF-8 byte order mark at the start of a file
are dropped; a file that has only the mark has no lines. Python's text files and `str.splitlines`
have other rules, so all text is read with this module. A line above a limit is refused when the
limit is reached, or skipped without being held in memory. Small files that are read whole have a
limit too: whatever a path leads to, such as /dev/zero, reading ends.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from itertools import islice, zip_longest
from pathlib import Path
from typing import AnyStr, BinaryIO, TypeVar, cast

from nmtkit.errors import ConfigError, DataError, NmtkitError, ResourceError
from nmtkit.runtime.standard_streams import WaitingFile
from nmtkit.units import mebibytes

MAX_LINE_BYTES = 2**20
"""Longest line of text: more than a novel's chapter, and 40 MiB while SentencePiece encodes it."""

MAX_SKIPPED_BYTES = 2**30
"""Longest line that is skipped where lines may be too long: what is longer has no lines."""

MAX_FILE_BYTES = 2**28
"""Longest file that is read whole: a vocabulary of millions of entries is shorter."""

TOO_LONG = "\n"
"""Stands for a line above `MAX_LINE_BYTES` in a pair; no other line has a line feed."""

FIRST_CHUNK_LINES = 64
"""Lines of the first chunk of a text, so that its results come soon; see `numbered_chunks`."""

Item = TypeVar("Item")

_READ_BYTES = 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16 = "UTF-16; convert it, such as with `iconv -f UTF-16 -t UTF-8`"
_SIGNATURES = {
    _GZIP_MAGIC: "compressed by gzip, once more than is read here; decompress it, such as with "
    "`zcat`",
    b"\xfd7zXZ": "compressed by xz; decompress it, such as with `xzcat`",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; decompress it, such as with `zstdcat`",
    b"PK\x03\x04": "a zip archive, as documents such as .docx and .odt are; extract its text, one "
    "sentence per line",
    b"%PDF-": "a PDF document; extract its text, one sentence per line",
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
}
"""First bytes of what is not text, and how to make text of it."""

_CONVERT = "convert the file to UTF-8, such as with `iconv -f LATIN1 -t UTF-8`, or remove the line"
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_LINE_ENDS_TO_SPACES = str.maketrans(dict.fromkeys(_LINE_ENDS, " "))


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; gzip is recognised by its first bytes, not by the name.

    Raises:
        ConfigError: the file is missing, not readable, or a folder.
    """
    try:
        stream = BufferedReader(WaitingFile(path), _READ_BYTES)
        is_compressed = stream.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise ConfigError(f"{path}: {reason}; give a text file that can be read") from error
    return cast(BinaryIO, _OwningGzipFile(stream)) if is_compressed else stream


def decode_lines(
    stream: BinaryIO,
    name: str,
    warn_of_invalid: Callable[[str], None] | None = None,
    max_bytes: int = MAX_LINE_BYTES,
    first_line: int = 1,
    too_long: str | None = None,
) -> Iterator[str]:
    """Yield the lines of a UTF-8 stream without line ends, read as needed.

    Args:
        stream: bytes, read line by line.
        name: name of the stream in messages.
        warn_of_invalid: receives a warning of the first line with invalid bytes, and at the end one
            with the number of the others; U+FFFD replaces the bytes. None = DataError.
        max_bytes: longest line, without its line feed.
        first_line: number of the first line to return, from 1; those before it are not decoded.
        too_long: replaces a line that is too long; None = DataError.

    Raises:
        DataError: invalid UTF-8 (line and byte count from 1), a line that is too long, or a damaged
            gzip file.
    """
    num_invalid = 0
    numbered = enumerate(_raw_lines(stream, name, max_bytes), 1)
    for number, (raw, num_skipped) in islice(numbered, first_line - 1, None):
        if raw is None:
            if too_long is None:
                raise _too_long_error(f"{name}:{number}", max_bytes)
            yield too_long
            continue
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            where = _describe_invalid(name, number, error.start + num_skipped + 1, raw, error.start)
            if warn_of_invalid is None:
                raise DataError(f"{where}; {_CONVERT}") from None
            num_invalid += 1
            if num_invalid == 1:
                warn_of_invalid(
                    f"{where}; invalid bytes are replaced by U+FFFD, here and in later lines"
                )
            line = raw.decode("utf-8", "replace")
        yield line
    if warn_of_invalid and num_invalid > 1:
        lines = "line is" if num_invalid == 2 else "lines are"
        warn_of_invalid(f"{name}: and {num_invalid - 1:,} more {lines} not valid UTF-8")


@dataclass(frozen=True)
class TextFacts:
    """What distinguishes a text from others: the same lines have the same facts.

    Attributes:
        num_lines: number of lines.
        sha256: hash of the lines, without byte order mark, line ends and compression.
    """

    num_lines: int
    sha256: str


def facts_of(lines: Iterable[bytes]) -> TextFacts:
    """Return the facts of a text of these lines; see `raw_lines`."""
    num_lines, sha256 = 0, hashlib.sha256()
    for line in lines:
        num_lines += 1
        sha256.update(line + b"\n")
    return TextFacts(num_lines, sha256.hexdigest())


def raw_lines(stream: BinaryIO, name: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a stream that is not decoded, without byte order mark and line ends.

    Args:
        stream, name, max_bytes: as for `decode_lines`.

    Raises:
        DataError: a line is too long, or the gzip file is damaged.
    """
    for number, (raw, _) in enumerate(_raw_lines(stream, name, max_bytes), 1):
        if raw is None:
            raise _too_long_error(f"{name}:{number}", max_bytes)
        yield raw


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file.

    Raises:
        DataError: invalid UTF-8, a line above `MAX_LINE_BYTES`, or a damaged gzip file.
        ConfigError: the file cannot be opened.
    """
    with open_bytes(path) as stream:
        yield from decode_lines(stream, str(path))


def read_list(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file that is held in memory, such as a list of words.

    Raises:
        DataError, ConfigError: as `read_lines`; more than `MAX_FILE_BYTES` in all.
    """
    size = 0
    for number, line in enumerate(read_lines(path), 1):
        size += len(line.encode()) + 1
        if size > MAX_FILE_BYTES:
            raise DataError(f"{path}:{number}: {_too_large()}")
        yield line


def read_whole(path: Path) -> bytes:
    """Return the content of a file, or of a pipe.

    Raises:
        DataError: it has more than `MAX_FILE_BYTES`.
        OSError: it cannot be read.
    """
    content = bytearray()
    with WaitingFile(path) as file:
        while data := file.read(_READ_BYTES):
            content += data
            if len(content) > MAX_FILE_BYTES:
                raise DataError(f"{path}: {_too_large()}")
    return bytes(content)


def read_pair(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of lines of two parallel UTF-8 files; `TOO_LONG` replaces too long lines.

    Raises:
        DataError: different numbers of lines, no lines, invalid UTF-8, or a damaged gzip file.
        ConfigError: a file cannot be opened.
    """
    num_pairs = 0
    for source_line, target_line in zip_longest(_marked_lines(source), _marked_lines(target)):
        if source_line is None or target_line is None:
            raise DataError(
                f"{source} has {count_lines(source)} lines, {target} has {count_lines(target)}; "
                "line n of one must be the translation of line n of the other"
            )
        yield source_line, target_line
        num_pairs += 1
    if num_pairs == 0:
        raise DataError(f"{source} and {target} hold no lines; give files with text")


def pair_lines(
    source: Iterable[AnyStr], target: Iterable[AnyStr], names: tuple[str, str]
) -> Iterator[tuple[AnyStr, AnyStr]]:
    """Yield the pairs of lines of two texts; reads no line ahead.

    Args:
        source, target: lines.
        names: names of the two in messages.

    Raises:
        DataError: one of them has more lines.
    """
    for number, (source_line, target_line) in enumerate(zip_longest(source, target)):
        if source_line is None or target_line is None:
            shorter, longer = names if source_line is None else names[::-1]
            raise DataError(
                f"{shorter} has {number} lines, and {longer} has more; "
                "line n of one must be the translation of line n of the other"
            )
        yield source_line, target_line


def resolve(prefix: str, lang: str) -> Path:
    """Return PREFIX.LANG, or PREFIX.LANG.gz where only that exists.

    Raises:
        ConfigError: neither exists.
    """
    plain = Path(f"{prefix}.{lang}")
    compressed = Path(f"{prefix}.{lang}.gz")
    for path in (plain, compressed):
        if path.exists():
            return path
    raise ConfigError(
        f"neither {plain} nor {compressed} exists; "
        "give the part of the path before the suffix of the language"
    )


def count_lines(path: Path) -> int:
    """Count a file's lines as `decode_lines` yields them, without decoding."""
    with open_bytes(path) as stream:
        return sum(1 for _ in _raw_lines(stream, str(path), MAX_LINE_BYTES))


def one_line(text: str) -> str:
    """Replace every character that some programs take for a line end by a space."""
    return text.translate(_LINE_ENDS_TO_SPACES)


def numbered_chunks(
    items: Iterable[Item],
    size: int,
    first_size: int | None = None,
    *,
    until_error: bool = False,
) -> Iterator[tuple[int, list[Item]]]:
    """Yield chunks of items, each with the number of its first item, from 1.

    A chunk is read only when it is requested.

    Args:
        items: read as needed.
        size: largest number of items per chunk.
        first_size: items of the first chunk; each further chunk has 4 times as many, up to `size`.
            None = `size`.
        until_error: where an item cannot be read, yield those before it, and only then raise.
    """
    remaining = iter(items)
    number, next_size = 1, min(first_size or size, size)
    error: NmtkitError | None = None
    while error is None:
        chunk: list[Item] = []
        try:
            chunk.extend(islice(remaining, next_size))
        except NmtkitError as failure:
            if not until_error:
                raise
            error = failure
        if not chunk:
            break
        yield number, chunk
        number += len(chunk)
        next_size = min(4 * next_size, size)
    if error is not None:
        raise error


class _OwningGzipFile(gzip.GzipFile):
    """A gzip reader that also closes the compressed file."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(fileobj=stream, mode="rb")
        self._stream = stream

    def close(self) -> None:
        super().close()
        self._stream.close()


def _marked_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, `TOO_LONG` for each one that is too long."""
    with open_bytes(path) as stream:
        yield from decode_lines(stream, str(path), too_long=TOO_LONG)


def _raw_lines(stream: BinaryIO, name: str, max_bytes: int) -> Iterator[tuple[bytes | None, int]]:
    """Yield the bytes of each line without mark and end, and the skipped bytes of the mark.

    None replaces a line of more than `max_bytes`; its rest is read with the next line.
    """
    read = partial(stream.readline, max_bytes + 1)
    num_skipped = 0
    try:
        for index, raw in enumerate(iter(read, b"")):
            for signature, remedy in _SIGNATURES.items() if index == 0 else ():
                if raw.startswith(signature):
                    raise DataError(f"{name}: is {remedy}")
            if len(raw) > max_bytes and not raw.endswith(b"\n"):
                yield None, 0
                _skip_line(stream, f"{name}:{index + 1}")
                continue
            if index == 0 and raw.startswith(_UTF8_MARK):
                num_skipped = len(_UTF8_MARK)
                raw = raw[num_skipped:]
                if not raw:
                    return
            yield raw.removesuffix(b"\n").removesuffix(b"\r"), num_skipped
            num_skipped = 0
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{name}: damaged gzip file ({error}); download or compress it again"
        ) from None
    except OSError as error:
        raise ResourceError(
            f"{name}: {error.strerror}; check the disk or the connection, or use a copy"
        ) from error


def _skip_line(stream: BinaryIO, where: str) -> None:
    """Read up to the next line feed; DataError if none comes."""
    num_skipped = 0
    while (rest := stream.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        num_skipped += len(rest)
        if num_skipped > MAX_SKIPPED_BYTES:
            raise _too_long_error(where, MAX_SKIPPED_BYTES)


def _too_long_error(where: str, max_bytes: int) -> DataError:
    return DataError(
        f"{where}: a line of more than {mebibytes(max_bytes)}; break it into several lines, or "
        "make it blank, with its line in parallel text and links"
    )


def _too_large() -> str:
    return f"more than {mebibytes(MAX_FILE_BYTES)}; give the file that is meant"


def _describe_invalid(name: str, number: int, byte: int, raw: bytes, index: int) -> str:
    return f"{name}:{number}: not valid UTF-8 at byte {byte} of the line (0x{raw[index]:02x})"
