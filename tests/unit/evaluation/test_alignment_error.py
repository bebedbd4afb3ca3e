"""The alignment error rate: brute force over links, and a published example."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nmtkit
from nmtkit.config.metrics import MetricsConfig
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.evaluation.texts import Text, Texts, link_warnings
from tests.messages import refuses
from tests.shared_data import DATA, needs_data

AER = MetricsConfig(metric="aer", gold_base="0")
WORDS = st.integers(0, 3)
LINE = st.lists(st.tuples(WORDS, WORDS, st.booleans()))
CORPUS = st.lists(st.tuples(LINE, LINE), min_size=1, max_size=5)


def rate(found: list[str], gold: list[str], config: MetricsConfig = AER) -> float:
    (score,) = score_corpus(make_metrics(config), found, [gold])
    return score.score


def written(links: list[tuple[int, int, bool]], base: int = 0) -> str:
    return " ".join(f"{i + base}{'-' if sure else 'p'}{j + base}" for i, j, sure in links)


@given(CORPUS)
def test_it_counts_each_link_of_the_text_once(
    corpus: list[tuple[list[tuple[int, int, bool]], list[tuple[int, int, bool]]]],
) -> None:
    places = [(i, j) for i in range(4) for j in range(4)]
    hits = total = 0
    for found, gold in corpus:
        for place in places:
            is_found = place in {(i, j) for i, j, _ in found}
            is_sure = (*place, True) in gold
            is_possible = is_sure or (*place, False) in gold
            hits += is_found * (is_sure + is_possible)
            total += is_found + is_sure
    expected = 100 * (1 - hits / total) if total else 0
    found_lines = [written([(i, j, True) for i, j, _ in found]) for found, _ in corpus]
    gold_lines = [written(gold) for _, gold in corpus]
    assert rate(found_lines, gold_lines) == pytest.approx(expected, abs=1e-9)


@given(st.lists(LINE, min_size=1))
def test_the_sure_links_are_right_and_gold_may_count_from_1(
    gold: list[list[tuple[int, int, bool]]],
) -> None:
    sure = [written([link for link in links if link[2]]) for links in gold]
    assert rate(sure, [written(links) for links in gold]) == 0
    from_1 = replace(AER, gold_base="1")
    assert rate(sure, [written(links, 1) for links in gold], from_1) == 0


def test_the_example_has_its_precision_and_recall() -> None:
    """Found: 3 links, one of them sure, one possible; gold: 2 sure and 1 possible links."""
    (score,) = nmtkit.evaluate(["0-0 1-1 2-2"], ["0-0 1p1 3-3"], metrics=AER)
    assert score.figures == {
        "precision": pytest.approx(100 * 2 / 3),
        "recall": 50,
        "links": 3,
        "sure": 2,
    }
    assert score.score == pytest.approx(100 * (1 - 3 / 5))
    assert not score.is_higher_better
    assert "base:0" in score.signature


@needs_data
def test_a_published_aligner_has_its_error_rate() -> None:
    """Counted apart: 5 813 of 6 038 links are possible, 3 853 of 4 038 sure ones are found."""
    folder = DATA / "align"
    found, gold = (
        (folder / f"en-fr.{name}").read_text("utf-8").splitlines()
        for name in ("awesome-align.out", "gold")
    )
    assert rate(found, gold, replace(AER, gold_base="1")) == pytest.approx(
        100 * (1 - (5813 + 3853) / (6038 + 4038))
    )


def test_malformed_links_are_named_by_file_and_line() -> None:
    good, bad = Text("sys", ["0-0", ""]), Text("gold", ["0-0", "0-0 x"])
    for texts in (Texts([good], [bad]), Texts([bad], [good])):
        with refuses(DataError, "gold:2 x; 0-2"):
            list(link_warnings(texts, 0))


@pytest.mark.parametrize(
    ("base", "lowest", "is_warned"), [(0, 1, True), (0, 0, False), (1, 1, False)]
)
def test_alignments_that_seem_to_count_from_1_are_warnings(
    base: int, lowest: int, is_warned: bool
) -> None:
    line = " ".join(f"{i}-{i}" for i in range(lowest, 40))
    warnings = [*link_warnings(Texts([Text("sys", ["0-0"])], [Text("gold", [line])]), base)]
    assert len(warnings) == is_warned
    assert all("gold" in one and "--gold-base 1" in one for one in warnings)
    of_system = [*link_warnings(Texts([Text("sys", [line])], [Text("gold", ["1-1"])]), 1)]
    assert len(of_system) == lowest


def test_several_references_are_refused() -> None:
    with refuses(ConfigError, "2; aer"):
        score_corpus(make_metrics(AER), ["0-0"], [["0-0"], ["0-0"]])


def test_the_base_of_the_reference_must_be_given() -> None:
    with refuses(ConfigError, "gold_base; --gold-base 0 1"):
        nmtkit.evaluate(["0-0"], ["0-0"], metrics=MetricsConfig(metric="aer"))


def test_gold_links_are_no_system() -> None:
    with refuses(DataError, "sys:2 possible; alignments"):
        list(link_warnings(Texts([Text("sys", ["0-0", "0-0 1p1"])], [Text("gold", ["", ""])]), 0))
