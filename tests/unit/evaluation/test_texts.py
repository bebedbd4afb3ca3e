import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from nmtkit.config.metrics import MetricsConfig
from nmtkit.errors import ConfigError, DataError, ResourceError
from nmtkit.evaluation.texts import (
    Text,
    Texts,
    common_source,
    input_warnings,
    read_test_set,
    read_text,
    read_translated,
)
from tests.messages import refuses

ONE, TWO = Text("one", ["a"]), Text("two", ["a", "b"])


def test_equal_numbers_of_lines_are_accepted() -> None:
    Texts([TWO, TWO], [TWO, TWO, TWO]).check()


@pytest.mark.parametrize(
    ("texts", "keys"),
    [
        (Texts([TWO], [ONE]), "two 2 one 1"),
        (Texts([TWO, ONE], [TWO]), "one 1 two 2"),
        (Texts([TWO], [TWO, ONE]), "two 2 one 1"),
        (Texts([Text("none", [])], [Text("ref", [])]), "none"),
    ],
)
def test_different_numbers_of_lines_are_an_error_with_names_and_counts(
    texts: Texts, keys: str
) -> None:
    with refuses(DataError, keys):
        texts.check()


def test_a_text_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "text.de"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_text(path) == Text(str(path), ["a", "b"])


def test_cached_references_of_sacrebleu_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = DATASETS["wmt20"]
    monkeypatch.setattr(known, "_outdir", str(tmp_path))
    for field in known.fieldnames("en-de"):
        path = Path(known._get_txt_file_path("en-de", field))
        path.write_text(f"{field} 1\n{field} 2\n", "utf-8")
    source, (text,) = read_test_set("wmt20", "en-de")
    assert source == Text("wmt20", ["src 1", "src 2"])
    assert text == Text("wmt20", ["ref 1", "ref 2"])


def test_all_references_of_a_test_set_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "A", tmp_path / "B"]
    for path in paths:
        path.write_text(f"{path.name}\n", "utf-8")
    known = DATASETS["wmt17"]
    monkeypatch.setattr(known, "get_reference_files", lambda _: [str(path) for path in paths])
    monkeypatch.setattr(known, "get_source_file", lambda _: str(paths[0]))
    _, references = read_test_set("wmt17", "en-de")
    assert [text.lines for text in references] == [["A"], ["B"]]


@pytest.mark.parametrize(
    ("test_set", "pair", "keys"),
    [
        ("wmt71", "en-de", "wmt71 metrics.test_set"),
        ("wmt17", "en-dd", "wmt17 en-dd; en-de metrics.language_pair"),
    ],
)
def test_an_unknown_test_set_or_language_gives_a_suggestion(
    test_set: str, pair: str, keys: str
) -> None:
    with refuses(ConfigError, keys):
        read_test_set(test_set, pair)


@pytest.mark.parametrize("error", [OSError("no network"), SystemExit(1)])
def test_a_failed_download_of_a_test_set_is_an_error(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(_: str) -> list[str]:
        raise error

    monkeypatch.setattr(DATASETS["wmt17"], "get_source_file", fail)
    with refuses(ResourceError, "wmt17; --reference"):
        read_test_set("wmt17", "en-de")


def test_the_source_has_as_many_lines_and_is_selected_but_not_prepared() -> None:
    texts = Texts([Text("x", ["A", "B"])], [Text("r", ["C", "D"])], Text("s", ["e", "f"]))
    texts.check()
    assert texts.map(str.lower).source == Text("s", ["e", "f"])
    assert texts.map(str.lower).systems == [Text("x", ["a", "b"])]
    assert texts.select([1]) == Texts([Text("x", ["B"])], [Text("r", ["D"])], Text("s", ["f"]))
    with refuses(DataError, "x 2 s 1"):
        Texts(texts.systems, texts.references, Text("s", ["e"])).check()


def test_objects_give_sources_and_translations() -> None:
    lines = [
        {"source": "a", "translation": "A", "n_best": [{"translation": "other"}]},
        {"schema": "nmtkit-translations/1", "source": "", "translation": ""},
    ]
    stream = io.BytesIO("".join(f"{json.dumps(one)}\n" for one in lines).encode())
    assert read_translated(stream, "x") == (Text("x", ["a", ""]), Text("x", ["A", ""]))


def test_systems_of_one_source_have_it_and_others_are_refused() -> None:
    same = [Text("x", ["a", "b"]), Text("y", ["a", "b"])]
    assert common_source(same) == same[0]
    with refuses(DataError, "z:2 x:2"):
        common_source([*same, Text("z", ["a", "c"])])


RAW = ["A sentence.", "Is it?", "Good", "No!"]
TOKENIZED = ["A sentence .", "Is it ?", "Good", "No !"]


def warnings_of(hypotheses: Sequence[str], reference: Sequence[str] = RAW) -> list[str]:
    texts = Texts([Text("sys", hypotheses)], [Text("ref", reference)])
    return list(input_warnings(texts, MetricsConfig()))


def test_good_text_gives_no_warning() -> None:
    assert warnings_of(RAW) == []
    assert warnings_of(["Mail me@@home", "a@@b.", "", "x ."], ["m", "a.", "", "x."]) == []


@pytest.mark.parametrize("line", ["a sen@@ tence", "a sen@@"])
def test_a_warning_about_subword_marks_names_the_first_line(line: str) -> None:
    (warning,) = warnings_of(["a", line, line, "d"])
    assert warning == (
        "sys:2: 2 lines have '@@', a mark of subwords; join them before scoring: "
        "`sed -E 's/@@( |$)//g'`"
    )


def test_sentencepiece_marks_give_a_warning() -> None:
    (warning,) = warnings_of(["\u2581a \u2581b", "a", "b", "c"])
    assert warning == (
        "sys:1: 1 line has U+2581, SentencePiece's mark of words; decode the text before scoring"
    )


def test_tokenized_text_gives_a_warning_unless_the_reference_is_tokenized() -> None:
    (warning,) = warnings_of(TOKENIZED)
    assert warning == (
        "sys looks tokenised (spaces before punctuation) and the reference does not, which lowers "
        "scores; detokenise it: `sacremoses -l LANG detokenize`"
    )
    assert warnings_of(TOKENIZED, TOKENIZED) == []
    assert warnings_of([*RAW, "One ."], [*RAW, "One."]) == []


def test_blank_lines_give_a_warning_unless_the_reference_is_blank() -> None:
    (warning,) = warnings_of(["A sentence.", "", " ", ""], ["A sentence.", "Is it?", "Good", ""])
    assert warning == "sys:2: 2 lines have no translation, but the reference is not blank"


def test_each_system_is_checked() -> None:
    systems = [Text("one", ["a@@ b"]), Text("two", [""])]
    warnings = list(input_warnings(Texts(systems, [Text("ref", ["a"])]), MetricsConfig()))
    assert [warning.split(":")[0] for warning in warnings] == ["one", "two"]


@pytest.mark.parametrize("end", ["\u0964", "\u3002", "."])
def test_tokenized_text_of_other_scripts_gives_a_warning(end: str) -> None:
    words = "\u0928\u092e\u0938\u094d\u0924\u0947"  # ends with a vowel sign
    (warning,) = warnings_of([f"{words} , {words} {end}"] * 4, [f"{words}, {words}{end}"] * 4)
    assert "tokenised" in warning


def test_text_without_spaces_needs_its_language_for_bleu() -> None:
    lines = ["\u6211\u559c\u6b22\u732b\u3002", "\u4f60\u597d\u3002"]
    texts = Texts([Text("sys", lines)], [Text("ref", lines)])
    (warning,) = input_warnings(texts, MetricsConfig())
    assert "ref" in warning
    assert "--language-pair" in warning
    for config in (MetricsConfig(language_pair="en-zh"), MetricsConfig(metric="chrf")):
        assert not [*input_warnings(texts, config)]
