import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmtkit.config.metrics import MetricsConfig, metrics_of
from nmtkit.errors import ConfigError
from nmtkit.evaluation import metrics
from nmtkit.evaluation.metric import Metric, Score
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from tests.messages import refuses
from tests.shared_data import DATA, needs_data

LINES = ["The cat sat on the mat .", "It is guilty of nothing at all .", "Yes !"]
ALL = MetricsConfig(metric=",".join(metrics_of("text")), language_pair="de-en")
SACREBLEU = {"BLEU": BLEU, "chrF": CHRF, "TER": TER}


def score(
    config: MetricsConfig, hypotheses: Sequence[str], *references: Sequence[str]
) -> list[Score]:
    return score_corpus(make_metrics(config), hypotheses, references)


def bleu(hypotheses: Sequence[str], *references: Sequence[str]) -> Score:
    (score_,) = score(MetricsConfig(), hypotheses, *references)
    return score_


def test_a_perfect_translation_scores_100_and_needs_no_edits() -> None:
    scores = score(ALL, LINES, LINES)
    names = ["BLEU", "chrF2", "chrF2++", "TER", "moses-BLEU", "paper-BLEU"]
    assert [one.name for one in scores] == names
    assert [one.score for one in scores] == pytest.approx([100, 100, 100, 0, 100, 100])


def test_bleu_of_a_short_corpus_equals_the_formula() -> None:
    """5 of 6 unigrams, 4 of 5 bigrams, 3 of 4 trigrams, 2 of 3 four-grams; no brevity penalty.

    Source: Papineni et al. 2002, section 2.3.
    """
    result = bleu(["a b c d e x"], ["a b c d e f"])
    assert result.score == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25, abs=1e-9)
    assert (
        result.details == "83.3/80.0/75.0/66.7 (BP = 1.000 ratio = 1.000 hyp_len = 6 ref_len = 6)"
    )


def test_a_line_needs_to_match_one_of_several_references_only() -> None:
    first, second = ["a b c d e", "1 2 3 4 5"], ["f g h i j", "6 7 8 9 0"]
    mixed = ["a b c d e", "6 7 8 9 0"]
    assert bleu(mixed, first, second).score == pytest.approx(100)
    assert bleu(mixed, first).score < 60
    assert bleu(mixed, first, second).signature.startswith("nrefs:2|")


def test_the_signature_names_the_settings() -> None:
    patterns = [
        r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:\d",
        r"nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|version:\d",
        r"nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:2\|space:no\|version:\d",
        r"nrefs:1\|case:lc\|tok:tercom\|norm:no\|punct:yes\|asian:no\|version:\d",
        r"nrefs:1\|case:mixed\|eff:no\|tok:moses-en\|smooth:none\|version:\d",
        r"nrefs:1\|case:mixed\|eff:no\|tok:moses-en\+compounds\|smooth:none\|version:\d",
    ]
    for result, pattern in zip(score(ALL, LINES, LINES), patterns, strict=True):
        assert re.match(pattern, result.signature)


def test_the_signature_names_a_test_set_and_its_languages() -> None:
    config = MetricsConfig(test_set="wmt17", language_pair="en-de")
    (result,) = score(config, LINES, LINES)
    assert result.signature.startswith("nrefs:1|test:wmt17|lang:en-de|case:mixed|")


def test_metrics_keep_their_order_and_repeated_names_count_once() -> None:
    config = MetricsConfig(metric="ter, bleu,ter")
    assert [metric.name for metric in make_metrics(config)] == ["TER", "BLEU"]


@given(order=st.permutations(range(3)))
@settings(max_examples=6)
def test_the_order_of_lines_does_not_matter(order: list[int]) -> None:
    translations = ["A cat sat on the mat .", "It is guilty of all .", "No !"]
    shuffled = bleu([translations[i] for i in order], [LINES[i] for i in order])
    assert shuffled == bleu(translations, LINES)


def test_the_score_of_a_text_follows_from_sums_over_its_lines() -> None:
    hypotheses = ["The cat sat there .", "It is guilty of nothing here", "Yes !"]
    for metric in make_metrics(ALL):
        left, right = ([metric.prepare(line) for line in text] for text in (hypotheses, LINES))
        statistics = metric.count(left, [right])
        sums = [sum(column) for column in zip(*statistics, strict=True)]
        assert metric.score_sums(sums) == metric.score(statistics, 0).score
        assert 0 < metric.score_sums(sums) < 100


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf++", "moses-bleu", "paper-bleu"])
def test_case_is_ignored_on_request(metric: str) -> None:
    config = MetricsConfig(metric=metric, language_pair="de-en")
    upper = [line.upper() for line in LINES]
    assert score(config, upper, LINES)[0].score < 90
    (result,) = score(dataclasses.replace(config, lowercase=True), upper, LINES)
    assert result.score == pytest.approx(100)
    assert "|case:lc" in result.signature


def test_moses_bleu_ignores_the_case_of_ascii_letters_alone_as_multi_bleu_does() -> None:
    config = MetricsConfig(metric="bleu,moses-bleu", language_pair="en-de", lowercase=True)
    ours, multi = score(config, ["A B C \u00c4 E"], ["a b c \u00e4 e"])
    assert ours.details.startswith("100.0/")
    assert multi.details.startswith("80.0/")
    assert "|case:lc-ascii|" in multi.signature


@pytest.mark.parametrize(
    ("tokenize", "num_words"), [("none", 2), ("13a", 4), ("zh", 4), ("intl", 5), ("char", 13)]
)
def test_the_tokenizer_decides_what_a_word_is(tokenize: str, num_words: int) -> None:
    line = "Hallo-Du, 1,5!"
    (result,) = score(MetricsConfig(tokenize=tokenize), [line], [line])
    assert f"hyp_len = {num_words} " in result.details
    assert f"|tok:{tokenize}|" in result.signature


@pytest.mark.parametrize(
    ("pair", "tokenizer"),
    [
        ("en-zh", "zh"),
        ("eng-zho_Hans", "zh"),
        ("en-zh_CN", "zh"),
        ("en-th", "char"),
        ("en-lo", "char"),
        ("en-khm_Khmr", "char"),
        ("en-my", "char"),
        ("en-hi", "13a"),
        ("zh-en", "13a"),
        ("en-de", "13a"),
        ("", "13a"),
    ],
)
def test_the_target_language_chooses_the_tokenizer(pair: str, tokenizer: str) -> None:
    hypotheses, references = ["我喜欢 苹果。", "น้ำใจดี", "a,b"], ["我喜欢红苹果。", "น้ำดี", "a,c"]
    (result,) = score(MetricsConfig(language_pair=pair), hypotheses, references)
    expected = BLEU(tokenize=tokenizer)
    assert result.score == expected.corpus_score(hypotheses, [references]).score
    assert result.signature == str(expected.get_signature())


@pytest.mark.parametrize(("lang", "extra"), [("ja", "ja"), ("jpn_Jpan", "ja"), ("ko", "ko")])
def test_a_tokenizer_without_its_packages_names_the_extra(
    lang: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda _: None)
    with refuses(ConfigError, f"tokenize {extra}-mecab; nmtkit[{extra}] --tokenize char"):
        make_metrics(MetricsConfig(language_pair=f"en-{lang}"))
    (result,) = score(MetricsConfig(language_pair=f"en-{lang}", tokenize="char"), ["a"], ["a"])
    assert "|tok:char|" in result.signature


@pytest.mark.parametrize(
    ("lang", "module", "line"),
    [("ja", "MeCab", "私は林檎が好きです。"), ("ko", "mecab_ko", "나는 사과를 좋아한다.")],
)
def test_japanese_and_korean_have_the_words_of_their_tokenizers(
    lang: str, module: str, line: str
) -> None:
    pytest.importorskip(module)
    (result,) = score(MetricsConfig(language_pair=f"en-{lang}"), [line], [line[2:]])
    expected = BLEU(trg_lang=lang)
    assert result.score == expected.corpus_score([line], [[line[2:]]]).score
    assert result.signature == str(expected.get_signature())


@pytest.mark.parametrize(("pair", "is_asian"), [("en-zh", True), ("en-ja", True), ("en-de", False)])
def test_ter_counts_edits_of_chinese_characters(pair: str, is_asian: bool) -> None:
    lines = ["我喜欢苹果。"], ["我喜欢红苹果。"]
    (result,) = score(MetricsConfig(metric="ter", language_pair=pair), *lines)
    expected = TER(normalized=is_asian, asian_support=is_asian)
    assert result.score == expected.corpus_score(lines[0], [lines[1]]).score
    assert result.signature == str(expected.get_signature())
    assert (result.score < 50) is is_asian


def test_moses_bleu_counts_moses_tokens_and_paper_bleu_splits_compounds() -> None:
    config = MetricsConfig(metric="moses-bleu,paper-bleu", language_pair="en-de")
    moses, paper = score(config, ["Das EU-Land z.B. war es."], ["Das EU-Land z.B. war da."])
    assert moses.details.endswith("hyp_len = 6 ref_len = 6)")
    assert paper.details.endswith("hyp_len = 8 ref_len = 8)")
    assert moses.details.startswith("83.3/")
    assert paper.details.startswith("87.5/")


def test_multi_bleu_does_not_smooth() -> None:
    config = MetricsConfig(metric="bleu,moses-bleu", language_pair="en-de")
    smoothed, plain = score(config, ["a b c x"], ["a b c d"])
    assert smoothed.score > 0
    assert plain.score == 0


def test_an_unusable_tokenizer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("needs a dictionary.\n\nPlease   install it")

    monkeypatch.setattr("sacrebleu.metrics.bleu._get_tokenizer", fail)
    with refuses(ConfigError, "tokenize flores200; metrics.tokenize"):
        make_metrics(MetricsConfig(tokenize="flores200"))


def test_tokenized_text_is_scored_without_output(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    score(ALL, ["tokenised ."] * 200, ["tokenised ."] * 200)
    assert not caplog.records
    assert capsys.readouterr() == ("", "")


def vectors(key: str) -> list[dict[str, Any]]:
    path = DATA / "score" / "unit-vectors.json"
    cases: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))[key] if path.is_file() else []
    return cases


@needs_data
@pytest.mark.parametrize("case", vectors("cases"), ids=lambda case: case["metric"])
def test_sacrebleu_s_own_vectors_are_reproduced(case: dict[str, Any]) -> None:
    scorer = SACREBLEU[case["metric"]](**case["options"])
    metric = Metric(
        name=case["metric"],
        is_higher_better=True,
        scorer=scorer,
        line_scorer=scorer,
        prepare=str,
        marks={},
        text_of=str,
    )
    (result,) = score_corpus([metric], case["hyps"], case["refs"])
    assert result.score == pytest.approx(case["expected"], abs=10 ** -case["decimals"])


@needs_data
@pytest.mark.parametrize(
    "case", vectors("generated_with_sacrebleu_2_6_0"), ids=lambda case: case["name"]
)
def test_odd_texts_score_as_the_vectors_say(case: dict[str, Any]) -> None:
    config = MetricsConfig(metric="bleu,chrf", **case["options"])
    scores = score(config, case["hyps"], *case["refs"])
    assert [one.score for one in scores] == pytest.approx([case["BLEU"], case["chrF2"]], abs=1e-9)


@needs_data
def test_tokenization_of_bleu_equals_the_vectors() -> None:
    path = DATA / "score" / "tokenizer-13a-intl.jsonl"
    cases = [json.loads(line) for line in path.read_text("utf-8").removesuffix("\n").split("\n")]
    assert len(cases) == 140
    for tokenize, key in (("13a", "tok13a"), ("intl", "intl")):
        (metric,) = make_metrics(MetricsConfig(tokenize=tokenize))
        assert isinstance(metric.scorer, BLEU)
        for case in cases:
            assert metric.scorer.tokenizer(case["input"]) == case[key]
