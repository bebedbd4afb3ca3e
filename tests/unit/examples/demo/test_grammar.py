"""Laws of the synchronous grammar, over many sentences.

With few words the same sentence is drawn again and again, so that a law of functions is tried.
"""

from dataclasses import replace
from functools import cache
from itertools import islice
from random import Random
from typing import TypeVar

import pytest

from examples.demo import english, german
from examples.demo.constituents import Constituents
from examples.demo.german import Order
from examples.demo.grammar import Grammar
from examples.demo.lexicon import Lexicon, Phrase, load_lexicon

Item = TypeVar("Item")
NUM_SENTENCES = 6000
TENSES = ("present", "past", "will", "want to")


@cache
def sentences() -> tuple[Phrase, ...]:
    return tuple(islice(Grammar(load_lexicon(), seed=3).sentences(), NUM_SENTENCES))


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


@pytest.mark.sampled(every=3)
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
