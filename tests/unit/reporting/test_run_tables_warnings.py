import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from nmtkit.reporting.run_tables import warnings
from nmtkit.reporting.runs import Run
from tests.unit.reporting.builders import SIGNATURE, run_of, training, validated


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
