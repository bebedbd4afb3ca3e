"""Edges of elements within their target words: punctuation, brackets, copied words."""

import pytest

from nmtkit.spans.edges import TextPair, edges, word_at, words_within


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        # The marked text is between bars; all words of the target are those of the element.
        ("(|Save|).", "(Sichern).", "Sichern"),
        ("|(Save).|", "(Sichern).", "(Sichern)."),
        ("(|Save.|)", "(Sichern.)", "Sichern."),
        ("|Save|", "Sichern,", "Sichern"),
        ("|Save.|", "\u4fdd\u5b58\u3002", "\u4fdd\u5b58\u3002"),
        ("|Save|.", "\u4fdd\u5b58\u3002", "\u4fdd\u5b58"),
        ('"|Save|"', "\u201eSichern\u201c", "Sichern"),
        ('|"Save"|', "\u201eSichern\u201c", "\u201eSichern\u201c"),
        ("|Save all|", "Sichern (alle)", "Sichern (alle)"),
        ("|Save|", "[Sichern]", "[Sichern]"),
        ("(|Save|)", "[Sichern]", "Sichern"),
        ("|100%|", "100%.", "100%"),
        ("|#tag|!", "#tag!", "#tag"),
        ("|here| !", "ici !", "ici"),
        ("|...|", "...", "..."),
        ("un|believ|able", "unbelievable", "believ"),
        ("un|believ|able", "unglaublich", "unglaublich"),
        ("H|2|O,", "H2O.", "2"),
    ],
)
def test_the_line_decides_whether_punctuation_is_enclosed(
    source: str, target: str, found: str
) -> None:
    before, text, after = source.split("|")
    pair = TextPair.of(before + text + after, target)
    start, end = edges(pair, (len(before), len(before + text)), (0, len(target)))
    assert target[start:end] == found


def test_words_within_have_one_of_the_characters() -> None:
    words = [(0, 2), (3, 5), (6, 8)]
    assert words_within(words, 1, 4) == range(2)
    assert words_within(words, 2, 3) == range(1, 1)
    assert words_within(words, 5, 8) == range(2, 3)
    assert (word_at(words, 4), word_at(words, 5)) == ((3, 5), (5, 5))
