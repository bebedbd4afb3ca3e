"""The parts of a sentence, drawn from the lexicon: noun phrases, times, places, clauses.

A clause makes sense as far as the lexicon's classes go: people eat food and turn on devices.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from examples.demo import english, german
from examples.demo.clause import Clause, Nominal
from examples.demo.german import Order
from examples.demo.lexicon import Adjective, Determiner, Lexicon, Noun, Phrase, Verb

MODALS = ("will", "can", "must", "should", "want to")
PERSONS = {"I": 0, "he": 1, "she": 1, "we": 2, "they": 2}
RELATIVE_PRONOUNS = {"m": "der", "f": "die", "n": "das"}
KNOWN = (*["the"] * 8, "this", "my", "our", "his", "her")
PLACES = ("cities", "rooms", "spots", "buildings")
NEW = ("a", "a", "many")
YEARS = range(1950, 2025)

Item = TypeVar("Item")


class Constituents:
    """Draws the parts of sentences."""

    def __init__(self, lexicon: Lexicon, chance: Random) -> None:
        self.lexicon = lexicon
        self.chance = chance

    def pick(self, items: Sequence[Item]) -> Item:
        """Draw one of several, all equally likely."""
        return self.chance.choice(items)

    def happens(self, probability: float) -> bool:
        """Draw yes or no."""
        return self.chance.random() < probability

    # ------------------------------------------------------------------------- noun phrases

    def noun(self, family: str) -> Noun:
        """Draw a noun of a class, now and then a compound."""
        compounds = self.lexicon.compounds.get(family)
        if compounds and self.happens(0.4):
            return self.pick(compounds)
        return self.pick(self.lexicon.nouns[family])

    def adjective(self, family: str) -> Adjective | None:
        """Draw an adjective that suits a class of nouns, or none."""
        return self.pick(self.lexicon.adjectives[family]) if self.happens(0.4) else None

    def known(self, family: str) -> Nominal:
        """Draw a definite noun phrase: the red car, our neighbours."""
        determiner = self.lexicon.determiners[self.pick(KNOWN)]
        count = 2 if determiner.english_plural and self.happens(0.3) else 1
        return described(self.noun(family), determiner, self.adjective(family), count)

    def new(self, family: str) -> Nominal:
        """Draw an indefinite noun phrase: a red car, many cars, twenty-three cars."""
        if self.happens(0.35):
            count = self.chance.choice((self.chance.randint(2, 12), self.chance.randint(2, 99)))
            determiner = self.number(count)
        else:
            determiner = self.lexicon.determiners[self.pick(NEW)]
            count = 1 if determiner.english else 2
        return described(self.noun(family), determiner, self.adjective(family), count)

    def none(self, family: str) -> Nominal:
        """Draw the object of a negated verb, if indefinite: (not) a car, kein Auto."""
        determiner = self.lexicon.determiners["not a"]
        return described(self.noun(family), determiner, self.adjective(family), 1)

    def number(self, count: int) -> Determiner:
        """Make a determiner of a number in words."""
        return Determiner(
            "",
            english.number(count, self.lexicon),
            german.number(count, self.lexicon),
            "number",
            False,
        )

    def name(self) -> Nominal:
        """Draw a person's name: Anna, Mr Weber."""
        if self.happens(0.7):
            first = self.pick(self.lexicon.first_names)
            return ready(first, first)
        title, herr, herrn = self.pick(self.lexicon.titles)
        last = self.pick(self.lexicon.last_names)
        nominative, other = f"{herr} {last}", f"{herrn} {last}"
        return replace(ready(f"{title} {last}", nominative), german=(nominative, other, other))

    def pronoun(self) -> Nominal:
        """Draw a personal pronoun."""
        word = self.pick(tuple(PERSONS))
        subject, object_, nominative, accusative, dative = self.lexicon.pronouns[word]
        cases = (nominative, accusative, dative)
        return Nominal(PERSONS[word], subject, object_, cases, is_definite=True, is_pronoun=True)

    def person(self) -> Nominal:
        """Draw who does something."""
        draw: Callable[[], Nominal] = self.chance.choices(
            (lambda: self.known("people"), self.name, self.pronoun, lambda: self.new("people")),
            (45, 30, 18, 7),
        )[0]
        return draw()

    def person_who(self, tense: str) -> Nominal:
        """Draw a person with a relative clause, for a subject: the man who lives in Berlin."""
        noun = self.noun("people")
        determiner = self.lexicon.determiners[self.pick(("the", "the", "every"))]
        count = 2 if determiner.english_plural and self.happens(0.3) else 1
        person = described(noun, determiner, None, count)
        pronoun = RELATIVE_PRONOUNS[noun.gender] if count == 1 else "die"
        who = replace(ready("who", pronoun), person=person.person)
        clause = self.short_clause(who, tense, is_negated=False)
        said = english.statement(clause, is_time_first=False)
        gesagt = german.clause(clause, Order.VERB_LAST, self.lexicon)
        nominative, accusative, dative = (f"{case}, {gesagt}," for case in person.german)
        return replace(
            person,
            english=f"{person.english} {said}",
            german=(nominative, accusative, dative),
        )

    # -------------------------------------------------------------------- times and places

    def tense(self) -> str:
        """Draw a tense or a modal verb."""
        return self.pick(("present", "present", "past", "past", "past", self.pick(MODALS)))

    def time(self, tense: str) -> Phrase:
        """Draw a time that suits a tense: three days ago, on Monday at 8:30."""
        period = tense if tense in ("present", "past") else "future"
        if self.happens(0.4):
            return self.pick(self.lexicon.times[period])
        draws = {
            "present": (self.weekly, self.clock),
            "past": (self.ago, self.year, self.day, self.month, self.weekday),
            "future": (self.ahead, self.day, self.month, self.weekday, self.clock),
        }
        return self.pick(draws[period])()

    def clock(self) -> Phrase:
        """Draw a time of day: at 8:30, um 8.30 Uhr."""
        hour, minute = self.chance.randint(6, 23), self.pick(("00", "15", "30", "45"))
        return Phrase(f"at {hour}:{minute}", f"um {hour}.{minute} Uhr")

    def weekday(self) -> Phrase:
        """Draw a day of the week, perhaps with a time of day: on Monday at 8:30."""
        day = self.pick(self.lexicon.times["weekdays"])
        on = Phrase(f"on {day.english}", f"am {day.german}")
        return _joined(on, self.clock()) if self.happens(0.4) else on

    def weekly(self) -> Phrase:
        """Draw a habit: every Monday, jeden Montag."""
        day = self.pick(self.lexicon.times["weekdays"])
        every = Phrase(f"every {day.english}", f"jeden {day.german}")
        return _joined(every, self.clock()) if self.happens(0.4) else every

    def day(self) -> Phrase:
        """Draw a day of the year: on June 3, am 3. Juni."""
        month, day = self.pick(self.lexicon.times["months"]), self.chance.randint(1, 28)
        return Phrase(f"on {month.english} {day}", f"am {day}. {month.german}")

    def month(self) -> Phrase:
        """Draw a month: in June, im Juni."""
        month = self.pick(self.lexicon.times["months"])
        return Phrase(f"in {month.english}", f"im {month.german}")

    def year(self) -> Phrase:
        """Draw a year that has gone: in 1987, im Jahr 1987."""
        year = self.pick(YEARS)
        return Phrase(f"in {year}", f"im Jahr {year}")

    def ago(self) -> Phrase:
        """Draw a time that has passed: three days ago, vor drei Tagen."""
        span = self._span()
        return Phrase(f"{span.english} ago", f"vor {span.german}")

    def ahead(self) -> Phrase:
        """Draw a time to wait: in three days, in drei Tagen."""
        span = self._span()
        return Phrase(f"in {span.english}", f"in {span.german}")

    def city(self) -> Phrase:
        """Draw a city."""
        return self.pick(self.lexicon.cities)

    def place(self, family: str) -> Phrase:
        """Draw where something happens: in Berlin, behind the old church."""
        if family == "cities":
            city = self.city()
            return Phrase(f"in {city.english}", f"in {city.german}")
        preposition = self.pick(self.lexicon.prepositions[family])
        where = self._site(family)
        return Phrase(
            f"{preposition.english} {where.english_object}",
            german.after_preposition(preposition.german, where.german[german.DATIVE]),
        )

    def goal(self, family: str) -> Phrase:
        """Draw where somebody goes: to Berlin, to the old church."""
        if family == "cities":
            city = self.city()
            return Phrase(f"to {city.english}", f"nach {city.german}")
        where = self._site(family)
        return Phrase(
            f"to {where.english_object}",
            german.after_preposition("zu", where.german[german.DATIVE]),
        )

    # ---------------------------------------------------------------------------- clauses

    def negation(self, tense: str) -> bool:
        """Draw whether a main clause is negated."""
        return tense not in ("must", "should") and self.happens(0.12)

    def clause(self, subject: Nominal, tense: str, is_negated: bool) -> Clause:
        """Draw a clause with a time or an adverb, and now and then a place."""
        clause = self.short_clause(subject, tense, is_negated)
        if not clause.place and not clause.goal and self.happens(0.35):
            clause = replace(clause, place=self.place(self.pick(PLACES)))
        is_habit = tense == "present" and (is_negated or clause.adverb is not None)
        if not is_habit and self.happens(0.7):
            clause = replace(clause, time=self.time(tense))
        return clause

    def short_clause(self, subject: Nominal, tense: str, is_negated: bool) -> Clause:
        """Draw a clause: a verb with its required arguments, perhaps an adverb."""
        kind = self.chance.choices(
            ("transitive", "dative", "giving", "resting", "moving"), (50, 7, 13, 18, 12)
        )[0]
        verb = self.pick(self.lexicon.verbs[kind])
        clause = replace(bare_clause(subject, verb, tense), is_negated=is_negated)
        if kind in ("dative", "giving"):
            family = self.pick(verb.objects) if kind == "dative" else "people"
            clause = replace(clause, receiver=self._receiver(family))
        if kind in ("transitive", "giving"):
            clause = replace(clause, thing=self._thing(self.pick(verb.objects), clause))
        if kind == "resting":
            clause = replace(clause, place=self.place(self.pick(verb.objects)))
        if kind == "moving":
            clause = replace(clause, goal=self.goal(self.pick(verb.objects)))
        if tense == "present" and not is_negated and self.happens(0.25):
            clause = replace(clause, adverb=self.pick(self.lexicon.times["adverbs"]))
        return clause

    def weather(self, tense: str) -> Clause:
        """Draw rain or snow, perhaps with a place."""
        it = ready("it", "es")
        clause = bare_clause(it, self.pick(self.lexicon.verbs["weather"]), tense)
        return replace(clause, place=self.place("cities")) if self.happens(0.6) else clause

    def _thing(self, family: str, clause: Clause) -> Nominal:
        if family == "people" and self.happens(0.5):
            whom = self.pick((self.name, self.pronoun))()
            if whom.english != clause.subject.english:  # nobody visits himself
                return whom
        if self.happens(0.5):
            return self.known(family)
        return self.none(family) if clause.is_negated else self.new(family)

    def _receiver(self, family: str) -> Nominal:
        if family == "people" and self.happens(0.4):
            return self.name()
        return self.known(family)

    def _site(self, family: str) -> Nominal:
        determiner = self.lexicon.determiners[self.pick(("the", "the", "the", "our", "a"))]
        return described(self.noun(family), determiner, self.adjective(family), 1)

    def _span(self) -> Phrase:
        count, unit = self.chance.randint(2, 12), self.pick(self.lexicon.times["spans"])
        return Phrase(
            f"{english.number(count, self.lexicon)} {unit.english}",
            f"{german.number(count, self.lexicon)} {unit.german}",
        )


def described(
    noun: Noun, determiner: Determiner, adjective: Adjective | None, count: int
) -> Nominal:
    """Put a noun phrase together in both languages, in the plural unless `count` is 1."""
    said = english.noun_phrase(determiner, adjective, noun, count)
    return Nominal(
        person=1 if count == 1 else 2,
        english=said,
        english_object=said,
        german=german.noun_phrase(determiner, adjective, noun, is_plural=count != 1),
        is_definite=determiner.is_definite,
        is_pronoun=False,
    )


def ready(said: str, gesagt: str) -> Nominal:
    """Make a definite noun phrase in the singular that no case changes."""
    cases = (gesagt, gesagt, gesagt)
    return Nominal(1, said, said, cases, is_definite=True, is_pronoun=False)


def bare_clause(subject: Nominal, verb: Verb, tense: str) -> Clause:
    """Make a clause of a subject and a verb alone."""
    return Clause(subject, verb, tense, False, None, None, None, None, None, None)


def _joined(first: Phrase, second: Phrase) -> Phrase:
    return Phrase(f"{first.english} {second.english}", f"{first.german} {second.german}")
