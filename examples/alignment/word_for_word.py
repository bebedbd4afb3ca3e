"""Write made-up text that is translated word for word, with its links: a test of any aligner.

A target sentence has the translations of the source's words, in another order: each word that
describes follows its noun, and a particle that translates nothing may end the sentence.

    python3 word_for_word.py FOLDER
"""

import random
import sys
from collections.abc import Mapping
from pathlib import Path

SIZES = {"train": 8000, "valid": 200, "test": 200}
NUM_WORDS = 60
SYLLABLES = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
PARTICLE = "yx"


def words(random_: random.Random) -> list[str]:
    """Return different made-up words of two or three syllables."""
    found: dict[str, None] = {}
    while len(found) < NUM_WORDS:
        found["".join(random_.choices(SYLLABLES, k=random_.choice((2, 3))))] = None
    return list(found)


def sentence(random_: random.Random) -> list[int]:
    """Return word numbers: nouns, each after at most one word that describes it (an odd one)."""
    found = []
    for _ in range(random_.randint(1, 5)):
        if random_.random() < 0.5:
            found.append(random_.randrange(1, NUM_WORDS, 2))
        found.append(random_.randrange(0, NUM_WORDS, 2))
    return found


def target_order(source: list[int]) -> list[int]:
    """Return the places of the source's words in the order of the target."""
    order = list(range(len(source)))
    for place, word in enumerate(source):
        if word % 2:
            order[place : place + 2] = [place + 1, place]
    return order


def write_corpus(folder: Path, sizes: Mapping[str, int]) -> None:
    """Write parts of a number of pairs: PART.en, PART.fr and PART.links, which count from 1."""
    random_ = random.Random(1)
    english, french = words(random_), words(random_)
    folder.mkdir(parents=True, exist_ok=True)
    for part, size in sizes.items():
        lines: dict[str, list[str]] = {"en": [], "fr": [], "links": []}
        for _ in range(size):
            source = sentence(random_)
            order = target_order(source)
            end = [PARTICLE] if random_.random() < 0.3 else []
            lines["en"].append(" ".join(english[word] for word in source))
            lines["fr"].append(" ".join([*(french[source[place]] for place in order), *end]))
            links = (f"{place + 1}-{target}" for target, place in enumerate(order, 1))
            lines["links"].append(" ".join(links))
        for suffix, texts in lines.items():
            (folder / f"{part}.{suffix}").write_text("".join(f"{text}\n" for text in texts))


if __name__ == "__main__":
    write_corpus(Path(sys.argv[1]), SIZES)
