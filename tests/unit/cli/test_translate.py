import click
import pytest

from nmtkit_cli import translate
from tests.messages import refuses


@pytest.mark.parametrize(
    "text", ["3/2", "0/2", "1", "1/", "a/b", "-1/2", "1/0", "1/\u0662", f"1/{10**20}"]
)
def test_a_shard_is_the_i_th_of_n_parts(text: str) -> None:
    arguments = ["model", "--input", "x", "--output", "y", "--shard", text]
    with refuses(click.BadParameter, f"{text!a} I N; 2/4"):
        translate.command.main(arguments, standalone_mode=False)
