import os
import sys

import pytest
from click.testing import CliRunner

from nmtkit_cli import average_checkpoints, preprocess


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells on which cores one may run")
def test_only_the_cores_that_this_process_may_run_on_count() -> None:
    permitted = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(permitted)})
        assert preprocess.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, permitted)
    assert preprocess.usable_cores() == len(permitted)


def test_help_tells_defaults_in_words_and_no_ranges() -> None:
    text = " ".join(CliRunner().invoke(preprocess.command, ["--help"]).stdout.split())
    assert "the dataset is the same. [default: one a core] --overwrite" in text
    text = CliRunner().invoke(average_checkpoints.command, ["--help"]).stdout
    assert "x>=1" not in text
