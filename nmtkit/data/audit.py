"""What became of the text of a dataset, for its manifest and as lines to read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nmtkit.config.corpora import TrainingText
from nmtkit.config.preprocessing import SEGMENTATIONS
from nmtkit.data.counts import PairCounts, table
from nmtkit.data.examples import Example, first_of_each


@dataclass(frozen=True)
class CorpusAudit:
    """What became of one training text.

    Attributes:
        text: which one.
        counts: of its pairs.
        examples: some of those that were dropped, numbered from 1 within the text.
    """

    text: TrainingText
    counts: PairCounts
    examples: Sequence[Example]

    @staticmethod
    def from_manifest(fields: Mapping[str, Any]) -> "CorpusAudit":
        """Read an entry of the manifest; version 1 had counts alone."""
        text = TrainingText(fields["prefix"], fields.get("weight", 1.0), fields.get("tag", ""))
        examples = [Example(**example) for example in fields.get("examples", ())]
        return CorpusAudit(text, PairCounts.from_manifest(fields), examples)

    def __add__(self, other: "CorpusAudit") -> "CorpusAudit":
        assert self.text == other.text, f"{self.text} and {other.text}"
        examples = sorted([*self.examples, *other.examples], key=lambda example: example.line)
        return CorpusAudit(self.text, self.counts + other.counts, first_of_each(examples))


@dataclass(frozen=True)
class Audit:
    """What became of all text of a dataset."""

    corpora: Sequence[CorpusAudit]
    valid_prefix: str
    valid: PairCounts
    unknown_name: str

    @property
    def train(self) -> PairCounts:
        """Counts of all training texts together."""
        return sum((corpus.counts for corpus in self.corpora), PairCounts.none())

    def to_manifest(self) -> dict[str, Any]:
        """Return the counts as the manifest has them."""
        return {
            "corpora": [
                {
                    **asdict(corpus.text),
                    **corpus.counts.to_manifest(),
                    "examples": [asdict(example) for example in corpus.examples],
                }
                for corpus in self.corpora
            ],
            "train": self.train.to_manifest(),
            "valid": self.valid.to_manifest(),
        }

    @staticmethod
    def from_manifest(manifest: Mapping[str, Any]) -> "Audit":
        """Read a dataset's manifest."""
        counts = manifest["counts"]
        return Audit(
            corpora=[CorpusAudit.from_manifest(fields) for fields in counts["corpora"]],
            valid_prefix=manifest["recipe"]["corpus"]["valid"],
            valid=PairCounts.from_manifest(counts["valid"]),
            unknown_name=unknown_name(manifest["segmentation"]),
        )

    def table(self) -> list[str]:
        """Return lines that show the counts of each text."""
        named = [(_title(corpus.text), corpus.counts) for corpus in self.corpora]
        return table([*named, (self.valid_prefix, self.valid)], self.unknown_name)

    def examples(self) -> list[str]:
        """Return a line for each example of a dropped pair."""
        return [
            f"{example.reason}: {corpus.text.prefix}:{example.line}: "
            f"{example.source!r} | {example.target!r}"
            for corpus in self.corpora
            for example in sorted(corpus.examples, key=lambda example: example.reason)
        ]


def unknown_name(description: str) -> str:
    """Return what tokens that the vocabularies lack are called.

    Args:
        description: the segmentations as the manifest has them, such as `moses, bpe and words`.
    """
    names = re.findall(r"[\w-]+", description)
    called = {SEGMENTATIONS[name].unknown for name in names if name in SEGMENTATIONS}
    return "unknown" if "unknown" in called else "bytes"


def _title(text: TrainingText) -> str:
    weight = "" if text.weight == 1 else f"={text.weight:g}"
    return f"{text.prefix}{weight}{f' {text.tag}' if text.tag else ''}"
