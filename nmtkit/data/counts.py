"""What became of the pairs of a text: read, kept, dropped by reason; tokens of either side."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nmtkit.data.filters import REASONS, Reason


@dataclass(frozen=True)
class SideCounts:
    """One side of the pairs that were kept.

    Attributes:
        tokens: all of them, end symbols counted.
        unknown: those that are <unk>, or a byte of a character that the vocabulary lacks.
        longest: of a sentence.
    """

    tokens: int
    unknown: int
    longest: int

    def __add__(self, other: "SideCounts") -> "SideCounts":
        return SideCounts(
            self.tokens + other.tokens,
            self.unknown + other.unknown,
            max(self.longest, other.longest),
        )


@dataclass(frozen=True)
class PairCounts:
    """The pairs of a text, or of several; counts of texts add up."""

    read: int
    dropped: Mapping[Reason, int]
    source: SideCounts
    target: SideCounts

    @staticmethod
    def none() -> "PairCounts":
        """Return the counts of no text."""
        nothing = SideCounts(0, 0, 0)
        return PairCounts(0, dict.fromkeys(REASONS, 0), nothing, nothing)

    @property
    def kept(self) -> int:
        """Pairs that were not dropped."""
        return self.read - sum(self.dropped.values())

    def __add__(self, other: "PairCounts") -> "PairCounts":
        return PairCounts(
            self.read + other.read,
            {reason: self.dropped[reason] + other.dropped[reason] for reason in REASONS},
            self.source + other.source,
            self.target + other.target,
        )

    def to_manifest(self) -> dict[str, Any]:
        """Return the counts for a manifest."""
        return {**asdict(self), "kept": self.kept}

    @staticmethod
    def from_manifest(fields: Mapping[str, Any]) -> "PairCounts":
        """Read what `to_manifest` returned, of this version or one that knew fewer reasons."""
        return PairCounts(
            read=fields["read"],
            dropped={reason: fields["dropped"].get(reason, 0) for reason in REASONS},
            source=SideCounts(**fields["source"]),
            target=SideCounts(**fields["target"]),
        )


def table(named: Sequence[tuple[str, PairCounts]], unknown_name: str) -> list[str]:
    """Return lines that show pairs, then tokens, of each text.

    Args:
        named: texts by their names.
        unknown_name: what an unknown token is in this kind of vocabulary.
    """
    pairs = [["pairs", "read", "kept", *REASONS]]
    tokens = [["tokens", "side", "all", "mean", "longest", unknown_name]]
    for name, counts in named:
        dropped = [counts.dropped[reason] for reason in REASONS]
        pairs.append([name, *map(str, [counts.read, counts.kept, *dropped])])
        for side_name, side in (("source", counts.source), ("target", counts.target)):
            mean = f"{side.tokens / max(counts.kept, 1):.1f}"
            rate = f"{side.unknown / max(side.tokens, 1):.3%}"
            tokens.append([name, side_name, str(side.tokens), mean, str(side.longest), rate])
    return [*_align(pairs), *_align(tokens)]


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the first cell of each row to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
