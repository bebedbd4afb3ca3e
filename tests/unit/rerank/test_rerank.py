import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.fields import fields_of
from nmtkit.config.rerank import RerankOutputConfig, feature_specs
from nmtkit.config.schema import RerankRecipe
from nmtkit.errors import DataError
from nmtkit.rerank.candidates import CandidateList
from nmtkit.rerank.features import Resources, make_features
from nmtkit.rerank.rerank import OUTPUT_FORMATS, RankedLine, model_loader, rerank
from nmtkit.text.translations import read_translation
from tests.messages import refuses
from tests.unit.rerank.builders import line_of

RESOURCES = Resources(model_loader(RerankRecipe().scoring, RerankRecipe().runtime), {}, "auto")


def ranked(line: CandidateList, **weights: float) -> RankedLine:
    features = make_features(feature_specs(",".join(weights)), RESOURCES)
    ((found,),) = rerank([line], features, weights, 10, 10)
    return found


def texts(line: RankedLine) -> list[str]:
    return [one.candidate.text for one in line.ranked]


def test_candidates_are_ordered_by_the_weighted_sum_of_their_features() -> None:
    line = line_of("a", "A", "B B B", "C C", scores=[-1, -4, -2])
    assert texts(ranked(line, model=1)) == ["A", "C C", "B B B"]
    assert texts(ranked(line, model=-1)) == ["B B B", "C C", "A"]
    found = ranked(line, model=0.5, length=2)
    assert texts(found) == ["B B B", "C C", "A"]
    assert [one.score for one in found.ranked] == [4.0, 3.0, 1.5]
    assert found.ranked[0].features == {"model": -4.0, "length": 3.0}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_equal_scores_keep_the_order_of_the_input(scores: list[int]) -> None:
    names = [f"{number}" for number in range(len(scores))]
    found = texts(ranked(line_of("a", *names, scores=scores), model=1))
    assert found == sorted(names, key=lambda name: (-scores[int(name)], int(name)))


def test_a_sum_that_is_not_finite_is_an_error_that_names_the_line() -> None:
    line = line_of("a", "A", scores=[1.7e308])
    with refuses(DataError, "x:1"):
        ranked(line, model=10)


def test_the_candidates_of_a_blank_line_stay() -> None:
    line = line_of("", "", "A", scores=[1, 2])
    assert texts(ranked(line, model=1)) == ["", "A"]


def test_no_line_is_read_beyond_a_chunk() -> None:
    read: list[int] = []

    def endless() -> Iterator[CandidateList]:
        while True:
            read.append(1)
            yield line_of("a", "A")

    chunks = rerank(
        endless(), make_features(feature_specs("length"), RESOURCES), {"length": 1}, 5, 2
    )
    sizes = [len(next(chunks)) for _ in range(3)]
    assert sizes == [2, 5, 5]
    assert len(read) == 12


def test_text_is_the_best_candidate_on_one_line() -> None:
    line = ranked(line_of("a", "A", "B\n\x85B B"), length=1)
    assert OUTPUT_FORMATS["text"](line, RerankOutputConfig()) == "B  B B"


def written(n_best: int) -> dict[str, object]:
    line = line_of("a\nb", "A", "B B", "C C C", scores=[3, 2, 1])
    line = replace(line, target_prefix="p", others={"id": 7, "\ud800": 1})
    text = OUTPUT_FORMATS["json"](
        ranked(line, length=1), RerankOutputConfig(output_format="json", n_best=n_best)
    )
    assert text.encode()
    assert [one.text for one in read_translation(text, "x:1").candidates][:1] == ["C C C"]
    values: dict[str, object] = json.loads(text)
    return values


@pytest.mark.parametrize(("n_best", "count"), [(0, 3), (2, 2), (9, 3)])
def test_json_has_the_candidates_in_their_new_order(n_best: int, count: int) -> None:
    best, *others = (
        {
            "translation": text,
            "score": score,
            "features": {"length": length},
            "rerank_score": length,
        }
        for text, score, length in (("C C C", 1, 3.0), ("B B", 2, 2.0), ("A", 3, 1.0))
    )
    head = {"schema": "nmtkit-translations/1", "source": "a\nb", "target_prefix": "p"}
    expected = head | {"id": 7, "\ud800": 1} | best | {"n_best": [best, *others][:count]}
    assert list(written(n_best).items()) == list(expected.items())


def test_json_of_one_candidate_has_no_list() -> None:
    assert "n_best" not in written(1)


def test_the_settings_name_exactly_the_existing_formats() -> None:
    setting = fields_of(RerankRecipe)["output_format"].setting
    assert setting.choices == tuple(OUTPUT_FORMATS)
