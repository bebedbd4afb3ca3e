"""`nmtkit align`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, starmap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.schema import AlignRecipe
from nmtkit_cli.command import FILE, PATH, refuse_without_effect
from nmtkit_cli.options import recipe_command, refuse_idle_settings
from nmtkit_cli.output_options import OutputFile, output_options
from nmtkit_cli.streams import (
    line_reporter,
    open_pairs,
    say,
    say_opening,
    standard_input,
    warn,
    work_reporter,
    write_lines,
)

if TYPE_CHECKING:
    from nmtkit.decoding.answers import Pair

EXAMPLES = """\
nmtkit align en-de/ --reverse de-en/ --source train.en --target train.de --output links

# choose once the layers from which models without a trained alignment head are read
nmtkit align en-de/ --reverse de-en/ --choose-layer --source train.en --target train.de

# pairs in two columns, one model, probabilities after a tab
paste test.en test.de | nmtkit align en-de/ --probabilities"""

NUM_CHOOSING = 1000
"""Pairs on which --choose-layer compares layers."""

IDLE_IN_CHOOSING = (
    *("symmetrize", "min_weight", "probabilities"),
    *("output_format", "chunk_lines", "devices"),
)
"""Settings that have no effect with --choose-layer."""


@recipe_command("align", AlignRecipe, EXAMPLES, rare=("overwrite",))
@click.argument("model", type=PATH, metavar="MODEL")
@click.option("--reverse", type=PATH, metavar="MODEL", help="Model of the other direction.")
@click.option("--source", type=FILE, metavar="FILE", help="Source lines (or .gz).")
@click.option("--target", type=FILE, metavar="FILE", help="Target lines (or .gz).")
@output_options("--output", "output", "Write to this file (or .gz).")
@click.option(
    "--choose-layer",
    is_flag=True,
    help="Store the layers on which both models agree best.",
)
def command(
    recipe: AlignRecipe,
    model: Path,
    reverse: Path | None,
    source: Path | None,
    target: Path | None,
    output: OutputFile | None,
    choose_layer: bool,
) -> None:
    """Link the words of given pairs of lines, by the attention of models that translate them.

    Reads --source and --target, or source, tab and target from standard input. Writes a line per
    pair, in order: links `0-0 1-2` of a source and a target word, from 0. Words are those between
    spaces; in scripts without spaces, each grapheme cluster. A blank line has no links. With
    --output, the same command continues after an interruption.

    --choose-layer reads the first 1,000 pairs. It prints how far the links of the two models agree,
    from 0 to 1, by the layer of each and the step: the one that reads a word, or that predicts it.
    It stores the best with each model. A model that was trained with --guided-alignment-weight is
    read where it learned to align; others as --choose-layer stored, or else in the last layer but
    one, at the step that predicts a word.
    """
    models = [model] if reverse is None else [model, reverse]
    _check_usage(recipe, models, (source, target), output)
    if choose_layer:
        refuse_without_effect({"--output": output}, "with --choose-layer")
        refuse_idle_settings(recipe, IDLE_IN_CHOOSING, "with --choose-layer")
        _choose_layer(models, recipe, source, target)
    elif output is not None and source is not None and target is not None:
        from nmtkit.decoding.corpus import CorpusFiles, align_files

        files = CorpusFiles((source, target), output.path, overwrite=output.overwrite)
        align_files(models, recipe, files, work_reporter(), warn)
    else:
        _align_stream(models, recipe, source, target)


def _check_usage(
    recipe: AlignRecipe,
    models: Sequence[Path],
    texts: tuple[Path | None, Path | None],
    output: OutputFile | None,
) -> None:
    """Raise click.UsageError for half a pair of files, or options without effect."""
    source, target = texts
    if (source is None) != (target is None):
        raise click.UsageError(
            "--source and --target go together; give both, or two columns on standard input"
        )
    if source is None:
        refuse_without_effect({"--output": output}, "without --source and --target")
    else:
        refuse_idle_settings(recipe, ["input_format"], "with --source and --target")
    if len(models) == 1:
        refuse_idle_settings(recipe, ["symmetrize"], "without --reverse")


@contextmanager
def _opened_pairs(
    recipe: AlignRecipe, source: Path | None, target: Path | None
) -> Iterator[Iterator["Pair"]]:
    """Open two texts, or standard input, as pairs of lines."""
    from nmtkit.decoding.answers import Pair
    from nmtkit.decoding.formats import read_pairs

    if source is None or target is None:
        yield read_pairs(standard_input(), recipe.links.input_format, "standard input", warn)
        return
    with open_pairs(source, target, warn) as pairs:
        yield starmap(Pair, pairs)


def _align_stream(
    models: Sequence[Path], recipe: AlignRecipe, source: Path | None, target: Path | None
) -> None:
    """Align pairs to standard output."""
    say_opening(*models)
    from nmtkit.decoding.formats import make_links_writer
    from nmtkit.decoding.workers import open_aligner
    from nmtkit.text.lines import FIRST_CHUNK_LINES, count_lines, numbered_chunks

    write, number = make_links_writer(recipe.links), 0
    total = count_lines(source) if source and source.is_file() else None
    with _opened_pairs(recipe, source, target) as pairs:
        reads_ahead = source is not None or standard_input().seekable()
        aligner = open_aligner(models, recipe, warn, say, reads_ahead=reads_ahead)
        size = recipe.aligning.chunk_lines
        chunks = numbered_chunks(pairs, size, FIRST_CHUNK_LINES, until_error=True)
        with line_reporter().counting("aligned", "lines", total) as counting:
            for result in aligner.answer_all(chunks):
                numbered = enumerate(result.answers, number)
                write_lines(line for place, answer in numbered for line in write(answer, place))
                number += len(result.answers)
                counting.add(result.num_lines, result.num_tokens)


def _choose_layer(
    models: Sequence[Path], recipe: AlignRecipe, source: Path | None, target: Path | None
) -> None:
    """Store the layers on which two models agree best, and print the agreement of all."""
    if len(models) == 1:
        raise click.UsageError("--choose-layer compares two directions; give --reverse, too")
    say_opening(*models)
    from nmtkit.decoding.loading import load_aligner
    from nmtkit.errors import DataError
    from nmtkit.storage.model_description import store_aligning_attention
    from nmtkit.storage.run_folder import find_model

    with _opened_pairs(recipe, source, target) as pairs:
        aligner = load_aligner(models, recipe, warn)
        agreements = aligner.agreements([*islice(pairs, NUM_CHOOSING)])
    ranked = sorted(agreements.items(), key=lambda pair: -pair[1])
    if not ranked[0][1]:
        raise DataError(
            f"no link of {models[0]} is one of {models[1]}, so nothing is stored; give pairs of "
            "lines and their translations [--source]"
        )
    for path, one, attention in zip(models, aligner.models, ranked[0][0], strict=True):
        if len(one.choices) > 1:
            store_aligning_attention(find_model(path), attention)
            say(f"{path}: stored {attention.place}")
    write_lines(
        f"{one.place}\t{other.place}\t{agreement:.4f}" for (one, other), agreement in ranked
    )
