from pathlib import Path

import pytest

from nmtkit.errors import DataError
from nmtkit.evaluation.texts import Text, Texts, read_text

ONE, TWO = Text("one", ["a"]), Text("two", ["a", "b"])


def test_equally_many_lines_are_good() -> None:
    Texts([TWO, TWO], [TWO, TWO, TWO]).check()


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (
            Texts([TWO], [ONE]),
            "two has 2 lines and one has 1; give one translation a reference, in the same order",
        ),
        (Texts([TWO, ONE], [TWO]), "one has 1 lines and two has 2"),
        (Texts([TWO], [TWO, ONE]), "two has 2 lines and one has 1"),
        (
            Texts([Text("none", [])], [Text("ref", [])]),
            "none has no translations to score; give a line or more",
        ),
    ],
)
def test_other_numbers_of_lines_are_refused_with_names_and_counts(texts: Texts, told: str) -> None:
    with pytest.raises(DataError, match=f"^{told}"):
        texts.check()


def test_lines_are_changed_and_selected_in_all_texts() -> None:
    texts = Texts([TWO], [Text("ref", ["c", "d"])])
    assert texts.map(str.upper) == Texts([Text("two", ["A", "B"])], [Text("ref", ["C", "D"])])
    assert texts.select([1]) == Texts([Text("two", ["b"])], [Text("ref", ["d"])])


def test_a_text_is_called_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "text.de"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_text(path) == Text(str(path), ["a", "b"])
