"""The German side of the grammar: declension, conjugation, word order, numbers."""

from enum import Enum

from examples.demo.clause import Clause
from examples.demo.lexicon import Adjective, Determiner, Lexicon, Noun, Verb

NOMINATIVE, ACCUSATIVE, DATIVE = 0, 1, 2  # where a case stands in what follows and in Nominal
COLUMNS = "mfnp"  # masculine, feminine, neuter, plural

# An ending for each case and column; "-" is none.
STRONG = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"))
DETERMINER_ENDINGS = {
    "der": (("er", "ie", "as", "ie"), ("en", "ie", "as", "ie"), ("em", "er", "em", "en")),
    "dieser": STRONG,
    "ein": (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en")),
    "strong": STRONG,
    "number": (("", "", "", ""), ("", "", "", ""), ("", "", "", "")),
}
WEAK = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"))
MIXED = (("er", "e", "es", "en"), ("en", "e", "es", "en"), ("en", "en", "en", "en"))
ADJECTIVE_ENDINGS = {
    "der": WEAK,
    "dieser": WEAK,
    "ein": MIXED,
    "strong": STRONG,
    "number": STRONG,
}
CONTRACTIONS = {
    "in dem ": "im ",
    "an dem ": "am ",
    "zu dem ": "zum ",
    "zu der ": "zur ",
}


class Order(Enum):
    """Where the finite verb stands, and what stands before it."""

    SUBJECT_FIRST = "subject, verb"
    TIME_FIRST = "time, verb, subject"
    VERB_FIRST = "verb, subject"
    VERB_LAST = "subject, ..., verb"


def noun_phrase(
    determiner: Determiner, adjective: Adjective | None, noun: Noun, is_plural: bool
) -> tuple[str, str, str]:
    """Decline a noun with its determiner and adjective; returns nominative, accusative, dative."""
    column = COLUMNS.index("p" if is_plural else noun.gender)

    def decline(case: int) -> str:
        words = [determiner.stem + DETERMINER_ENDINGS[determiner.declension][case][column]]
        if adjective:
            words.append(adjective.stem + ADJECTIVE_ENDINGS[determiner.declension][case][column])
        words.append(_plural(noun, case) if is_plural else _singular(noun, case))
        return " ".join(words)

    return decline(NOMINATIVE), decline(ACCUSATIVE), decline(DATIVE)


def number(value: int, lexicon: Lexicon) -> str:
    """Spell a number below 100: dreiundzwanzig."""
    small = lexicon.numbers["german_small"]
    if value < len(small):
        return small[value]
    tens = lexicon.numbers["german_tens"][value // 10]
    return f"{small[value % 10]}und{tens}" if value % 10 else tens


def after_preposition(preposition: str, dative: str) -> str:
    """Join a preposition to a noun phrase: in dem Garten becomes im Garten."""
    text = f"{preposition} {dative}"
    for long, short in CONTRACTIONS.items():
        if text.startswith(long):
            return short + text.removeprefix(long)
    return text


def finite(verb: str, person: int, lexicon: Lexicon, third: str = "") -> str:
    """Conjugate an infinitive in the present; `third` is needed where no table has the verb."""
    if verb in lexicon.finite_forms:
        return lexicon.finite_forms[verb][person]
    return (verb.removesuffix("n"), third, verb)[person]


def clause(meaning: Clause, order: Order, lexicon: Lexicon) -> str:
    """Say a clause with its verb where `order` wants it, the rest of the verb at the end."""
    verb, closing = _verb(meaning, lexicon)
    subject = meaning.subject.german[NOMINATIVE]
    time = meaning.time.german if meaning.time else ""
    if order is Order.SUBJECT_FIRST:
        words = [subject, verb, *_middle(meaning, time), closing]
    elif order is Order.TIME_FIRST:
        words = [time, verb, subject, *_middle(meaning, ""), closing]
    elif order is Order.VERB_FIRST:
        words = [verb, subject, *_middle(meaning, time), closing]
    elif meaning.tense == "present":
        words = [subject, *_middle(meaning, time), meaning.verb.prefix + verb]
    else:
        words = [subject, *_middle(meaning, time), closing, verb]
    return " ".join(filter(None, words))


def purpose(meaning: Clause) -> str:
    """Say a clause as an aim: um den Nachbarn abzuholen."""
    time = meaning.time.german if meaning.time else ""
    return " ".join(
        filter(None, ["um", *_middle(meaning, time), _infinitive_with_zu(meaning.verb)])
    )


def _infinitive_with_zu(verb: Verb) -> str:
    return f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"


def _verb(meaning: Clause, lexicon: Lexicon) -> tuple[str, str]:
    """Conjugate: the finite verb, and what stands at the end of a main clause."""
    verb, person = meaning.verb, meaning.subject.person
    if meaning.tense == "present":
        return finite(verb.infinitive, person, lexicon, verb.german_third), verb.prefix
    if meaning.tense == "past":
        return finite(verb.auxiliary, person, lexicon), verb.participle
    return finite(meaning.tense, person, lexicon), verb.prefix + verb.infinitive


def _middle(meaning: Clause, time: str) -> list[str]:
    """List the phrases between the verb's two parts: the known, time before place, the new."""
    receiver, thing = meaning.receiver, meaning.thing
    early: list[str] = []
    late: list[str] = []
    if thing and thing.is_pronoun:
        early.append(thing.german[ACCUSATIVE])
    if receiver:
        early.append(receiver.german[DATIVE])
    if thing and not thing.is_pronoun:
        (early if thing.is_definite else late).append(thing.german[ACCUSATIVE])
    adverb = meaning.adverb.german if meaning.adverb else ""
    is_not_said = meaning.is_negated and not late
    place = meaning.place.german if meaning.place else ""
    goal = meaning.goal.german if meaning.goal else ""
    return [*early, time, adverb, "nicht" if is_not_said else "", place, *late, goal]


def _singular(noun: Noun, case: int) -> str:
    if not noun.is_weak or case == NOMINATIVE:
        return noun.german
    return noun.german_plural  # weak nouns have one form except in the nominative singular


def _plural(noun: Noun, case: int) -> str:
    if case != DATIVE or noun.german_plural.endswith(("n", "s")):
        return noun.german_plural
    return noun.german_plural + "n"
