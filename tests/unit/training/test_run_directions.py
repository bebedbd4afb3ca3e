"""Training on several directions: how often each is seen, and the same after a resume."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import ScoringConfig, TranslateRecipe
from nmtkit.data.binary import Dataset
from nmtkit.decoding.answers import Request
from nmtkit.decoding.scorer import Scorer, line_names
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.reporting.report import markdown_of, report_on
from nmtkit.reporting.runs import read_runs
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import find_model
from nmtkit.training import run
from nmtkit.training.initialization import Parent
from tests.messages import refuses
from tests.tiny import never_warn, prepared, tiny_directions, tiny_train_recipe
from tests.training import assert_resumes, logged

pytestmark = pytest.mark.sampled(every=3)

DIRECTIONS = ("en-de", "en-nl", "nl-en")
TEXTS = ("train", "valid")


@pytest.fixture(scope="module")
def directions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("directions")
    prepared(tiny_directions(folder), folder / "data")
    return folder / "data"


def test_the_start_says_how_often_each_direction_is_seen(
    directions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0, sampling_temperature=1000)
    run.train(recipe, directions, tmp_path)
    start, _, _ = capsys.readouterr().err.partition("event=start")
    for direction in DIRECTIONS:
        assert f"direction {direction}: 8 pairs per epoch, 33." in start
    assert "nl-en: 8 pairs per epoch, 33.3%; it has no validation text" in start


def test_a_resumed_run_samples_as_the_uninterrupted_one(directions: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(max_updates=6, dropout=0.0, sampling_temperature=5)
    assert_resumes(recipe, directions, tmp_path, (1, 3, 6))


def test_a_temperature_needs_directions(data: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0, sampling_temperature=5)
    with refuses(ConfigError, f"sampling_temperature 5 {data}; training"):
        run.train(recipe, data, tmp_path)


def validated(directions: Path, folder: Path, **settings: Any) -> dict[str, Any]:
    """Return the record of a run's only validation."""
    recipe = tiny_train_recipe(max_updates=4, dropout=0.0, save_every=4, **settings)
    run.train(recipe, directions, folder)
    (record,) = logged(folder, "validation")
    return record


def test_each_direction_is_validated_by_itself_and_the_average_is_over_them(
    directions: Path, tmp_path: Path
) -> None:
    record = validated(directions, tmp_path / "run", best_metric="chrf:en-nl")
    scores, dataset = record["scores"], Dataset.open(directions)
    loaded = load_model(find_model(tmp_path / "run" / "last"), torch.device("cpu"))
    recipe = tiny_train_recipe(max_updates=4, dropout=0.0)
    translator = Translator(
        [loaded.model], loaded.codec, TranslateRecipe(search=recipe.search), pytest.fail
    )
    requests = [*map(Request, dataset.valid_source)]
    answers = [one for found in translator.answer_all([(1, requests)]) for one in found.answers]
    outputs = [one.translation.text for one in answers]
    for place, direction in enumerate(("en-de", "en-nl")):
        own = slice(3 * place, 3 * place + 3)
        for name in ("bleu", "chrf"):
            metric = make_metrics(MetricsConfig(metric=name, language_pair=direction))
            (expected,) = score_corpus(metric, outputs[own], [dataset.valid_target[own]])
            assert scores[f"{name}:{direction}"] == pytest.approx(expected.score)
            assert record["signatures"][f"{name}:{direction}"] == expected.signature
    for name in ("bleu", "chrf"):
        pair = scores[f"{name}:en-de"], scores[f"{name}:en-nl"]
        assert scores[name] == pytest.approx(sum(pair) / 2)
    assert record["nll"] == pytest.approx((scores["nll:en-de"] + scores["nll:en-nl"]) / 2)
    pairs = [*zip(dataset.valid_source, dataset.valid_target, strict=True)][:3]
    config = ScoringConfig(max_length=99)
    lines = Scorer([loaded.model], loaded.codec, config, never_warn).score(pairs, line_names(1))
    nll = -sum(one.log_prob for one in lines) / sum(len(one.tokens) for one in lines)
    assert scores["nll:en-de"] == pytest.approx(nll, abs=1e-5)


@pytest.mark.parametrize("source_symbols", [False, True])
def test_directions_into_one_language_are_validated(tmp_path: Path, source_symbols: bool) -> None:
    recipe = tiny_directions(tmp_path)
    train, valid = (
        tuple(f"{tmp_path / name}:{lang}-de" for lang in ("en", "nl")) for name in TEXTS
    )
    corpus = replace(recipe.corpus, train=train, valid=valid, source_symbols=source_symbols)
    prepared(replace(recipe, corpus=corpus), tmp_path / "data")
    scores = validated(tmp_path / "data", tmp_path / "run")["scores"]
    assert {"bleu:en-de", "bleu:nl-de", "bleu"} <= scores.keys()


def test_the_best_metric_may_be_of_one_validated_direction(
    directions: Path, tmp_path: Path
) -> None:
    with refuses(ConfigError, "best_metric chrf:nl-en; en-de en-nl validation.best_metric"):
        validated(directions, tmp_path, best_metric="chrf:nl-en")


def test_a_report_has_the_average_and_each_direction(directions: Path, tmp_path: Path) -> None:
    validated(directions, tmp_path / "run")
    text = "\n".join(markdown_of(report_on(read_runs([tmp_path / "run"]), with_paper=False)))
    for label in ("BLEU", "BLEU en-de", "chrF2 en-nl", "nll en-de"):
        assert f" {label} |" in text
    (seen,) = re.findall(r"\| pairs per epoch +\| (.*?) *\|", text)
    assert seen == "en-de 10 (43.5%), en-nl 10 (43.5%), nl-en 3 (13.0%)"


def test_a_new_language_begins_with_the_model_and_the_old_ones_are_measured_before(
    directions: Path, tmp_path: Path
) -> None:
    before = validated(directions, tmp_path / "run")
    recipe = tiny_directions(tmp_path)
    for name in ("train", "valid"):
        (tmp_path / f"{name}.fi").write_text((tmp_path / f"{name}.nl").read_text())
    texts = recipe.corpus
    train = (*texts.train, f"{tmp_path / 'train'}:en-fi")
    valid = (*texts.valid, f"{tmp_path / 'valid'}:en-fi")
    prepared(replace(recipe, corpus=replace(texts, train=train, valid=valid)), tmp_path / "data")
    options = tiny_train_recipe(max_updates=4, dropout=0.0, save_every=4)
    data, out = tmp_path / "data", tmp_path / "more"
    with refuses(ConfigError, "run; --vocabulary-of --update-vocabulary"):
        run.train(options, data, out, parent=Parent(tmp_path / "run" / "last"))
    run.train(options, data, out, parent=Parent(tmp_path / "run" / "last", True))
    first, last = logged(out, "validation")
    assert (first["update"], last["update"]) == (0, 4)
    for direction in ("en-de", "en-nl"):
        assert first["scores"][f"nll:{direction}"] == pytest.approx(
            before["scores"][f"nll:{direction}"], abs=0.2
        )
    assert "nll:en-fi" in first["scores"]
