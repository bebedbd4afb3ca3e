"""Signs that a text is not what it should be: subwords, tokens, raw trees, missing lines."""

import re
from collections.abc import Callable, Iterator, Sequence

from nmtkit.evaluation.texts import Text, Texts

_JOINED_BY_MARK = re.compile(r"@@(?: |$)")
_WORD_MARK = "\u2581"
"""What SentencePiece writes for the space before a word."""
_SENTENCE_END = re.compile(r"[.!?]\s*$")
_SEPARATE_SENTENCE_END = re.compile(r"\S\s+[.!?]\s*$")
_MANY = 0.5
"""More sentence ends than this, of all, are separate in a tokenised text."""
_OUTER_BRACKET = re.compile(r"\s*\(([^\s()]*)")
_UNCLEAN_ROOTS = ("", "ROOT", "S1")
"""Outer brackets of treebanks and of other tools, which count unless they are named TOP."""


def doubts(texts: Texts) -> Iterator[str]:
    """Yield warnings about the translations of checked texts."""
    reference = texts.references[0].lines
    for system in texts.systems:
        yield from _warning(
            system,
            lambda line, _: bool(_JOINED_BY_MARK.search(line)),
            "'@@', which marks subwords: join them before scoring, as by `sed -E 's/@@( |$)//g'`",
        )
        yield from _warning(
            system,
            lambda line, _: _WORD_MARK in line,
            "U+2581, by which SentencePiece marks words: decode the text before scoring",
        )
        if _is_tokenised(system.lines) and not _is_tokenised(reference):
            yield (
                f"{system.name} looks tokenised, by its spaces before full stops, and the "
                "reference does not, so that scores are too low: detokenise it before, as by "
                "`sacremoses -l LANG detokenize`"
            )
        yield from _missing(system, reference)


def doubts_of_trees(texts: Texts) -> Iterator[str]:
    """Yield warnings about parses and gold trees."""
    gold = texts.references[0].lines

    def is_unclean(line: str, index: int) -> bool:
        parsed, right = map(_OUTER_BRACKET.match, (line, gold[index]))
        if not parsed or not right or parsed[1] == right[1]:
            return False
        return parsed[1] in _UNCLEAN_ROOTS or right[1] in _UNCLEAN_ROOTS

    for system in texts.systems:
        yield from _warning(
            system,
            is_unclean,
            "another outer bracket than the gold tree, and one of the two counts: clean both sides "
            "with `nmtkit trees clean`",
        )
        yield from _missing(system, gold)


def _missing(system: Text, reference: Sequence[str]) -> Iterator[str]:
    return _warning(
        system,
        lambda line, index: not line.strip() and bool(reference[index].strip()),
        "no translation, where the reference has one",
    )


def _warning(system: Text, is_strange: Callable[[str, int], bool], what: str) -> Iterator[str]:
    """Yield the number of strange lines and the first of them, if there are any."""
    strange = [index for index, line in enumerate(system.lines) if is_strange(line, index)]
    if strange:
        have = "1 line has" if len(strange) == 1 else f"{len(strange)} lines have"
        yield f"{system.name}:{strange[0] + 1}: {have} {what}"


def _is_tokenised(lines: Sequence[str]) -> bool:
    ends = [line for line in lines if _SENTENCE_END.search(line)]
    separate = sum(bool(_SEPARATE_SENTENCE_END.search(line)) for line in ends)
    return separate > _MANY * len(ends)
