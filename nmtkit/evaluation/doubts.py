"""Signs that a text is not what it should be: subwords, tokens, missing lines."""

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


def doubts(texts: Texts) -> Iterator[str]:
    """Yield warnings about the translations of checked texts."""
    reference = texts.references[0].lines
    for system in texts.systems:
        yield from warning(
            system,
            lambda line, _: bool(_JOINED_BY_MARK.search(line)),
            "'@@', which marks subwords: join them before scoring, as by `sed -E 's/@@( |$)//g'`",
        )
        yield from warning(
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
        yield from missing(system, reference)


def missing(system: Text, reference: Sequence[str]) -> Iterator[str]:
    """Yield a warning about blank lines whose reference is not blank, if there are any."""
    return warning(
        system,
        lambda line, index: not line.strip() and bool(reference[index].strip()),
        "no translation, where the reference has one",
    )


def warning(system: Text, is_strange: Callable[[str, int], bool], what: str) -> Iterator[str]:
    """Yield the number of strange lines and the first of them, if there are any."""
    strange = [index for index, line in enumerate(system.lines) if is_strange(line, index)]
    if strange:
        have = "1 line has" if len(strange) == 1 else f"{len(strange)} lines have"
        yield f"{system.name}:{strange[0] + 1}: {have} {what}"


def _is_tokenised(lines: Sequence[str]) -> bool:
    ends = [line for line in lines if _SENTENCE_END.search(line)]
    separate = sum(bool(_SEPARATE_SENTENCE_END.search(line)) for line in ends)
    return separate > _MANY * len(ends)
