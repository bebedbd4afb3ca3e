"""English: articles, agreement, do-support, numbers."""

from dataclasses import replace

import pytest

from examples.demo import english
from examples.demo.clause import Clause, Nominal
from examples.demo.lexicon import Phrase, load_lexicon

LEXICON = load_lexicon()
HE = Nominal(1, "he", "him", ("er", "ihn", "ihm"), True, True)
THEY = Nominal(2, "they", "them", ("sie", "sie", "ihnen"), True, True)
BOOK = Nominal(1, "the book", "the book", ("", "", ""), True, False)
TRY_ON = next(verb for verb in LEXICON.verbs["transitive"] if verb.english == "try on")
CLAUSE = Clause(
    subject=HE,
    verb=TRY_ON,
    tense="present",
    is_negated=False,
    receiver=None,
    thing=BOOK,
    adverb=None,
    time=Phrase("tomorrow", "morgen"),
    place=Phrase("in Rome", "in Rom"),
    goal=None,
)


@pytest.mark.parametrize(
    ("determiner", "adjective", "count", "said"),
    [
        ("a", None, 1, "an apple"),
        ("a", "big", 1, "a big apple"),
        ("a", "old", 1, "an old apple"),
        ("this", None, 1, "this apple"),
        ("this", None, 2, "these apples"),
        ("many", None, 2, "many apples"),
    ],
)
def test_noun_phrases_agree(determiner: str, adjective: str | None, count: int, said: str) -> None:
    apple = next(noun for noun in LEXICON.nouns["food"] if noun.english == "apple")
    words = {word.english: word for family in LEXICON.adjectives.values() for word in family}
    described = english.noun_phrase(
        LEXICON.determiners[determiner], words[adjective] if adjective else None, apple, count
    )
    assert described == said


@pytest.mark.parametrize(
    ("tense", "is_negated", "he", "they"),
    [
        ("present", False, "tries on", "try on"),
        ("present", True, "does not try on", "do not try on"),
        ("past", False, "tried on", "tried on"),
        ("past", True, "did not try on", "did not try on"),
        ("want to", False, "wants to try on", "want to try on"),
        ("want to", True, "does not want to try on", "do not want to try on"),
        ("will", False, "will try on", "will try on"),
        ("will", True, "will not try on", "will not try on"),
        ("can", True, "cannot try on", "cannot try on"),
    ],
)
def test_verbs_agree_in_statements(tense: str, is_negated: bool, he: str, they: str) -> None:
    clause = replace(CLAUSE, tense=tense, is_negated=is_negated)
    rest = "the book in Rome tomorrow"
    assert english.statement(clause, is_time_first=False) == f"he {he} {rest}"
    plural = replace(clause, subject=THEY)
    assert english.statement(plural, is_time_first=False) == f"they {they} {rest}"


def test_a_time_may_come_first() -> None:
    said = english.statement(replace(CLAUSE, tense="will"), is_time_first=True)
    assert said == "tomorrow, he will try on the book in Rome"


@pytest.mark.parametrize(
    ("tense", "asked"),
    [
        ("present", "does he try on"),
        ("past", "did he try on"),
        ("want to", "does he want to try on"),
        ("should", "should he try on"),
    ],
)
def test_questions_begin_with_an_auxiliary(tense: str, asked: str) -> None:
    clause = replace(CLAUSE, tense=tense)
    assert english.question(clause) == f"{asked} the book in Rome tomorrow"


def test_adverbs_of_frequency_precede_the_verb() -> None:
    clause = replace(CLAUSE, time=None, adverb=Phrase("often", "oft"))
    assert english.statement(clause, is_time_first=False) == "he often tries on the book in Rome"
    assert english.question(clause) == "does he often try on the book in Rome"


def test_pronouns_change_their_form_as_objects() -> None:
    clause = replace(CLAUSE, thing=THEY, place=None, time=None)
    assert english.statement(clause, is_time_first=False) == "he tries on them"


@pytest.mark.parametrize(
    ("value", "spelt"), [(2, "two"), (13, "thirteen"), (40, "forty"), (23, "twenty-three")]
)
def test_numbers_are_spelt_with_a_hyphen(value: int, spelt: str) -> None:
    assert english.number(value, LEXICON) == spelt
