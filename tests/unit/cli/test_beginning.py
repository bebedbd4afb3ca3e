from pathlib import Path

import pytest

from nmtkit.data.binary import FORMAT, VERSION
from nmtkit.errors import DamagedError
from nmtkit.storage.durable import new_folder
from nmtkit_cli.beginning import begin_training


def test_what_begins_is_reported_before_the_rest(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    with new_folder(data, FORMAT, VERSION, overwrite=False):
        pass
    with begin_training(data, tmp_path / "run") as report:
        report("more")
    first, second = capfd.readouterr().err.splitlines()
    assert first.endswith(f"training {tmp_path / 'run'} on {data} (loading PyTorch)")
    assert second.endswith(" more")


def test_a_dataset_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with (
        pytest.raises(DamagedError, match="none: no such folder; check the path"),
        begin_training(tmp_path / "none", tmp_path / "run"),
    ):
        raise AssertionError
