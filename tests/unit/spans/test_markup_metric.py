"""The markup of translations as scores: by hand, by ElementTree, hostile lines, settings."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nmtkit
from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.evaluate import evaluate, score_lines
from nmtkit.evaluation.metric import Score
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.text.lines import read_lines
from tests.commands import nmtkit as run
from tests.messages import refused, refuses
from tests.shared_data import DATA, needs_data
from tests.tiny import write_lines

XML = MetricsConfig(metric="markup", markup="xml")
HTML = MetricsConfig(metric="markup", markup="html")
SAVE, WAIT = "\u4fdd\u5b58", "\u5f85\u3064"
"""Two Japanese words of two characters each."""


def texts(reference: Sequence[str], *systems: Sequence[str]) -> Texts:
    named = [Text(f"system {number}", lines) for number, lines in enumerate(systems)]
    return Texts(named, [Text("reference", reference)])


def scores(
    given_texts: Texts,
    config: MetricsConfig = XML,
    significance: SignificanceConfig | None = None,
) -> list[Sequence[Score]]:
    """Return the scores of each system: Structure, Spans and WellFormed."""
    found = evaluate(
        given_texts,
        make_metrics(config),
        significance or SignificanceConfig(),
        BreakdownConfig(by_length=True),
    )
    return [*found.scores]


def counts(translation: str, reference: str, config: MetricsConfig = XML) -> str:
    """Return what is right of a line, and all: of its structure, elements, well-formedness."""
    found = [score for (score,) in scores(texts([reference], [translation]), config)]
    return " ".join("/".join(map(str, score.figures.values())) for score in found)


@pytest.mark.parametrize(
    ("translation", "reference", "expected"),
    [
        ("Klicke auf <b>Ja</b>.", "Klicke auf <b>Ja</b>.", "1/1 1/1 1/1"),
        ("Auf <b>Ja</b> klicken", "Klicke auf <b>Ja</b>.", "1/1 1/1 1/1"),
        ("Klicke <b>auf Ja</b>.", "Klicke auf <b>Ja</b>.", "1/1 0/1 1/1"),
        ("<b>Ja</b> oder Ja", "Ja oder <b>Ja</b>", "1/1 0/1 1/1"),
        ("<b>Ja</b> und Ja", "Ja oder <b>Ja</b>", "1/1 1/1 1/1"),
        ("<b>Ja</b> <b>Ja</b>", "<b>Ja</b> oder Ja", "0/1 1/1 1/1"),
        ("<b>Ja</b> oder Ja", "<b>Ja</b> <b>Ja</b>", "0/1 1/2 1/1"),
        ("<b>sehr  gut</b>", "<b> sehr gut</b>", "1/1 1/1 1/1"),
        ("<a>x <b>y</b></a>", "<a>x</a> <b>y</b>", "0/1 1/2 1/1"),
        ("<b>y</b> <a>x</a>", "<a>x</a> <b>y</b>", "1/1 2/2 1/1"),
        ("<a id='1'>x</a>", "<a id='2'>x</a>", "0/1 0/1 1/1"),
        ("<i>x</i>", "<b>x</b>", "0/1 0/1 1/1"),
        ("x<br/>y", "y<br/> x", "1/1 0/0 1/1"),
        ("x", "x<br/>", "0/1 0/0 1/1"),
        ("<b>x</b>", "x", "0/1 0/0 1/1"),
        ("x <b></b>y", "x y<b></b>", "1/1 0/1 1/1"),
        ("a &amp; b", "a & b", "0/0 0/0 0/0"),
        ("<b>a &amp; b</b>", "<b>a & b</b>", "1/1 1/1 1/1"),
        ("", "<b>x</b>", "0/1 0/1 1/1"),
        ("x", "y", "0/0 0/0 0/0"),
    ],
)
def test_a_line_counts_structure_elements_and_form(
    translation: str, reference: str, expected: str
) -> None:
    assert counts(translation, reference) == expected


@pytest.mark.parametrize(
    ("translation", "reference", "expected"),
    [
        ("<b>x</i>", "<b>x</b>", "0/1 0/1 0/1"),
        ("<b>x</b>", "<b>x", "0/1 0/0 0/0"),
        ("<b>y", "<b>x", "1/1 0/0 0/0"),
        ("<a>x <b>y</a></b>", "<a>x <b>y</b></a>", "0/1 1/2 0/1"),
        ("<b>x</b></b>", "<b>x</b>", "0/1 1/1 0/1"),
        ("<b" * 2000 + "<b>" * 2000, "<b>x</b>", "0/1 0/1 0/1"),
        ("x <", "x <br/>", "0/1 0/0 1/1"),
        ("\u0000<b>x</b>\u0007", "<b>x</b>", "1/1 1/1 1/1"),
    ],
)
def test_tags_without_partners_are_no_elements(
    translation: str, reference: str, expected: str
) -> None:
    assert counts(translation, reference) == expected


def test_a_tag_without_its_partner_is_a_part_of_the_structure() -> None:
    assert counts("x", "<b>x") == "0/1 0/0 0/0"


@pytest.mark.parametrize(
    ("translation", "reference", "expected"),
    [
        ("x<br>y", "x <br> z", "1/1 0/0 1/1"),
        ("<B>x</b>", "<b>x</b>", "0/1 0/1 1/1"),
        ("<code>a&lt;b</code>", "<code>a&lt;b</code> c", "1/1 1/1 1/1"),
        ("a&nbsp;<p>b", "a <p>b", "1/1 0/0 0/0"),
    ],
)
def test_html_has_rules_of_its_own(translation: str, reference: str, expected: str) -> None:
    assert counts(translation, reference, HTML) == expected


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        (f"{WAIT}<b>{SAVE}</b>{SAVE}", "1/1 1/1 1/1"),
        (f"{WAIT}{SAVE}<b>{SAVE}</b>", "1/1 0/1 1/1"),
        (f"{SAVE}<b>{SAVE}</b>", "1/1 1/1 1/1"),
        (f"{WAIT}<b>{SAVE[0]}</b>{SAVE[1]}{SAVE}", "1/1 0/1 1/1"),
    ],
)
def test_words_are_numbered_in_scripts_without_spaces(translation: str, expected: str) -> None:
    assert counts(translation, f"{WAIT}<b>{SAVE}</b>{SAVE}") == expected


# ------------------------------------------------------------------------------- oracles

NODE = st.recursive(
    st.sampled_from(["x", "y", "z"]),
    lambda inner: st.tuples(
        st.sampled_from(["a", "b"]), st.lists(inner, min_size=1, max_size=3).map(" ".join)
    ).map(lambda one: f"<{one[0]}>{one[1]}</{one[0]}>"),
    max_leaves=5,
)
LINE = st.lists(NODE, max_size=3).map(" ".join)
DAMAGED = st.tuples(LINE, st.sampled_from(["", "<a>", "</b>"]), LINE).map("".join)


def tree_of(line: str) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(f"<line>{line}</line>")
    except ElementTree.ParseError:
        return None


def edges_of(tree: ElementTree.Element) -> Counter[tuple[str, str]]:
    return Counter((parent.tag, child.tag) for parent in tree.iter() for child in parent)


def spans_of(tree: ElementTree.Element) -> list[tuple[str, list[str], int]]:
    """Return tag, words, and number of words before it, of each element."""
    found = []
    num_words = 0

    def visit(element: ElementTree.Element) -> list[str]:
        nonlocal num_words
        first = num_words
        words = (element.text or "").split()
        num_words += len(words)
        for child in element:
            words += visit(child)
            tail = (child.tail or "").split()
            num_words += len(tail)
            words += tail
        found.append((element.tag, words, first))
        return words

    visit(tree)
    return found[:-1]


@given(LINE, LINE)
def test_scores_of_well_formed_lines_are_those_of_elementtree(
    translation: str, reference: str
) -> None:
    ours, theirs = tree_of(translation), tree_of(reference)
    assert ours is not None
    assert theirs is not None
    is_marked = "<" in translation + reference
    is_equal = [*" ".join(ours.itertext()).split()] == [*" ".join(theirs.itertext()).split()]
    of_ours, of_theirs = (
        Counter((tag, *words, first if is_equal else -1) for tag, words, first in spans_of(tree))
        for tree in (ours, theirs)
    )
    found = [score for (score,) in scores(texts([reference], [translation]))]
    structure, spans, form = (tuple(score.figures.values()) for score in found)
    assert structure == (is_marked and edges_of(ours) == edges_of(theirs), is_marked)
    assert form == (is_marked, is_marked)
    assert spans == ((of_ours & of_theirs).total(), of_theirs.total())


@given(DAMAGED, DAMAGED)
def test_what_elementtree_cannot_read_is_not_well_formed(translation: str, reference: str) -> None:
    *_, (form,) = scores(texts([reference], [translation]))
    counted = tree_of(reference) is not None and "<" in translation + reference
    is_right = counted and tree_of(translation) is not None
    assert tuple(form.figures.values()) == (is_right, counted)


@given(st.lists(DAMAGED, min_size=1, max_size=4))
def test_the_reference_has_the_best_scores_itself(lines: list[str]) -> None:
    assert [score.score for (score,) in scores(texts(lines, lines))] == [100, 100, 100]


# -------------------------------------------------------------------------------- scoring

REFERENCE = ["Klicke <b>Ja</b>.", "Ende.", "<i>sehr <b>gut</b></i>"]
SYSTEM = ["Klicke <b>Ja</b>", "Ende.", "<i>recht <b>gut</b>"]


def test_each_line_has_a_score_and_is_right_without_markup() -> None:
    found = [*score_lines(texts(REFERENCE, SYSTEM), make_metrics(XML))]
    assert found == [[100, 100, 100], [100, 100, 100], [0, 50, 0]]


def test_intervals_and_tests_work_as_for_other_metrics() -> None:
    good, bad = "a <b>b</b>", "<b>a b"
    given_texts = texts([good] * 40, [good, bad] * 20, [good] * 40)
    for first, _ in scores(given_texts, XML, SignificanceConfig(confidence=True)):
        assert first.interval is not None
        assert first.interval.mean == pytest.approx(50, abs=3)
    for wanted in (SignificanceConfig(paired_bs=True), SignificanceConfig(paired_ar=True)):
        for first, second in scores(given_texts, XML, wanted):
            assert (first.score, second.score, first.p_value) == (50, 100, None)
            assert second.p_value is not None
            assert second.p_value < 0.01


def test_lengths_are_those_of_plain_text() -> None:
    config = BreakdownConfig(by_length=True)
    tags = "<a>" * 20 + "x" + "</a>" * 20
    found = evaluate(texts([tags], [tags]), make_metrics(XML), SignificanceConfig(), config)
    assert [one.label for one in found.lengths] == ["1-10"]


def test_the_command_prints_three_scores(tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "reference", REFERENCE)
    system = write_lines(tmp_path / "system", SYSTEM)
    options = ("--metric", "markup", "--markup", "xml", "--reference", reference)
    done = run("score", *options, "--json", system)
    assert (done.stderr, done.returncode) == (b"", 0)
    found = json.loads(done.stdout)
    assert (found["Structure"]["score"], found["Spans"]["found"]) == (50, 2)
    assert found["WellFormed"]["well_formed"] == 1
    refused(run("score", *options, "--html", tmp_path / "page", system), 2, "--html markup; leave")


# ------------------------------------------------------------------------------- refusals


def test_markup_must_be_given() -> None:
    with refuses(ConfigError, "markup; --markup xml html"):
        nmtkit.evaluate(["x"], ["x"], metrics=MetricsConfig(metric="markup"))


def test_markup_has_no_effect_on_other_metrics() -> None:
    with refuses(ConfigError, "markup bleu; leave"):
        nmtkit.evaluate(["x"], ["x"], metrics=MetricsConfig(markup="xml"))


def test_metrics_of_text_are_scored_apart() -> None:
    with refuses(ConfigError, "metric bleu,markup text markup; separate"):
        metrics = MetricsConfig(metric="bleu,markup", markup="xml")
        nmtkit.evaluate(["x"], ["x"], metrics=metrics)


def test_a_reference_without_markup_is_refused() -> None:
    with refuses(DataError, "references xml; reference --metric"):
        nmtkit.evaluate(["<b>x</b>"], ["x &amp; y"], metrics=XML)


def test_two_references_are_refused() -> None:
    with refuses(ConfigError, "markup 2; one"):
        nmtkit.evaluate(["<b>x</b>"], ["<b>x</b>"], ["<b>y</b>"], metrics=XML)


@pytest.mark.parametrize("document", ["<?xml version='1.0'?><a/>", "<!DOCTYPE html>", "<html>"])
def test_a_document_is_refused_by_its_line(document: str) -> None:
    with refuses(DataError, "hypotheses:2 document; segment"):
        nmtkit.evaluate(["x", document], ["<b>x</b>", "x"], metrics=HTML)


def test_a_mistake_in_the_reference_and_a_missing_translation_are_warnings() -> None:
    with pytest.warns(UserWarning, match="^(references|hypotheses):") as warned:
        nmtkit.evaluate(["x", ""], ["<br>", "<b>x</b>"], metrics=XML)
    first, second = (str(one.message) for one in warned)
    assert first.startswith("references:1: 1 line has a tag of xml without its partner")
    assert second.startswith("hypotheses:2: 1 line has no translation")


@pytest.mark.sampled(every=3)
@needs_data
@pytest.mark.parametrize(("language", "num_lines"), [("de", 520), ("ja", 489)])
def test_real_translations_have_the_structure_of_their_source(
    language: str, num_lines: int
) -> None:
    """Those of which this is not true were left out of these texts by their authors."""
    path = DATA / "markup" / f"localization.en-{language}.dev"
    lines, source = (
        [*read_lines(path.with_name(f"{path.name}.{suffix}"))] for suffix in (language, "en")
    )
    structure, _, form = nmtkit.evaluate(lines, source, metrics=XML)
    for score in (structure, form):
        assert (score.score, score.figures["lines"]) == (100, num_lines)
    own = nmtkit.evaluate(lines, lines, metrics=XML)
    assert [score.score for score in own] == [100, 100, 100]
