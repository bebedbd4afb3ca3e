from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.parsing.treebank import tokenize
from nmtkit.parsing.trees import parse_tree
from nmtkit.text.lines import read_lines
from tests.shared_data import DATA, needs_data

CASES = [
    ("They'll say it can't last, he said.", "They 'll say it ca n't last , he said ."),
    ("Mr. Vinken is 61 years old.", "Mr. Vinken is 61 years old ."),
    ("He left at 5 p.m. in the U.S.", "He left at 5 p.m. in the U.S ."),
    ('"Go!" she cried.', "`` Go ! '' she cried ."),
    ('She said: "No (never)."', "She said : `` No -LRB- never -RRB- . ''"),
    ("\u201cThat\u2019s it\u2026\u201d", "`` That 's it ... ''"),
    ("It cost $1,000.50 at 10:30 -- or 5%?", "It cost $ 1,000.50 at 10:30 -- or 5 % ?"),
    ("the boys' dog and the dog's tail", "the boys ' dog and the dog 's tail"),
    (
        "I cannot; gimme more'n that, 'tis gonna end",
        "I can not ; gim me more 'n that , 't is gon na end",
    ),
    ("I DON'T, and we've", "I DO N'T , and we 've"),
    ("well-known [sic] and/or", "well-known [ sic ] and/or"),
    ("  ", ""),
]


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_a_sentence_is_cut_as_the_treebank_cuts_it(line: str, expected: str) -> None:
    assert " ".join(tokenize(line)) == expected


@given(st.text())
def test_words_can_be_words_of_a_tree(line: str) -> None:
    words = tokenize(line)
    text = "".join(f" (X {word})" for word in ["first", *words])
    assert parse_tree(f"(S{text})", "text").words() == ["first", *words]


@given(st.text(alphabet="ab1 .,:\"'()-n't"))
def test_nothing_but_quotes_and_brackets_is_altered(line: str) -> None:
    text = "".join(tokenize(line)).replace("-LRB-", "(").replace("-RRB-", ")")
    bare = str.maketrans("", "", "\"'` ")
    assert text.translate(bare) == line.translate(bare)


@needs_data
def test_the_words_of_a_treebank_stay_whole() -> None:
    path = DATA / "trees" / "craft" / "dev.clean"
    words = [
        word
        for number, line in enumerate(islice(read_lines(path), 500), 1)
        for word in parse_tree(line, f"{path}:{number}").words()
        if word not in ("-LRB-", "-RRB-")
    ]
    cut = [word for word in words if tokenize(f"a {word} b") != ["a", word, "b"]]
    assert len(cut) < len(words) / 500, cut  # addresses with a colon, and typographic quotes
