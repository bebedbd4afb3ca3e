"""German: declension against a grammar book's paradigms, and word order."""

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
    ("our", "car", True, "unsere neuen Autos, unsere neuen Autos, unseren neuen Autos"),
    ("a", "coat", False, "ein neuer Mantel, einen neuen Mantel, einem neuen Mantel"),
    ("a", "car", False, "ein neues Auto, ein neues Auto, einem neuen Auto"),
    ("not a", "lamp", False, "keine neue Lampe, keine neue Lampe, keiner neuen Lampe"),
    ("every", "coat", False, "jeder neue Mantel, jeden neuen Mantel, jedem neuen Mantel"),
    ("the", "neighbour", False, "der neue Nachbar, den neuen Nachbarn, dem neuen Nachbarn"),
    ("a", "student", False, "ein neuer Student, einen neuen Studenten, einem neuen Studenten"),
]


@pytest.mark.parametrize(("determiner", "english", "is_plural", "cases"), PARADIGMS)
def test_noun_phrases_are_declined(
    determiner: str, english: str, is_plural: bool, cases: str
) -> None:
    declined = german.noun_phrase(LEXICON.determiners[determiner], NEW, noun(english), is_plural)
    assert ", ".join(declined) == cases


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


BUY = replace(meaning("past", verb("transitive", "buy")), thing=A_BOOK)
WANT = replace(meaning("want to", verb("transitive", "buy")), thing=BOOK)
PICK_UP = replace(meaning("present", verb("transitive", "pick up")), thing=CHILD)
MEET = replace(meaning("past", verb("transitive", "meet")), thing=HIM)
GIVE = replace(
    meaning("past", verb("giving", "give")), receiver=CHILD, thing=BOOK, time=None, place=None
)
DRIVE = replace(
    meaning("past", verb("moving", "drive")), place=None, goal=Phrase("to Berlin", "nach Berlin")
)
NOT = replace(meaning("past", verb("transitive", "buy")), thing=BOOK, is_negated=True)


@pytest.mark.parametrize(
    ("clause", "order", "said"),
    [
        (BUY, Order.SUBJECT_FIRST, "die Frau hat gestern in Berlin ein Buch gekauft"),
        (BUY, Order.TIME_FIRST, "gestern hat die Frau in Berlin ein Buch gekauft"),
        (WANT, Order.VERB_FIRST, "will die Frau das Buch gestern in Berlin kaufen"),
        (WANT, Order.VERB_LAST, "die Frau das Buch gestern in Berlin kaufen will"),
        (PICK_UP, Order.SUBJECT_FIRST, "die Frau holt das Kind gestern in Berlin ab"),
        (PICK_UP, Order.VERB_LAST, "die Frau das Kind gestern in Berlin abholt"),
        (MEET, Order.SUBJECT_FIRST, "die Frau hat ihn gestern in Berlin getroffen"),
        (GIVE, Order.SUBJECT_FIRST, "die Frau hat dem Kind das Buch gegeben"),
        (DRIVE, Order.SUBJECT_FIRST, "die Frau ist gestern nach Berlin gefahren"),
        (NOT, Order.SUBJECT_FIRST, "die Frau hat das Buch gestern nicht in Berlin gekauft"),
    ],
)
def test_words_of_a_clause_are_in_the_order_of_german(
    clause: Clause, order: Order, said: str
) -> None:
    assert german.clause(clause, order, LEXICON) == said
