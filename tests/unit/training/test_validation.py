"""Validation gives the scores of `nmtkit translate` and `nmtkit score`, and the model's nll."""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import TranslateRecipe
from nmtkit.config.training import ValidationConfig
from nmtkit.data.binary import Dataset
from nmtkit.decoding.alignment import all_attention_weights
from nmtkit.decoding.translator import Translator
from nmtkit.errors import DataError
from nmtkit.evaluation import metrics
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import Sample, ValidationProgress
from nmtkit.storage.model_folder import load_model
from nmtkit.symbols import BOS_ID
from nmtkit.training.distributed import Ranks
from nmtkit.training.objective import Objective
from nmtkit.training.run import train
from nmtkit.training.validation import (
    ShowProgress,
    Validation,
    ValidationHistory,
    Validator,
    choose_samples,
    make_validation_metrics,
    points_in_other_language,
    validated_directions,
)
from tests.tiny import (
    prepared,
    tiny_codec,
    tiny_corpus,
    tiny_model,
    tiny_recipe,
    tiny_train_recipe,
    with_settings,
    write_lines,
)
from tests.translating import translate

CPU = torch.device("cpu")
NUM_UPDATES = 24
TRAIN_LINES = ("a b c d e", "a b c d f") * 4
# A line that is learnt, one that is not, one with a word that is unknown, one with two spaces, and
# one so long that its pair has no ids, though its text is translated.
VALID_LINES = ("a b c d e", "h g f", "a b unknown d e", "a b  c d", "a b c d e a b c d")
RECIPE = tiny_train_recipe(
    NUM_UPDATES, 0.1, save_every=NUM_UPDATES, validate_every=NUM_UPDATES, validate_samples=2
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    train_prefix, valid_prefix = tiny_corpus(folder, TRAIN_LINES)
    write_lines(folder / "valid.en", VALID_LINES)
    write_lines(folder / "valid.de", [line.upper() for line in VALID_LINES])
    recipe = tiny_recipe(train_prefix, valid_prefix)
    recipe = replace(recipe, filters=replace(recipe.filters, max_length=8))
    prepared(recipe, folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def run(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that was validated once, after its last update."""
    folder = tmp_path_factory.mktemp("validated") / "run"
    train(RECIPE, dataset, folder)
    return folder


@pytest.fixture
def logged(run: Path) -> dict[str, Any]:
    """Return the record of the run's validation."""
    records = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    (record,) = (record for record in records if record["event"] == "validation")
    assert record["update"] == NUM_UPDATES
    found: dict[str, Any] = record
    return found


def validator_of(
    model: Transformer | Path, dataset: Path, metrics: str = "auto", batch_tokens: int = 100
) -> Validator:
    """Return the validator of a model, or of that of a run."""
    recipe = with_settings(RECIPE, validate_metrics=metrics)
    one = load_model(model, CPU).model if isinstance(model, Path) else model
    objective = Objective(one, recipe.training, None).train()
    opened = Dataset.open(dataset)
    made = make_validation_metrics(
        recipe.validation, opened.codec, validated_directions(opened), pytest.fail
    )
    return Validator(objective, opened, recipe.search, made, batch_tokens, pytest.fail, Ranks())


def validated(validator: Validator, show: ShowProgress = lambda _: None) -> Validation:
    result = validator.validate(lambda: False, show)
    assert result is not None
    return result


def loss_sentence_by_sentence(model: Transformer, dataset: Dataset) -> float:
    """Compute nats per token with PyTorch's loss, one sentence per batch."""
    total, num_tokens = 0.0, 0
    pairs = dataset.valid
    with torch.no_grad():
        for source, target in ((pairs.source[i], pairs.target[i]) for i in range(len(pairs))):
            expected = torch.tensor(target.tolist())
            memory = model.encode(pack_sequences([source.tolist()], CPU))
            target_in = pack_sequences([[BOS_ID, *target.tolist()[:-1]]], CPU)
            logits = model.logits(model.decode(target_in, memory))
            total += float(torch.nn.functional.cross_entropy(logits, expected, reduction="sum"))
            num_tokens += len(expected)
    return total / num_tokens


def stopping_at(call: int) -> Callable[[], bool]:
    """Return an `is_stopping` that is true from the given call on, counted from 1."""
    calls = iter(range(1, 10**9))
    return lambda: next(calls) >= call


def test_the_logged_bleu_is_that_of_the_saved_checkpoint_translating_the_text(
    run: Path, dataset: Path, logged: dict[str, Any]
) -> None:
    loaded = load_model(run / "last", CPU)
    recipe = TranslateRecipe(search=RECIPE.search)
    translator = Translator([loaded.model], loaded.codec, recipe, pytest.fail)
    lines = dataset.parent
    sources, references = (
        (lines / f"valid.{language}").read_text("utf-8").split("\n")[:-1]
        for language in ("en", "de")
    )
    assert len(Dataset.open(dataset).valid) == len(sources) - 1  # the long one
    (score,) = score_corpus(
        make_metrics(MetricsConfig()), list(translate(translator, sources)), [references]
    )
    assert logged["scores"]["bleu"] == pytest.approx(score.score, abs=1e-9)
    assert logged["signatures"]["bleu"] == score.signature
    assert 1 < score.score < 99


def test_the_sums_of_the_statistics_of_all_lines_give_the_scores(run: Path, dataset: Path) -> None:
    metrics = "bleu,chrf,chrf++,ter,moses-bleu"
    validator = validator_of(run, dataset, metrics)
    result = validated(validator)
    assert ",".join(result.statistics) == metrics
    for name, lines in result.statistics.items():
        assert len(lines) == len(VALID_LINES)
        sums = [sum(column) for column in zip(*lines, strict=True)]
        assert validator.metrics[name].score_sums(sums) == result.scores[name]


def test_it_translates_in_the_precision_of_training(
    run: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[torch.dtype] = []
    prepare = Transformer.prepare

    def watch(self: Transformer, dtype: torch.dtype) -> None:
        used.append(dtype)
        prepare(self, dtype)

    monkeypatch.setattr(Transformer, "prepare", watch)
    for precision in (None, torch.bfloat16):
        validator = validator_of(run, dataset)
        validator.objective.low_precision = precision
        validated(validator)
    assert used == [torch.float32, torch.bfloat16]


def test_the_logged_loss_is_that_of_the_saved_checkpoint_sentence_by_sentence(
    run: Path, dataset: Path, logged: dict[str, Any]
) -> None:
    expected = loss_sentence_by_sentence(load_model(run / "last", CPU).model, Dataset.open(dataset))
    assert logged["nll"] == pytest.approx(expected, rel=1e-5)  # float32, sums in another order
    assert logged["perplexity"] == pytest.approx(math.exp(logged["nll"]))


@pytest.mark.parametrize("batch_tokens", [1, 12, 10_000])
def test_the_loss_in_any_batches_is_that_of_sentences_without_dropout(
    batch_tokens: int, run: Path, dataset: Path
) -> None:
    model = load_model(run, CPU).model
    expected = loss_sentence_by_sentence(model, Dataset.open(dataset))
    validator = replace(validator_of(model, dataset, batch_tokens=batch_tokens), metrics={})
    result = validated(validator)
    assert result.nll == pytest.approx(expected, rel=1e-5)
    assert (result.scores, result.signatures) == ({}, {})


def test_validation_leaves_the_model_in_training_and_without_gradients(
    run: Path, dataset: Path
) -> None:
    model = load_model(run, CPU).model
    validator = validator_of(model, dataset)
    validated(validator)
    assert all(module.training for module in validator.objective.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_request_to_stop_ends_it_without_a_result(call: int, run: Path, dataset: Path) -> None:
    # All pairs are one batch and all lines one chunk: before the loss, after BLEU, at the end.
    validator = validator_of(run, dataset, batch_tokens=10_000)
    assert validator.validate(stopping_at(call)) is None
    assert all(module.training for module in validator.objective.modules())


@pytest.mark.parametrize(("metric", "worst"), [("bleu", 0.0), ("ter", math.inf)])
def test_a_model_that_cannot_translate_has_the_worst_scores(
    metric: str, worst: float, run: Path, dataset: Path
) -> None:
    model = load_model(run, CPU).model
    next(model.parameters()).data.fill_(math.nan)
    result = validated(validator_of(model, dataset, metric))
    assert not math.isfinite(result.nll)
    assert (result.scores, result.signatures) == ({metric: worst}, {})


def test_subwords_of_subword_nmt_are_joined_before_they_are_scored(tmp_path: Path) -> None:
    prefix = str(tmp_path / "text")
    write_lines(tmp_path / "text.en", VALID_LINES)
    write_lines(tmp_path / "text.de", [f"{line.replace(' ', '@@ ')}@@" for line in VALID_LINES])
    prepared(tiny_recipe(prefix, prefix), tmp_path / "data")
    model = tiny_model(Dataset.open(tmp_path / "data").codec)
    result = validated(validator_of(model, tmp_path / "data", "chrf"))
    texts = [re.sub("@@( |$)", "", line) for line in result.translations]
    references = [line.replace(" ", "") for line in VALID_LINES]
    (expected,) = score_corpus(make_metrics(MetricsConfig(metric="chrf")), texts, [references])
    assert result.scores == {"chrf": expected.score}
    assert "@@ " in " ".join(result.translations)


def test_a_metric_that_cannot_be_computed_is_reported_and_others_are_computed(
    run: Path, dataset: Path
) -> None:
    validator = validator_of(run, dataset, "bleu,chrf")

    def refuse(*_: object) -> NoReturn:
        raise DataError("too many errors")

    broken = replace(validator.metrics["bleu"], prepare=refuse)
    messages: list[str] = []
    made = {**validator.metrics, "bleu": broken}
    result = validated(replace(validator, metrics=made, warn=messages.append))
    assert messages == ["bleu of the validation set cannot be computed: too many errors"]
    assert result.scores["bleu"] == 0
    assert result.scores["chrf"] > 0
    assert list(result.signatures) == list(result.statistics) == ["chrf"]


@pytest.mark.parametrize(("lang", "tokenizer"), [("zh", "zh"), ("th", "char"), ("hi", "13a")])
def test_the_words_of_bleu_are_those_of_the_target_language(lang: str, tokenizer: str) -> None:
    codec = replace(tiny_codec(), target_lang=lang)
    made = make_validation_metrics(ValidationConfig(), codec, [], pytest.fail)
    lines = ["我喜欢苹果。", "น้ำใจดี", "मैं हूँ।"], ["我喜欢红苹果。", "น้ำดี", "मैं था।"]
    (result,) = score_corpus([made["bleu"]], lines[0], [lines[1]])
    expected = BLEU(tokenize=tokenizer)
    assert result.score == expected.corpus_score(lines[0], [lines[1]]).score
    assert result.signature == str(expected.get_signature())


@pytest.mark.parametrize("lang", ["ja", "ko"])
def test_without_its_packages_bleu_is_by_character_and_says_so_once(
    lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda _: None)
    codec, reports = replace(tiny_codec(), target_lang=lang), list[str]()
    config = ValidationConfig(validate_metrics="bleu,chrf")
    made = make_validation_metrics(config, codec, [], reports.append)
    (report,) = reports
    assert f"nmtkit[{lang}]" in report
    (result,) = score_corpus([made["bleu"]], ["abcd"], [["abcd"]])
    assert "|tok:char|" in result.signature
    make_validation_metrics(ValidationConfig(validate_metrics="chrf"), codec, [], pytest.fail)


def test_the_model_is_in_training_mode_after_an_error(run: Path, dataset: Path) -> None:
    validator = validator_of(run, dataset)

    def fail() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        validator.validate(fail)
    assert validator.objective.training


@pytest.mark.parametrize(
    ("metric", "values", "best_first", "num_stale"),
    [
        ("nll", (3.0, 2.0, 2.0, 4.0), [2, 3, 1, 4], 2),
        ("bleu", (3.0, 2.0, 4.0, 4.0), [3, 4, 1, 2], 1),
        ("ter", (3.0, 2.0, math.inf, 1.0), [4, 2, 1, 3], 0),
        ("nll", (math.nan, math.inf, 9.0), [3, 1, 2], 0),
    ],
)
def test_a_history_orders_validations_by_the_direction_of_the_metric(
    metric: str, values: Sequence[float], best_first: list[int], num_stale: int
) -> None:
    history = ValidationHistory(metric, [])
    were_best = [
        history.add(update, value, {metric: value}) for update, value in enumerate(values, 1)
    ]
    assert history.best_first() == best_first
    assert history.num_stale == num_stale
    assert metric == "nll" or history.is_best_by(metric) == were_best[-1]
    assert history.last_update == len(values)
    last_best = max(number for number, was_best in enumerate(were_best, 1) if was_best)
    assert last_best == best_first[0]


def test_a_history_without_validations_has_no_best() -> None:
    history = ValidationHistory("bleu", [])
    assert (history.best_first(), history.num_stale, history.last_update) == ([], 0, None)


# ------------------------------------------------------------------------ progress and samples


@pytest.mark.parametrize("batch_tokens", [1, 10_000])
def test_each_part_of_a_validation_is_counted_from_0_to_its_end(
    batch_tokens: int, run: Path, dataset: Path
) -> None:
    shown: list[ValidationProgress] = []
    result = validated(validator_of(run, dataset, "bleu,chrf", batch_tokens), shown.append)
    assert len(result.translations) == len(VALID_LINES)
    parts = list(dict.fromkeys(one.counted for one in shown))
    assert parts == ["batches of nll", "translated lines", "computed metrics"]
    counts = {part: [one.done for one in shown if one.counted == part] for part in parts}
    totals = {part: {one.total for one in shown if one.counted == part} for part in parts}
    num_batches = len(counts["batches of nll"]) - 1
    assert num_batches == (1 if batch_tokens > 1 else len(VALID_LINES) - 1)
    assert totals == {parts[0]: {num_batches}, parts[1]: {len(VALID_LINES)}, parts[2]: {2}}
    assert counts[parts[0]] == list(range(num_batches + 1))
    # Lines are counted a batch at a time.
    assert counts[parts[1]] == sorted(counts[parts[1]])
    assert {0, len(VALID_LINES)} <= {*counts[parts[1]]}
    assert counts[parts[2]] == [0, 1, 2]


def test_nothing_is_translated_without_metrics_and_no_samples_are_chosen(
    run: Path, dataset: Path
) -> None:
    validator = replace(validator_of(run, dataset), metrics={})
    shown: list[ValidationProgress] = []
    result = validated(validator, shown.append)
    assert {one.counted for one in shown} == {"batches of nll"}
    assert choose_samples(validator.dataset, result.translations, 3) == []


@pytest.mark.parametrize(
    ("number", "lines"),
    [(0, []), (1, [1]), (2, [1, 3]), (4, [1, 2, 3, 4]), (5, [1, 2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])],
)
def test_samples_are_spread_evenly_with_their_own_texts(
    number: int, lines: list[int], dataset: Path
) -> None:
    translations = [f"translation {line}" for line in range(1, len(VALID_LINES) + 1)]
    samples = choose_samples(Dataset.open(dataset), translations, number)
    assert samples == [
        Sample(line, VALID_LINES[line - 1], VALID_LINES[line - 1].upper(), f"translation {line}")
        for line in lines
    ]


def test_the_samples_of_a_run_are_those_that_its_checkpoint_translates(
    run: Path,
) -> None:
    (record,) = MetricsLog(run / "metrics.jsonl").validations()
    loaded = load_model(run / "last", CPU)
    translator = Translator(
        [loaded.model], loaded.codec, TranslateRecipe(search=RECIPE.search), pytest.fail
    )
    translations = list(translate(translator, VALID_LINES))
    assert [(one.line, one.hypothesis) for one in record.samples] == [
        (line, translations[line - 1]) for line in (1, 3)
    ]


def test_the_alignment_error_is_that_of_the_links_of_the_trained_head(tmp_path: Path) -> None:
    folder = tmp_path
    train_prefix, valid_prefix = tiny_corpus(folder, TRAIN_LINES)
    gold = ["0-0 1p1", "2-0 1-1 0p2", ""]
    links = write_lines(folder / "links", gold)
    recipe = tiny_recipe(train_prefix, valid_prefix)
    corpus = replace(recipe.corpus, valid_alignments=str(links))
    prepared(replace(recipe, corpus=corpus), folder / "data")
    opened = Dataset.open(folder / "data")
    model = tiny_model(opened.codec, alignment_layer=1, alignment_head=2)
    found = validated(validator_of(model, folder / "data", batch_tokens=1000))
    num_found = num_sure = hits = 0
    for source, target, line in zip(opened.valid_source, opened.valid_target, gold, strict=True):
        ids = opened.codec.encode_source(source), opened.codec.encode_target(target)
        memory = all_attention_weights(model.eval(), *ids).memory
        assert memory is not None
        rows = memory[0, 1, :-1, :-1].tolist()  # layer, head, target words, source words
        aligned = {f"{row.index(max(row))}-{t}" for t, row in enumerate(rows) if max(row) >= 0.1}
        sure = {one for one in line.split() if "-" in one}
        possible = {one.replace("p", "-") for one in line.split()}
        hits += len(aligned & sure) + len(aligned & possible)
        num_found, num_sure = num_found + len(aligned), num_sure + len(sure)
    assert found.scores["aer"] == pytest.approx(100 * (1 - hits / (num_found + num_sure)))
    assert len(found.statistics["aer"]) == len(gold)
    without = validated(validator_of(tiny_model(opened.codec), folder / "data"))
    assert "aer" not in without.scores


def test_directions_that_get_worse_while_the_average_improves_are_named() -> None:
    history = ValidationHistory("bleu", [])
    scores = [
        {"bleu": 10.0, "bleu:en-nl": 10.0, "bleu:en-sv": 10.0},
        {"bleu": 9.0, "bleu:en-nl": 4.0, "bleu:en-sv": 14.0},
        {"bleu": 11.0, "bleu:en-nl": 9.0, "bleu:en-sv": 13.0},
    ]
    found = []
    for update, one in enumerate(scores, 1):
        history.add(update, 3.0, one)
        found.append(history.worse_directions())
    assert found == [[], [], ["en-nl"]]
    history = ValidationHistory("nll", [])
    history.add(1, 3.0, {"nll:en-nl": 3.0, "nll:en-sv": 3.0})
    history.add(2, 2.5, {"nll:en-nl": 3.5, "nll:en-sv": 1.5})
    assert history.worse_directions() == ["en-nl"]


def test_outputs_in_another_language_are_counted_above_those_of_the_references() -> None:
    def rank(line: str) -> list[tuple[str, float]]:
        lang = line[:2]
        return [(one, 0.0 if one == lang else -99.0) for one in ("en", "nl", "sv")]

    text = " long enough to be judged"
    references = [f"nl{text}"] * 38 + [f"en{text}"]
    outputs = [f"nl{text}"] * 9 + [f"sv{text}"] * 3 + ["sv"]
    expected = 100 * 3 / 12 - 100 * 1 / 39
    assert points_in_other_language(outputs, references, rank) == pytest.approx(expected)
    assert points_in_other_language(references, references, rank) == 0
