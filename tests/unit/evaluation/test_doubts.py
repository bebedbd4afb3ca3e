from collections.abc import Sequence

import pytest

from nmtkit.evaluation.doubts import doubts
from nmtkit.evaluation.texts import Text, Texts

RAW = ["A sentence.", "Is it?", "Good", "No!"]
TOKENISED = ["A sentence .", "Is it ?", "Good", "No !"]


def told(hypotheses: Sequence[str], reference: Sequence[str] = RAW) -> list[str]:
    return list(doubts(Texts([Text("sys", hypotheses)], [Text("ref", reference)])))


def test_good_text_raises_no_doubt() -> None:
    assert told(RAW) == []
    assert told(["Mail me@@home", "a@@b.", "", "x ."], ["m", "a.", "", "x."]) == []


@pytest.mark.parametrize("line", ["a sen@@ tence", "a sen@@"])
def test_marks_of_subwords_are_told_with_the_first_line(line: str) -> None:
    (warning,) = told(["a", line, line, "d"])
    assert warning == (
        "sys:2: 2 lines have '@@', which marks subwords: join them before scoring, "
        "as by `sed -E 's/@@( |$)//g'`"
    )


def test_marks_of_sentencepiece_are_told() -> None:
    (warning,) = told(["\u2581a \u2581b", "a", "b", "c"])
    assert warning == (
        "sys:1: 1 line has U+2581, by which SentencePiece marks words: decode the text before "
        "scoring"
    )


def test_tokenised_text_is_told_unless_the_reference_is_tokenised_too() -> None:
    (warning,) = told(TOKENISED)
    assert warning == (
        "sys looks tokenised, by its spaces before full stops, and the reference does not, so that "
        "scores are too low: detokenise it before, as by `sacremoses -l LANG detokenize`"
    )
    assert told(TOKENISED, TOKENISED) == []
    assert told([*RAW, "One ."], [*RAW, "One."]) == []


def test_missing_translations_are_told_but_not_where_nothing_was_to_translate() -> None:
    (warning,) = told(["A sentence.", "", " ", ""], ["A sentence.", "Is it?", "Good", ""])
    assert warning == "sys:2: 2 lines have no translation, where the reference has one"


def test_each_system_is_looked_at() -> None:
    systems = [Text("one", ["a@@ b"]), Text("two", [""])]
    warnings = list(doubts(Texts(systems, [Text("ref", ["a"])])))
    assert [warning.split(":")[0] for warning in warnings] == ["one", "two"]
