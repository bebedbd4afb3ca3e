"""Each metric of the table works from the command line, and so does one that a test adds."""

from pathlib import Path

import pytest
from sacrebleu.metrics.chrf import CHRF

from nmtkit.config.metrics import METRICS, MetricInfo, MetricsConfig
from nmtkit.evaluation.metrics import MAKERS, Metric
from tests.commands import nmtkit
from tests.tiny import write_lines
from tests.trees import TREEBANK

LINES = {"text": ("a b c d e", "f g h"), "trees": TREEBANK}


def make_dummy(info: MetricInfo, _config: MetricsConfig) -> list[Metric]:
    """Return chrF of single characters, under the name of the dummy."""
    scorer = CHRF(char_order=1)
    return [
        Metric(
            name=info.label,
            is_higher_better=info.is_higher_better,
            scorer=scorer,
            line_scorer=scorer,
            prepare=str,
            marks={},
            text_of=str,
        )
    ]


@pytest.fixture
def dummy(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add a metric to the table and return its name."""
    monkeypatch.setitem(METRICS, "dummy", MetricInfo(label="Dummy"))
    monkeypatch.setitem(MAKERS, "dummy", make_dummy)
    return "dummy"


def test_the_table_and_the_makers_have_the_same_metrics() -> None:
    assert list(METRICS) == list(MAKERS)


def score_of_the_reference(name: str, folder: Path) -> str:
    """Return the first line of scoring a text against itself."""
    info = METRICS[name]
    lines = write_lines(folder / "lines", LINES[info.compares])
    languages = ["--language-pair", "en-de"] if info.needs_languages else []
    done = nmtkit("score", "--reference", lines, "--metric", name, *languages, lines)
    assert (done.stderr, done.returncode) == (b"", 0)
    return done.stdout.decode().splitlines()[0]


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_gives_the_reference_its_best_score(name: str, tmp_path: Path) -> None:
    best = "100.00" if METRICS[name].is_higher_better else "0.00"
    assert score_of_the_reference(name, tmp_path).startswith(f"{METRICS[name].label} = {best} ")


def test_an_added_metric_scores_without_another_edit(dummy: str, tmp_path: Path) -> None:
    assert score_of_the_reference(dummy, tmp_path).startswith("Dummy = 100.00 ")
