from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from nmtkit.errors import ConfigError, DataError, ResourceError
from nmtkit.evaluation.texts import Text, Texts, read_test_set, read_text

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


def test_references_that_sacrebleu_has_fetched_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = DATASETS["wmt20"]
    monkeypatch.setattr(known, "_outdir", str(tmp_path))
    for field in known.fieldnames("en-de"):
        path = Path(known._get_txt_file_path("en-de", field))
        path.write_text(f"{field} 1\n{field} 2\n", "utf-8")
    (text,) = read_test_set("wmt20", "en-de")
    assert text.name == "wmt20"
    assert text.lines == ["ref 1", "ref 2"]


def test_all_references_of_a_test_set_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "A", tmp_path / "B"]
    for path in paths:
        path.write_text(f"{path.name}\n", "utf-8")
    known = DATASETS["wmt17"]
    monkeypatch.setattr(known, "get_reference_files", lambda _: [str(path) for path in paths])
    assert [text.lines for text in read_test_set("wmt17", "en-de")] == [["A"], ["B"]]


@pytest.mark.parametrize(
    ("test_set", "pair", "told"),
    [
        ("wmt71", "en-de", r"no test set 'wmt71'; did you mean 'wmt\d+'\? \[metrics.test_set\]"),
        (
            "wmt17",
            "en-dd",
            r"test set wmt17 has no languages 'en-dd'; did you mean 'en-de'\? "
            r"\[metrics.language_pair\]",
        ),
    ],
)
def test_what_sacrebleu_does_not_know_is_told_with_a_suggestion(
    test_set: str, pair: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{told}$"):
        read_test_set(test_set, pair)


@pytest.mark.parametrize("error", [OSError("no network"), SystemExit(1)])
def test_a_test_set_that_cannot_be_fetched_is_told(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(_: str) -> list[str]:
        raise error

    monkeypatch.setattr(DATASETS["wmt17"], "get_reference_files", fail)
    told = (
        r"^test set wmt17 cannot be fetched \((no network|1)\); "
        "try again with a network, or give its files as --reference$"
    )
    with pytest.raises(ResourceError, match=told):
        read_test_set("wmt17", "en-de")
