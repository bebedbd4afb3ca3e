"""What a translator of the library answers to lines."""

from collections.abc import Iterable, Iterator, Sequence

from nmtkit.decoding.answers import Answer, Request
from nmtkit.decoding.translator import Translator
from nmtkit.text.lines import numbered_chunks


def translate(
    translator: Translator, lines: Iterable[str], chunk_lines: int = 4096
) -> Iterator[str]:
    """Yield the best translation of each line, which is read when its chunk is translated."""
    for result in translator.answer_all(numbered_chunks(map(Request, lines), chunk_lines)):
        yield from (answer.translation.text for answer in result.answers)


def answers_to(translator: Translator, requests: Sequence[Request], first: int = 1) -> list[Answer]:
    """Return the answers to a chunk of lines, which begins with line number `first`."""
    results = translator.answer_chunk(requests, first)
    return [answer for result in results for answer in result.answers]
