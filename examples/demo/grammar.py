"""A synchronous grammar: it draws a meaning and says it in English and in German.

The German sentence is a function of the English one, so that a translation is right or wrong.
What the two languages do differently is in english.py and german.py: gender and case, the verb
second or last, separable prefixes, time before place, compounds, numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from examples.demo import english, german
from examples.demo.clause import Clause, Nominal
from examples.demo.constituents import YEARS, Constituents, bare_clause, ready
from examples.demo.german import NOMINATIVE, Order
from examples.demo.lexicon import Lexicon, Phrase

SHORTEST, LONGEST = 5, 20  # words of a sentence, on either side


class Grammar:
    """Draws sentences; the same lexicon and seed give the same ones."""

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        self.lexicon = lexicon
        self.chance = Random(seed)
        self.parts = Constituents(lexicon, self.chance)
        self.weights: dict[Callable[[], Phrase], int] = {
            self.assertion: 36,
            self.question: 10,
            self.subordination: 20,
            self.report: 8,
            self.purpose: 7,
            self.coordination: 7,
            self.comparison: 10,
            self.age: 2,
            self.price: 3,
            self.birth: 3,
            self.departure: 3,
            self.distance: 2,
        }

    def sentences(self) -> Iterator[Phrase]:
        """Yield sentences without end, of a readable length; some are repeated."""
        kinds, weights = list(self.weights), list(self.weights.values())
        while True:
            drawn = self.chance.choices(kinds, weights)[0]()
            sides = _written(drawn.english), _written(drawn.german)
            if all(SHORTEST <= len(side.split()) <= LONGEST for side in sides):
                yield Phrase(*sides)

    # -------------------------------------------------------------------------- clauses

    def assertion(self) -> Phrase:
        """Draw one such as: Yesterday, the teacher bought a red car in Vienna."""
        tense = self.parts.tense()
        clause = self.parts.clause(self._subject(tense), tense, self.parts.negation(tense))
        is_time_first = clause.time is not None and self.parts.happens(0.4)
        order = Order.TIME_FIRST if is_time_first else Order.SUBJECT_FIRST
        return Phrase(
            english.statement(clause, is_time_first) + ".", self._german(clause, order) + "."
        )

    def question(self) -> Phrase:
        """Draw one such as: Did the teacher buy a red car."""
        clause = self.parts.clause(self.parts.person(), self.parts.tense(), is_negated=False)
        return Phrase(english.question(clause) + "?", self._german(clause, Order.VERB_FIRST) + "?")

    def subordination(self) -> Phrase:
        """Draw one such as: Because it rained, the teacher stayed in the library; or reversed."""
        joint = self.parts.pick(self.lexicon.subordinating)
        tense = self.parts.pick(joint.tenses)
        main = self._main_clause(tense)
        side = self._side_clause("present" if tense == "will" else tense)
        said = f"{joint.english} {english.statement(side, is_time_first=False)}"
        gesagt = f"{joint.german} {self._german(side, Order.VERB_LAST)}"
        main_said = english.statement(main, is_time_first=False)
        if self.parts.happens(0.4):
            return Phrase(
                f"{said}, {main_said}.", f"{gesagt}, {self._german(main, Order.VERB_FIRST)}."
            )
        return Phrase(
            f"{main_said} {said}.", f"{self._german(main, Order.SUBJECT_FIRST)}, {gesagt}."
        )

    def report(self) -> Phrase:
        """Draw one such as: Anna says that the teacher bought a red car in Vienna."""
        verb = self.parts.pick(self.lexicon.verbs["saying"])
        outer = bare_clause(self.parts.person(), verb, self.parts.pick(("present", "past")))
        inner = self.parts.clause(self.parts.person(), self.parts.tense(), is_negated=False)
        return Phrase(
            f"{english.statement(outer, False)} that {english.statement(inner, False)}.",
            f"{self._german(outer, Order.SUBJECT_FIRST)}, "
            f"dass {self._german(inner, Order.VERB_LAST)}.",
        )

    def purpose(self) -> Phrase:
        """Draw one such as: Anna drives to Berlin to visit her neighbour."""
        verb, tense = self.parts.pick(self.lexicon.verbs["moving"]), self.parts.tense()
        going = bare_clause(self.parts.person(), verb, tense)
        going = replace(going, goal=self.parts.goal(self.parts.pick(verb.objects)))
        aim = going
        while not aim.thing:
            aim = self.parts.short_clause(going.subject, "will", is_negated=False)
        return Phrase(
            f"{english.statement(going, False)} {english.purpose(aim)}.",
            f"{self._german(going, Order.SUBJECT_FIRST)}, {german.purpose(aim)}.",
        )

    def coordination(self) -> Phrase:
        """Draw one such as: Anna sang in the garden, but Peter waited at the train station."""
        joint = self.parts.pick(self.lexicon.coordinating)
        tense = self.parts.pick(("present", "past"))
        clauses = [self._main_clause(tense) for _ in range(2)]
        return Phrase(
            joint.english.join(english.statement(clause, False) for clause in clauses) + ".",
            joint.german.join(self._german(clause, Order.SUBJECT_FIRST) for clause in clauses)
            + ".",
        )

    # ---------------------------------------------------------------------------- facts

    def comparison(self) -> Phrase:
        """Draw one such as: The red car is cheaper than our old boat."""
        family = self.parts.pick(tuple(self.lexicon.adjectives))
        one, other = self.parts.known(family), self.parts.known(family)
        adjective = self.parts.pick(
            [item for item in self.lexicon.adjectives[family] if item.english_comparative]
        )
        tense, verb = self.parts.pick((("present", "sein"), ("past", "war")))
        compared = self.parts.pick(
            (
                Phrase(
                    f"{adjective.english_comparative} than", f"{adjective.german_comparative} als"
                ),
                Phrase(f"as {adjective.english} as", f"so {adjective.german} wie"),
                Phrase(f"not as {adjective.english} as", f"nicht so {adjective.german} wie"),
            )
        )
        return Phrase(
            f"{one.english} {english.BE[tense][one.person]} {compared.english} {other.english}.",
            f"{one.german[NOMINATIVE]} {german.finite(verb, one.person, self.lexicon)} "
            f"{compared.german} {other.german[NOMINATIVE]}.",
        )

    def age(self) -> Phrase:
        """Draw one such as: My aunt is forty-seven years old."""
        who, years = self._known_person(), self.parts.number(self.chance.randint(2, 99))
        return Phrase(
            f"{who.english} {english.BE['present'][who.person]} {years.english_plural} years old.",
            f"{who.german[NOMINATIVE]} {german.finite('sein', who.person, self.lexicon)} "
            f"{years.stem} Jahre alt.",
        )

    def price(self) -> Phrase:
        """Draw one such as: This red coat costs 45 euros."""
        what = self.parts.known(self.parts.pick(("food", "devices", "vehicles", "clothes")))
        euros, is_one = self.chance.randint(2, 99), what.person == 1
        return Phrase(
            f"{what.english} {'costs' if is_one else 'cost'} {euros} euros.",
            f"{what.german[NOMINATIVE]} {'kostet' if is_one else 'kosten'} {euros} Euro.",
        )

    def birth(self) -> Phrase:
        """Draw one such as: Mr Weber was born in Vienna on March 3, 1987."""
        who, day, city = self._known_person(), self.parts.day(), self.parts.city()
        year = self.parts.pick(YEARS)
        was, wurde = ("was", "wurde") if who.person == 1 else ("were", "wurden")
        return Phrase(
            f"{who.english} {was} born in {city.english} {day.english}, {year}.",
            f"{who.german[NOMINATIVE]} {wurde} {day.german} {year} in {city.german} geboren.",
        )

    def departure(self) -> Phrase:
        """Draw one such as: The train to Prague leaves from platform 12 at 8:30."""
        city, platform = self.parts.city(), self.chance.randint(1, 20)
        train = ready(f"the train to {city.english}", f"der Zug nach {city.german}")
        clause = replace(
            bare_clause(train, self.parts.pick(self.lexicon.verbs["leaving"]), "present"),
            place=Phrase(f"from platform {platform}", f"von Gleis {platform}"),
            time=self.parts.clock(),
        )
        return Phrase(
            english.statement(clause, is_time_first=False) + ".",
            self._german(clause, Order.SUBJECT_FIRST) + ".",
        )

    def distance(self) -> Phrase:
        """Draw one such as: It is 240 kilometres from Berlin to Prague."""
        start, end = self.chance.sample(self.lexicon.cities, 2)
        length = self.chance.randrange(100, 1000, 10)
        return Phrase(
            f"it is {length} kilometres from {start.english} to {end.english}.",
            f"von {start.german} nach {end.german} sind es {length} Kilometer.",
        )

    # ---------------------------------------------------------------------------- parts

    def _subject(self, tense: str) -> Nominal:
        if self.parts.happens(0.15):
            return self.parts.person_who("past" if tense == "past" else "present")
        return self.parts.person()

    def _known_person(self) -> Nominal:
        if self.parts.happens(0.5):
            return self.parts.name()
        return self.parts.known("people")

    def _main_clause(self, tense: str) -> Clause:
        is_negated = self.parts.negation(tense)
        return self.parts.short_clause(self.parts.person(), tense, is_negated)

    def _side_clause(self, tense: str) -> Clause:
        if self.parts.happens(0.25):
            return self.parts.weather(tense)
        return self.parts.short_clause(self.parts.person(), tense, is_negated=False)

    def _german(self, clause: Clause, order: Order) -> str:
        return german.clause(clause, order, self.lexicon)


def _written(text: str) -> str:
    """Begin with a capital letter; a comma that meets another mark gives way to it."""
    for mark in (",", ".", "?"):
        text = text.replace("," + mark, mark)
    return text[0].upper() + text[1:]
