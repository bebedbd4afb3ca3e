"""Detection and false alarms of the findings of preprocess, on texts that are damaged on purpose.

    python -m benchmarks.data_audit CORPUS... -s en -t fr --foreign FILE [--valid PREFIX]

Each CORPUS is a prefix of parallel text. Without --valid, its last eighth is the validation text.
Languages need the extra `audit`. Each damage is done to 1 %, 3 %, 10 % and all of the pairs, with
lines drawn at random in each round. A damage is detected if the check of this name has a finding.
Other findings are listed if the undamaged text does not have them.
"""

import argparse
import html
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.common import print_json, print_table
from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.findings import Evidence, find_all
from nmtkit.data.languages import language_identifier
from nmtkit.data.text_sample import TextSample
from nmtkit.text.corpus import Corpus, Pair
from nmtkit.text.lines import read_lines

SHARES = (0.01, 0.03, 0.1, 1.0)
VALID_PART = 8
CYRILLIC = {ord("a") + i: 0x430 + i for i in range(26)}


@dataclass(frozen=True)
class Text:
    """A training text with what damages it.

    Attributes:
        pairs, valid: the training and the validation text.
        foreign: lines of a third language.
    """

    pairs: Sequence[Pair]
    valid: Sequence[Pair]
    foreign: Sequence[str]


Damage = Callable[[Text, Sequence[int], random.Random], list[Pair]]


@dataclass(frozen=True)
class Result:
    """Detection of one damage.

    Attributes:
        damage: its name, that of the check.
        share: share of the damaged pairs.
        detected: number of texts, over all rounds, with a finding of this check.
        others: number of other findings by name.
        texts: number of damaged texts.
    """

    damage: str
    share: float
    detected: int
    others: dict[str, int]
    texts: int


def each(change: Callable[[Text, int, random.Random], Pair]) -> Damage:
    """Return a damage that changes each chosen pair."""

    def damage(text: Text, lines: Sequence[int], generator: random.Random) -> list[Pair]:
        pairs = list(text.pairs)
        for line in lines:
            pairs[line] = change(text, line, generator)
        return pairs

    return damage


def shift(text: Text, lines: Sequence[int], generator: random.Random) -> list[Pair]:
    """Shift the targets of as many consecutive pairs by one to three lines."""
    sources, targets = map(list, zip(*text.pairs, strict=True))
    first = generator.randint(0, len(sources) - len(lines))
    lag = generator.randint(1, 3)
    part = targets[first : first + len(lines)]
    targets[first : first + len(lines)] = part[lag:] + part[:lag]
    return list(zip(sources, targets, strict=True))


def in_cyrillic(line: str) -> str:
    """Return a line with Cyrillic in place of Latin letters."""
    return line.lower().translate(CYRILLIC)


def wrongly_read(line: str) -> str:
    """Return a line as UTF-8 that was read as Windows-1252; characters that it lacks are lost."""
    return line.encode().decode("cp1252", "replace")


def with_validation_lines(text: Text, lines: Sequence[int], generator: random.Random) -> list[Pair]:
    """Put the same share of the validation text into the training text."""
    number = max(1, round(len(lines) / len(text.pairs) * len(text.valid)))
    return [*text.pairs, *generator.sample(text.valid, number)]


DAMAGES: dict[str, Damage] = {
    "misaligned": shift,
    "swapped": each(lambda text, line, _: text.pairs[line][::-1]),
    "language": each(lambda text, i, one: (text.pairs[i][0], one.choice(text.foreign))),
    "script": each(lambda text, i, _: (in_cyrillic(text.pairs[i][0]), text.pairs[i][1])),
    "copies": each(lambda text, line, _: (text.pairs[line][0], text.pairs[line][0])),
    "duplicates": each(lambda text, _, one: one.choice(text.pairs)),
    "validation": with_validation_lines,
    "entities": each(lambda text, i, _: (html.escape(text.pairs[i][0] + " 'x'"), text.pairs[i][1])),
    "encoding": each(
        lambda text, line, _: (text.pairs[line][0], wrongly_read(text.pairs[line][1]))
    ),
}


def main() -> None:
    """Measure; print the findings of the undamaged texts, a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--foreign", type=Path, required=True, help="lines of a third language")
    parser.add_argument("--valid", help="prefix of the validation text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shuffle", action="store_true", help="put the pairs in random order")
    options = parser.parse_args()
    foreign = list(read_lines(options.foreign))
    texts = {prefix: read_text(prefix, foreign, options) for prefix in options.corpora}
    usual = {}
    for prefix, text in texts.items():
        found = findings_of(text.pairs, text.valid)
        usual[prefix] = {*found}
        for line in found.values():
            print(f"{prefix}, undamaged: {line}")
    results = [
        measure(name, share, texts, usual, options.rounds) for name in DAMAGES for share in SHARES
    ]
    rows = [
        [one.damage, f"{one.share:.0%}", f"{one.detected} of {one.texts}", listed(one.others)]
        for one in results
    ]
    print_table([["damage", "share", "detected", "other findings"], *rows])
    print_json([asdict(result) for result in results])


def measure(
    name: str, share: float, texts: dict[str, Text], usual: dict[str, set[str]], rounds: int
) -> Result:
    """Damage each text in each round, and count the findings."""
    detected = 0
    others: Counter[str] = Counter()
    for prefix, text in texts.items():
        for number in range(rounds):
            generator = random.Random(f"{prefix} {number}")
            size = len(text.pairs)
            lines = generator.sample(range(size), max(1, round(share * size)))
            found = {*findings_of(DAMAGES[name](text, lines, generator), text.valid)}
            detected += name in found
            others.update(found - usual[prefix] - {name})
    return Result(name, share, detected, dict(others), rounds * len(texts))


def listed(counts: dict[str, int]) -> str:
    """Return counts as text."""
    return ", ".join(f"{name} {number}" for name, number in counts.items())


def read_text(prefix: str, foreign: Sequence[str], options: argparse.Namespace) -> Text:
    """Read a training text and its validation text."""
    pairs = read_pairs(prefix, options)
    if options.shuffle:
        random.Random(1).shuffle(pairs)
    if options.valid:
        return Text(pairs, read_pairs(options.valid, options), foreign)
    border = len(pairs) - len(pairs) // VALID_PART
    return Text(pairs[:border], pairs[border:], foreign)


def read_pairs(prefix: str, options: argparse.Namespace) -> list[Pair]:
    """Read all pairs of a prefix."""
    return list(Corpus.find(prefix, options.source_lang, options.target_lang).pairs())


def findings_of(pairs: Sequence[Pair], valid: Sequence[Pair]) -> dict[str, str]:
    """Return the findings of a training text by the names of their checks."""
    known = evidence_of("valid", valid, None)
    return {finding.check: str(finding) for finding in find_all(evidence_of("train", pairs, known))}


def evidence_of(name: str, pairs: Sequence[Pair], valid: Evidence | None) -> Evidence:
    """Sample a text as preprocess does."""
    sample = TextSample(valid.sample.pairs if valid else ())
    corpus = Corpus(name, Path(f"{name}.s"), Path(f"{name}.t"), len(list(sample.watch(pairs))), ())
    return Evidence(corpus, sample, FilterConfig(), valid, rank=language_identifier())


if __name__ == "__main__":
    main()
