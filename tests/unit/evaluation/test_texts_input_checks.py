from collections.abc import Sequence

import pytest

from nmtkit.config.metrics import MetricsConfig
from nmtkit.evaluation.texts import Text, Texts, input_warnings

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
