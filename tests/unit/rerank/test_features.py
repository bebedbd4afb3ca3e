import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from sacrebleu.metrics.bleu import BLEU

from nmtkit.config import rerank as settings
from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import RerankRecipe
from nmtkit.config.toml import build
from nmtkit.decoding.forced import score_pairs
from nmtkit.errors import DamagedError, DataError
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.rerank import features, mbr
from nmtkit.rerank.features import FEATURES, VIEWS, feature_values, language_pair, reversed_words
from nmtkit.rerank.mbr import expected_utilities
from nmtkit.text.translations import TranslatedLine
from tests.messages import refuses
from tests.tiny import tiny_codec, tiny_model, write_tiny_model
from tests.unit.rerank.builders import features_of, line_of, program


def values(names: str, *lines: TranslatedLine, **settings: object) -> list[list[list[float]]]:
    """Return the values per line, candidate and feature."""
    return [one.tolist() for one in feature_values(lines, features_of(names, **settings))]


def test_the_tables_have_the_same_names() -> None:
    assert set(FEATURES) == set(settings.FEATURES)
    assert set(VIEWS) < set(FEATURES)
    assert set(mbr.UTILITIES) == set(settings.UTILITIES)


def test_the_score_that_is_there_and_the_number_of_words() -> None:
    line = line_of("a b", "A  B", "", "A B C", scores=[-2, -1.5, 0])
    assert values("model,length", line) == [[[-2.0, 2.0], [-1.5, 0.0], [0.0, 3.0]]]


@pytest.mark.parametrize(
    ("candidate", "num_words"),
    [("我喜欢红苹果。", 7), ("मैं हिन्दी पढ़ता हूँ।", 4), ("น้ำใจดี", 4), ("مُحَمَّدٌ فِي البَيْتِ", 3)],
)
def test_the_length_is_in_words_of_the_script(candidate: str, num_words: int) -> None:
    assert values("length", line_of("a", candidate)) == [[[num_words]]]


def test_a_missing_score_is_an_error_that_names_the_key() -> None:
    with refuses(DataError, "x:1 n_best[0].score"):
        values("model", line_of("a", "A"))


def test_a_blank_line_is_not_scored() -> None:
    lines = [line_of(" ", "", "A"), line_of("a", "A B", scores=[1])]
    assert values("length,model", *lines) == [[[0.0, 0.0], [0.0, 0.0]], [[2.0, 1.0]]]
    command = ("x=false",)
    assert values("command:x", *lines[:1], metric_command=command) == [[[0.0], [0.0]]]


def test_equal_texts_of_a_source_are_scored_by_one_run_of_a_program(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = program("len(texts[0]) * 10 + len(texts[1])")
    lines = [line_of("a\nb", "A", "B\n", "A"), line_of("a\nb", "A"), line_of("c", "A")]
    found = values("command:x", *lines, metric_command=(f"x=tee -a {log} | {script}",))
    assert found == [[[31.0], [32.0], [31.0]], [[31.0]], [[11.0]]]
    assert log.read_text() == "a b\tA\t\na b\tB \t\nc\tA\t\n"


@pytest.mark.parametrize("utility", settings.UTILITIES)
@pytest.mark.parametrize("how", ["exact", "aggregate"])
def test_mbr_is_the_expected_utility_over_candidates(utility: str, how: str) -> None:
    texts = ["A B C", "A C", "A B C", "B"]
    (found,) = values(f"mbr:{utility}", line_of("a", *texts), mbr=how)
    (metric,) = make_metrics(MetricsConfig(metric=utility))
    assert [one for (one,) in found] == expected_utilities(
        utility, metric, texts, how == "aggregate"
    )


CHINESE = ["他讨厌梨", "我喜欢红苹果。", "我喜欢红色苹果。", "我喜欢红苹果\uff01"]


@pytest.mark.parametrize(
    ("texts", "settings", "tokenizer"),
    [
        (CHINESE, {"language_pair": "en-zh"}, "zh"),
        (CHINESE, {}, "zh"),  # here it equals char
        (CHINESE, {"target_lang": "zh"}, "zh"),
        (["น้ำใจดี", "1,000 ใจ"], {"target_lang": "tha"}, "char"),
        (CHINESE, {"tokenize": "13a"}, "13a"),
        (["น้ำใจดี", "น้ำใจ", "ใจดี"], {"language_pair": "en-th"}, "char"),
        (["น้ำใจดี", "น้ำใจ", "ใจดี"], {}, "char"),
        (["मैं हूँ।", "मैं हूँ", "मैं था।"], {}, "13a"),
        (["It is 1,000.", "It is 1000.", "Is it 1,000?"], {}, "13a"),
    ],
)
def test_mbr_by_bleu_has_the_words_of_the_language_or_script(
    texts: list[str], settings: dict[str, str], tokenizer: str
) -> None:
    scorer = BLEU(tokenize=tokenizer, effective_order=True)
    expected = [fmean(scorer.sentence_score(a, [b]).score for b in texts) for a in texts]
    (found,) = values("mbr:bleu", line_of("a", *texts), **settings)
    assert found == [[pytest.approx(one, abs=1e-9)] for one in expected]
    if texts == CHINESE and tokenizer == "zh":
        assert [round(one, 1) for (one,) in found] == [25.0, 58.1, 47.8, 55.8]


def test_the_languages_are_given_or_those_of_a_model(tmp_path: Path) -> None:
    codec = replace(tiny_codec(), target_lang="zh_CN")
    write_tiny_model(tmp_path / "en-zh", codec)
    write_tiny_model(tmp_path / "zh-en", replace(codec, source_lang="zh_CN", target_lang="en"))
    features = {
        "mbr:bleu": "",
        f"forced:{tmp_path}/en-zh": "en-zh",
        f"backward:{tmp_path}/zh-en": "en-zh",
    }
    for name, pair in features.items():
        recipe = build(RerankRecipe, {"features": f"length,{name}"})
        assert language_pair(recipe) == pair
        given = build(RerankRecipe, {"features": name, "language_pair": "en-ja"})
        assert language_pair(given) == "en-ja"
        of_lines = build(RerankRecipe, {"features": name, "target_lang": "zh_CN"})
        assert language_pair(of_lines) == "mul-zh"


def test_auto_is_exact_for_few_distinct_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []

    def note(_: str, _metric: object, texts: list[str], is_aggregated: bool) -> list[float]:
        used.append(is_aggregated)
        return [0.0] * len(texts)

    monkeypatch.setattr(features, "expected_utilities", note)
    few, many = [f"{n}" for n in range(64)], [f"{n}" for n in range(65)]
    values("mbr:chrf", line_of("a", *few, *few), line_of("a", *many))
    assert used == [False, True]


def test_each_kind_gives_its_texts_to_the_model(tmp_path: Path) -> None:
    codec = tiny_codec()
    turned = replace(codec, source_lang="de", target_lang="en")
    write_tiny_model(tmp_path / "en-de", codec)
    write_tiny_model(tmp_path / "de-en", turned, seed=2)
    lines = [line_of("a b c", "A B", "C A B"), line_of("d", "")]
    texts = {
        f"forced:{tmp_path}/en-de": [("a b c", "A B"), ("a b c", "C A B"), ("d", "")],
        f"backward:{tmp_path}/de-en": [("A B", "a b c"), ("C A B", "a b c"), ("", "d")],
        f"right-to-left:{tmp_path}/en-de": [("a b c", "B A"), ("a b c", "B A C"), ("d", "")],
    }
    for name, pairs in texts.items():
        model = tiny_model(codec, seed=2 if name.startswith("backward") else 1)
        ids = [(codec.encode_source(one), codec.encode_target(other)) for one, other in pairs]
        expected = [sum(one) for one in score_pairs(model, ids, 99)]
        of_lines = values(name, *lines, device="cpu", threads=1, precision="float32")
        found = [one for of_line in of_lines for (one,) in of_line]
        assert found == pytest.approx(expected, abs=1e-5)
        assert all(math.isfinite(one) and one < 0 for one in found)
    with refuses(DataError, f"x:1 forced:{tmp_path}/en-de 4 source 3"):
        values(f"forced:{tmp_path}/en-de", *lines, device="cpu", max_length=3)


def test_lines_of_another_language_are_refused(tmp_path: Path) -> None:
    codec = tiny_codec().with_directions(["en-de", "en-nl"], has_source_symbols=False)
    write_tiny_model(tmp_path / "model", codec)
    line, name = line_of("a b c", "A B"), f"forced:{tmp_path}/model"
    named = [replace(line, others={"target_lang": lang}) for lang in ("de", "nl")]
    given = {"target_lang": "de", "device": "cpu"}
    assert values(name, named[0], **given) == values(name, line, **given)
    plain = f"forced:{tmp_path}/plain"
    write_tiny_model(tmp_path / "plain")
    ((first, second), *_) = values(f"{name},{plain}", line, **given)[0]
    ((alone,), *_) = values(plain, line, device="cpu")[0]
    assert first != second == alone
    with refuses(DataError, "x:1 target_lang nl; --target-lang"):
        values(name, named[1], **given)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with refuses(DamagedError, f"{tmp_path} manifest.json"):
        features_of(f"forced:{tmp_path}")


def test_words_are_reversed_and_their_white_space_is_one_space() -> None:
    assert reversed_words(" a  b\tc ") == "c b a"
    assert reversed_words("") == ""
