import json
import re

from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.evaluation.evaluate import Evaluation, evaluate
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.reporting.scores import as_objects, as_text

REFERENCE = Text("ref", ["a b c d e f g", "h i j k l m n o p q r s t", "u v w"])
GOOD = Text("good", ["a b c d e f x", "h i j k l m n o p q r s x", "u v w"])
BAD = Text("bad_1", ["a b x d e x g", "h i j x l m n o p x r s t", "u x w"])


def evaluated(
    *systems: Text,
    significance: SignificanceConfig | None = None,
    breakdown: BreakdownConfig | None = None,
) -> Evaluation:
    metrics = make_metrics(MetricsConfig(metric="bleu,ter"))
    return evaluate(
        Texts(systems, [REFERENCE]),
        metrics,
        significance or SignificanceConfig(),
        breakdown or BreakdownConfig(),
    )


def test_one_system_has_a_line_per_metric() -> None:
    bleu, ter = as_text(evaluated(GOOD))
    details = r"91\.3/90\.0/88\.2/85\.7 \(BP = 1\.000 ratio = 1\.000 hyp_len = 23 ref_len = 23\)"
    assert re.fullmatch(rf"BLEU = 88\.79 {details}  nrefs:1\|.*\|version:\S+", bleu)
    assert re.fullmatch(r"TER = 8\.70  nrefs:1\|case:lc\|tok:tercom\|.*", ter)


def test_an_interval_follows_the_score() -> None:
    config = SignificanceConfig(confidence=True, resamples=20)
    bleu, _ = as_text(evaluated(GOOD, significance=config))
    assert re.match(r"BLEU = 88\.79 \(\u03bc = \d\d\.\d\d \u00b1 \d+\.\d\d\) 91\.3/", bleu)


def test_several_systems_are_a_table_with_the_best_in_bold() -> None:
    text = as_text(evaluated(GOOD, BAD))
    assert text[0] == "## Scores"
    rows = [re.split(r" *\| *", row)[1:-1] for row in text[2:6]]
    assert rows[0] == ["system", "BLEU", "TER"]
    assert rows[2] == ["good", "**88.79**", "**8.70**"]
    assert rows[3] == ["bad_1", "35.81", "21.74"]
    assert text[7].startswith("- BLEU: nrefs:1|case:mixed|")
    assert text[8].startswith("- TER: nrefs:1|")
    assert len(text) == 9


def test_p_values_are_columns_and_are_explained() -> None:
    config = SignificanceConfig(paired_ar=True, trials=19)
    text = as_text(evaluated(GOOD, BAD, GOOD, significance=config))
    rows = [re.split(r" *\| *", row)[1:-1] for row in text[2:7]]
    assert rows[0] == ["system", "BLEU", "p", "TER", "p"]
    assert [row[2] for row in rows[2:]][::2] == ["-", "1.0000"]
    assert 0.05 <= float(rows[3][2]) < 1
    assert text[-1] == (
        "- p: the probability of a difference from good at least this large, if the systems are "
        "equal"
    )


def test_breakdowns_are_tables_with_a_column_per_system() -> None:
    breakdown = BreakdownConfig(by_length=True, by_frequency="README.md")
    for systems in ([GOOD], [GOOD, BAD]):
        text = as_text(evaluated(*systems, breakdown=breakdown))
        titles = [line for line in text if line.startswith("## ")]
        assert titles == [
            "## Scores",
            "## BLEU by sentence length",
            "## TER by sentence length",
            "## F1 of words by frequency",
        ]
        start = text.index("## TER by sentence length")
        rows = [re.split(r" *\| *", row)[1:-1] for row in text[start + 2 : start + 6]]
        assert rows[0][:2] == ["reference words", "sentences"]
        assert len(rows[0]) == 2 + len(systems)
        assert [row[:2] for row in rows[2:]] == [["1-10", "2"], ["11-20", "1"]]
        start = text.index("## F1 of words by frequency")
        rows = [re.split(r" *\| *", row)[1:-1] for row in text[start + 2 :]]
        assert sum(int(row[1]) for row in rows[2:]) == 23


def test_json_has_all_figures_of_a_system() -> None:
    config = SignificanceConfig(paired_bs=True, resamples=20)
    breakdown = BreakdownConfig(by_length=True, by_frequency="README.md")
    evaluation = evaluated(GOOD, BAD, significance=config, breakdown=breakdown)
    good, bad = json.loads(json.dumps(list(as_objects(evaluation))))
    assert list(good) == ["system", "BLEU", "TER", "by_length", "by_frequency"]
    assert (good["system"], bad["system"]) == ("good", "bad_1")
    assert set(good["BLEU"]) == {"score", "signature", "details", "mean", "half_width"}
    assert set(bad["TER"]) == {"score", "signature", "mean", "half_width", "p_value"}
    assert bad["BLEU"]["score"] == evaluation.scores[0][1].score
    assert bad["by_length"][1] == {
        "words": "11-20",
        "sentences": 1,
        "BLEU": evaluation.length_scores[0][1][1].score,
        "TER": evaluation.length_scores[1][1][1].score,
    }
    assert bad["by_frequency"][0]["occurrences"] == "0"
    assert set(bad["by_frequency"][0]) == {"occurrences", "words", "f1"}


def test_json_leaves_out_what_was_not_requested() -> None:
    (only,) = as_objects(evaluated(GOOD))
    assert list(only) == ["system", "BLEU", "TER"]
    assert set(only["TER"]) == {"score", "signature"}


def test_trees_have_two_scores_and_all_of_evalb_s_figures() -> None:
    texts = Texts([Text("sys", ["(S (A a) (B b))"])], [Text("ref", ["(S (A a) (NP (B b)))"])])
    metrics = make_metrics(MetricsConfig(metric="brackets"))
    evaluation = evaluate(texts, metrics, SignificanceConfig(), BreakdownConfig())
    f1, strict = as_text(evaluation)
    assert f1.startswith("F1 = 66.67 recall = 50.00 precision = 100.00 complete = 0.00 crossing = ")
    assert strict.startswith("strict F1 = 66.67  nrefs:1|prm:COLLINS|xx:gold|version:nmtkit-")
    (result,) = json.loads(json.dumps(list(as_objects(evaluation))))
    assert (result["F1"]["recall"], result["F1"]["precision"]) == (50, 100)
    assert result["F1"]["score"] == result["F1"]["f1"] == result["F1"]["short"]["f1"]
    assert set(result["strict F1"]) == {"score", "signature"}
