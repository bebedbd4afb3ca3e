from collections.abc import Sequence
from dataclasses import replace

import pytest

from nmtkit.reporting.run_tables import TRAINING_LOSS, comparable_by, differences
from nmtkit.reporting.runs import Run
from tests.unit.reporting.builders import SIGNATURE, run_of, validated

FIRST = run_of("a", validated([3.0], [10.0]))
OTHER = replace(FIRST, name="b")
NOTHING = "so neither nll, perplexity nor scores can be compared between these runs"
NO_NLL = (
    "so nll and perplexity, which are per token, cannot be compared between these runs; scores of "
    "translations can"
)


def names(groups: Sequence[Sequence[Run]]) -> list[str]:
    return ["".join(run.name for run in group) for group in groups]


def test_equal_runs_compare_by_everything() -> None:
    assert names(comparable_by("nll", [FIRST, OTHER])) == ["ab"]
    assert names(comparable_by("bleu", [FIRST, OTHER])) == ["ab"]
    assert names(comparable_by(TRAINING_LOSS, [FIRST, OTHER])) == ["ab"]
    assert differences([FIRST, OTHER]) == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (
            replace(OTHER, languages="en-fr", validation_text="fedc", codec="other"),
            f"the languages differ (a: en-de; b: en-fr), {NOTHING}",
        ),
        (
            replace(OTHER, validation_text="fedc"),
            f"the validation texts differ (a; b), {NOTHING}",
        ),
        (
            replace(OTHER, validation_text=None),
            f"the validation texts are not known to be equal (a; b: not recorded), {NOTHING}",
        ),
    ],
)
def test_nothing_compares_runs_of_other_languages_or_other_text(other: Run, told: str) -> None:
    assert names(comparable_by("nll", [FIRST, other])) == ["a", "b"]
    assert names(comparable_by("bleu", [FIRST, other])) == ["a", "b"]
    assert differences([FIRST, other]) == [told]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(OTHER, codec="other"), f"the vocabularies differ (a; b), {NO_NLL}"),
        (
            replace(OTHER, validation_pairs=90),
            f"the numbers of validation pairs within --max-length differ (a: 100; b: 90), {NO_NLL}",
        ),
    ],
)
def test_nll_does_not_compare_runs_of_other_tokens_but_scores_do(other: Run, told: str) -> None:
    assert names(comparable_by("nll", [FIRST, other])) == ["a", "b"]
    assert names(comparable_by("bleu", [FIRST, other])) == ["ab"]
    assert differences([FIRST, other]) == [told]


def test_a_metric_does_not_compare_runs_with_another_signature() -> None:
    (result,) = FIRST.validations
    other = replace(OTHER, validations=[replace(result, signatures={"bleu": "tok:none"})])
    assert names(comparable_by("nll", [FIRST, other])) == ["ab"]
    assert names(comparable_by("bleu", [FIRST, other])) == ["a", "b"]
    assert differences([FIRST, other]) == [
        f"the signatures of BLEU differ (a: {SIGNATURE}; b: tok:none), so it cannot be compared "
        "between these runs"
    ]


def test_training_losses_with_other_label_smoothing_do_not_compare() -> None:
    plain = run_of("plain", settings={"label_smoothing": 0.0})
    assert names(comparable_by(TRAINING_LOSS, [run_of("smooth"), plain])) == ["smooth", "plain"]
    assert differences([run_of("smooth"), plain]) == [
        "the values of --label-smoothing differ (smooth: 0.1; plain: 0.0), so the training loss "
        "cannot be compared between these runs"
    ]


def test_runs_compare_within_their_group() -> None:
    french = replace(FIRST, name="c", languages="en-fr", validation_text="fedc")
    runs = [FIRST, french, OTHER, replace(french, name="d"), replace(OTHER, name="e", codec="2")]
    assert names(comparable_by("bleu", runs)) == ["abe", "cd"]
    assert names(comparable_by("nll", runs)) == ["ab", "e", "cd"]
    assert differences(runs) == [
        f"the languages differ (a, b, e: en-de; c, d: en-fr), {NOTHING}",
        f"the vocabularies differ (a, b; e), {NO_NLL}",
    ]


def test_a_run_without_a_result_is_in_no_group() -> None:
    assert names(comparable_by("bleu", [FIRST, run_of("young")])) == ["a"]
