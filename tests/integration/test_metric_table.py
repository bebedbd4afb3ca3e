"""Each metric of the table scores and validates, and so does one that a test adds."""

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from sacrebleu.metrics.chrf import CHRF

from nmtkit.config.metrics import METRICS, MetricInfo, MetricsConfig, TargetType, metrics_of
from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.config.toml import dumps
from nmtkit.evaluation.metric import Metric
from nmtkit.evaluation.metrics import MAKERS
from nmtkit.parsing.trees import parse_tree
from nmtkit.progress.metrics_log import MetricsLog
from tests.commands import as_text, nmtkit
from tests.messages import refused
from tests.tiny import prepared, tiny_dataset, tiny_recipe, tiny_train_recipe, write_lines
from tests.trees import TREEBANK

LINES = {
    "text": ("a b c d e", "f g h"),
    "trees": TREEBANK,
    "alignments": ("0-0 1-2 2-1", "0-0", ""),
    "markup": ("a <b>b</b>", "c"),
}


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
    options = ["--language-pair", "en-de"] if info.needs_languages else []
    options += ["--gold-base", "0"] if "gold_base" in info.settings else []
    options += ["--markup", "xml"] if "markup" in info.settings else []
    if info.needs_source:
        glossary = write_lines(folder / "terms.tsv", ("b c\tb c", "g\tg"))
        options += ["--source", str(lines), "--glossary", str(glossary)]
    done = nmtkit("score", "--reference", lines, "--metric", name, *options, lines)
    assert (done.stderr, done.returncode) == (b"", 0)
    return done.stdout.decode().splitlines()[0]


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_gives_the_reference_its_best_score(name: str, tmp_path: Path) -> None:
    best = "100.00" if METRICS[name].is_higher_better else "0.00"
    assert score_of_the_reference(name, tmp_path).startswith(f"{METRICS[name].label} = {best} ")


def test_an_added_metric_scores_without_another_edit(dummy: str, tmp_path: Path) -> None:
    assert score_of_the_reference(dummy, tmp_path).startswith("Dummy = 100.00 ")


# -------------------------------------------------------------------------------- validation


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return datasets whose target is text and trees."""
    folder = tmp_path_factory.mktemp("corpora")
    words = [" ".join(parse_tree(line, "treebank").words()) for line in TREEBANK]
    for part in ("train", "valid"):
        write_lines(folder / f"{part}.en", words)
        write_lines(folder / f"{part}.de", TREEBANK)
    recipe = replace(
        tiny_recipe(str(folder / "train"), str(folder / "valid")),
        vocabulary=VocabularyConfig(segmentation="words", target_segmentation="trees"),
    )
    prepared(recipe, folder / "trees")
    (folder / "text").mkdir()
    return {"text": tiny_dataset(folder / "text"), "trees": folder / "trees"}


def train(data: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Train for two updates, each validated, with further options."""
    recipe = tiny_train_recipe(max_updates=2, dropout=0.0)
    recipe = replace(recipe, validation=replace(recipe.validation, validate_every=1))
    (folder / "recipe.toml").write_text(dumps(recipe), encoding="utf-8")
    done = nmtkit(
        *("train", data, "--config", folder / "recipe.toml", "--max-tokens", "14"),
        *("--update-tokens", "40", "--out", folder / "run", *options),
    )
    return as_text(done)


def scores(folder: Path) -> list[Mapping[str, float]]:
    log = MetricsLog(folder / "run" / "metrics.jsonl")
    return [record.scores for record in log.validations()]


@pytest.mark.parametrize(
    "name", [name for target in get_args(TargetType) for name in metrics_of(target)]
)
def test_each_metric_validates_and_chooses_the_best(
    name: str, data: Mapping[str, Path], tmp_path: Path
) -> None:
    """Models write text or trees, no alignments."""
    options = ("--validate-metrics", name, "--best-metric", name)
    done = train(data[METRICS[name].compares], tmp_path, *options)
    assert done.returncode == 0, done.stderr
    found = scores(tmp_path)
    assert [list(one) for one in found] == [[name], [name]]
    for one in found:
        assert f" {name}={one[name]:.2f} " in done.stderr
    (record, _) = MetricsLog(tmp_path / "run" / "metrics.jsonl").validations()
    assert record.signatures[name].startswith("nrefs:1|")


def test_trees_are_lines_of_text_too(data: Mapping[str, Path], tmp_path: Path) -> None:
    """Version 0.1 chose parsers by BLEU; such runs can be continued."""
    options = ("--validate-metrics", "brackets,bleu", "--best-metric", "bleu")
    done = train(data["trees"], tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert [list(one) for one in scores(tmp_path)] == [["brackets", "bleu"]] * 2


@pytest.mark.parametrize(("target", "name"), [("text", "bleu"), ("trees", "brackets")])
def test_the_default_follows_from_the_target(
    target: str, name: str, data: Mapping[str, Path], tmp_path: Path
) -> None:
    done = train(data[target], tmp_path)
    assert done.returncode == 0, done.stderr
    assert [list(one) for one in scores(tmp_path)] == [[name], [name]]


def test_none_validates_without_translating(data: Mapping[str, Path], tmp_path: Path) -> None:
    options = ("--validate-metrics", "none", "--beam", "4", "--max-length-offset", "50")
    done = train(data["text"], tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert scores(tmp_path) == [{}, {}]


@pytest.mark.parametrize(
    ("target", "options", "keys"),
    [
        (
            "text",
            ("--validate-metrics", "bleu,brackets"),
            f"validate_metrics brackets; {' '.join(metrics_of('text'))}",
        ),
        ("text", ("--validate-metrics", "bleu,terms"), "terms source; leave"),
        ("text", ("--best-metric", "terms"), "terms source; leave"),
        (
            "trees",
            ("--best-metric", "bleu"),
            "best_metric bleu brackets; --validate-metrics brackets,bleu --best-metric nll",
        ),
        (
            "text",
            ("--best-metric", "chrf"),
            "best_metric chrf bleu; --validate-metrics bleu,chrf --best-metric nll",
        ),
    ],
)
def test_a_metric_that_does_not_fit_is_refused_before_training(
    target: str, options: tuple[str, ...], keys: str, data: Mapping[str, Path], tmp_path: Path
) -> None:
    done = train(data[target], tmp_path, *options)
    refused(done, 2, keys)
    assert not (tmp_path / "run").exists()


def test_an_added_metric_validates_without_another_edit(
    dummy: str, data: Mapping[str, Path], tmp_path: Path
) -> None:
    options = ("--validate-metrics", f"bleu,{dummy}", "--best-metric", dummy)
    done = train(data["text"], tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert [list(one) for one in scores(tmp_path)] == [["bleu", dummy]] * 2
    done = as_text(nmtkit("report", tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "| best BLEU " in done.stdout
    assert "| best Dummy " in done.stdout
    done = as_text(
        nmtkit(
            *("average-checkpoints", tmp_path / "run", "--data", data["text"]),
            *("--out", tmp_path / "model"),
        )
    )
    assert done.returncode == 0, done.stderr
    assert f" {dummy}=" in done.stderr
