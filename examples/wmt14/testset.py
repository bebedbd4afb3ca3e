"""Test sets in the SGM of WMT, which is no XML, as lines of text."""

import html
import re
from collections.abc import Sequence
from pathlib import Path

from examples.wmt14.trouble import BAD_TEXT, FetchError

_TAG = re.compile(r"<doc\b(?P<doc>[^>]*)>|<seg\b(?P<seg>[^>]*)>(?P<text>.*?)</seg\s*>", re.I | re.S)
_ENTITY = re.compile(r"&#?\w+;")


def segments_of(text: str, name: str) -> dict[tuple[str, str], str]:
    """Return the segments of a test set in SGM, by document and number, in the file's order.

    SGM of WMT is no XML: ampersands and angle brackets stand in the text as they are, with entities
    among them. White space is what sacreBLEU makes of it: one space.

    Args:
        text: the content of the file.
        name: what messages call it.

    Raises:
        FetchError: there are no segments, one comes twice, or one has no end.
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
            raise FetchError(BAD_TEXT, f"{where} comes twice; get the file from elsewhere")
        if re.search(r"<seg\b", tag["text"], re.I):
            raise FetchError(BAD_TEXT, f"{where} has no end; get the file from elsewhere")
        unescaped = _ENTITY.sub(lambda entity: html.unescape(entity[0]), tag["text"])
        segments[key] = " ".join(unescaped.split())
    if not segments:
        raise FetchError(BAD_TEXT, f"{name}: holds no segments; is it a test set in SGM?")
    return segments


def attribute(tag: str, name: str) -> str:
    """Return an attribute of a tag, or nothing where there is none."""
    found = re.search(rf"""\b{name}\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""", tag, re.I)
    return "" if found is None else found[1] or found[2] or found[3] or ""


def write_test_set(files: Sequence[Path], members: Sequence[str]) -> None:
    """Turn source and reference in SGM into lines, the reference in the order of the source.

    Raises:
        FetchError: they do not hold the same segments of the same documents.
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
            f"{' and '.join(members)}: segment {number} of document {document} is in one of them "
            "alone; get the archive from elsewhere",
        )
    for file, side in zip(files, (source, reference), strict=True):
        lines = "".join(f"{side[key]}\n" for key in source)
        file.write_text(lines, "utf-8", newline="\n")


def read_text(file: Path, name: str) -> str:
    """Return what a file holds, which must be UTF-8, perhaps with a mark that says so."""
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FetchError(
            BAD_TEXT, f"{name}: not valid UTF-8 at byte {error.start}; get it from elsewhere"
        ) from None
