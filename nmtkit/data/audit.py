"""Counts of kept and dropped pairs, with examples of dropped ones: for the manifest and reports."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmtkit.config.preprocessing import SEGMENTATIONS, TextEntry
from nmtkit.data.binary import FORMAT, VERSION, Contents
from nmtkit.data.filters import REASONS, Reason
from nmtkit.data.findings import Finding
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.json_data import decode, encode
from nmtkit.storage.manifest import verify_files
from nmtkit.text.corpus import Pair
from nmtkit.text.lines import TOO_LONG
from nmtkit.text.marian import MarianVocabulary

_NUM_EXAMPLES = 3
_MAX_CHARACTERS = 80
_ELLIPSIS = "..."
_NOT_COUNTED = "-"


@dataclass(frozen=True)
class SideCounts:
    """Counts of one side of the kept pairs.

    Attributes:
        tokens: tokens, including end symbols.
        unknown: tokens that are <unk>, or bytes of characters outside the vocabulary.
        longest: tokens of the longest sentence.
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
class Example:
    """A dropped pair.

    Attributes:
        reason: why it was dropped.
        line: its line number, from 1, within its text.
        source, target: its lines, truncated.
    """

    reason: Reason
    line: int
    source: str
    target: str

    @staticmethod
    def of(reason: Reason, line: int, pair: Pair) -> "Example":
        """Make an example from a pair."""
        return Example(reason, line, _shorten(pair[0]), _shorten(pair[1]))


def first_of_each(examples: Iterable[Example]) -> tuple[Example, ...]:
    """Return the first few examples of each reason, in the given order."""
    seen: Counter[Reason] = Counter()
    chosen = []
    for example in examples:
        seen[example.reason] += 1
        if seen[example.reason] <= _NUM_EXAMPLES:
            chosen.append(example)
    return tuple(chosen)


@dataclass(frozen=True)
class PairCounts:
    """Counts of the pairs of one or more texts; counts of consecutive pairs can be added.

    Attributes:
        read: pairs that were read.
        dropped: dropped pairs by reason, without the reasons of filters that were off.
        source, target: counts of the sides of the kept pairs.
        linked: kept pairs with links of a word alignment.
        examples: the first few dropped pairs of each reason.
    """

    read: int
    dropped: Mapping[Reason, int]
    source: SideCounts
    target: SideCounts
    linked: int = 0
    examples: Sequence[Example] = ()

    @staticmethod
    def none() -> "PairCounts":
        """Return counts of 0."""
        zero = SideCounts(0, 0, 0)
        return PairCounts(0, {}, zero, zero)

    @property
    def kept(self) -> int:
        """Number of pairs that were not dropped."""
        return self.read - sum(self.dropped.values())

    def __add__(self, other: "PairCounts") -> "PairCounts":
        return PairCounts(
            self.read + other.read,
            {
                reason: self.dropped.get(reason, 0) + other.dropped.get(reason, 0)
                for reason in REASONS
                if reason in self.dropped or reason in other.dropped
            },
            self.source + other.source,
            self.target + other.target,
            self.linked + other.linked,
            first_of_each([*self.examples, *other.examples]),
        )

    def to_manifest(self) -> dict[str, Any]:
        """Return the counts as fields of a manifest, without examples."""
        fields = {**asdict(self), "kept": self.kept}
        del fields["examples"]
        return fields


@dataclass(frozen=True)
class CountedText:
    """A text with the counts of its pairs."""

    text: TextEntry
    counts: PairCounts

    def to_manifest(self) -> dict[str, Any]:
        """Return the text and its counts as fields of a manifest."""
        return {**asdict(self.text), **self.counts.to_manifest()}

    @staticmethod
    def from_manifest(fields: Mapping[str, Any]) -> "CountedText":
        """Read what `to_manifest` returned."""
        return CountedText(decode(TextEntry, fields), decode(PairCounts, fields))


@dataclass(frozen=True)
class Audit:
    """Counts of all texts of a dataset.

    Attributes:
        corpora: the training texts.
        valid: the validation texts.
        unknown_name: see the function of this name.
    """

    corpora: Sequence[CountedText]
    valid: Sequence[CountedText]
    unknown_name: str

    @property
    def train(self) -> PairCounts:
        """Counts of all training texts together."""
        return _total(self.corpora)

    def to_manifest(self) -> dict[str, Any]:
        """Return the counts as fields of the manifest."""
        return {
            "corpora": [
                {**one.to_manifest(), "examples": encode(one.counts.examples)}
                for one in self.corpora
            ],
            "train": self.train.to_manifest(),
            "valid_corpora": [one.to_manifest() for one in self.valid],
            "valid": _total(self.valid).to_manifest(),
        }

    @staticmethod
    def from_manifest(manifest: Mapping[str, Any]) -> "Audit":
        """Read the counts of a dataset's manifest."""
        counts, valid = manifest["counts"], manifest["recipe"]["corpus"]["valid"]
        one_valid = [{"prefix": valid, "weight": 1.0, "tag": "", **counts["valid"]}]
        valid_corpora = counts.get("valid_corpora", one_valid)  # datasets of two languages
        return Audit(
            corpora=[*map(CountedText.from_manifest, counts["corpora"])],
            valid=[*map(CountedText.from_manifest, valid_corpora)],
            unknown_name=unknown_name(manifest["segmentation"]),
        )

    def table(self) -> list[str]:
        """Return the lines of a table with the counts of each text."""
        named = [(_title(one.text), one.counts) for one in self.corpora]
        named += [(one.text.name, one.counts) for one in self.valid]
        return table(named, self.unknown_name) + [
            f"{name}: {one.linked} of {one.kept} pairs have a word alignment"
            for name, one in named
            if one.linked
        ]

    def examples(self) -> list[str]:
        """Return one line per example of a dropped training pair."""
        return [
            f"{example.reason}: {one.text.name}:{example.line}: "
            f"{example.source!r} | {example.target!r}"
            for one in self.corpora
            for example in sorted(one.counts.examples, key=lambda example: example.reason)
        ]


def _total(texts: Iterable[CountedText]) -> PairCounts:
    return sum((one.counts for one in texts), PairCounts.none())


def unknown_name(description: str) -> str:
    """Return the column title for tokens outside the vocabularies: "unknown" or "bytes".

    Args:
        description: the manifest's description of segmentations, such as `moses, bpe and words`.
    """
    names = re.findall(r"[\w-]+", description)
    titles = {SEGMENTATIONS[name].unknown for name in names if name in SEGMENTATIONS}
    titles.update("unknown" for name in names if name == MarianVocabulary.segmentation)
    return "unknown" if "unknown" in titles else "bytes"


def describe(folder: Path, check: bool) -> Iterator[str]:
    """Yield lines that describe a dataset: properties, counts, dropped pairs, findings.

    Args:
        folder: the dataset.
        check: compare every file with its hash.

    Raises:
        DamagedError: the dataset is missing or damaged; names the file.
    """
    manifest = read_manifest(folder, FORMAT, VERSION)
    if check:
        verify_files(folder, manifest)
    contents = decode(Contents, manifest)
    sizes = manifest["vocabulary_sizes"]
    entries = f"{sizes['source']}" + ("" if manifest["is_shared"] else f" and {sizes['target']}")
    num_bytes = sum(entry["bytes"] for entry in manifest["files"].values())
    yield f"languages    {manifest['source_lang']} to {manifest['target_lang']}"
    if contents.directions:
        yield f"directions   {', '.join(dict.fromkeys(contents.directions))}"
    marks = f", {manifest['marks']} marks" if "marks" in manifest else ""
    yield f"vocabulary   {entries} entries, {manifest['segmentation']}{marks}"
    num_shards = len(contents.shards)
    yield (
        f"train        {sum(map(sum, contents.shards))} pairs in {num_shards} "
        f"{'shard' if num_shards == 1 else 'shards'}"
    )
    yield f"valid        {contents.valid_lines} lines"
    yield f"on disk      {num_bytes} bytes in {len(manifest['files'])} files"
    yield f"fingerprint  {contents.fingerprint}"
    if check:
        yield "checked      every file matches its hash"
    audit = Audit.from_manifest(manifest)
    yield from ("", *audit.table())
    examples = audit.examples()
    if examples:
        yield from ("", "dropped, among others", *examples)
    findings = decode(list[Finding], manifest["findings"])
    if findings:
        yield from ("", "findings", *map(str, findings))


def table(named: Sequence[tuple[str, PairCounts]], unknown_name: str) -> list[str]:
    """Return the lines of two aligned tables: pairs per text, and tokens per text and side.

    A dash is a count that was not made: of a filter that was off, or of no tokens.

    Args:
        named: names and counts of texts.
        unknown_name: title of the column of unknown tokens; see the function of this name.
    """
    pairs = [["pairs", "read", "kept", *REASONS]]
    tokens = [["tokens", "side", "all", "mean", "longest", unknown_name]]
    for name, counts in named:
        dropped = [counts.dropped.get(reason, _NOT_COUNTED) for reason in REASONS]
        pairs.append([name, *map(str, [counts.read, counts.kept, *dropped])])
        for side_name, side in (("source", counts.source), ("target", counts.target)):
            of_tokens = 3 * [_NOT_COUNTED]
            if counts.kept:
                mean, rate = side.tokens / counts.kept, side.unknown / side.tokens
                of_tokens = [f"{mean:.1f}", str(side.longest), f"{rate:.3%}"]
            tokens.append([name, side_name, str(side.tokens), *of_tokens])
    return [*_align(pairs), *_align(tokens)]


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines; the first column is left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def _title(text: TextEntry) -> str:
    weight = "" if text.weight == 1 else f"={text.weight:g}"
    return f"{text.name}{weight}{f' {text.tag}' if text.tag else ''}"


def _shorten(line: str) -> str:
    if line == TOO_LONG:
        return _ELLIPSIS
    if len(line) <= _MAX_CHARACTERS:
        return line
    return line[: _MAX_CHARACTERS - len(_ELLIPSIS)] + _ELLIPSIS
