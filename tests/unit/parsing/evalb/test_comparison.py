"""EVALB's figures compared with its definitions, and their invariants."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.parsing.evalb.comparison import (
    ERROR,
    SCORED,
    SKIPPED,
    Comparison,
    compare,
    compare_lines,
    leaves,
    read_sentence,
)
from nmtkit.parsing.evalb.parameters import COLLINS, Parameters
from tests.messages import refuses
from tests.shared_data import DATA, needs_data

LABELS = ("S", "NP", "VP", "ADVP", "PRT", "TOP", "NP-SBJ", "VP=2")
OWN = replace(
    COLLINS,
    max_error=10_000,
    equal_labels=frozenset({("NP", "VP"), ("VP", "S")}),
    quotes=frozenset({"''", "POS"}),
)
UNLABELLED = replace(COLLINS, is_labelled=False)
Shape = tuple[tuple[int, int, str], ...]


@st.composite
def shapes(draw: st.DrawFn, num_words: int) -> Shape:
    """Draw brackets that nest, in the order in which they open."""
    drawn: list[tuple[int, int, str]] = []
    pending = [(0, num_words)]
    while pending:
        start, end = pending.pop(0)
        labels = draw(st.lists(st.sampled_from(LABELS), max_size=2))
        drawn += [(start, end, label) for label in labels]
        if end - start > 1:
            middle = draw(st.integers(start + 1, end - 1))
            pending += [(start, middle), (middle, end)]
    return tuple(sorted(drawn, key=lambda one: (one[0], -one[1])))


@st.composite
def pairs_of_shapes(draw: st.DrawFn) -> tuple[int, Shape, Shape]:
    num_words = draw(st.integers(1, 7))
    return num_words, draw(shapes(num_words)), draw(shapes(num_words))


def line_of(num_words: int, shape: Shape) -> str:
    """Write brackets around the words w0, w1, ..., which are tagged T."""
    parts = []
    for place in range(num_words):
        opening = [f"({label} " for start, _, label in shape if start == place]
        closing = ")" * sum(end == place + 1 for _, end, _ in shape)
        parts.append("".join(opening) + f"(T w{place})" + closing)
    return " ".join(parts)


def brute_force(gold: Shape, parsed: Shape, parameters: Parameters) -> tuple[int, int, int, int]:
    """Return matched, gold, parsed and crossing brackets as EVALB's README defines them."""

    def counted(shape: Shape) -> list[tuple[int, int, str]]:
        stripped = [(a, b, label.partition("-")[0].partition("=")[0]) for a, b, label in shape]
        return [
            one
            for one in stripped
            if not any(parameters.is_equal_label(one[2], label) for label in parameters.deleted)
        ]

    ours, theirs = counted(gold), counted(parsed)
    crossing = sum(
        any(a < start < b < end or start < a < end < b for a, b, _ in ours)
        for start, end, _ in theirs
    )
    left, matched = list(theirs), 0
    for a, b, label in ours:
        for one in left:
            is_equal = not parameters.is_labelled or parameters.is_equal_label(label, one[2])
            if (a, b) == one[:2] and is_equal:
                left.remove(one)
                matched += 1
                break
    return matched, len(ours), len(theirs), crossing


def figures(one: Comparison) -> tuple[int, int, int, int]:
    return one.counts.matched, one.counts.gold, one.counts.parsed, one.counts.crossing


@pytest.mark.parametrize("parameters", [COLLINS, OWN, UNLABELLED])
@given(drawn=pairs_of_shapes())
def test_brackets_are_counted_as_evalb_defines_them(
    parameters: Parameters, drawn: tuple[int, Shape, Shape]
) -> None:
    num_words, gold, parsed = drawn
    compared = compare(line_of(num_words, gold), line_of(num_words, parsed), parameters)
    assert compared.status == SCORED
    assert figures(compared) == brute_force(gold, parsed, parameters)
    assert (compared.counts.words, compared.counts.correct_tags) == (num_words, num_words)


@given(drawn=pairs_of_shapes())
def test_swapped_sides_swap_precision_and_recall(drawn: tuple[int, Shape, Shape]) -> None:
    num_words, *both = drawn
    gold, parsed = (line_of(num_words, shape) for shape in both)
    one, other = compare(gold, parsed, COLLINS).counts, compare(parsed, gold, COLLINS).counts
    assert (one.precision, one.recall) == (other.recall, other.precision)
    assert compare(gold, gold, COLLINS).counts.matched == one.gold
    # Without labels, nothing that matched is lost.
    assert one.matched <= compare(gold, parsed, UNLABELLED).counts.matched


@pytest.mark.parametrize(
    ("line", "words", "spans"),
    [
        ("", [], []),
        ("(())", [], [(0, 0, ""), (0, 0, "")]),
        ("(X)", [], [(0, 0, "X")]),
        ("(X )", [""], []),
        ("( (S (A a)))", ["a"], [(0, 1, ""), (0, 1, "S")]),
        ("(S(A a)\t(B  b))", ["a", "b"], [(0, 2, "S")]),
        ("(A a) (S (B b))", ["a", "b"], [(1, 2, "S")]),
        ("(S (-NONE- *) (, ,) (NP-SBJ (-LRB- -LRB-)))", ["-LRB-"], [(0, 1, "S"), (0, 1, "NP-SBJ")]),
        ("(S (A a\xa0b))", ["a\xa0b"], [(0, 1, "S")]),
    ],
)
def test_lines_are_read_as_evalb_reads_them(
    line: str, words: list[str], spans: list[tuple[int, int, str]]
) -> None:
    sentence = read_sentence(line, COLLINS, ())
    assert (sentence.words, sentence.brackets, sentence.problems) == (words, spans, [])


def test_traces_do_not_count_for_the_length_and_punctuation_does() -> None:
    line = "(S (NP (-NONE- *)) (VP (VB go)) (. .))"
    assert read_sentence(line, COLLINS, ()).length == 2
    assert leaves(line, COLLINS) == ["go", "."]


@pytest.mark.parametrize(
    ("line", "problems", "status"),
    [
        ("(S (A a) (B b)", ["Bracketing is unbalanced (too many open bracket)"], ERROR),
        ("(S (A a) (B b)))", ["Bracketing unbalance (too many close bracket)"], ERROR),
        ("(S (A a) (B b) c c)", ["Reading sentence"], ERROR),
        (
            "(S (A a) (B b) (C ",
            [
                "More than two elements in a bracket",
                "Bracketing is unbalanced (too many open bracket)",
            ],
            ERROR,
        ),
        ("(S (A a))", ["Length unmatch (2|1)"], ERROR),
        ("(S (A a) (B x))", ["Words unmatch (b|x)"], ERROR),
        ("", [], SKIPPED),
        ("(S (. .) (, ,))", [], SKIPPED),
        ("hello", ["Reading sentence"], SKIPPED),
    ],
)
def test_a_refused_parse_has_problems(line: str, problems: list[str], status: int) -> None:
    compared = compare("(S (A a) (B b))", line, COLLINS)
    assert (compared.problems, compared.status) == (problems, status)
    assert compared.counts.all_gold == 1


def test_words_may_be_equal_by_parameter() -> None:
    parameters = replace(COLLINS, equal_words=frozenset({("This", "this")}))
    for one, other in (("This", "this"), ("this", "This")):
        assert compare(f"(S (A {one}))", f"(S (A {other}))", parameters).status == SCORED
    assert compare("(S (A this))", "(S (A This))", COLLINS).status == ERROR


QUOTED = "(S (NP (A a)) (VP (B b) (NP (POS '))))", "(S (NP (A a)) (VP (B b)) ('' '))"


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_quotation_mark_that_one_side_deletes_is_restored(is_swapped: bool) -> None:
    gold, parsed = QUOTED[::-1] if is_swapped else QUOTED
    assert (
        compare(gold, parsed, COLLINS).problems
        == ["Length unmatch (3|2)"][: not is_swapped] + ["Length unmatch (2|3)"] * is_swapped
    )
    compared = compare(gold, parsed, OWN)
    # S and the first NP; the VP without its quotation mark is another one.
    assert (compared.status, compared.counts.matched, compared.counts.words) == (SCORED, 2, 3)
    assert sorted((compared.counts.gold, compared.counts.parsed)) == [3, 4]


def test_errors_stop_where_evalb_stops() -> None:
    gold, parsed = ["(S (A a))"] * 20, ["(S (A a))"] * 3 + ["(S (A x))"] * 17
    comparisons = compare_lines(gold, parsed, COLLINS)
    passed = [next(comparisons) for _ in range(14)]
    assert [one.status for one in passed] == [SCORED] * 3 + [ERROR] * 11
    with refuses(DataError, "line 15 a|x; 12 MAX_ERROR 10 --prm"):
        next(comparisons)
    assert len(list(compare_lines(gold, parsed, OWN))) == 20


def test_errors_of_the_gold_trees_are_counted_separately() -> None:
    gold, parsed = ["(S (A a)"] * 9 + ["(S (A a))"] * 3, ["(S (A a))"] * 9 + ["(S (A x))"] * 3
    with refuses(DataError, "line 12 a|x; 12 errors 9 MAX_ERROR 10 --prm"):
        list(compare_lines(gold, parsed, COLLINS))
    with refuses(DataError, "line 12; --prm"):
        list(compare_lines(gold[::-1], parsed[::-1], COLLINS))
    both = compare("(S (A a)", "(S (A b)))", COLLINS)
    assert (len(both.problems), both.num_gold_problems) == (3, 1)


@given(st.lists(st.tuples(st.text("()aT -=\t'.,"), st.text("()aT -=\t'.,")), max_size=5))
def test_any_two_texts_are_compared_or_refused(lines: list[tuple[str, str]]) -> None:
    gold, parsed = [one for one, _ in lines], [one for _, one in lines]
    for one in compare_lines(gold, parsed, OWN):
        assert 0 <= one.counts.matched <= min(one.counts.gold, one.counts.parsed)
        assert 0 <= one.counts.crossing <= one.counts.parsed
        assert 0 <= one.counts.correct_tags <= one.counts.words


@pytest.mark.parametrize(
    "line",
    ["(" * 10_000, "(A " * 10_000 + "(B b)" + ")" * 10_000, "( " * 10_000, "(A (B b)" * 10_000],
)
def test_deep_and_wide_lines_are_compared_in_a_moment(line: str) -> None:
    compared = compare(line, line.replace("A", "C"), COLLINS)
    assert compared.counts.matched == 0


GOLD_WITH_MARKS = "(TOP (S (`` ``) (NP (NN a)) (: -) (VP (VB go)) (POS ') (. .) ('' '')))"


@pytest.mark.parametrize("gold", [GOLD_WITH_MARKS, "(TOP (S (: :) (NP (CD 5) (: -) (CD 6))))"])
def test_gold_tags_decide_which_words_count_in_a_parse_without_tags(gold: str) -> None:
    parse = re.sub(r"\(\S+ ([^()\s]+)\)", r"(XX \1)", gold)
    with_tags, without_tags = (compare(gold, one, COLLINS).counts for one in (gold, parse))
    assert without_tags.correct_tags == 0
    assert replace(without_tags, correct_tags=with_tags.correct_tags) == with_tags


def test_gold_tags_are_used_for_equal_words_without_tag_only() -> None:
    gold = "(S (NN a) (, ,))"
    assert compare(gold, "(S (XX b) (XX ,))", COLLINS).problems == ["Length unmatch (1|2)"]
    assert compare(gold, "(S (XX a) (NN ,))", COLLINS).problems == ["Length unmatch (1|2)"]
    assert compare("(S (XX a))", "(S (XX a))", COLLINS).counts.correct_tags == 1


WITH_TRACE = "(TOP (S (NP (DT the) (NN cat)) (VP (VBD sat) (NP (-NONE- *T*))) (. .)))"


@pytest.mark.parametrize(
    "parse",
    [
        "(TOP (S (NP (XX the) (XX cat)) (VP (XX sat)) (XX .)))",
        "(TOP (S (NP (XX the) (XX cat)) (VP (XX sat) (NP (XX *T*))) (XX .)))",
        "(TOP (S (NP (XX the) (NP (-NONE- *)) (XX cat)) (VP (XX sat)) (XX .)))",
        "(TOP (S (NP (XX\tthe) (XX\tcat)) (VP (XX\tsat)) (XX\t.)))",
        "(TOP (S (NP (XX the) (XX Cat)) (VP (VBD sat)) (XX .)))",
    ],
    ids=["without its trace", "with it", "with another trace", "tabs", "an equal word"],
)
def test_gold_tags_are_found_despite_traces_white_space_and_equal_words(parse: str) -> None:
    parameters = replace(COLLINS, equal_words=frozenset({("cat", "Cat")}))
    compared = compare(WITH_TRACE, parse, parameters)
    assert (compared.status, compared.problems) == (SCORED, [])
    assert (
        compared.counts.matched,
        compared.counts.gold,
        compared.counts.parsed,
        compared.counts.words,
    ) == (3, 3, 3, 3)


def test_labels_that_begin_with_xx_are_ordinary_tags() -> None:
    compared = compare("(S (NN a) (, ,))", "(S (XXY a) (XXY ,))", COLLINS)
    assert compared.problems == ["Length unmatch (1|2)"]


@needs_data
@pytest.mark.parametrize("treebank", ["craft", "gum"])
def test_gold_brackets_without_tags_are_perfect(treebank: str) -> None:
    lines = (DATA / "trees" / treebank / "dev.clean").read_text("utf-8").splitlines()[:200]
    for gold in lines:
        found = compare(gold, re.sub(r"\(\S+ ([^()\s]+)\)", r"(XX \1)", gold), COLLINS)
        assert found.problems == []
        assert found.counts.matched == found.counts.gold == found.counts.parsed
