"""German: declension tables against a grammar book's paradigms, word order, numbers."""

from dataclasses import replace

import pytest

from examples.demo import german
from examples.demo.clause import Clause, Nominal
from examples.demo.german import Order
from examples.demo.lexicon import Adjective, Lexicon, Noun, Phrase, Verb, load_lexicon

LEXICON: Lexicon = load_lexicon()
NEW = Adjective("new", "newer", "neu", "neu", "neuer")


def noun(english: str) -> Noun:
    return next(
        noun for family in LEXICON.nouns.values() for noun in family if noun.english == english
    )


def verb(kind: str, english: str) -> Verb:
    return next(verb for verb in LEXICON.verbs[kind] if verb.english == english)


PARADIGMS = [
    ("the", "coat", False, "der neue Mantel, den neuen Mantel, dem neuen Mantel"),
    ("the", "lamp", False, "die neue Lampe, die neue Lampe, der neuen Lampe"),
    ("the", "car", False, "das neue Auto, das neue Auto, dem neuen Auto"),
    ("the", "coat", True, "die neuen Mäntel, die neuen Mäntel, den neuen Mänteln"),
    ("a", "coat", False, "ein neuer Mantel, einen neuen Mantel, einem neuen Mantel"),
    ("a", "lamp", False, "eine neue Lampe, eine neue Lampe, einer neuen Lampe"),
    ("a", "car", False, "ein neues Auto, ein neues Auto, einem neuen Auto"),
    ("our", "coat", False, "unser neuer Mantel, unseren neuen Mantel, unserem neuen Mantel"),
    ("our", "car", True, "unsere neuen Autos, unsere neuen Autos, unseren neuen Autos"),
    ("not a", "lamp", False, "keine neue Lampe, keine neue Lampe, keiner neuen Lampe"),
    ("this", "car", False, "dieses neue Auto, dieses neue Auto, diesem neuen Auto"),
    ("every", "coat", False, "jeder neue Mantel, jeden neuen Mantel, jedem neuen Mantel"),
    ("many", "lamp", True, "viele neue Lampen, viele neue Lampen, vielen neuen Lampen"),
    ("the", "neighbour", False, "der neue Nachbar, den neuen Nachbarn, dem neuen Nachbarn"),
    ("a", "student", False, "ein neuer Student, einen neuen Studenten, einem neuen Studenten"),
    ("the", "child", True, "die neuen Kinder, die neuen Kinder, den neuen Kindern"),
]


@pytest.mark.parametrize(("determiner", "english", "is_plural", "cases"), PARADIGMS)
def test_noun_phrases_are_declined(
    determiner: str, english: str, is_plural: bool, cases: str
) -> None:
    declined = german.noun_phrase(LEXICON.determiners[determiner], NEW, noun(english), is_plural)
    assert ", ".join(declined) == cases


def test_an_adjective_takes_its_endings_on_its_stem() -> None:
    expensive = next(word for word in LEXICON.adjectives["clothes"] if word.english == "expensive")
    declined = german.noun_phrase(LEXICON.determiners["a"], expensive, noun("car"), False)
    assert declined[0] == "ein teures Auto"


@pytest.mark.parametrize(
    ("value", "spelt"),
    [
        (2, "zwei"),
        (12, "zwölf"),
        (16, "sechzehn"),
        (17, "siebzehn"),
        (21, "einundzwanzig"),
        (23, "dreiundzwanzig"),
        (30, "dreißig"),
        (66, "sechsundsechzig"),
        (77, "siebenundsiebzig"),
        (99, "neunundneunzig"),
    ],
)
def test_numbers_are_spelt_units_first(value: int, spelt: str) -> None:
    assert german.number(value, LEXICON) == spelt


@pytest.mark.parametrize(
    ("preposition", "dative", "joined"),
    [
        ("in", "dem Garten", "im Garten"),
        ("an", "dem alten See", "am alten See"),
        ("zu", "der Schule", "zur Schule"),
        ("zu", "dem Bahnhof", "zum Bahnhof"),
        ("in", "der Schule", "in der Schule"),
        ("in", "einem Garten", "in einem Garten"),
        ("vor", "dem Haus", "vor dem Haus"),
    ],
)
def test_prepositions_contract_with_the_article(preposition: str, dative: str, joined: str) -> None:
    assert german.after_preposition(preposition, dative) == joined


def definite(nominative: str, accusative: str, dative: str) -> Nominal:
    return Nominal(1, "", "", (nominative, accusative, dative), True, False)


def indefinite(nominative: str, accusative: str, dative: str) -> Nominal:
    return Nominal(1, "", "", (nominative, accusative, dative), False, False)


WOMAN = definite("die Frau", "die Frau", "der Frau")
CHILD = definite("das Kind", "das Kind", "dem Kind")
BOOK, A_BOOK = definite("das Buch", "das Buch", ""), indefinite("ein Buch", "ein Buch", "")
HIM = Nominal(1, "", "", ("er", "ihn", "ihm"), True, True)
YESTERDAY, HERE = Phrase("yesterday", "gestern"), Phrase("in Berlin", "in Berlin")


def meaning(tense: str, predicate: Verb) -> Clause:
    return Clause(WOMAN, predicate, tense, False, None, None, None, YESTERDAY, HERE, None)


def say(clause: Clause, order: Order) -> str:
    return german.clause(clause, order, LEXICON)


def test_the_finite_verb_is_second_in_a_main_clause() -> None:
    clause = replace(meaning("past", verb("transitive", "buy")), thing=A_BOOK)
    assert say(clause, Order.SUBJECT_FIRST) == "die Frau hat gestern in Berlin ein Buch gekauft"
    assert say(clause, Order.TIME_FIRST) == "gestern hat die Frau in Berlin ein Buch gekauft"


def test_the_finite_verb_is_first_in_a_question_and_last_after_a_conjunction() -> None:
    clause = replace(meaning("want to", verb("transitive", "buy")), thing=BOOK)
    assert say(clause, Order.VERB_FIRST) == "will die Frau das Buch gestern in Berlin kaufen"
    assert say(clause, Order.VERB_LAST) == "die Frau das Buch gestern in Berlin kaufen will"


def test_a_separable_prefix_ends_a_main_clause_and_joins_its_verb_elsewhere() -> None:
    clause = replace(meaning("present", verb("transitive", "pick up")), thing=CHILD)
    assert say(clause, Order.SUBJECT_FIRST) == "die Frau holt das Kind gestern in Berlin ab"
    assert say(clause, Order.VERB_LAST) == "die Frau das Kind gestern in Berlin abholt"
    modal = replace(clause, tense="can")
    assert say(modal, Order.SUBJECT_FIRST) == "die Frau kann das Kind gestern in Berlin abholen"
    assert german.purpose(clause) == "um das Kind gestern in Berlin abzuholen"


def test_verbs_of_motion_are_past_with_sein() -> None:
    clause = meaning("past", verb("moving", "drive"))
    clause = replace(clause, place=None, goal=Phrase("to Berlin", "nach Berlin"))
    assert say(clause, Order.SUBJECT_FIRST) == "die Frau ist gestern nach Berlin gefahren"


def test_the_receiver_is_in_the_dative_before_the_object() -> None:
    clause = replace(meaning("past", verb("giving", "give")), receiver=CHILD, thing=BOOK)
    clause = replace(clause, time=None, place=None)
    assert say(clause, Order.SUBJECT_FIRST) == "die Frau hat dem Kind das Buch gegeben"


def test_an_object_pronoun_comes_before_everything_else() -> None:
    clause = replace(meaning("past", verb("transitive", "meet")), thing=HIM)
    assert say(clause, Order.SUBJECT_FIRST) == "die Frau hat ihn gestern in Berlin getroffen"


def test_nicht_follows_the_time_and_precedes_the_place() -> None:
    clause = replace(meaning("past", verb("transitive", "buy")), thing=BOOK, is_negated=True)
    assert (
        say(clause, Order.SUBJECT_FIRST) == "die Frau hat das Buch gestern nicht in Berlin gekauft"
    )


@pytest.mark.parametrize(("person", "finite"), [(0, "kaufe"), (1, "kauft"), (2, "kaufen")])
def test_the_verb_agrees_with_its_subject(person: int, finite: str) -> None:
    buy = verb("transitive", "buy")
    assert german.finite(buy.infinitive, person, LEXICON, buy.german_third) == finite


def test_irregular_verbs_agree_by_table() -> None:
    assert [german.finite("wissen", person, LEXICON) for person in range(3)] == [
        "weiß",
        "weiß",
        "wissen",
    ]
    assert [german.finite("want to", person, LEXICON) for person in range(3)] == [
        "will",
        "will",
        "wollen",
    ]
