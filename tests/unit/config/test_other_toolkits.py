import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from unittest import mock

import click
import pytest

from nmtkit.config import other_toolkits
from nmtkit.config.other_toolkits import Row, answer_to_word, key_of, keys_of, rows
from nmtkit.config.problems import misspelled
from nmtkit_cli import command_line
from nmtkit_cli.options import PRESET, SettingType
from tests.messages import check_errors


@cache
def command_of(name: str) -> click.Command:
    context = click.Context(command_line.group)
    command = command_line.group.get_command(context, name)
    assert command is not None, name
    return command


@cache
def options_of(command: click.Command) -> dict[str, click.Parameter]:
    parameters = command.get_params(click.Context(command))
    return {name: one for one in parameters for name in one.opts if isinstance(one, click.Option)}


ENTRIES = tomllib.loads(Path("nmtkit/config/other_toolkits.toml").read_text("utf-8"))["options"]
ROWS = [(command, Row(**entry)) for entry in ENTRIES for command in entry["commands"].split()]
TOOLKITS = {
    *("fairseq", "OpenNMT-py", "Marian", "Sockeye", "JoeyNMT", "Hugging Face"),
    *("sacreBLEU", "CTranslate2", ""),
}


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_every_replacement_is_an_option_or_an_argument_of_its_command(name: str, row: Row) -> None:
    command = command_of(name)
    options = options_of(command)
    for text in (row.here, row.note, *row.values.values()):
        assert {*re.findall(r"(?<![\w-])--?[a-z][\w-]*", _own_part(text))} <= {*options}, text
    if row.here == "left out here":
        assert row.note
    elif not row.here.startswith("--"):
        metavars = [one.make_metavar(click.Context(command)) for one in command.params]
        argument = row.here.removeprefix("the argument ")
        assert any(argument in metavar for metavar in metavars), row.here
    assert row.names
    assert {*row.names} <= TOOLKITS


@pytest.mark.parametrize(("name", "row"), [one for one in ROWS if one[1].values])
def test_every_translated_value_is_a_value_of_its_option(name: str, row: Row) -> None:
    options = options_of(command_of(name))
    for text in row.values.values():
        if not text.startswith("-"):
            continue  # what happens without it
        words = text.partition(",")[0].replace("{value}", "1").split()
        assert row.here.startswith(words[0])
        for option, value in zip(words[::2], words[1::2], strict=True):
            kind = options[option].type
            converted = kind.convert(value, None, None)
            if kind is not PRESET:
                assert isinstance(kind, SettingType)
                assert not kind.field.choices or converted in kind.field.choices


def test_a_name_of_another_toolkit_is_in_one_row_of_a_command() -> None:
    keys = Counter(
        (command, key)
        for command, row in ROWS
        for key in {key for names in row.names.values() for key in keys_of(names)}
    )
    assert [key for key, number in keys.items() if number > 1] == []


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(("name", "row"), ROWS)
def test_every_name_is_answered_on_the_command_line(
    name: str, row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of(command_of(name))
    for theirs in {one for names in row.names.values() for one in names.split()}:
        typed = theirs if theirs.startswith("-") else f"--{theirs}"
        if typed in options:
            continue  # the same name, which has no answer
        assert command_line.run([name, typed, "value"]) == 2
        errors = capsys.readouterr().err
        check_errors(errors, 2, typed, recorded=False)
        assert errors.count("\n") == 1
        assert row.described().replace("{value}", "value") in errors


@pytest.mark.parametrize(
    "name",
    [
        *("--initial-learning-rate", "--warmup_ratio", "--stop-time-hours", "--max-seconds"),
        *("--exponential-smoothing", "-average_decay", "-learning_rate"),
    ],
)
def test_a_value_of_another_unit_is_explained(name: str) -> None:
    assert rows()["train", key_of(name)].note


def test_the_table_is_read_only_when_a_word_is_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = mock.Mock(wraps=tomllib.loads)
    monkeypatch.setattr(tomllib, "loads", read)
    other_toolkits._table.cache_clear()
    for line, calls in (("--help", 0), ("train --help", 0), ("train --lr 1", 1)):
        command_line.run(line.split())
        assert read.call_count == calls, line
    capsys.readouterr()


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("train d --device gpu", "device gpu; write cuda"),
        ("train d --device cuda:1", "device cuda:1; CUDA_VISIBLE_DEVICES"),
        ("train d --devices 0,1", "devices 0,1; CUDA_VISIBLE_DEVICES"),
        ("score s --reference r --metric sacrebleu", "sacrebleu; write bleu"),
        ("score s --reference r --metric BLEU", "BLEU; 'bleu'"),
        ("score s --reference r --metric comet", "comet; --metric-command comet='"),
        ("score s --reference r --metric meteor", "meteor; not available --metric-command"),
        ("train d --activation gelu", "gelu; not available relu silu"),
        ("serve run", "serve; no server --stream Python"),
        ("fairseq-train d", "fairseq-train; nmtkit train"),
        ("onmt_build_vocab", "onmt_build_vocab; nmtkit preprocess"),
        ("decode", "decode; nmtkit translate"),
        ("help train", "help; nmtkit COMMAND --help"),
        ("train d --task translation_multi_simple_epoch", "--task; several languages --tag"),
        ("train d --lr 5e-4", "--lr; --schedule inverse-sqrt --learning-rate 5e-4"),
        ("train d --lr 3", "--lr; --learning-rate-scale 3 --learning-rate at most 1"),
        ("train d --lr 30", "--lr; --learning-rate 30 at most 1 --learning-rate-scale"),
        ("train d --report_to wandb", "--report_to wandb; not available --tensorboard"),
        ("train d --schedule noam", "noam; write paper"),
        ("train d --update-freq 4", "--update-freq; --update-tokens tokens times 4"),
        ("train d --batch-size 64", "--batch-size; --max-tokens tokens 64"),
    ],
)
def test_a_word_of_another_toolkit_is_answered(
    line: str, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.run(line.split()) == 2
    check_errors(capsys.readouterr().err, 2, keys, recorded=False)


@pytest.mark.parametrize("word", ["serve", "meteor", "sacrebleu"])
def test_a_known_word_is_offered_for_a_misspelling_only(word: str) -> None:
    assert misspelled(word, [*command_line.COMMANDS, "ter", "paper-bleu"]) == ""
    assert misspelled("trian", command_line.COMMANDS) == "did you mean 'train'?"


def test_patterns_answer_whole_words_only() -> None:
    assert answer_to_word("cuda:7", "device")
    assert not answer_to_word("cuda", "device")
    assert not answer_to_word("cuda", "no-such-setting")
    commands = "commands"
    assert answer_to_word("fairseq-train", commands) == answer_to_word("sockeye_train", commands)
    assert not answer_to_word("train", commands)


def _own_part(text: str) -> str:
    """Return a text without what it says of other commands."""
    return re.sub(r"\S+ of `nmtkit [a-z]+`", "", text)
