"""What stands next to the figures: which runs compare, warnings, where runs come from."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from nmtkit.progress.records import SessionRecord
from nmtkit.reporting.run_tables import (
    TRAINING_LOSS,
    comparable_by,
    dates_of,
    differences,
    origins,
    warnings,
)
from nmtkit.reporting.runs import Run
from tests.records import SESSION
from tests.unit.reporting.builders import SIGNATURE, run_of, training, validated

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


LATER = replace(SESSION, started="2026-02-02T00:00:00+00:00", device="NVIDIA H200", ranks=1)


def with_sessions(*sessions: SessionRecord) -> Run:
    return replace(run_of(), sessions=sessions)


def rows(*runs: Run) -> dict[str, list[str]]:
    (section,) = origins(runs)
    assert section.table is not None
    return {first.text: [cell.text for cell in rest] for first, *rest in section.table.rows}


def test_a_run_has_its_date_machine_software_and_data() -> None:
    assert rows(run_of()) == {
        "started": ["2026-01-31 12:30 UTC"],
        "device": ["2 x cpu"],
        "CPU": ["Some CPU 9000, 4 threads"],
        "software": ["nmtkit 0.1.0, PyTorch 2.11.0, Python 3.12.1"],
        "dataset": ["data/en-de"],
        "fingerprint of the dataset": ["4567"],
        "languages": ["en-de"],
        "validation pairs": ["100"],
        "parameters": ["1,000"],
    }


def test_the_machines_of_all_sessions_are_listed_each_once() -> None:
    found = rows(with_sessions(SESSION, LATER, LATER), run_of("other"))
    assert found["started"][0] == "2026-01-31 12:30 UTC; 3 sessions, the last one 2026-02-02 00:00"
    assert found["device"] == ["2 x cpu, then NVIDIA H200", "2 x cpu"]
    assert found["software"][0] == found["software"][1]


def test_what_is_not_recorded_is_left_out_or_a_dash() -> None:
    old = replace(
        with_sessions(),
        num_parameters=None,
        dataset=None,
        languages=None,
        validation_pairs=None,
    )
    assert origins([old]) == []
    assert rows(old, run_of())["started"] == ["-", "2026-01-31 12:30 UTC"]
    nameless = replace(SESSION, processor="", data="a\x1bb")
    assert rows(with_sessions(nameless))["CPU"] == ["4 threads"]
    assert rows(with_sessions(nameless))["dataset"] == ["a\\x1bb"]
    assert set(rows(replace(old, dataset="f" * 64))) == {"fingerprint of the dataset"}


def test_data_are_named_by_their_fingerprints() -> None:
    runs = [replace(run_of(name), dataset=digit * 64) for name, digit in (("a", "1"), ("b", "2"))]
    assert rows(*runs)["fingerprint of the dataset"] == [12 * "1", 12 * "2"]


def test_dates_are_those_of_the_first_and_the_last_session() -> None:
    assert dates_of([run_of()]) == "2026-01-31"
    assert dates_of([with_sessions(LATER), run_of(), with_sessions()]) == "2026-01-31 to 2026-02-02"
    assert dates_of([with_sessions()]) == ""


def texts(*runs: Run) -> Sequence[str]:
    return warnings(runs).sentences


def test_a_good_run_has_no_warning() -> None:
    assert texts(run_of(validations=validated([3.0, 2.0, 2.5], [1.0, 2.0, 3.0]))) == ["none"]


@pytest.mark.parametrize(
    "losses", [[2.0, 2.5, 3.0], [9.0, 2.0, 2.5, 2.4, 3.0], [1.0, 1.0, 1.0, 1.0]]
)
def test_a_loss_that_wavers_is_not_a_warning(losses: list[float]) -> None:
    assert texts(run_of(validations=validated(losses, [None] * len(losses)))) == ["none"]


def test_a_rising_loss_is_a_warning_with_its_range() -> None:
    run = run_of("base", validated([9.0, 2.0, 2.5, 3.0, 3.25], [None] * 5))
    assert texts(run) == [
        "base: dev nll has been rising for 3 validations, from 2.0000 at update 200 to 3.2500 at "
        "update 500"
    ]


def test_skipped_updates_are_a_warning() -> None:
    run = replace(run_of(), training=[replace(training(1000), skipped_updates=3)])
    assert texts(run) == ["run: updates skipped because gradients were not finite: 3"]


def test_losses_that_are_not_finite_are_a_warning() -> None:
    records = [training(800), training(900, math.inf), training(1000, math.inf)]
    assert texts(replace(run_of(), training=records)) == [
        "run: training loss is not finite in 2 records, first at update 900"
    ]


def test_an_unfinished_run_is_a_warning() -> None:
    assert texts(run_of(settings={"max_updates": 1001})) == [
        "run: not finished: 1,000 of 1,001 updates at the last record, after 16m40s; if it is not "
        "training now, run the same nmtkit train command to resume it"
    ]


STALE = validated([2.0, 3.0, 2.5, 2.75], [None] * 4)


@pytest.mark.parametrize(
    ("settings", "is_finished"),
    [
        ({"max_minutes": 16.5}, True),
        ({"max_minutes": 17.0}, False),
        ({"patience": 3}, True),
        ({"patience": 4}, False),
        ({"max_epochs": 2}, False),
        ({"max_epochs": 1}, False),  # within the last epoch
        ({"max_epochs": 1, "validate_every": 0}, True),
    ],
)
def test_a_run_may_end_before_its_last_update(
    settings: dict[str, float], is_finished: bool
) -> None:
    run = run_of(validations=STALE, settings={"max_updates": 2000, **settings})
    assert (texts(run) == ["none"]) == is_finished


def test_a_run_that_ended_with_its_last_epoch_validated_at_its_end() -> None:
    run = run_of(
        validations=[replace(STALE[0], update=1000)],
        settings={"max_updates": 2000, "max_epochs": 1},
    )
    assert texts(run) == ["none"]


def test_a_run_whose_metric_changed_is_a_warning() -> None:
    first, second = validated([3.0, 2.0], [10.0, 11.0])
    run = run_of("a", [first, replace(second, signatures={"bleu": "tok:none"})])
    assert texts(run) == [
        "a: the signature of BLEU changed between validations, so they cannot be compared: "
        f"{SIGNATURE} and tok:none"
    ]


def test_runs_that_cannot_be_compared_are_a_warning() -> None:
    first = run_of("a", validated([3.0], [10.0]))
    (text,) = texts(first, replace(first, name="b", validation_text="fedc"))
    assert text.startswith("the validation texts differ (a; b)")
