from collections.abc import Sequence
from typing import Any

import pytest

from nmtkit.config import rerank as settings
from nmtkit.config.rerank import feature_specs
from nmtkit.errors import DataError
from nmtkit.rerank import features, mbr
from nmtkit.rerank.candidates import CandidateList
from nmtkit.rerank.features import (
    FEATURES,
    Pair,
    Resources,
    ScorePairs,
    feature_values,
    make_features,
)
from nmtkit.rerank.mbr import expected_utilities
from nmtkit.rerank.models import VIEWS
from tests.messages import refuses
from tests.unit.rerank.builders import line_of, program


def no_model(spec: object) -> ScorePairs:
    raise AssertionError(spec)


def values(
    names: str, *lines: CandidateList, commands: dict[str, str] | None = None, how: str = "auto"
) -> list[list[list[float]]]:
    """Return the values per line, candidate and feature."""
    resources = Resources(no_model, commands or {}, how)
    made = make_features(feature_specs(names), resources)
    return [[[*one.values()] for one in of_line] for of_line in feature_values(lines, made)]


def test_the_tables_have_the_same_names() -> None:
    assert set(FEATURES) == set(settings.FEATURES)
    assert set(VIEWS) <= set(FEATURES)
    assert set(mbr.UTILITIES) == set(settings.UTILITIES)


def test_the_score_that_is_there_and_the_number_of_words() -> None:
    line = line_of("a b", "A  B", "", "A B C", scores=[-2, -1.5, 0])
    assert values("model,length", line) == [[[-2.0, 2.0], [-1.5, 0.0], [0.0, 3.0]]]


def test_a_missing_score_is_an_error_that_names_the_key() -> None:
    with refuses(DataError, "x:1 n_best[0].score"):
        values("model", line_of("a", "A"))


def test_a_blank_line_is_not_scored() -> None:
    lines = [line_of(" ", "", "A"), line_of("a", "A B", scores=[1])]
    assert values("length,model", *lines) == [[[0.0, 0.0], [0.0, 0.0]], [[2.0, 1.0]]]
    assert values("length", *lines[:1]) == [[[0.0], [0.0]]]
    assert values("length") == []


def test_equal_texts_of_a_source_are_scored_once() -> None:
    asked: list[Pair] = []

    def score(pairs: Sequence[Pair]) -> list[float]:
        asked.extend(pairs)
        return [float(len(one.source + one.translation)) for one in pairs]

    made = make_features(feature_specs("forced:m"), Resources(lambda _: score, {}, "auto"))
    lines = [line_of("a\nb", "A", "B\n", "A"), line_of("a\nb", "A"), line_of("c", "A")]
    found = feature_values(lines, made)
    assert [(one.source, one.translation) for one in asked] == [
        ("a b", "A"),
        ("a b", "B "),
        ("c", "A"),
    ]
    expected = [[4.0, 5.0, 4.0], [4.0], [2.0]]
    assert [[one["forced:m"] for one in of_line] for of_line in found] == expected


def test_a_program_scores_sources_with_candidates() -> None:
    commands = {"x": program("10 * len(texts[0]) + len(texts[1])"), "y": "false"}
    found = values("command:x", line_of("abc", "A", "AB"), commands=commands)
    assert found == [[[31.0], [32.0]]]


def test_a_program_runs_once_for_a_chunk(tmp_path: Any) -> None:
    log = tmp_path / "log"
    commands = {"x": f"sh -c 'echo run >> {log}; while read -r line; do echo 1; done'"}
    values("command:x", *[line_of(f"a{n}", "A", "B") for n in range(9)], commands=commands)
    assert log.read_text() == "run\n"


@pytest.mark.parametrize("utility", settings.UTILITIES)
@pytest.mark.parametrize("how", ["exact", "aggregate"])
def test_mbr_is_the_expected_utility_over_candidates_or_samples(utility: str, how: str) -> None:
    texts = ["A B C", "A C", "A B C", "B"]
    for samples in ([], ["A B", "C"]):
        (found,) = values(f"mbr:{utility}", line_of("a", *texts, samples=samples), how=how)
        expected = expected_utilities(utility, texts, samples or texts, how == "aggregate")
        assert [one for (one,) in found] == expected


def test_auto_is_exact_for_few_distinct_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []

    def note(_: str, hypotheses: Sequence[str], __: object, is_aggregated: bool) -> list[float]:
        used.append(is_aggregated)
        return [0.0] * len(hypotheses)

    monkeypatch.setattr(features, "expected_utilities", note)
    few, many = [f"{n}" for n in range(64)], [f"{n}" for n in range(65)]
    values("mbr:chrf", line_of("a", *few, *few), line_of("a", *few, samples=many))
    assert used == [False, True]
    values("mbr:chrf", line_of("a", *few), how="aggregate")
    values("mbr:chrf", line_of("a", *many), how="exact")
    assert used[2:] == [True, False]
