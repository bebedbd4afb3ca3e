"""The English side of the grammar: noun phrases, verbs, word order, numbers."""

from examples.demo.clause import Clause
from examples.demo.lexicon import Adjective, Determiner, Lexicon, Noun

BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}


def noun_phrase(determiner: Determiner, adjective: Adjective | None, noun: Noun, count: int) -> str:
    """Say a noun with its determiner, in the plural unless `count` is 1."""
    before = determiner.english if count == 1 else determiner.english_plural
    words = [adjective.english] if adjective else []
    words.append(noun.english if count == 1 else noun.english_plural)
    if before == "a" and words[0][0] in "aeiou":
        before = "an"
    return " ".join([before, *words])


def number(value: int, lexicon: Lexicon) -> str:
    """Spell a number below 100: twenty-three."""
    small = lexicon.numbers["english_small"]
    if value < len(small):
        return small[value]
    tens = lexicon.numbers["english_tens"][value // 10]
    return f"{tens}-{small[value % 10]}" if value % 10 else tens


def statement(clause: Clause, is_time_first: bool) -> str:
    """Say a clause: subject, verb, objects, place, time."""
    words = [clause.subject.english, _adverb(clause), *_verb(clause)]
    if is_time_first and clause.time:
        return " ".join([f"{clause.time.english},", *filter(None, [*words, *_objects(clause)])])
    return " ".join(filter(None, [*words, *_objects(clause), _time(clause)]))


def question(clause: Clause) -> str:
    """Ask whether a clause is true: does she, did she, can she."""
    if clause.tense in ("present", "past", "want to"):
        first = _do(clause)
        verb = (
            f"want to {clause.verb.english}" if clause.tense == "want to" else clause.verb.english
        )
    else:
        first, verb = clause.tense, clause.verb.english
    words = [first, clause.subject.english, _adverb(clause), verb, *_objects(clause), _time(clause)]
    return " ".join(filter(None, words))


def purpose(clause: Clause) -> str:
    """Say a clause as an aim: to visit the neighbour."""
    return " ".join(filter(None, ["to", clause.verb.english, *_objects(clause), _time(clause)]))


def _do(clause: Clause) -> str:
    if clause.tense == "past":
        return "did"
    return "does" if clause.subject.person == 1 else "do"


def _verb(clause: Clause) -> list[str]:
    verb, tense = clause.verb, clause.tense
    if tense in ("present", "past", "want to"):
        base = f"want to {verb.english}" if tense == "want to" else verb.english
        if clause.is_negated:
            return [_do(clause), "not", base]
        if tense == "past":
            return [verb.english_past]
        if clause.subject.person != 1:
            return [base]
        return [f"wants to {verb.english}" if tense == "want to" else verb.english_third]
    if clause.is_negated:
        return ["cannot" if tense == "can" else f"{tense} not", verb.english]
    return [tense, verb.english]


def _objects(clause: Clause) -> list[str]:
    """List the objects, the goal and the place, in this order."""
    nominals = [nominal.english_object for nominal in (clause.receiver, clause.thing) if nominal]
    return nominals + [phrase.english for phrase in (clause.goal, clause.place) if phrase]


def _adverb(clause: Clause) -> str:
    return clause.adverb.english if clause.adverb else ""


def _time(clause: Clause) -> str:
    return clause.time.english if clause.time else ""
