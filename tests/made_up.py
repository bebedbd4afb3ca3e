"""Parallel text in made-up languages, for statistics that need many natural lines."""

import random
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

_LETTERS = {
    "one": ("bdfgklmnprst", "aeiou"),
    "two": ("jhkvwzxqcgyr", "aouye"),
    "three": ("bcdmnqvtslfz", "iaeuo"),
}
_NUM_WORDS = 400


def made_up_line(language: str, meaning: Sequence[int]) -> str:
    """Return a line with a word per meaning, which are numbers below 400."""
    return " ".join(_word(language, one) for one in meaning)


def made_up_pairs(number: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return translations of languages "one" and "two"; words are as frequent as in real text."""
    return [
        (made_up_line("one", meaning), made_up_line("two", meaning))
        for meaning in meanings(number, seed)
    ]


def meanings(number: int, seed: int) -> list[list[int]]:
    """Return the meanings of lines."""
    generator = random.Random(seed)
    weights = list(accumulate(1 / (rank + 2) for rank in range(_NUM_WORDS)))
    return [
        generator.choices(range(_NUM_WORDS), cum_weights=weights, k=generator.randint(4, 24))
        for _ in range(number)
    ]


@cache
def _word(language: str, meaning: int) -> str:
    consonants, vowels = _LETTERS[language]
    generator = random.Random(f"{language} {meaning}")
    syllables = range(generator.randint(1, 4))
    return "".join(generator.choice(consonants) + generator.choice(vowels) for _ in syllables)
