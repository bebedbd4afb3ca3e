import pytest

from nmtkit.config.training import SCHEDULES, TrainingConfig


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_weights_are_averaged_with_an_ema_or_without_a_schedule(schedule: str) -> None:
    assert TrainingConfig(schedule=schedule, ema_decay=0.9).is_averaged
    assert TrainingConfig(schedule=schedule).is_averaged == (schedule == "schedule-free")
