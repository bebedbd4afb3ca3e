import os
import sys

import pytest
from click.testing import CliRunner

from nmtkit_cli import average_checkpoints, preprocess
from nmtkit_cli.command import usable_cores


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has sched_getaffinity")
def test_usable_cores_are_those_of_this_process() -> None:
    permitted = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(permitted)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, permitted)
    assert usable_cores() == len(permitted)


def test_help_shows_defaults_in_words_and_no_ranges() -> None:
    text = " ".join(CliRunner().invoke(preprocess.command, ["--help-all"]).stdout.split())
    assert "the dataset does not depend on it. [default: one per core] --overwrite" in text
    text = CliRunner().invoke(average_checkpoints.command, ["--help"]).stdout
    assert "x>=1" not in text
