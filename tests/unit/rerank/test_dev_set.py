import pytest

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.rerank import feature_specs
from nmtkit.errors import DataError
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.evaluation.texts import Text
from nmtkit.progress.counting import SILENT
from nmtkit.rerank.dev_set import check_references, make_dev_set, make_metric
from nmtkit.rerank.features import Resources, make_features
from nmtkit.rerank.rerank import rerank
from nmtkit.rerank.tuning import tune
from tests.messages import refuses
from tests.unit.rerank.builders import line_of, program

LINES = [
    line_of("a", "the cat sat on the mat", "a cat sat", "the cat sat on the mat", scores=[1, 2, 3]),
    line_of("b", "it rained all day", "it is raining all of the day", scores=[-1, -3]),
    line_of("", "", scores=[0]),
    line_of("c", "no\none saw it", scores=[5]),
]
REFERENCES = [
    Text("one", ["the cat sat on a mat", "it was raining all day", "", "nobody saw it"]),
    Text("two", ["a cat sat on the mat", "all day it rained", "", "no one has seen it"]),
]
FEATURES = make_features(feature_specs("model,length"), Resources(lambda _: len, {}, "auto"))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("name", ["bleu", "chrf", "chrf++", "ter"])
@pytest.mark.parametrize("num_references", [1, 2])
def test_the_objective_is_the_score_of_the_chosen_text(name: str, num_references: int) -> None:
    config = MetricsConfig(metric=name)
    metric = make_metric(config)
    references = REFERENCES[:num_references]
    dev_set = make_dev_set(LINES, references, FEATURES, metric, 3, SILENT)
    assert dev_set.bounds == [0, 3, 5, 6, 7]
    tuned = tune(dev_set, metric.objective, 3, 1, SILENT)
    weights = dict(zip(FEATURES, tuned.weights, strict=True))
    ((chosen),) = rerank(LINES, FEATURES, weights, 10, 10)
    texts = [one.ranked[0].candidate.text.replace("\n", " ") for one in chosen]
    (score,) = score_corpus(make_metrics(config), texts, [one.lines for one in references])
    assert metric.as_score(tuned.score) == pytest.approx(score.score, rel=1e-12)
    assert (score.score >= 0) == (tuned.score >= 0 or name == "ter")


def test_features_and_statistics_are_those_of_each_candidate() -> None:
    config = MetricsConfig(metric="chrf")
    dev_set = make_dev_set(LINES, REFERENCES[:1], FEATURES, make_metric(config), 1, SILENT)
    (metric,) = make_metrics(config)
    expected = [[1, 6], [2, 3], [3, 6], [-1, 4], [-3, 7], [0, 0], [5, 4]]
    assert dev_set.values.tolist() == expected
    assert dev_set.statistics[0].tolist() == dev_set.statistics[2].tolist()
    texts = [one.text for line in LINES for one in line.candidates]
    places = [0, 0, 0, 1, 1, 2, 3]
    alone = metric.count(
        [text.replace("\n", " ") for text in texts],
        [[REFERENCES[0].lines[place] for place in places]],
    )
    assert dev_set.statistics.tolist() == alone


def test_a_program_scores_by_its_mean() -> None:
    words = program("len(texts[0]) * len(texts[1].split()) - len(texts) - texts[2].count(' ')")
    config = MetricsConfig(metric="words", metric_command=(f"words={words}", "other=false"))
    metric = make_metric(config)
    dev_set = make_dev_set(LINES, REFERENCES, FEATURES, metric, 9, SILENT)
    expected = [-3, -6, -3, -4, -1, -4, -2]
    assert dev_set.statistics.tolist() == [[score, 1] for score in expected]
    tuned = tune(dev_set, metric.objective, 3, 1, SILENT)
    assert tuned.score == (-3 - 1 - 4 - 2) / 4


def test_other_numbers_of_references_are_refused() -> None:
    with refuses(DataError, "dev.jsonl 3 two 4"):
        check_references("dev.jsonl", 3, [Text("one", ["a"] * 3), REFERENCES[1]])
    with refuses(DataError, "dev.jsonl"):
        check_references("dev.jsonl", 0, [Text("one", [])])
    check_references("dev.jsonl", 4, REFERENCES)
