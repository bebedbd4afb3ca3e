"""Findings about parallel text: what makes training fail or evaluation wrong, and how to fix it.

Each check looks at the facts about a sample of a text (`Evidence`), and reports a share above a
threshold. The thresholds were chosen on one corpus; docs/experiments.md has trials on others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.metrics import base_language
from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.alignment import find_misaligned
from nmtkit.data.binary import SIDES
from nmtkit.data.filters import ANY_SCRIPT, is_mostly_in_script, main_script
from nmtkit.data.languages import LanguageScores, Rank, Trigrams
from nmtkit.data.text_sample import MAX_EXAMPLES, TextSample
from nmtkit.text.characters import (
    has_control,
    has_entity,
    has_lost_character,
    has_mojibake,
    has_punctuation,
    has_subword_mark,
    is_tokenized,
    unescape,
)
from nmtkit.text.corpus import Corpus

MIN_SHARE = 0.003
"""Share of the judged lines from which most checks report them."""

MIN_LINES = 4
"""Lines from which most checks report them; fewer are chance."""

MIN_SHARE_OF_CHARACTERS = 0.001
"""The same for wrong characters, which no line has by chance."""

MIN_SHARE_OF_TOKENIZED = 0.1
"""Share of the lines with punctuation from which they are reported: raw text has up to 2 %."""

MIN_SHARE_OF_LANGUAGE = 0.005
"""Share of lines in another language from which they are reported; names have up to 0.25 %."""

MIN_SHARE_OF_DUPLICATES = 0.005
"""Share of repeated pairs from which they are reported."""

_MIN_LETTERS_OF_PAIR = 10
_SWAPPED_NATS = 0.2
"""Nats per letter by which both sides of a swapped pair fit the other language better."""
_DISTINCT_NATS = 0.6
"""Nats per letter that distinguish two languages in the median pair."""


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


@dataclass(frozen=True)
class Evidence:
    """The facts about a text that checks need, by its sample.

    Attributes:
        corpus: its files.
        sample: pairs of it.
        filters: the filters of the training text.
        valid: the same of the validation text; None if this is the validation text.
        are_unescaped: whether the vocabulary of each side turns HTML entities into characters.
        can_be_unescaped: --unescape is possible.
        are_segmented: whether each side is to be segmented already, as for words.
        has_other_tag: its tag is not that of the validation text, so it may be of other languages.
        rank: identifies the language of a line; None = languages are not measured.
        languages: of its sides, if its direction names them.
    """

    corpus: Corpus
    sample: TextSample
    filters: FilterConfig
    valid: "Evidence | None" = None
    are_unescaped: tuple[bool, bool] = (False, False)
    can_be_unescaped: bool = True
    are_segmented: tuple[bool, bool] = (False, False)
    has_other_tag: bool = False
    rank: Rank | None = None
    languages: tuple[str, ...] = ()

    @property
    def model(self) -> "Evidence | None":
        """The validation text if both texts have the same tag, so the same languages."""
        return None if self.has_other_tag else self.valid

    @property
    def name(self) -> str:
        """The text as options name it."""
        return ":".join(filter(None, (self.corpus.prefix, "-".join(self.languages))))

    @property
    def paths(self) -> tuple[str, str]:
        """The source and the target file."""
        return str(self.corpus.source), str(self.corpus.target)

    @cached_property
    def sides(self) -> list[list[str]]:
        """The source and the target lines of the sample."""
        pairs = self.sample.pairs
        return [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]

    @cached_property
    def trigrams(self) -> list[Trigrams]:
        """The trigrams of both sides."""
        return [*map(Trigrams.of, self.sides)]

    @cached_property
    def trigram_models(self) -> list[NDArray[np.float64]]:
        """The log-probability of each trigram, on both sides."""
        return [one.log_probabilities() for one in self.trigrams]

    @cached_property
    def language_scores(self) -> list[LanguageScores]:
        """How likely the lines of both sides are in each language; none without `rank`."""
        return [LanguageScores.of(side, self.rank) for side in self.sides] if self.rank else []

    @cached_property
    def are_copies(self) -> NDArray[np.bool_]:
        """Whether the target of each pair equals its source, and has letters."""
        pairs = zip(*self.sides, strict=True)
        equal = np.array([source.split() == target.split() for source, target in pairs], bool)
        return equal & (self.trigrams[0].letters > 0)

    @property
    def share_of_copies(self) -> float:
        """Share of the pairs that are copies."""
        return np.count_nonzero(self.are_copies) / max(len(self.are_copies), 1)

    @cached_property
    def nats_of_swap(self) -> NDArray[np.float64]:
        """(N,) nats per letter by which both sides of each pair fit the other language better.

        0 for pairs that are too short or copies, and for all pairs if the languages are not
        distinct.
        """
        if self.model is None:
            return np.zeros(len(self.sides[0]))
        source, target = self.trigrams
        of_source, of_target = self.model.trigram_models
        gains = of_target - of_source
        nats = np.minimum(source.means(gains), -target.means(gains))
        shorter = np.minimum(source.letters, target.letters)
        is_judged = (shorter >= _MIN_LETTERS_OF_PAIR) & ~self.are_copies
        if not is_judged.any() or np.median(np.abs(nats[is_judged])) < _DISTINCT_NATS:
            return np.zeros(len(nats))
        return np.where(is_judged, nats, 0.0)

    @property
    def are_swapped(self) -> NDArray[np.bool_]:
        """Whether source and target of each pair are exchanged."""
        return self.nats_of_swap > _SWAPPED_NATS

    @cached_property
    def scripts(self) -> list[str | None]:
        """The script of each side, by the validation text."""
        return [*map(main_script, (self.model or self).sides)]

    @cached_property
    def in_other_script(self) -> list[NDArray[np.bool_]]:
        """Whether each line is mostly in another script than its side."""
        return [
            np.array([not is_mostly_in_script(line, script) for line in lines], bool)
            if script
            else np.zeros(len(lines), bool)
            for lines, script in zip(self.sides, self.scripts, strict=True)
        ]

    def remedy(self, option: str) -> str:
        """Return what helps against pairs that an option drops from training texts only."""
        return f"{option} drops them" if self.valid else "remove them"


def _in_lines(
    check: str,
    evidence: Evidence,
    side: int | None,
    found: Iterable[bool],
    message: str,
    num_judged: int | None = None,
    min_share: float = MIN_SHARE,
) -> Iterator[Finding]:
    """Yield a finding if it concerns enough lines.

    Args:
        check: as in `Finding`.
        evidence: of the text.
        side: the side that is concerned; None = both.
        found: whether it concerns each line of the sample.
        message: with {share} and {lines}, which are replaced.
        num_judged: lines of the sample that could be judged; None = all.
        min_share: share from which it is reported.
    """
    numbers = evidence.sample.lines
    indices = np.flatnonzero(np.fromiter(found, bool))
    if num_judged is None:
        num_judged = len(numbers)
    if len(indices) < MIN_LINES or len(indices) < min_share * num_judged:
        return
    lines = [numbers[index] for index in indices[:MAX_EXAMPLES]]
    share = len(indices) / num_judged
    # Not by `format`: paths may have braces.
    message = message.replace("{share}", f"{share:.1%}").replace("{lines}", _such_as(lines))
    text = evidence.corpus.prefix if side is None else evidence.paths[side]
    yield Finding(check, text, share, lines, message)


def _swapped(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.valid:
        return
    found = evidence.are_swapped
    judged = int(np.count_nonzero(evidence.nats_of_swap))
    is_most = 2 * np.count_nonzero(found) > judged
    what = "the two files of one of them" if is_most else "the sides of these lines"
    message = (
        "{share} of the pairs have source and target swapped, compared with "
        f"{evidence.valid.corpus.prefix} ({{lines}}); exchange {what}"
    )
    yield from _in_lines("swapped", evidence, None, found, message, judged)


def _misaligned(evidence: Evidence) -> Iterator[Finding]:
    blocks = evidence.sample.blocks
    found = find_misaligned([block.pairs for block in blocks])
    if found is None:
        return
    first, last = blocks[found.first], blocks[found.last]
    lines = (first.first, last.first + len(last.pairs) - 1)
    share = (lines[1] - lines[0] + 1) / evidence.sample.num_pairs
    cause = f"; target line N belongs to source line N{-found.lag:+}" if found.lag else ""
    where = f"from about line {lines[0]} to {lines[1]} ({share:.1%})"
    earliest = blocks[max(found.first - 1, 0)].first
    message = (
        f"source and target lines do not correspond {where}{cause}; look for a missing or "
        f"additional line between lines {earliest} and {first.first + len(first.pairs) - 1}, or "
        "leave these lines out"
    )
    yield Finding("misaligned", evidence.corpus.prefix, share, lines, message)


def _languages(evidence: Evidence) -> Iterator[Finding]:
    yield from _unexpected_languages(evidence)
    known = evidence.model or evidence
    for side, scores in enumerate(evidence.language_scores):
        # The others are findings of other checks.
        is_judged = scores.are_judged & ~(
            evidence.are_copies | evidence.are_swapped | evidence.in_other_script[side]
        )
        found = is_judged & scores.in_other_language(known.language_scores[side])
        rest = known.paths[side] if evidence.model else "the rest"
        language = scores.names[int(scores.most_likely(found).argmax())]
        message = (
            f"{{share}} of the longer lines are in another language than {rest}, mostly {language} "
            "by py3langid ({lines}); read some, and remove the pairs that are wrong"
        )
        judged = int(np.count_nonzero(is_judged))
        yield from _in_lines(
            "language", evidence, side, found, message, judged, MIN_SHARE_OF_LANGUAGE
        )


def _unexpected_languages(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each side that is mostly in another language than its direction says."""
    for side, (lang, scores) in enumerate(
        zip(evidence.languages, evidence.language_scores, strict=False)
    ):
        names, code = scores.names, base_language(lang)
        counts = scores.most_likely(scores.are_judged)
        if code in names and 2 * counts[names.index(code)] < counts.sum():
            found = scores.are_judged & (scores.values.argmax(axis=1) != names.index(code))
            message = (
                f"{{share}} of the longer lines are not in {lang} by py3langid, mostly in "
                f"{names[int(counts.argmax())]} ({{lines}}); check the direction and the files"
            )
            yield from _in_lines("language", evidence, side, found, message, int(counts.sum()))


def _scripts(evidence: Evidence) -> Iterator[Finding]:
    filters = evidence.filters.source_script, evidence.filters.target_script
    for side, (filtered, script) in enumerate(zip(filters, evidence.scripts, strict=True)):
        if evidence.valid and filtered != ANY_SCRIPT:
            continue
        found = evidence.in_other_script[side] & ~evidence.are_swapped
        message = (
            f"{{share}} of the lines are mostly in another script than {script} ({{lines}}); "
            f"{evidence.remedy(f'--{SIDES[side]}-script {script}')}"
        )
        yield from _in_lines("script", evidence, side, found, message)


def _copies(evidence: Evidence) -> Iterator[Finding]:
    if evidence.valid and evidence.filters.drop_copies:
        return
    if evidence.valid and 2 * evidence.valid.share_of_copies > evidence.share_of_copies > 0:
        return  # as in the correction of text
    message = (
        "{share} of the pairs have a target equal to the source ({lines}); "
        + evidence.remedy("--drop-copies")
        + ("" if evidence.valid else ", unless the task has copies")
    )
    yield from _in_lines("copies", evidence, None, evidence.are_copies, message)


def _duplicates(evidence: Evidence) -> Iterator[Finding]:
    share, lines = evidence.sample.repeated, evidence.sample.repeated_lines
    if not evidence.valid or evidence.filters.drop_duplicates or share < MIN_SHARE_OF_DUPLICATES:
        return
    message = (
        f"{share:.1%} of the pairs repeat an earlier one ({_such_as(lines)}); --drop-duplicates "
        "drops them"
    )
    yield Finding("duplicates", evidence.corpus.prefix, share, lines, message)


def _validation_lines(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.valid or evidence.valid.name in evidence.filters.held_out:
        return
    valid, sample = evidence.valid.corpus, evidence.sample
    share = len(sample.shared) / max(sample.num_others, 1)
    if len(sample.shared) < MIN_LINES or share < MIN_SHARE:
        return
    lines = sorted({*sample.shared.values()})[:MAX_EXAMPLES]
    is_mostly_valid = 2 * share * valid.num_pairs > sample.num_pairs
    other, held_out = "give --valid another text", f"--held-out {quote(evidence.valid.name)}"
    message = (
        f"has {share:.1%} of the longer lines of {valid.prefix}, so that validation is too "
        f"optimistic ({_such_as(lines)}); {other if is_mostly_valid else f'{held_out} drops them'}"
    )
    yield Finding("validation", evidence.corpus.prefix, share, lines, message)


def _entities(evidence: Evidence) -> Iterator[Finding]:
    for side, is_unescaped in enumerate(evidence.are_unescaped):
        lines = evidence.sides[side]
        what, remedy = "like &amp;", "replace them in the file"
        if is_unescaped:
            lines = [unescape(line) for line in lines]
            what, remedy = "escaped twice, like &amp;amp;", "unescape the file once"
        elif evidence.can_be_unescaped:
            remedy = "--unescape turns them into characters"
        message = f"{{share}} of the lines have HTML entities {what} ({{lines}}); {remedy}"
        yield from _wrong_characters("entities", evidence, side, map(has_entity, lines), message)


def _encoding(evidence: Evidence) -> Iterator[Finding]:
    messages = {
        has_mojibake: "{share} of the lines have UTF-8 that was read as another encoding, like "
        "\u00c3\u00a9 for \u00e9 ({lines}); convert the original file again",
        has_lost_character: "{share} of the lines have \ufffd, for characters that were lost "
        "({lines}); convert the original file again",
        has_control: "{share} of the lines have control characters ({lines}); delete these "
        "characters",
    }
    for side, lines in enumerate(evidence.sides):
        for is_wrong, message in messages.items():
            yield from _wrong_characters("encoding", evidence, side, map(is_wrong, lines), message)


_wrong_characters = partial(_in_lines, min_share=MIN_SHARE_OF_CHARACTERS)


def _segmented(evidence: Evidence) -> Iterator[Finding]:
    of_subwords = (
        "{share} of the lines have '@@' or '\u2581', marks of subwords ({lines}); give the text "
        "before its segmentation, or --segmentation words"
    )
    of_tokens = (
        "{share} of the lines are tokenized, with a space before punctuation ({lines}), and so "
        "will translations be; give the text before its tokenization, or detokenize it"
    )
    own = partial(_in_lines, "segmented", evidence)
    for side, lines in enumerate(evidence.sides):
        if not evidence.are_segmented[side]:
            subwords = own(side, map(has_subword_mark, lines), of_subwords)
            judged = sum(map(has_punctuation, lines))
            tokens = map(is_tokenized, lines)
            tokenized = own(side, tokens, of_tokens, judged, MIN_SHARE_OF_TOKENIZED)
            yield from islice(chain(subwords, tokenized), 1)  # subwords are of tokenized text


CHECKS: dict[str, Callable[[Evidence], Iterator[Finding]]] = {
    "misaligned": _misaligned,
    "swapped": _swapped,
    "language": _languages,
    "script": _scripts,
    "copies": _copies,
    "duplicates": _duplicates,
    "validation": _validation_lines,
    "entities": _entities,
    "encoding": _encoding,
    "segmented": _segmented,
}
"""Checks by name, in the order of the findings; each yields its findings about a text."""


def find_all(evidence: Evidence) -> list[Finding]:
    """Return the findings of all checks about a text."""
    return [finding for check in CHECKS.values() for finding in check(evidence)]


def _such_as(lines: Sequence[int]) -> str:
    *others, last = map(str, lines)
    if not others:
        return f"such as line {last}"
    return f"such as lines {', '.join(others)} and {last}"
