from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.parsing.treebank import bare_label, clean, clean_all, tokenize, tree_counts
from nmtkit.parsing.trees import Tree, format_tree, parse_tree
from nmtkit.text.lines import read_lines
from tests.shared_data import DATA, needs_data
from tests.trees import TREEBANK, deep_tree, trees

SENTENCES = [
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
TREES = [
    ("( (S (NP-SBJ-1 (DT The)) (. .)))", "(TOP (S (NP (DT The)) (. .)))"),
    ("(S (NP (-NONE- *-1)) (VP=2 (VB go)))", "(TOP (S (VP (VB go))))"),
    ("(ROOT (NP (NP (-NONE- *)) (NN x)))", "(TOP (NP (NN x)))"),
    ("(TOP (S (NP (-NONE- *)) (NP (-NONE- *))) (NN x))", "(TOP (NN x))"),
    ("(S1 (ADVP|PRT (-LRB- -LRB-) (: -)))", "(TOP (ADVP|PRT (-LRB- -LRB-) (: -)))"),
    ("(NN x)", "(TOP (NN x))"),
]


@pytest.mark.parametrize(("line", "expected"), SENTENCES)
def test_a_sentence_is_split_as_in_the_treebank(line: str, expected: str) -> None:
    assert " ".join(tokenize(line)) == expected


@given(st.text())
def test_words_can_be_words_of_a_tree(line: str) -> None:
    words = tokenize(line)
    text = "".join(f" (X {word})" for word in ["first", *words])
    assert parse_tree(f"(S{text})", "text").words() == ["first", *words]


@given(st.text(alphabet="ab1 .,:\"'()-n't"))
def test_only_quotes_and_brackets_are_changed(line: str) -> None:
    text = "".join(tokenize(line)).replace("-LRB-", "(").replace("-RRB-", ")")
    bare = str.maketrans("", "", "\"'` ")
    assert text.translate(bare) == line.translate(bare)


@needs_data
def test_the_words_of_a_treebank_are_not_split() -> None:
    path = DATA / "trees" / "craft" / "dev.clean"
    words = [
        word
        for number, line in enumerate(islice(read_lines(path), 500), 1)
        for word in parse_tree(line, f"{path}:{number}").words()
        if word not in ("-LRB-", "-RRB-")
    ]
    cut = [word for word in words if tokenize(f"a {word} b") != ["a", word, "b"]]
    assert len(cut) < len(words) / 500, cut  # addresses with a colon, and typographic quotes


@pytest.mark.parametrize(("text", "expected"), TREES)
def test_traces_function_tags_and_empty_constituents_are_removed(text: str, expected: str) -> None:
    cleaned = clean(parse_tree(text, "text"))
    assert cleaned is not None
    assert format_tree(cleaned) == expected


def test_a_tree_with_only_traces_is_none() -> None:
    assert clean(parse_tree("( (S (NP (-NONE- *)) (VP (-NONE- *))))", "text")) is None


@pytest.mark.parametrize("label", ["-LRB-", "-RRB-", "-", "=", "PRP$", "ADVP|PRT", ""])
def test_a_label_that_begins_with_a_hyphen_is_unchanged(label: str) -> None:
    assert bare_label(label) == label


@given(trees())
def test_cleaning_a_clean_tree_changes_nothing(tree: Tree) -> None:
    cleaned = clean(tree)
    if cleaned is not None:
        assert clean(cleaned) == cleaned
        assert cleaned.label == "TOP"


def test_trees_with_only_traces_are_left_out_with_a_warning() -> None:
    warnings: list[str] = []
    texts = ["(NN x)", "(S (-NONE- *))", "(NN y)"]
    left = clean_all((parse_tree(text, "text") for text in texts), warnings.append)
    assert [tree.words() for tree in left] == [["x"], ["y"]]
    assert warnings == ["left out trees with only traces: 1"]
    assert not list(clean_all([], warnings.append))
    assert len(warnings) == 1


def test_deep_trees_are_cleaned() -> None:
    assert clean(Tree("TOP", (deep_tree(10_000),))) == Tree("TOP", (deep_tree(10_000),))


@needs_data
@pytest.mark.parametrize("name", ["craft/dev", "craft/test", "gum/dev", "gum/test"])
def test_treebanks_are_cleaned_as_by_others(name: str) -> None:
    path = DATA / "trees" / f"{name}.mrg"
    pairs = zip(read_lines(path), read_lines(path.with_suffix(".clean")), strict=True)
    for number, (raw, expected) in enumerate(islice(pairs, 200), 1):
        cleaned = clean(parse_tree(raw, f"{path}:{number}"))
        assert cleaned is not None
        assert format_tree(cleaned) == expected


def test_trees_are_counted() -> None:
    lines = list(tree_counts(parse_tree(text, "text") for text in TREEBANK))
    assert lines == [
        "trees\t4",
        "words\t10",
        "words of a tree\t2.50",
        "words of the longest\t4",
        "constituents\t14",
        "greatest depth\t5",
        "labels\t4",
        "tags\t4",
        "tokens of the longest\t15",
    ]


def test_no_trees_are_counted_as_zero() -> None:
    assert "words of a tree\t0.00" in list(tree_counts([]))
