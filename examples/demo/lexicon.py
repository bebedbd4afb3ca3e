"""The words of the demonstration, as they are read from lexicon.toml.

What is done with them is in english.py and german.py; which of them meet is in grammar.py.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEXICON_PATH = Path(__file__).with_name("lexicon.toml")


@dataclass(frozen=True)
class Phrase:
    """Words that are the same in every sentence, in both languages."""

    english: str
    german: str


@dataclass(frozen=True)
class Noun:
    """A noun; gender is m, f or n."""

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    is_weak: bool


@dataclass(frozen=True)
class Adjective:
    """An adjective with its comparatives; endings go onto `stem`, which is German."""

    english: str
    english_comparative: str
    german: str
    stem: str
    german_comparative: str


@dataclass(frozen=True)
class Verb:
    """A verb; `prefix` separates from `infinitive` and `german_third` in a main clause."""

    english: str
    english_third: str
    english_past: str
    prefix: str
    infinitive: str
    german_third: str
    participle: str
    auxiliary: str
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Determiner:
    """An article or its like; an empty English form says that there is none of that number."""

    english: str
    english_plural: str
    stem: str
    declension: str
    is_definite: bool


@dataclass(frozen=True)
class Conjunction:
    """A word that introduces a clause, with the tenses it may stand in."""

    english: str
    german: str
    tenses: tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """All words, by class."""

    nouns: dict[str, tuple[Noun, ...]]
    compounds: dict[str, tuple[Noun, ...]]
    adjectives: dict[str, tuple[Adjective, ...]]
    verbs: dict[str, tuple[Verb, ...]]
    finite_forms: dict[str, tuple[str, str, str]]
    determiners: dict[str, Determiner]
    pronouns: dict[str, tuple[str, str, str, str, str]]
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    titles: tuple[tuple[str, str, str], ...]
    cities: tuple[Phrase, ...]
    times: dict[str, tuple[Phrase, ...]]
    prepositions: dict[str, tuple[Phrase, ...]]
    subordinating: tuple[Conjunction, ...]
    coordinating: tuple[Phrase, ...]
    numbers: dict[str, tuple[str, ...]]


def load_lexicon(path: Path = LEXICON_PATH) -> Lexicon:
    """Read the words of a lexicon file."""
    with path.open("rb") as stream:
        table: dict[str, Any] = tomllib.load(stream)
    nouns = {name: tuple(_noun(row) for row in rows) for name, rows in table["nouns"].items()}
    adjective = {word: Adjective(word, *row) for word, row in table["adjective_forms"].items()}
    return Lexicon(
        nouns=nouns,
        compounds={
            family["class"]: _compounds(family, nouns[family["class"]])
            for family in table["compounds"]
        },
        adjectives={
            name: tuple(adjective[word] for word in words)
            for name, words in table["adjectives"].items()
        },
        verbs={name: tuple(_verb(row) for row in rows) for name, rows in table["verbs"].items()},
        finite_forms={name: tuple(row) for name, row in table["finite_forms"].items()},
        determiners={name: Determiner(*row) for name, row in table["determiners"].items()},
        pronouns={name: tuple(row) for name, row in table["pronouns"].items()},
        first_names=tuple(table["names"]["first"]),
        last_names=tuple(table["names"]["last"]),
        titles=tuple(tuple(row) for row in table["names"]["titles"]),
        cities=_phrases(table["names"]["cities"]),
        times={name: _phrases(rows) for name, rows in table["times"].items()},
        prepositions={name: _phrases(rows) for name, rows in table["prepositions"].items()},
        subordinating=tuple(
            Conjunction(row[0], row[1], tuple(row[2:]))
            for row in table["conjunctions"]["subordinating"]
        ),
        coordinating=_phrases(table["conjunctions"]["coordinating"]),
        numbers={name: tuple(words) for name, words in table["numbers"].items()},
    )


def _phrases(rows: list[list[str]]) -> tuple[Phrase, ...]:
    return tuple(Phrase(english, german) for english, german in rows)


def _noun(row: list[str]) -> Noun:
    return Noun(row[0], row[1], row[2], row[3], row[4], is_weak=row[5:] == ["weak"])


def _verb(row: list[str]) -> Verb:
    base, third, past, prefix, infinitive, er_form, participle, auxiliary, *objects = row
    return Verb(
        base, third, past, prefix, infinitive, er_form, participle, auxiliary, tuple(objects)
    )


def _compounds(family: dict[str, Any], nouns: tuple[Noun, ...]) -> tuple[Noun, ...]:
    heads = [noun for noun in nouns if noun.english in family["heads"]]
    return tuple(
        Noun(
            f"{english} {head.english}",
            f"{english} {head.english_plural}",
            head.gender,
            german + head.german.lower(),
            german + head.german_plural.lower(),
            head.is_weak,
        )
        for english, german in family["modifiers"]
        for head in heads
    )
