"""Answers to options that a command does not have, named as the user typed them.

An option may be that of another command, or of another toolkit: see
nmtkit/config/other_toolkits.py. OpenNMT-py writes one dash, JoeyNMT and Hugging Face underscores:
both are alike here.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise, takewhile

import click

from nmtkit.config.other_toolkits import key_of, rows
from nmtkit.config.problems import Problem, closest, text_of

MIN_SIMILARITY_TO_OTHERS = 0.85
"""Similarity of an unknown option to one of other toolkits, of which there are many."""


def unknown_options(context: click.Context, arguments: Sequence[str]) -> str:
    """Return what to write instead of options that a command lacks; "" if it has all of them.

    Args:
        context: of the command.
        arguments: the command line after the name of the command.
    """
    return text_of([*_problems(context, arguments)])


def _problems(context: click.Context, arguments: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each unknown option of a command line."""
    options = _options(context)
    words = pairwise([*takewhile("--".__ne__, arguments), ""])
    for word, following in words:
        name, has_value, value = word.partition("=")
        if name in options:
            if not (has_value or options[name].is_flag):
                next(words, None)
        elif re.match("-+[A-Za-z]", word) and not _has_attached_value(word, options):
            value = value or ("" if following.startswith("-") else following)
            yield Problem((name,), f"no option {name}; {_answer(context, name, value)}")


def _has_attached_value(word: str, options: Collection[str]) -> bool:
    """Return whether a word is a short option with its value, such as -sen; -src is another one."""
    return word[:2] in options and all(key_of(word) != key for _, key in rows())


def _options(context: click.Context) -> dict[str, click.Option]:
    """Return the options of a command by their names."""
    return {
        name: option
        for option in context.command.get_params(context)
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }


def _answer(context: click.Context, typed: str, value: str) -> str:
    """Return what to write instead of an unknown option."""
    key, table = key_of(typed), rows()
    own = [key_of(name) for name in _options(context) if name.startswith("--")]
    theirs = {one: row for (name, one), row in table.items() if name == context.command.name}
    if key in own and (key not in theirs or theirs[key].described() == f"--{key}"):
        return f"write --{key}"
    if key in theirs:
        return theirs[key].answer(typed, value)
    if places := _commands_with(f"--{key}", context.find_root()):
        return f"--{key} is an option of {', '.join(places)}"
    for name in (name for name, one in table if one == key):
        return f"in `nmtkit {name}`, {table[name, key].answer(typed, value)}"
    if near := closest(key, own):
        return f"did you mean --{near}?"
    if near := closest(key, theirs, MIN_SIMILARITY_TO_OTHERS):
        return theirs[near].answer(f"--{near}", value)
    return "none is similar"


def _commands_with(option: str, root: click.Context) -> list[str]:
    """Return the commands of a group that have an option."""
    assert isinstance(root.command, click.Group), root.command
    commands = [root.command.get_command(root, one) for one in root.command.list_commands(root)]
    contexts = [click.Context(one, root, one.name) for one in commands if one is not None]
    return [f"`{one.command_path}`" for one in contexts if option in _options(one)]
