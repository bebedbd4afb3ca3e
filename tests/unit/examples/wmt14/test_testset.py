"""Test sets in any form of SGM are converted to their lines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.wmt14.errors import BAD_TEXT, FetchError
from examples.wmt14.testset import segments_of, write_test_set
from tests.downloads import sgm
from tests.messages import refuses

NAMES = ("newstest-src.en.sgm", "newstest-ref.de.sgm")


def write(folder: Path, source: bytes, reference: bytes) -> list[Path]:
    files = [folder / "0", folder / "1"]
    for file, content in zip(files, (source, reference), strict=True):
        file.write_bytes(content)
    return files


def lines_of(text: str) -> list[str]:
    return list(segments_of(text, "test.sgm").values())


def document(*segments: str) -> str:
    inner = "".join(f'<seg id="{n}">{text}</seg>\n' for n, text in enumerate(segments, 1))
    return f'<doc docid="one">\n{inner}</doc>\n'


@given(st.lists(st.text().map(lambda text: " ".join(text.split())), min_size=1))
def test_lines_come_back_from_sgm(lines: list[str]) -> None:
    assert lines_of(sgm(lines, "refset").decode()) == lines


@pytest.mark.parametrize(
    ("segment", "line"),
    [
        ("Q&amp;A &quot;x&quot; &#39;y&#x27; &lt;b&gt;", "Q&A \"x\" 'y' <b>"),
        ("AT&T and R&D; 1 < 2 & 3 > 2", "AT&T and R&D; 1 < 2 & 3 > 2"),
        ("&copy 2014", "&copy 2014"),
        ("  two\n lines\tand\u00a0more ", "two lines and more"),
        ("", ""),
    ],
)
def test_a_segment_is_the_text_that_it_means(segment: str, line: str) -> None:
    assert lines_of(document(segment)) == [line]


def test_tags_may_be_written_in_other_ways() -> None:
    text = (
        "<DOC genre='x' DocID='one'><hl><SEG ID=1>a</SEG></hl><p><seg\n id='2' >b</seg ></p></DOC>"
    )
    assert segments_of(text, "x") == {("one", "1"): "a", ("one", "2"): "b"}


def test_a_reference_is_put_into_the_order_of_the_source(tmp_path: Path) -> None:
    one = '<doc docid="one"><seg id="1">{}</seg><seg id="2">{}</seg></doc>'
    two = '<doc docid="two"><seg id="1">{}</seg></doc>'
    source = one.format("a", "b") + two.format("c")
    reference = two.format("C") + one.format("A", "B")
    files = write(tmp_path, source.encode(), b"\xef\xbb\xbf" + reference.encode())
    write_test_set(files, NAMES)
    assert [file.read_text() for file in files] == ["a\nb\nc\n", "A\nB\nC\n"]


def test_a_segment_without_a_partner_is_an_error(tmp_path: Path) -> None:
    files = write(tmp_path, sgm(["a", "b"], "srcset"), sgm(["A"], "refset"))
    with refuses(FetchError, "2 news.0") as caught:
        write_test_set(files, NAMES)
    assert caught.value.exit_code == BAD_TEXT


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("<html>not found</html>", "test.sgm"),
        (document("a") * 2, "test.sgm segment 1 document one"),
        ('<doc docid="d"><seg id="1">a<seg id="2">b</seg></doc>', "test.sgm segment 1 document d"),
    ],
)
def test_a_file_that_is_not_a_test_set_is_an_error(text: str, keys: str) -> None:
    with refuses(FetchError, keys) as caught:
        segments_of(text, "test.sgm")
    assert caught.value.exit_code == BAD_TEXT


def test_bytes_that_are_not_utf_8_are_an_error(tmp_path: Path) -> None:
    files = write(tmp_path, document("a").encode(), document("\u00e4").encode("latin-1"))
    with refuses(FetchError, "newstest-ref.de.sgm UTF-8") as caught:
        write_test_set(files, NAMES)
    assert caught.value.exit_code == BAD_TEXT
