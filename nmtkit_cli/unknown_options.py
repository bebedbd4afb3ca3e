"""Answers to options that a command does not have, named as the user typed them.

An option may be that of another command, or of another toolkit: see `other_toolkits.py`. OpenNMT-py
writes one dash, JoeyNMT and Hugging Face underscores: dashes and underscores are alike here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise

import click

from nmtkit_cli.counterparts import Row
from nmtkit_cli.other_toolkits import COUNTERPARTS

MOST_SHOWN = 10
"""Unknown options in a message; of more, only the number is reported."""

MIN_SIMILARITY = 0.7
"""Similarity of a typo and a name, as `difflib` measures it: --baem has 0.75 to --beam."""

_SYNONYMS = dict.fromkeys(("gpus", "n-gpu", "ngpu", "num-gpu", "num-gpus"), "devices")
"""Names that no toolkit of the table has, and that people try."""

MOST_WITH_NOTES = 3
"""Unknown options in a message that also says how the options differ."""


def refuse_unknown_options(context: click.Context, arguments: Sequence[str]) -> None:
    """Raise click.UsageError if a command line has options that its command lacks.

    Args:
        context: of the command.
        arguments: the command line after the name of the command.
    """
    unknown = list(_unknown(context, arguments))
    if unknown:
        names = ", ".join(name for name, _ in unknown[:MOST_SHOWN])
        has_notes = len(unknown) <= MOST_WITH_NOTES
        is_one = len(unknown) == 1
        answers = [_answer(context, *one, has_notes) for one in unknown[:MOST_SHOWN]]
        if not is_one:  # an answer that does not repeat the option is put next to it
            answers = [
                one if name in one or not one else f"{name}: {one}"
                for (name, _), one in zip(unknown, answers, strict=False)
            ]
        if len(unknown) > MOST_SHOWN:
            answers.append(f"and {len(unknown) - MOST_SHOWN} more")
        missing = f"no {'option' if is_one else 'options'} {names} here"
        raise click.UsageError("; ".join(filter(None, [missing, *answers])), context)


def key_of(name: str) -> str:
    """Return the name of an option without its spelling: dashes, underscores."""
    return name.lstrip("-").replace("_", "-")


def described(row: Row, command: str = "") -> str:
    """Return what to write for a row, which has an option; of the given command, if any."""
    here = row.here if row.here.startswith("-") else f"the argument {row.here}"
    place = f" of `nmtkit {command}`" if command else ""
    return f"{here}{place}{f' ({row.note})' if row.note else ''}"


def _unknown(context: click.Context, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the unknown options of a command line, and the value of each, or ""."""
    options = _options(context)
    is_value = False
    for word, following in pairwise([*arguments, ""]):
        name, has_value, value = word.partition("=")
        if is_value:
            is_value = False
        elif word == "--":
            return
        elif name in options:
            is_value = not (has_value or options[name].is_flag)
        elif re.match("-+[A-Za-z]", word) and not _has_attached_value(word, options):
            yield name, value or ("" if following.startswith("-") else following)


def _has_attached_value(word: str, options: Mapping[str, click.Option]) -> bool:
    """Return whether a word is a short option with its value, such as -sen; -src is another one."""
    is_short = word[:2] in options
    return is_short and not any(key_of(word) in _rows(command) for command in COUNTERPARTS)


def _options(context: click.Context) -> dict[str, click.Option]:
    """Return the options of a command by their names."""
    return {
        name: option
        for option in context.command.get_params(context)
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }


def _answer(context: click.Context, typed: str, value: str, has_notes: bool) -> str:
    """Return what to write instead of an unknown option; "" if nothing is similar."""
    command, key = str(context.command.name), key_of(typed)
    own = {key_of(name): name for name in _options(context) if name.startswith("--")}
    rows = _rows(command, has_notes)
    if key in own:
        row = rows.get(key)
        note = f" ({row.note})" if row and row.note and row.here == own[key] else ""
        return f"write {own[key]}{note}"
    if key in rows:
        return _translated(rows[key], typed, value)
    places = [name for name, one in _siblings(context).items() if f"--{key}" in _options(one)]
    if places:
        *others, last = [f"`nmtkit {name}`" for name in places]
        listed = " and ".join(filter(None, [", ".join(others), last]))
        return f"--{key} is an option of {listed}"
    for other in COUNTERPARTS:
        if key in (rows_there := _rows(other, has_notes)):
            return _translated(rows_there[key], typed, value, other)
    key = _SYNONYMS.get(key, key)
    names = [*own, *_rows(command, has_notes, with_keys=False)]
    close = get_close_matches(key, names, n=1, cutoff=MIN_SIMILARITY) or [
        name for name in names if name.startswith(f"{key}-")
    ]
    if not close:
        return ""
    nearest = close[0]
    return f"did you mean {own[nearest]}?" if nearest in own else _near(rows[nearest], nearest)


def _rows(command: str, has_notes: bool = True, with_keys: bool = True) -> dict[str, Row]:
    """Return the rows of a command by the keys of their names.

    Args:
        command: the command.
        has_notes: with the notes of the rows.
        with_keys: with the keys of files, which resemble no option.
    """
    return {
        key_of(name): row if has_notes else replace(row, note="")
        for row in COUNTERPARTS.get(command, ())
        for names in row.names().values()
        for name in names
        if with_keys or name.startswith("-")
    }


def _translated(row: Row, typed: str, value: str, command: str = "") -> str:
    """Return what to write for an option of other toolkits.

    Args:
        row: the row of the option.
        typed: the option as it was typed.
        value: its value, or "".
        command: the command that has the counterpart; "" = this one.
    """
    key = key_of(typed)
    similar = [title for title, names in row.names().items() if key in map(key_of, names)]
    exact = [title for title in similar if typed in row.names()[title]]
    owners = [f"{title}'s" for title in exact or similar]
    theirs = f"{' and '.join(filter(None, [', '.join(owners[:-1]), owners[-1]]))} {typed}"
    if not row.here:
        return f"leave out {theirs}{f': {row.note}' if row.note else ''}"
    if not command and value in row.values:
        return f"{theirs} {value} is {row.values[value]}"
    return f"{theirs} is {described(row, command)}"


def _near(row: Row, key: str) -> str:
    """Return what to write for an option that resembles one of another toolkit."""
    every = [one for names in row.names().values() for one in names]
    return _translated(row, next(one for one in every if key_of(one) == key), "")


def _siblings(context: click.Context) -> Mapping[str, click.Context]:
    """Return contexts of the commands next to that of a context, by name."""
    parent = context.parent
    if parent is None or not isinstance(parent.command, click.Group):
        return {}
    group = parent.command
    found = {name: group.get_command(parent, name) for name in group.list_commands(parent)}
    return {
        name: click.Context(one, parent)
        for name, one in found.items()
        if one and one is not context.command
    }
