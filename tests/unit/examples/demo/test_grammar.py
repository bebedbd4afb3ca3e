"""Laws of the synchronous grammar, over many sentences."""

import re
from collections.abc import Callable
from functools import cache
from itertools import islice

import pytest

from examples.demo.grammar import LONGEST, SHORTEST, Grammar
from examples.demo.lexicon import Phrase, load_lexicon

NUM_SENTENCES = 6000


@cache
def sentences() -> tuple[Phrase, ...]:
    return tuple(islice(Grammar(load_lexicon(), seed=3).sentences(), NUM_SENTENCES))


def word_types(texts: list[str]) -> set[str]:
    """Words in lower case, without those that hold digits."""
    words = {word for text in texts for word in re.split(r"[\s.,?]+", text.lower())}
    return {word for word in words if not re.search(r"[\d]|^$", word)}


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


def test_german_puts_time_before_place_and_english_after_it() -> None:
    pairs = [pair for pair in sentences() if re.search(r"\bin Berlin yesterday\b", pair.english)]
    assert pairs
    for pair in pairs:
        assert re.search(r"[Gg]estern .*\bin Berlin\b", pair.german), pair


def test_clauses_with_because_end_with_their_finite_verb() -> None:
    subject = re.compile(r"weil (?:es|er) .*?(regnet|schneit|hat|ist)[.,]")
    pairs = [pair for pair in sentences() if re.search(r"\bbecause it (rain|snow)", pair.english)]
    assert pairs
    for pair in pairs:
        assert subject.search(pair.german), pair


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


def test_every_word_of_the_lexicon_is_used() -> None:
    used = word_types([pair.english for pair in sentences()])
    lexicon = load_lexicon()
    nouns = [noun for family in lexicon.nouns.values() for noun in family]
    adjectives = [word for family in lexicon.adjectives.values() for word in family]
    verbs = [verb for family in lexicon.verbs.values() for verb in family]
    assert {noun.english.split()[0] for noun in nouns} <= used
    assert {adjective.english for adjective in adjectives} <= used
    assert {verb.english_past.split()[0] for verb in verbs} - used <= {"left"}  # trains leave now
