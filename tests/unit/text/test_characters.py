import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.text.characters import (
    has_control,
    has_entity,
    has_lost_character,
    has_mojibake,
    unescape,
)
from nmtkit.text.lines import one_line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("AT&amp;T &lt;br&gt; don&#39;t", "AT&T <br> don't"),
        ("&amp;lt;", "&lt;"),  # once
        ("?a=1&copy=2&para=3 &notit;", "?a=1&copy=2&para=3 &notit;"),
        ("a&#10;b&NewLine;c&#x2028;d", "a b c d"),  # one line stays one line
        ("&#0; &#xD800; &#x110000;", "\ufffd \ufffd \ufffd"),
        ("&nbsp;&#x3b1;&hellip;", "\u00a0\u03b1\u2026"),
    ],
)
def test_entities_become_characters(line: str, expected: str) -> None:
    assert unescape(line) == expected


@given(st.lists(st.sampled_from(["&", "amp", ";", "#", "39", "x27", "lt"]) | st.text()))
def test_every_escaped_line_comes_back(parts: list[str]) -> None:
    line = one_line("".join(parts))
    assert unescape(html.escape(line)) == line
    assert "\n" not in unescape(line)


@pytest.mark.parametrize(
    "line", ["a &amp; b", "don&#39;t", "&#x27;x&#X27;", "&lt;br&gt;", "&eacute;t&eacute;", "&nbsp;"]
)
def test_entities_are_what_unescaping_changes(line: str) -> None:
    assert has_entity(line)
    assert not has_entity(html.unescape(line).replace("&", "and"))


@pytest.mark.parametrize("line", ["AT&T", "a & b; c", "&;", "&unknownname;", "R&D; x", "&#;", ""])
def test_an_ampersand_is_no_entity(line: str) -> None:
    assert not has_entity(line)


TEXTS = [
    "d\u00e9j\u00e0 vu",
    "Stra\u00dfe, \u00dcbung",
    "\u201cquoted\u201d it\u2019s \u2013 \u2026",
    "\u0141\u00f3d\u017a, \u017c\u00f3\u0142\u0107",
    "\u041f\u0440\u0438\u0432\u0435\u0442",
    "\u4f60\u597d\uff0c\u4e16\u754c",
    "\u3053\u3093\u306b\u3061\u306f",
    "100\u00a0%",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_utf8_read_as_another_encoding_is_found(text: str, encoding: str) -> None:
    assert not has_mojibake(text)
    if encoding == "latin-1":
        wrong = text.encode().decode("latin-1")
    else:  # as browsers do: bytes that Windows-1252 lacks are controls
        wrong = "".join(
            bytes([one]).decode("cp1252" if one not in b"\x81\x8d\x8f\x90\x9d" else "latin-1")
            for one in text.encode()
        )
    assert has_mojibake(wrong)


@pytest.mark.parametrize("text", [*TEXTS[:6], "Ma\u00f1ana por la ma\u00f1ana"])
@pytest.mark.parametrize("encoding", ["cp1250", "cp1251", "cp437", "cp850", "mac_roman", "gbk"])
def test_utf8_read_as_a_legacy_encoding_is_found(text: str, encoding: str) -> None:
    wrong = text.encode().decode(encoding, "replace")
    assert has_mojibake(wrong) or has_lost_character(wrong)


def test_control_characters_are_found() -> None:
    assert all(has_control(f"a{chr(code)}b") for code in (0, 2, 8, 11, 12, 31, 127))
    assert not any(map(has_control, ["a\tb", "a b", *TEXTS]))


def test_replaced_characters_are_found() -> None:
    assert has_lost_character("d\ufffdj\ufffd vu")
    assert not has_mojibake("d\ufffdj\ufffd vu")


@pytest.mark.parametrize(
    "line",
    [
        "plain text",
        "\u00ab\u00a0s\u00e9curit\u00e9\u00a0\u00bb l\u00e0-bas",
        "\u201dBL\u00c5\u201d, \u201eF\u00c4\u201c, \u00bbF\u00c4\u00ab",
        "\u00bfQu\u00e9? \u00a1S\u00ed! 25\u00a0\u20ac, 3\u00b0, \u00c7a",
        "FP\u00d6\u201c, \u00d1o\u00f1o, Ch\u00e2teau \u201cX\u201d",
        "na\u00efve \u2014 \u0152uvre",
        "\u00ab\u00a0radi\u00e9\u00a0\u00bb",
        "\u041d\u0456, \u042f\u2026 \u0420\u0456\u043a",
        "\u8054\u901a \u4e48",
    ],
)
def test_text_of_the_right_encoding_is_not_found(line: str) -> None:
    assert not has_mojibake(line)
    assert not has_lost_character(line)
