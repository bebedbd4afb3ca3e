"""`nmtkit translate`."""

import gc
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

import click

from nmtkit.config.problems import shown
from nmtkit.config.schema import TranslateRecipe
from nmtkit_cli.command import PATH, refuse_without_effect
from nmtkit_cli.options import recipe_command, refuse_idle_settings
from nmtkit_cli.streams import (
    line_reporter,
    prompting,
    say,
    say_opening,
    standard_input,
    warn,
    work_reporter,
    write_lines,
)

EXAMPLES = """\
nmtkit translate model/ < test.en > test.de

# a corpus; the same command continues after a kill
nmtkit translate model/ --input big.en.gz --output big.de.gz

# an ensemble; the four best translations per line, with scores
nmtkit translate model1/ model2/ --beam 8 --n-best 4 --output-format moses < test.en

# line by line, as input arrives
tail -f log.en | nmtkit translate model/ --stream

# ten sampled translations per line
nmtkit translate model/ --sample --n-best 10 --temperature 0.8 --output-format json < test.en"""


WEIGHTS = (".bin", ".npz", ".pt", ".pth", ".safetensors")
"""Suffixes of files with weights, which are no text."""

DOCUMENTS = (
    *(".ass", ".srt", ".sub", ".vtt", ".tmx", ".xlf", ".xliff", ".po", ".html", ".htm", ".xml"),
    *(".sgm", ".sgml", ".csv", ".tsv", ".doc", ".docx", ".odt", ".pdf", ".ppt", ".pptx", ".rtf"),
    *(".xls", ".xlsx"),
)
"""Suffixes of documents, whose lines are not sentences alone."""


def read_part(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Read I/N, part I of N."""
    if text is None:
        return None
    numbers = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    number, count = map(int, numbers.groups()) if numbers else (0, 0)
    if not 0 < number <= count:
        raise click.BadParameter(f"{shown(text)} is not part I of N; give one such as 2/4")
    return number, count


@recipe_command("translate", TranslateRecipe, EXAMPLES, rare=("shard", "overwrite", "as_text"))
@click.argument("models", type=PATH, metavar="MODEL...", required=True, nargs=-1)
@click.option("--input", "source", type=PATH, metavar="FILE", help="Translate this file (or .gz).")
@click.option("--output", "target", type=PATH, metavar="FILE", help="Write to this file (or .gz).")
@click.option(
    "--shard", callback=read_part, metavar="I/N", help="Translate shard I of N of the file."
)
@click.option("--overwrite", is_flag=True, help="Replace the output at the end, if it exists.")
@click.option("--as-text", is_flag=True, help="Translate each line of a document, markup too.")
def command(
    recipe: TranslateRecipe,
    models: tuple[Path, ...],
    source: Path | None,
    target: Path | None,
    shard: tuple[int, int] | None,
    overwrite: bool,
    as_text: bool,
) -> None:
    """Translate standard input to standard output, or a file into another.

    MODEL is a model folder, a checkpoint, or a run: its best checkpoint, or RUN/last. Several
    models with the same vocabulary form an ensemble. Writes one line per input line, in order, as
    UTF-8; an empty line stays empty. Lines are translated in chunks, or one by one on a terminal
    and with --stream. From file to file, the same command continues after an interruption.
    """
    if source and not as_text:
        _refuse_document(source)
    flags = {"--shard": shard, "--overwrite": overwrite, "--as-text": as_text}
    recipe = _check_usage(models, recipe, source, target, flags)
    if source is None or target is None:
        _translate_stream(models, recipe)
    else:
        from nmtkit.decoding.corpus import CorpusFiles, translate_file

        files = CorpusFiles((source,), target, shard or (1, 1), overwrite)
        translate_file(models, recipe, files, work_reporter(), warn)


def _check_usage(
    models: Sequence[Path],
    recipe: TranslateRecipe,
    source: Path | None,
    target: Path | None,
    flags: Mapping[str, object],
) -> TranslateRecipe:
    """Return the recipe without what has no effect.

    Args:
        models, recipe, source, target: of the command.
        flags: values of options that need files, by name.

    Raises:
        click.UsageError: text as a model, half a pair of files, options without effect.
    """
    from nmtkit.storage.run_folder import find_model

    with suppress(OSError):  # the library reports a path that cannot be read
        for path in models:
            if path.suffix not in WEIGHTS and find_model(path).is_file():
                text = quote(str(path))
                remedy = (
                    f"translate it with --input {text} --output FILE, or < {text}"
                    if source is None
                    else "give the model first"
                )
                raise click.UsageError(f"{path} is a file, not a model; {remedy}")
    if (source is None) != (target is None):
        raise click.UsageError(
            "--input and --output go together; give both, or `< FILE` and `> FILE`"
        )
    if source is None:
        refuse_without_effect(flags, "without --input and --output")
        return recipe
    if Path("-") in (source, target):
        raise click.UsageError(
            "--input and --output are files; for standard input and output leave both out, and "
            "write `< FILE` and `> FILE`"
        )
    if not recipe.output.stream:
        return recipe
    refuse_idle_settings(recipe, ["stream"], "with --input and --output")
    return replace(recipe, output=replace(recipe.output, stream=False))


def _refuse_document(path: Path) -> None:
    """Raise click.UsageError for a document by its name: its markup would be translated too."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in DOCUMENTS:
        raise click.UsageError(
            f"{path}: {suffix} is a document, not text with a sentence per line, and all of it "
            "would be translated; extract its sentences, one per line, or add --as-text"
        )


def _translate_stream(models: Sequence[Path], recipe: TranslateRecipe) -> None:
    """Translate standard input to standard output; on a terminal, line by line."""
    say_opening(*models)
    from nmtkit.decoding.answers import Tally
    from nmtkit.decoding.formats import make_writer, read_requests, summarize
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
    size = 1 if recipe.output.stream else recipe.translation.chunk_lines
    number = 0
    tally = Tally()
    # Who gets line by line sees the lines, and the speed is that of the input.
    reporter = SILENT if size == 1 else line_reporter()
    with reporter.counting("translated", "lines") as counting, prompting(text) as ask:
        chunks = numbered_chunks(requests, size, FIRST_CHUNK_LINES, until_error=True)
        for result in translator.answer_all(chunks):
            numbered = enumerate(result.answers, number)
            write_lines(line for place, answer in numbered for line in write(answer, place))
            number += len(result.answers)
            for answer in result.answers:
                tally.add(answer)
            counting.add(result.num_lines, result.num_tokens)
            if result.answers:
                ask()
    if summary := summarize(tally, translator.target_kind):
        say(summary)
