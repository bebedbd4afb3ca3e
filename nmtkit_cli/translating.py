"""Translation of standard input to standard output by `nmtkit translate`."""

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nmtkit.config.schema import TranslateRecipe
from nmtkit_cli.streams import (
    line_reporter,
    prompting,
    say,
    standard_input,
    warn,
    write_lines,
)

FIRST_CHUNK_LINES = 64
"""Lines of the first chunk of standard input, so that its translations come soon."""


def translate_stream(models: Sequence[Path], recipe: TranslateRecipe) -> None:
    """Translate standard input to standard output; on a terminal, line by line."""
    from nmtkit.decoding.formats import LINE_BYTES, make_writer, read_requests
    from nmtkit.decoding.workers import open_translator
    from nmtkit.progress.counting import SILENT
    from nmtkit.text.lines import decode_lines, numbered_chunks

    text = standard_input()
    if text.isatty():
        recipe = replace(recipe, translation=replace(recipe.translation, chunk_lines=1))
    translator, write = open_translator(models, recipe, warn), make_writer(recipe.output)
    gc.freeze()  # torch's million objects stay to the end; scanning them halves the speed of lines
    max_bytes = LINE_BYTES[recipe.output.input_format]
    lines = decode_lines(text, "standard input", "replace", warn, max_bytes)
    requests = read_requests(lines, recipe.output, "standard input")
    size = 1 if recipe.translation.stream else recipe.translation.chunk_lines
    number = 0
    repair_counts: Counter[bool | None] = Counter()
    # Who gets line by line sees the lines, and the speed is that of the input.
    reporter = SILENT if size == 1 else line_reporter()
    with reporter.counting("translated", "lines") as progress, prompting(text) as ask:
        for result in translator.answer_all(numbered_chunks(requests, size, FIRST_CHUNK_LINES)):
            numbered = enumerate(result.answers, number)
            write_lines(line for place, answer in numbered for line in write(answer, place))
            number += len(result.answers)
            repair_counts.update(answer.translations[0].is_repaired for answer in result.answers)
            progress.add(result.num_lines, result.num_tokens)
            if result.answers:
                ask()
    if summary := translator.summarize(repair_counts):
        say(summary)
