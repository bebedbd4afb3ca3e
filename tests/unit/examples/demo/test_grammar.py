"""Laws of the synchronous grammar, over many sentences.

With few words the same sentence is drawn again and again, so that a law of functions is tried.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from random import Random
from typing import TypeVar

import pytest

from examples.demo import english, german
from examples.demo.constituents import Constituents
from examples.demo.german import Order
from examples.demo.grammar import LONGEST, SHORTEST, Grammar
from examples.demo.lexicon import Lexicon, Phrase, load_lexicon

Item = TypeVar("Item")
NUM_SENTENCES = 6000
TENSES = ("present", "past", "will", "want to")


@cache
def sentences() -> tuple[Phrase, ...]:
    return tuple(islice(Grammar(load_lexicon(), seed=3).sentences(), NUM_SENTENCES))


def word_types(texts: list[str]) -> set[str]:
    """Words in lower case, without those that hold digits."""
    words = {word for text in texts for word in re.split(r"[\s.,?]+", text.lower())}
    return {word for word in words if not re.search(r"[\d]|^$", word)}


def one_word_per_class(number: int) -> Lexicon:
    """Return the lexicon with one word of each class."""
    lexicon = load_lexicon()

    def one(families: dict[str, tuple[Item, ...]]) -> dict[str, tuple[Item, ...]]:
        return {name: (words[number % len(words)],) for name, words in families.items()}

    return replace(
        lexicon,
        nouns=one(lexicon.nouns),
        compounds={},
        adjectives=one(lexicon.adjectives),
        verbs=one(lexicon.verbs),
        first_names=lexicon.first_names[:1],
        last_names=lexicon.last_names[:1],
        cities=lexicon.cities[:1],
    )


@pytest.mark.parametrize("number", range(10))
def test_a_clause_in_german_is_a_function_of_the_clause_in_english(number: int) -> None:
    lexicon = one_word_per_class(number)
    parts = Constituents(lexicon, Random(number))
    rendered: dict[str, tuple[str, ...]] = {}
    num_clauses = 4000
    for _ in range(num_clauses):
        tense = parts.pick(TENSES)
        clause = parts.short_clause(parts.person(), tense, parts.negation(tense))
        said = english.statement(clause, is_time_first=False)
        gesagt = tuple(german.clause(clause, order, lexicon) for order in Order)
        assert rendered.setdefault(said, gesagt) == gesagt, said
    assert len(rendered) < 0.95 * num_clauses  # enough come twice for the test to mean something


def test_german_is_a_function_of_english() -> None:
    rendered: dict[str, str] = {}
    for pair in sentences():
        assert rendered.setdefault(pair.english, pair.german) == pair.german, pair


def test_sentences_have_between_five_and_twenty_words_on_either_side() -> None:
    lengths = {len(side.split()) for pair in sentences() for side in (pair.english, pair.german)}
    assert lengths <= set(range(SHORTEST, LONGEST + 1))
    assert {6, 12, 18} <= lengths


def test_each_side_has_a_few_hundred_word_types() -> None:
    assert 400 < len(word_types([pair.english for pair in sentences()])) < 700
    assert 500 < len(word_types([pair.german for pair in sentences()])) < 1000


@pytest.mark.parametrize("side", ["english", "german"])
def test_sentences_are_written_as_sentences(side: str) -> None:
    for pair in sentences():
        text: str = getattr(pair, side)
        assert text[0].isupper(), text
        assert text[-1] in ".?", text
        assert not re.search(r"  |,,|,[.?]| [.,?]|,\S", text), text


def test_questions_are_questions_on_both_sides() -> None:
    for pair in sentences():
        assert pair.english.endswith("?") == pair.german.endswith("?"), pair


def test_names_and_digits_survive_translation() -> None:
    names = load_lexicon().first_names + load_lexicon().last_names
    for pair in sentences():
        for name in names:
            found = re.findall(rf"\b{name}\b", pair.english)
            assert len(found) == len(re.findall(rf"\b{name}\b", pair.german)), pair
        digits = sorted(re.findall(r"\d+", pair.english))
        assert digits == sorted(re.findall(r"\d+", pair.german)), pair


def test_indefinite_articles_sound_right() -> None:
    for pair in sentences():
        assert not re.search(r"\b[Aa] [aeiou]", pair.english), pair
        assert not re.search(r"\b[Aa]n [^aeiou]", pair.english), pair


KINDS: list[tuple[Callable[[Grammar], Callable[[], Phrase]], str, str]] = [
    (lambda grammar: grammar.question, r"^(do|does|did|will|can|must|should) .*\?$", r"\?$"),
    (lambda grammar: grammar.report, r" that ", r", dass "),
    (lambda grammar: grammar.purpose, r" to ", r", um .*zu"),
    (lambda grammar: grammar.coordination, r" and |, but ", r" und |, aber "),
    (lambda grammar: grammar.comparison, r" than | as ", r" als | wie "),
    (lambda grammar: grammar.age, r" years old\.$", r" Jahre alt\.$"),
    (lambda grammar: grammar.price, r" costs? \d+ euros\.$", r" kosten?t? \d+ Euro\.$"),
    (lambda grammar: grammar.birth, r" born in \w+ on \w+ \d+, \d{4}\.$", r" \d{4} in \w+ geboren"),
    (
        lambda grammar: grammar.departure,
        r" at \d+:\d\d\.$",
        r"um \d+\.\d\d Uhr von Gleis \d+ ab\.$",
    ),
    (lambda grammar: grammar.distance, r" from \w+ to \w+\.$", r"^von \w+ nach \w+ sind es "),
]


@pytest.mark.parametrize(("kind", "said", "gesagt"), KINDS)
def test_a_kind_of_sentence_has_its_form_in_both_languages(
    kind: Callable[[Grammar], Callable[[], Phrase]], said: str, gesagt: str
) -> None:
    draw = kind(Grammar(load_lexicon(), seed=9))
    for _ in range(50):
        pair = draw()
        assert re.search(said, pair.english), pair
        assert re.search(gesagt, pair.german), pair
