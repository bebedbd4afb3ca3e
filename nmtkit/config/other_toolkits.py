"""Answers to words of other toolkits: options, values of settings, names of commands.

other_toolkits.toml has them. It is read only when a word is unknown.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Row:
    """An option of ours, and its names in other toolkits; see other_toolkits.toml.

    Attributes:
        commands: our commands that have it, separated by spaces.
        here: what the other option is here.
        names: names of the other option, separated by spaces, by its toolkit; "" = of none.
        note: what differs.
        values: answers to values of the other option.
    """

    commands: str
    here: str
    names: Mapping[str, str]
    note: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    def described(self) -> str:
        """Return what to write, and what differs."""
        return f"{self.here} ({self.note})" if self.note else self.here

    def answer(self, name: str, value: str) -> str:
        """Return what to write for one of the names and a value, which may be ""."""
        known = _first_match(self.values, value)
        toolkits = (one for one, names in self.names.items() if key_of(name) in keys_of(names))
        owners = ", ".join(f"{one}'s" for one in toolkits if one)
        words = [owners, name, value if known else "", "is", known or self.described()]
        return " ".join(filter(None, words)).replace("{value}", value or "VALUE")


def key_of(name: str) -> str:
    """Return the name of an option without its spelling: dashes, underscores."""
    return name.lstrip("-").replace("_", "-")


def keys_of(names: str) -> list[str]:
    """Return the keys of names that are separated by spaces."""
    return [key_of(name) for name in names.split()]


def rows() -> dict[tuple[str, str], Row]:
    """Return the rows by our command and the key of the other option."""
    return {
        (command, key): Row(**entry)
        for entry in _table()["options"]
        for command in entry["commands"].split()
        for names in entry["names"].values()
        for key in keys_of(names)
    }


def answer_to_word(word: str, place: str) -> str:
    """Return what to write instead of a word; "" = no answer.

    Args:
        word: an unknown word.
        place: our setting whose value it is; "commands" if it is no command.
    """
    return _first_match(_table()["words"].get(place, {}), word)


def _first_match(answers: Mapping[str, str], word: str) -> str:
    matching = (text for pattern, text in answers.items() if fnmatchcase(word.lower(), pattern))
    return next(matching, "")


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("other_toolkits.toml").read_text("utf-8"))
