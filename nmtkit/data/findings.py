"""Findings about parallel text: what makes training fail or evaluation wrong, and how to fix it.

Each check looks at a sample of a text (`text_sample.py`) and reports a share above a threshold. The
thresholds were chosen on one corpus; `benchmarks/data_audit.py` measures them on others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.data.alignment import find_misaligned
from nmtkit.data.evidence import Evidence
from nmtkit.data.filters import ANY_SCRIPT
from nmtkit.data.languages import MIN_LETTERS, are_first, other_language
from nmtkit.data.text_sample import MAX_EXAMPLES
from nmtkit.text.characters import has_entity, has_lost_character, has_mojibake, unescape

SIDES = ("source", "target")

MIN_SHARE = 0.003
"""Share of the judged lines from which most checks report them."""

MIN_LINES = 4
"""Lines from which most checks report them; fewer are chance."""

MIN_SHARE_OF_CHARACTERS = 0.001
"""The same for wrong characters, which no line has by chance."""

MIN_SHARE_OF_DUPLICATES = 0.005
"""Share of repeated pairs from which they are reported."""


@dataclass(frozen=True)
class Finding:
    """What a check found in a text.

    Attributes:
        check: name of the check, a key of `CHECKS`.
        text: the text: a prefix, or a file if one side is concerned.
        share: share of the lines or pairs, of those that could be judged.
        lines: some of their line numbers, from 1.
        message: what was found, and what helps.
    """

    check: str
    text: str
    share: float
    lines: Sequence[int]
    message: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.text}: {self.message}"

    def to_manifest(self) -> dict[str, Any]:
        """Return the fields for a manifest."""
        return asdict(self)

    @staticmethod
    def from_manifest(fields: Mapping[str, Any]) -> "Finding":
        """Read the fields of `to_manifest`; those of later versions are ignored."""
        return Finding(**{name: fields[name] for name in Finding.__dataclass_fields__})


def _in_lines(
    check: str,
    evidence: Evidence,
    text: str,
    found: NDArray[np.bool_],
    num_judged: int,
    message: str,
    min_share: float = MIN_SHARE,
) -> Iterator[Finding]:
    """Yield a finding if it concerns enough lines.

    Args:
        check, text: as in `Finding`.
        evidence: of the text.
        found: (N,) the lines of the sample that it concerns.
        num_judged: lines of the sample that could be judged.
        message: with {share} and {lines}, which are filled in.
        min_share: share from which it is reported.
    """
    indices = np.flatnonzero(found)
    if len(indices) < MIN_LINES or len(indices) < min_share * num_judged:
        return
    numbers = evidence.sample.lines
    lines = [numbers[index] for index in indices[:MAX_EXAMPLES]]
    share = len(indices) / num_judged
    filled = message.format(share=f"{share:.1%}", lines=_such_as(lines))
    yield Finding(check, text, share, lines, filled)


def _swapped(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.are_swapped
    judged = int(np.count_nonzero(evidence.nats_of_swap))
    valid = evidence.valid.corpus.prefix if evidence.valid else ""
    is_most = 2 * np.count_nonzero(found) > judged
    what = "the two files of one of them" if is_most else "the sides of these lines"
    yield from _in_lines(
        "swapped",
        evidence,
        evidence.corpus.prefix,
        found,
        judged,
        f"{{share}} of the pairs have source and target swapped, compared with {valid} "
        f"({{lines}}); exchange {what}",
    )


def _misaligned(evidence: Evidence) -> Iterator[Finding]:
    found = find_misaligned([block.pairs for block in evidence.sample.blocks])
    if found is None:
        return
    blocks = evidence.sample.blocks
    first, last = blocks[found.first], blocks[found.last]
    lines = (first.first, last.first + len(last.pairs) - 1)
    share = (lines[1] - lines[0] + 1) / evidence.sample.num_pairs
    cause = f"; target line N belongs to source line N{-found.lag:+}" if found.lag else ""
    where = f"from about line {lines[0]} to {lines[1]} ({share:.1%})"
    yield Finding(
        "misaligned",
        evidence.corpus.prefix,
        share,
        lines,
        f"source and target lines do not correspond {where}{cause}; compare the files there, "
        "for a missing or additional line before, or leave these lines out",
    )


def _languages(evidence: Evidence) -> Iterator[Finding]:
    valid = evidence.model
    for side, path in enumerate(evidence.paths):
        trigrams = evidence.trigrams[side]
        known = valid.sides[side] if valid else ()
        counts = valid.counts[side] if valid else np.zeros_like(evidence.counts[side])
        # A repeated line would be its own evidence; the others are findings of other checks.
        is_judged = are_first(evidence.sides[side])
        is_judged &= ~(evidence.are_copies | evidence.are_swapped | evidence.in_other_script[side])
        rest = valid.paths[side] if valid else "the rest"
        yield from _in_lines(
            "language",
            evidence,
            path,
            other_language(evidence.sides[side], trigrams, is_judged, known, counts),
            int(np.count_nonzero(is_judged & (trigrams.letters >= MIN_LETTERS))),
            f"{{share}} of the lines are in another language than {rest}, or in none ({{lines}}); "
            "remove these pairs, found by a language identifier",
        )


def _scripts(evidence: Evidence) -> Iterator[Finding]:
    filters = evidence.filters.source_script, evidence.filters.target_script
    for side, (path, filtered) in enumerate(zip(evidence.paths, filters, strict=True)):
        found, script = evidence.in_other_script[side], evidence.scripts[side]
        if evidence.valid and filtered != ANY_SCRIPT:
            continue
        yield from _in_lines(
            "script",
            evidence,
            path,
            found & ~evidence.are_swapped,
            len(found),
            f"{{share}} of the lines are mostly in another script than {script} ({{lines}}); "
            f"{evidence.remedy(f'--{SIDES[side]}-script {script}')}",
        )


def _share(found: NDArray[np.bool_]) -> float:
    return np.count_nonzero(found) / max(len(found), 1)


def _copies(evidence: Evidence) -> Iterator[Finding]:
    if evidence.valid and evidence.filters.drop_copies:
        return
    if evidence.valid and 2 * _share(evidence.valid.are_copies) > _share(evidence.are_copies) > 0:
        return  # as in the correction of text
    yield from _in_lines(
        "copies",
        evidence,
        evidence.corpus.prefix,
        evidence.are_copies,
        len(evidence.are_copies),
        "{share} of the pairs have a target equal to the source ({lines}); "
        + evidence.remedy("--drop-copies")
        + ("" if evidence.valid else ", unless the task has copies"),
    )


def _duplicates(evidence: Evidence) -> Iterator[Finding]:
    share, lines = evidence.sample.repeated, evidence.sample.repeated_lines
    if evidence.filters.drop_duplicates or share < MIN_SHARE_OF_DUPLICATES:
        return
    yield Finding(
        "duplicates",
        evidence.corpus.prefix,
        share,
        lines,
        f"{share:.1%} of the pairs repeat an earlier one ({_such_as(lines)}); --drop-duplicates "
        "drops them",
    )


def _validation_lines(evidence: Evidence) -> Iterator[Finding]:
    assert evidence.valid is not None
    valid = evidence.valid.corpus
    sample = evidence.sample
    share = len(sample.shared) / max(sample.num_others, 1)
    if valid.prefix in evidence.filters.held_out:
        return
    if len(sample.shared) < MIN_LINES or share < MIN_SHARE:
        return
    lines = sorted({*sample.shared.values()})[:MAX_EXAMPLES]
    is_mostly_valid = 2 * share * valid.num_pairs > sample.num_pairs
    remedy = (
        "give --valid another text" if is_mostly_valid else f"--held-out {valid.prefix} drops them"
    )
    yield Finding(
        "validation",
        evidence.corpus.prefix,
        share,
        lines,
        f"has {share:.1%} of the longer lines of {valid.prefix}, so that validation is too "
        f"optimistic ({_such_as(lines)}); {remedy}",
    )


def _entities(evidence: Evidence) -> Iterator[Finding]:
    for side, is_unescaped in enumerate(evidence.are_unescaped):
        if is_unescaped:
            lines = [unescape(line) for line in evidence.sides[side]]
            what, remedy = "escaped twice, like &amp;amp;", "unescape the file once"
        else:
            lines = evidence.sides[side]
            what = "like &amp;"
            remedy = (
                "--unescape turns them into characters"
                if evidence.can_be_unescaped
                else "replace them in the file"
            )
        message = f"{{share}} of the lines have HTML entities {what} ({{lines}}); {remedy}"
        yield from _characters("entities", has_entity, message, evidence, side, lines)


def _encoding(evidence: Evidence) -> Iterator[Finding]:
    mojibake = (
        "{share} of the lines have UTF-8 that was read as another encoding, like \u00c3\u00a9 for "
        "\u00e9 ({lines}); convert the original file again"
    )
    lost = (
        "{share} of the lines have \ufffd, for characters that were lost ({lines}); convert the "
        "original file again"
    )
    for side, lines in enumerate(evidence.sides):
        for is_wrong, message in ((has_mojibake, mojibake), (has_lost_character, lost)):
            yield from _characters("encoding", is_wrong, message, evidence, side, lines)


def _characters(
    check: str,
    is_wrong: Callable[[str], bool],
    message: str,
    evidence: Evidence,
    side: int,
    lines: Sequence[str],
) -> Iterator[Finding]:
    found = np.array([is_wrong(line) for line in lines], bool)
    path = evidence.paths[side]
    yield from _in_lines(check, evidence, path, found, len(lines), message, MIN_SHARE_OF_CHARACTERS)


@dataclass(frozen=True)
class Check:
    """A check of a text.

    Attributes:
        find: yields its findings.
        needs_valid: compares the training text with the validation text, which is not checked.
    """

    find: Callable[[Evidence], Iterator[Finding]]
    needs_valid: bool = False


CHECKS: dict[str, Check] = {
    "misaligned": Check(_misaligned),
    "swapped": Check(_swapped, needs_valid=True),
    "language": Check(_languages),
    "script": Check(_scripts),
    "copies": Check(_copies),
    "duplicates": Check(_duplicates, needs_valid=True),
    "validation": Check(_validation_lines, needs_valid=True),
    "entities": Check(_entities),
    "encoding": Check(_encoding),
}
"""Checks by name, in the order of the findings."""


def find_all(evidence: Evidence) -> list[Finding]:
    """Return the findings of all checks about a text."""
    return [
        finding
        for check in CHECKS.values()
        if evidence.valid or not check.needs_valid
        for finding in check.find(evidence)
    ]


def _such_as(lines: Sequence[int]) -> str:
    *others, last = map(str, lines)
    if not others:
        return f"such as line {last}"
    return f"such as lines {', '.join(others)} and {last}"
