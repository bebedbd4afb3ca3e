"""The two flows of `nmtkit translate`: standard input to standard output, and file to file."""

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from nmtkit.config.schema import TranslateRecipe
from nmtkit.signals import EndedBySignal
from nmtkit.units import counted
from nmtkit_cli.command import refuse_without_effect
from nmtkit_cli.streams import (
    line_reporter,
    prompting,
    say,
    standard_input,
    warn,
    work_reporter,
    write_lines,
)

if TYPE_CHECKING:
    from nmtkit.decoding.corpus import CorpusTranslation

FIRST_CHUNK_LINES = 64
"""Lines of the first chunk of standard input, so that its translations come soon."""


def check_usage(
    recipe: TranslateRecipe,
    source: Path | None,
    target: Path | None,
    shard: tuple[int, int] | None,
    overwrite: bool,
) -> None:
    """Raise click.UsageError for half a pair of files, or options without effect."""
    if (source is None) != (target is None):
        raise click.UsageError("--input and --output go together; give both or neither")
    if source is None:
        options = {"--shard": shard is not None, "--overwrite": overwrite}
        given = [name for name, is_given in options.items() if is_given]
        refuse_without_effect(given, "without --input and --output")
    elif recipe.translation.stream:
        refuse_without_effect(["--stream"], "with --input and --output")


def translate_stream(models: Sequence[Path], recipe: TranslateRecipe) -> None:
    """Translate standard input to standard output; on a terminal, line by line."""
    from nmtkit.decoding.formats import make_writer, read_requests
    from nmtkit.decoding.workers import open_translator
    from nmtkit.progress.counting import SILENT
    from nmtkit.text.lines import LINE_BYTES, decode_lines, numbered_chunks

    text = standard_input()
    if text.isatty():
        recipe = replace(recipe, translation=replace(recipe.translation, chunk_lines=1))
    # A pipe, unlike a file, may keep its reader waiting.
    translator = open_translator(models, recipe, warn, reads_ahead=text.seekable())
    write = make_writer(recipe.output)
    gc.freeze()  # torch's million objects stay to the end; scanning them halves the speed of lines
    max_bytes = LINE_BYTES[recipe.output.input_format]
    lines = decode_lines(text, "standard input", "replace", warn, max_bytes)
    requests = read_requests(lines, recipe.output, "standard input")
    size = 1 if recipe.translation.stream else recipe.translation.chunk_lines
    number = 0
    repair_counts: Counter[bool | None] = Counter()
    # Who gets line by line sees the lines, and the speed is that of the input.
    reporter = SILENT if size == 1 else line_reporter()
    with reporter.counting("translated", "lines") as counting, prompting(text) as ask:
        for result in translator.answer_all(numbered_chunks(requests, size, FIRST_CHUNK_LINES)):
            numbered = enumerate(result.answers, number)
            write_lines(line for place, answer in numbered for line in write(answer, place))
            number += len(result.answers)
            repair_counts.update(answer.translations[0].is_repaired for answer in result.answers)
            counting.add(result.num_lines, result.num_tokens)
            if result.answers:
                ask()
    if summary := translator.summarize(repair_counts):
        say(summary)


def translate_corpus(
    models: Sequence[Path],
    recipe: TranslateRecipe,
    source: Path,
    target: Path,
    shard: tuple[int, int] | None,
    overwrite: bool,
) -> None:
    """Translate a file, or a shard of it, into another one; continue what was begun before."""
    from nmtkit.data.binary import WHOLE, Part
    from nmtkit.decoding.corpus import FORMAT, VERSION, CorpusTranslation, open_input, plan
    from nmtkit.storage.growing_file import growing_file
    from nmtkit.storage.model_path import find_model

    folders = [find_model(path) for path in models]
    with (
        open_input(source, target) as text,
        growing_file(target, FORMAT, VERSION, overwrite=overwrite) as file,
    ):
        work = plan(folders, recipe, source, text, Part(*shard) if shard else WHOLE)
        corpus = CorpusTranslation(work, file)
        if corpus.num_lines_done:
            say(f"continuing after line {corpus.next_line - 1:,} of {work.num_input_lines:,}")
        try:
            if corpus.num_lines_done < work.num_lines:
                _translate_rest(folders, recipe, corpus, source, text)
        except KeyboardInterrupt as stop:
            if corpus.num_lines_done and not isinstance(stop, EndedBySignal):
                say(f"the same command continues after line {corpus.next_line - 1:,}")
            raise
        corpus.finish()
    say(f"translated {counted(work.num_lines, 'lines')} into {target}")


def _translate_rest(
    folders: Sequence[Path],
    recipe: TranslateRecipe,
    corpus: "CorpusTranslation",
    source: Path,
    text: BinaryIO,
) -> None:
    """Translate the lines of a corpus that have no translation yet."""
    from nmtkit.decoding.formats import make_writer, read_requests
    from nmtkit.decoding.workers import open_translator
    from nmtkit.text.lines import LINE_BYTES, decode_lines

    translator = open_translator(folders, recipe, warn, reads_ahead=True)
    write = make_writer(recipe.output)
    gc.freeze()  # as in `translate_stream`
    corpus.begin()
    text.seek(0)
    max_bytes, first = LINE_BYTES[recipe.output.input_format], corpus.next_line
    lines = decode_lines(text, str(source), "replace", warn, max_bytes, first)
    requests = read_requests(lines, recipe.output, str(source), first)
    done, total = corpus.num_lines_done, corpus.num_lines
    with work_reporter().counting("translated", "lines", total, done) as counting:
        for result in translator.answer_all(corpus.chunks(requests)):
            corpus.add(result.answers, write)
            counting.add(result.num_lines, result.num_tokens)
    if summary := translator.summarize(corpus.repair_counts):
        say(summary)
