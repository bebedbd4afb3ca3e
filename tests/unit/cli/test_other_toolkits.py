import re
from collections import Counter

import click
import pytest

from nmtkit_cli import command_line
from nmtkit_cli.counterparts import Row
from nmtkit_cli.options import PresetType, SettingType
from nmtkit_cli.other_toolkits import COUNTERPARTS
from nmtkit_cli.unknown_options import described, key_of
from tests.messages import check_errors


def command_of(name: str) -> click.Command:
    context = click.Context(command_line.group)
    command = command_line.group.get_command(context, name)
    assert command is not None, name
    return command


def options_of(command: click.Command) -> dict[str, click.Parameter]:
    parameters = command.get_params(click.Context(command))
    return {name: one for one in parameters for name in one.opts if isinstance(one, click.Option)}


ROWS = [(command, row) for command, rows in COUNTERPARTS.items() for row in rows]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_every_replacement_is_an_option_or_an_argument_of_its_command(name: str, row: Row) -> None:
    command = command_of(name)
    options = options_of(command)
    for text in (row.here, row.note, *row.values.values()):
        assert {*re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)} <= {*options}, text
    if not row.here.startswith("--"):
        metavars = [one.make_metavar(click.Context(command)) for one in command.params]
        assert any(row.here in metavar for metavar in metavars), row.here
    assert row.here or row.note
    assert row.names()


@pytest.mark.parametrize(("name", "row"), [one for one in ROWS if one[1].values])
def test_every_translated_value_is_a_value_of_its_option(name: str, row: Row) -> None:
    options = options_of(command_of(name))
    for text in row.values.values():
        assert text.startswith(row.here)
        words = text.split()
        for option, value in zip(words[::2], words[1::2], strict=True):
            kind = options[option].type
            assert isinstance(kind, SettingType | PresetType)
            converted = kind.convert(value, None, None)
            assert (
                isinstance(kind, PresetType)
                or not kind.field.setting.choices
                or (converted in kind.field.setting.choices)
            )


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_a_name_of_another_toolkit_is_in_one_row_of_a_command(name: str) -> None:
    keys = Counter(
        key
        for row in COUNTERPARTS[name]
        for key in {key_of(one) for names in row.names().values() for one in names}
    )
    assert [key for key, number in keys.items() if number > 1] == []


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_every_name_is_answered_on_the_command_line(
    name: str, row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of(command_of(name))
    own = {key_of(one): one for one in options if one.startswith("--")}
    expected = described(row) if row.here else row.note
    for theirs in {one for names in row.names().values() for one in names}:
        typed = theirs if theirs.startswith("-") else f"--{theirs}"
        if typed in options:
            continue  # the same name, which has no answer
        assert command_line.run([name, typed, "value"]) == 2
        keys = capsys.readouterr().err
        check_errors(keys, 2, typed, recorded=False)
        assert keys.count("\n") == 1
        answer = f"write {own[key_of(typed)]}" if key_of(typed) in own else expected
        assert answer in keys


@pytest.mark.parametrize(
    "name",
    [
        *("--initial-learning-rate", "--warmup_ratio", "--stop-time-hours", "--max-seconds"),
        *("--exponential-smoothing", "-average_decay", "-learning_rate"),
    ],
)
def test_a_value_of_another_unit_is_explained(name: str) -> None:
    rows = [row for row in COUNTERPARTS["train"] for names in row.names().values() if name in names]
    assert [bool(row.note) for row in rows] == [True]
