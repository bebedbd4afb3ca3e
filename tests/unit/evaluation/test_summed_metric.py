from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.metrics import MetricsConfig
from nmtkit.evaluation.metric import Metric
from nmtkit.evaluation.metrics import make_metrics

SCORES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


def metric_of(command: str) -> Metric:
    (metric,) = make_metrics(MetricsConfig(metric="none", metric_command=(f"mine={command}",)))
    return metric


@given(SCORES)
def test_the_score_of_a_program_is_the_mean_of_its_lines(scores: list[float]) -> None:
    scorer = metric_of("cat").scorer
    found = scorer.corpus_score([repr(one) for one in scores], [["x"] * len(scores)])
    assert abs(found.score - fmean(scores)) <= 1e-9 * max(map(abs, scores))


def test_signatures_differ_by_command_and_number_of_references() -> None:
    def signature(command: str, num_references: int) -> str:
        metric = metric_of(command)
        return metric.score(metric.count(["1"], [["x"]] * num_references), 0).signature

    assert signature("cat", 1) == signature("cat", 1)
    assert signature("cat", 1) != signature("tac", 1)
    assert signature("cat", 2).startswith("nrefs:2|command:")
    assert "|version:nmtkit-" in signature("cat", 2)
