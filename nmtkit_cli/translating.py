"""The usage of `nmtkit translate`, and its flow from standard input to standard output.

A module of its own: the command's file has only its options.
"""

import gc
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from nmtkit.config.schema import TranslateRecipe
from nmtkit_cli.command import refuse_without_effect
from nmtkit_cli.options import is_typed
from nmtkit_cli.streams import (
    line_reporter,
    prompting,
    say,
    standard_input,
    warn,
    write_lines,
)

WEIGHTS = (".bin", ".npz", ".pt", ".pth", ".safetensors")
"""Suffixes of files with weights, which are no text."""


def check_usage(
    models: Sequence[Path],
    recipe: TranslateRecipe,
    source: Path | None,
    target: Path | None,
    shard: tuple[int, int] | None,
    overwrite: bool,
) -> TranslateRecipe:
    """Return the recipe without what has no effect.

    Raises:
        click.UsageError: text as a model, half a pair of files, options without effect.
    """
    from nmtkit.storage.model_path import find_model

    with suppress(OSError):  # the library reports a path that cannot be read
        for path in models:
            if path.suffix not in WEIGHTS and find_model(path).is_file():
                remedy = (
                    f"translate it with --input {path} --output FILE, or < {path}"
                    if source is None
                    else "give the model first"
                )
                raise click.UsageError(f"{path} is a file, not a model; {remedy}")
    if (source is None) != (target is None):
        raise click.UsageError(
            "--input and --output go together; give both, or `< FILE` and `> FILE`"
        )
    if source is None:
        options = {"--shard": shard is not None, "--overwrite": overwrite}
        given = [name for name, is_given in options.items() if is_given]
        refuse_without_effect(given, "without --input and --output")
        return recipe
    if Path("-") in (source, target):
        raise click.UsageError(
            "--input and --output are files; for standard input and output leave both out, and "
            "write `< FILE` and `> FILE`"
        )
    if not recipe.translation.stream:
        return recipe
    condition = "with --input and --output"
    refuse_without_effect(["--stream"] if is_typed("stream") else [], condition)
    warn(f"--stream of --config: no effect {condition}")
    return replace(recipe, translation=replace(recipe.translation, stream=False))


def translate_stream(models: Sequence[Path], recipe: TranslateRecipe) -> None:
    """Translate standard input to standard output; on a terminal, line by line."""
    from nmtkit.decoding.input_formats import read_requests
    from nmtkit.decoding.output_formats import make_writer
    from nmtkit.decoding.workers import open_translator
    from nmtkit.progress.counting import SILENT
    from nmtkit.text.lines import FIRST_CHUNK_LINES, numbered_chunks

    text = standard_input()
    if text.isatty():
        recipe = replace(recipe, translation=replace(recipe.translation, chunk_lines=1))
    # A pipe, unlike a file, may keep its reader waiting.
    translator = open_translator(models, recipe, warn, say, reads_ahead=text.seekable())
    write = make_writer(recipe.output)
    gc.freeze()  # torch's million objects stay to the end; scanning them halves the speed of lines
    requests = read_requests(text, recipe.output.input_format, "standard input", warn)
    size = 1 if recipe.translation.stream else recipe.translation.chunk_lines
    number = 0
    repair_counts: Counter[bool | None] = Counter()
    # Who gets line by line sees the lines, and the speed is that of the input.
    reporter = SILENT if size == 1 else line_reporter()
    with reporter.counting("translated", "lines") as counting, prompting(text) as ask:
        chunks = numbered_chunks(requests, size, FIRST_CHUNK_LINES, until_error=True)
        for result in translator.answer_all(chunks):
            numbered = enumerate(result.answers, number)
            write_lines(line for place, answer in numbered for line in write(answer, place))
            number += len(result.answers)
            repair_counts.update(answer.translations[0].is_repaired for answer in result.answers)
            counting.add(result.num_lines, result.num_tokens)
            if result.answers:
                ask()
    if summary := translator.summarize(repair_counts):
        say(summary)
