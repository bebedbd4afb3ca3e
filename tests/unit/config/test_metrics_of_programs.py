import pytest

from nmtkit.config.metrics import metric_commands
from nmtkit.config.rules import metric_command_problems


def test_a_name_is_what_precedes_the_first_equals_sign() -> None:
    entries = ["ratio=python3 ratio.py --scale=100", " comet = run 'a b' "]
    assert metric_commands(entries) == {
        "ratio": "python3 ratio.py --scale=100",
        "comet": "run 'a b'",
    }
    assert not list(metric_command_problems(entries))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["ratio"], "metric_command ('ratio') must be NAME=COMMAND, such as "),
        (["ratio="], "metric_command ('ratio=') must be NAME=COMMAND, such as "),
        (["=cat"], "metric_command ('=cat') must be NAME=COMMAND, such as "),
        (["a b=cat"], "metric_command ('a b=cat') must be NAME=COMMAND, such as "),
        (["chrf=cat"], "metric_command: chrf is a metric, or a key of --json; choose another"),
        (["chrF2=cat"], "metric_command: chrF2 is a metric, or a key of --json; choose another"),
        (["system=cat"], "metric_command: system is a metric, or a key of --json; choose"),
        (["none=cat"], "metric_command: none is a metric, or a key of --json; choose another"),
        (["x=a", "y=b", "x=c"], "metric_command names 'x' twice; leave one out"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(entries: list[str], message: str) -> None:
    (problem,) = metric_command_problems(entries)
    assert problem.text.startswith(message)
    assert problem.keys == ("metric_command",)
