"""The meaning of a clause, before word order in either language."""

from dataclasses import dataclass

from examples.demo.lexicon import Phrase, Verb


@dataclass(frozen=True)
class Nominal:
    """A noun phrase, name or pronoun: its forms and its grammatical features.

    Attributes:
        person: 0 for "I", 1 for "he, she, it" and singular nouns, 2 for plurals.
        german: nominative, accusative, dative.
        is_definite: whether German puts it before the times and places of its clause.
        is_pronoun: whether German puts it before everything else.
    """

    person: int
    english: str
    english_object: str
    german: tuple[str, str, str]
    is_definite: bool
    is_pronoun: bool


@dataclass(frozen=True)
class Clause:
    """A verb with its arguments and adverbials.

    Attributes:
        tense: "present", "past", or a modal: "will", "can", "must", "should", "want to".
        receiver: in the dative.
        thing: in the accusative.
        adverb: of frequency; a clause has an adverb or a time, not both.
        goal: where somebody goes.
    """

    subject: Nominal
    verb: Verb
    tense: str
    is_negated: bool
    receiver: Nominal | None
    thing: Nominal | None
    adverb: Phrase | None
    time: Phrase | None
    place: Phrase | None
    goal: Phrase | None
