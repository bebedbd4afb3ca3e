"""The speed of a run is all tokens divided by all seconds, of just the updates asked for."""

from dataclasses import replace

import pytest

from benchmarks.trainer import MIB, Run, intervals_of, ratio_after
from nmtkit.progress.records import TrainingRecord
from tests.records import TRAINING


def record(update: int, tokens: int, seconds: float, peak_mib: int = 0) -> TrainingRecord:
    return replace(
        TRAINING,
        update=update,
        num_source_tokens=tokens // 4,
        num_target_tokens=tokens - tokens // 4,
        tokens_per_second=tokens / seconds,
        peak_memory=peak_mib * MIB,
    )


def run_of(*updates: TrainingRecord) -> Run:
    return Run(list(updates), validation_s=0.0, longest_save_s=0.0)


def test_speed_is_all_tokens_divided_by_all_seconds() -> None:
    run = run_of(record(50, 1000, 1.0), record(100, 3000, 9.0), record(150, 10, 99.0))
    assert run.tokens_per_second(after=0, up_to=100) == pytest.approx(4000 / 10)
    assert run.tokens_per_second(after=50, up_to=100) == pytest.approx(3000 / 9)


def test_the_updates_up_to_the_first_save_do_not_count_in_the_ratio() -> None:
    plain = run_of(record(100, 1000, 1.0), record(200, 1000, 2.0), record(250, 2000, 2.0))
    saving = run_of(record(100, 1000, 50.0), record(200, 1000, 1.0), record(250, 2000, 4.0))
    assert ratio_after(100, plain, saving) == pytest.approx(4 / 5)


def test_peaks_are_those_of_the_first_half_and_of_the_whole_run() -> None:
    updates = [record(100 * number, 1, 1.0, peak_mib=10 * number) for number in range(1, 7)]
    assert run_of(*updates).peaks_mib == (30, 60)
    assert run_of(*updates[:1]).peaks_mib == (10, 10)


@pytest.mark.parametrize(
    ("updates", "intervals"),
    [(60, [(0, 60)]), (200, [(0, 100), (100, 200)]), (230, [(0, 100), (100, 200), (200, 230)])],
)
def test_intervals_join_and_end_with_the_run(
    updates: int, intervals: list[tuple[int, int]]
) -> None:
    assert intervals_of(updates) == intervals
