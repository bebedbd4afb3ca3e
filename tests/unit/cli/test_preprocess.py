import os
import sys

import click
import pytest
from click.testing import CliRunner

from nmtkit_cli import average_checkpoints, preprocess
from nmtkit_cli.command import usable_cores
from tests.messages import refuses


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
    assert "the dataset does not depend on it. [default: one per core] --shard" in text
    text = CliRunner().invoke(average_checkpoints.command, ["--help"]).stdout
    assert "x>=1" not in text


@pytest.mark.parametrize(
    "text", ["3/2", "0/2", "1", "1/", "a/b", "-1/2", "1/0", "1/\u0662", f"1/{10**20}"]
)
def test_a_shard_is_the_i_th_of_n_parts(text: str) -> None:
    arguments = ["-s", "en", "-t", "de", "--train", "x", "--valid", "x", "--out", "y"]
    with refuses(click.BadParameter, f"{text!a} I N; 2/4"):
        preprocess.command.main([*arguments, "--shard", text], standalone_mode=False)
