"""Checks of translations before scoring: subwords, tokenised text, missing translations."""

import re
from collections.abc import Callable, Iterator, Sequence

from nmtkit.evaluation.texts import Text, Texts

_JOINED_BY_MARK = re.compile(r"@@(?: |$)")
_WORD_MARK = "\u2581"
"""SentencePiece's symbol for the space before a word."""
_SENTENCE_END = re.compile(r"[.!?]\s*$")
_SEPARATE_SENTENCE_END = re.compile(r"\S\s+[.!?]\s*$")
_MAX_SEPARATE = 0.5
"""A text with a larger fraction of sentence ends after a space is taken for tokenised."""


def input_warnings(texts: Texts) -> Iterator[str]:
    """Yield warnings about the translations of checked texts."""
    reference = texts.references[0].lines
    for system in texts.systems:
        yield from line_warnings(
            system,
            lambda line, _: bool(_JOINED_BY_MARK.search(line)),
            "'@@', a mark of subwords; join them before scoring: `sed -E 's/@@( |$)//g'`",
        )
        yield from line_warnings(
            system,
            lambda line, _: _WORD_MARK in line,
            "U+2581, SentencePiece's mark of words; decode the text before scoring",
        )
        if _is_tokenized(system.lines) and not _is_tokenized(reference):
            yield (
                f"{system.name} looks tokenised (spaces before full stops) and the reference does "
                "not, which lowers scores; detokenise it: `sacremoses -l LANG detokenize`"
            )
        yield from untranslated_warnings(system, reference)


def untranslated_warnings(system: Text, reference: Sequence[str]) -> Iterator[str]:
    """Yield one warning if lines are blank whose reference is not, else nothing."""
    return line_warnings(
        system,
        lambda line, index: not line.strip() and bool(reference[index].strip()),
        "no translation, but the reference is not blank",
    )


def line_warnings(
    system: Text, is_suspect: Callable[[str, int], bool], problem: str
) -> Iterator[str]:
    """Yield one warning with the first suspect line and the number of them, or nothing.

    Args:
        system: the checked text.
        is_suspect: decides by a line and its index, from 0.
        problem: noun phrase that continues "1 line has".
    """
    suspects = [index for index, line in enumerate(system.lines) if is_suspect(line, index)]
    if suspects:
        have = "1 line has" if len(suspects) == 1 else f"{len(suspects)} lines have"
        yield f"{system.name}:{suspects[0] + 1}: {have} {problem}"


def _is_tokenized(lines: Sequence[str]) -> bool:
    ends = [line for line in lines if _SENTENCE_END.search(line)]
    separate = sum(bool(_SEPARATE_SENTENCE_END.search(line)) for line in ends)
    return separate > _MAX_SEPARATE * len(ends)
