import re

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.reporting.page import Cell, Section, Table, markdown
from tests.unit.reporting.builders import HOSTILE

TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12)


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def test_the_columns_of_a_table_are_aligned_and_the_best_are_bold() -> None:
    table = Table(["run", "updates"], [[Cell("base"), Cell("9")], [Cell("b"), Cell("100", True)]])
    assert markdown([Section("Summary", table, ["one", "two"]), Section("Rest", None, [])]) == [
        "## Summary",
        "",
        "| run  | updates |",
        "| ---- | ------: |",
        "| base |       9 |",
        "| b    | **100** |",
        "",
        "- one",
        "- two",
        "",
        "## Rest",
    ]


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4))
def test_any_text_of_a_cell_is_read_back(rows: list[tuple[str, str, str]]) -> None:
    table = Table(rows[0], [[Cell(text) for text in row] for row in rows[1:]])
    lines = markdown([Section("Any", table, [])])[2:]
    assert len({len(line) for line in lines}) == 1
    read = [re.split(r"(?<!\\)\|", line.replace(r"\\", "\0"))[1:-1] for line in lines]
    del read[1]
    texts = [[unescaped(cell).replace("\0", "\\").strip() for cell in row] for row in read]
    assert texts == [[text.strip() for text in row] for row in rows]


def test_markdown_characters_are_escaped() -> None:
    (*_, line) = markdown([Section("Any", None, [HOSTILE])])
    assert unescaped(line) == f"- {HOSTILE}"
    assert not set(re.sub(r"\\.", "", line)) & set("<>`*[]&_")
