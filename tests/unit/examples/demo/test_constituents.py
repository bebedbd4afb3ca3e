"""Laws of the parts of sentences; with few words the same part is drawn again and again."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest

from examples.demo import english, german
from examples.demo.constituents import Constituents
from examples.demo.german import Order
from examples.demo.lexicon import Lexicon, load_lexicon

Item = TypeVar("Item")
TENSES = ("present", "past", "will", "want to")


def one_word_a_class(number: int) -> Lexicon:
    """Reduce each class of the lexicon to one of its words."""
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
    lexicon = one_word_a_class(number)
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


@pytest.mark.parametrize("tense", TENSES)
def test_a_time_in_german_is_a_function_of_the_time_in_english(tense: str) -> None:
    parts = Constituents(load_lexicon(), Random(2))
    drawn = [parts.time(tense) for _ in range(4000)]
    german_of = {phrase.english: phrase.german for phrase in drawn}
    assert all(german_of[phrase.english] == phrase.german for phrase in drawn)


def test_an_adverb_stands_for_a_time() -> None:
    parts = Constituents(load_lexicon(), Random(3))
    clauses = [parts.clause(parts.person(), "present", False) for _ in range(500)]
    assert not [clause for clause in clauses if clause.adverb and clause.time]
    assert [clause for clause in clauses if clause.adverb]
    assert [clause for clause in clauses if clause.time]


def test_a_negated_indefinite_object_is_kein_in_german_only() -> None:
    parts = Constituents(load_lexicon(), Random(4))
    nothing = parts.none("vehicles")
    assert nothing.english.split()[0] in ("a", "an")
    assert nothing.german[0].startswith("kein")


def test_a_relative_clause_agrees_with_its_noun_and_ends_with_its_verb() -> None:
    parts = Constituents(one_word_a_class(4), Random(5))  # one_word_a_class(4): men
    found = Counter(parts.person_who("past").german[german.NOMINATIVE] for _ in range(100))
    for text in found:
        man, clause, rest = text.split(", ")[0], text.split(", ", 1)[1], text.rsplit(",", 1)[1]
        assert clause.split()[0] == ("die" if man.endswith("Männer") else "der")
        assert clause.rstrip(",").split()[-1] in ("hat", "ist", "haben", "sind")
        assert rest == ""


def test_the_draws_follow_the_generator() -> None:
    lexicon = load_lexicon()
    assert Constituents(lexicon, Random(1)).person() == Constituents(lexicon, Random(1)).person()
