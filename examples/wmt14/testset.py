"""Conversion of WMT test sets from SGM to lines of text."""

import html
import re
from collections.abc import Sequence
from pathlib import Path

from examples.wmt14.errors import BAD_TEXT, FetchError

_TAG = re.compile(r"<doc\b(?P<doc>[^>]*)>|<seg\b(?P<seg>[^>]*)>(?P<text>.*?)</seg\s*>", re.I | re.S)
_ENTITY = re.compile(r"&#?\w+;")


def segments_of(text: str, name: str) -> dict[tuple[str, str], str]:
    """Return the segments of a test set by (document, number), in the order of the file.

    WMT's SGM is not XML: the text has unescaped ampersands and angle brackets as well as entities.
    White space becomes one space, as in sacreBLEU.

    Args:
        text: the content of the file.
        name: the name of the file in messages.

    Raises:
        FetchError: there are no segments, one is repeated, or one has no end.
    """
    segments: dict[tuple[str, str], str] = {}
    document = ""
    for tag in _TAG.finditer(text):
        if tag["doc"] is not None:
            document = attribute(tag["doc"], "docid")
            continue
        key = document, attribute(tag["seg"], "id")
        where = f"{name}: segment {key[1]} of document {key[0]}"
        if key in segments:
            raise FetchError(BAD_TEXT, f"{where} is repeated; get the file from elsewhere")
        if re.search(r"<seg\b", tag["text"], re.I):
            raise FetchError(BAD_TEXT, f"{where} has no end; get the file from elsewhere")
        unescaped = _ENTITY.sub(lambda entity: html.unescape(entity[0]), tag["text"])
        segments[key] = " ".join(unescaped.split())
    if not segments:
        raise FetchError(BAD_TEXT, f"{name}: no segments; check that it is a test set in SGM")
    return segments


def attribute(tag: str, name: str) -> str:
    """Return an attribute of a tag, or an empty string."""
    found = re.search(rf"""\b{name}\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""", tag, re.I)
    return "" if found is None else found[1] or found[2] or found[3] or ""


def write_test_set(files: Sequence[Path], members: Sequence[str]) -> None:
    """Replace source and reference in SGM by lines of text, both in the order of the source.

    Raises:
        FetchError: they do not have the same segments.
    """
    source, reference = (
        segments_of(read_text(file, member), member)
        for file, member in zip(files, members, strict=True)
    )
    unpaired = sorted(source.keys() ^ reference.keys())
    if unpaired:
        document, number = unpaired[0]
        raise FetchError(
            BAD_TEXT,
            f"{' and '.join(members)}: segment {number} of document {document} is in only one of "
            "them; get the archive from elsewhere",
        )
    for file, side in zip(files, (source, reference), strict=True):
        lines = "".join(f"{side[key]}\n" for key in source)
        file.write_text(lines, "utf-8", newline="\n")


def read_text(file: Path, name: str) -> str:
    """Return the text of a UTF-8 file, with or without byte order mark."""
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FetchError(
            BAD_TEXT, f"{name}: not valid UTF-8 at byte {error.start}; get it from elsewhere"
        ) from None
