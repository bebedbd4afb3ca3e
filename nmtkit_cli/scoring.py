"""The modes of `nmtkit score`: against references, by a model, and a contrastive suite."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.command import given_one, refuse_without_effect
from nmtkit_cli.options import idle_flags, typed_flags
from nmtkit_cli.streams import line_reporter, say, standard_input, warn, work_reporter, write_lines

if TYPE_CHECKING:
    from nmtkit.evaluation.texts import Texts
    from nmtkit.text.translations import TranslatedLine

BY_REFERENCE, BY_MODEL = ("metrics", "significance", "breakdown"), ("scoring", "runtime")
INPUT = "standard input"


def check_usage(
    recipe: ScoreRecipe,
    systems: Sequence[Path],
    references: Sequence[Path],
    model: Path | None,
    source: Path | None,
) -> None:
    """Raise click.UsageError unless one mode is chosen, without options of the other one."""
    test_set = recipe.metrics.test_set
    given = {"--reference": references or None, "--test-set": test_set or None, "--model": model}
    if given_one(given) is None:
        if recipe.scoring.contrastive:
            raise click.UsageError("--contrastive needs --model; give both")
        what = "; files without an option are translations" if systems else ""
        raise click.UsageError(f"give --reference, --test-set, or --model and --source{what}")
    is_contrastive = bool(model and recipe.scoring.contrastive)
    if is_contrastive:
        _refuse_texts(recipe, systems, source)
    else:
        _check_source(recipe, model, source)
    idle, condition = (BY_MODEL, "without") if model is None else (BY_REFERENCE, "with")
    used = ("--sentence-level",) if is_contrastive else ()
    typed = [flag for flag in typed_flags(ScoreRecipe, idle) if flag not in used]
    refuse_without_effect(typed, f"{condition} --model")
    if flags := [flag for flag in idle_flags(recipe, idle) if flag not in used]:
        warn(f"{' and '.join(flags)} of --config: no effect {condition} --model")
    if model is not None and len(systems) > 1:
        raise click.UsageError(
            f"--model scores one file of translations, not {len(systems)}; score each one with "
            "a separate command"
        )


def _check_source(recipe: ScoreRecipe, model: Path | None, source: Path | None) -> None:
    """Raise click.UsageError unless --source is given exactly where sources are needed."""
    given = ["--source"] if source else []
    if recipe.input.input_format == "json":
        refuse_without_effect(given, "with --input-format json, whose objects have the sources")
    elif model is not None and source is None:
        raise click.UsageError(
            "--model needs --source, --input-format json, or --contrastive; give one of them"
        )
    elif model is None and not recipe.metrics.metric_command:
        refuse_without_effect(given, "without --model or --metric-command")


def _refuse_texts(recipe: ScoreRecipe, systems: Sequence[Path], source: Path | None) -> None:
    """Raise click.UsageError if texts are given that a contrastive suite has itself."""
    given = ["--source"] if source else []
    given += ["--input-format"] if recipe.input.input_format != "text" else []
    refuse_without_effect([*given, *map(str, systems)], "with --contrastive")


def score_by_reference(
    recipe: ScoreRecipe,
    systems: Sequence[Path],
    references: Sequence[Path],
    source: Path | None,
    as_json: bool,
) -> None:
    """Print the scores of translations from files, or from standard input without any."""
    from nmtkit.evaluation.evaluate import evaluate, line_type
    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.reporting.scores import as_objects, as_text

    if recipe.breakdown.sentence_level:
        report = line_type(recipe.metrics).line_report(recipe.metrics)
        texts = _read_texts(recipe, systems, references, source)
        for part in report(texts, as_json, line_reporter()):
            for remark in part.remarks:
                say(remark)
            write_lines(part.lines)
        return
    metrics = make_metrics(recipe.metrics)
    texts = _read_texts(recipe, systems, references, source)
    evaluation = evaluate(texts, metrics, recipe.significance, recipe.breakdown, work_reporter())
    objects = as_objects(evaluation)
    write_lines(map(json.dumps, objects) if as_json else as_text(evaluation))


def _read_texts(
    recipe: ScoreRecipe, systems: Sequence[Path], references: Sequence[Path], source: Path | None
) -> "Texts":
    """Read and check systems, references and source; warn about suspicious texts."""
    from nmtkit.evaluation.evaluate import line_type
    from nmtkit.evaluation.texts import (
        Text,
        Texts,
        common_source,
        read_test_set,
        read_text,
        read_translated,
    )
    from nmtkit.text.lines import decode_lines

    metrics = recipe.metrics
    right = [read_text(path) for path in references]
    if metrics.test_set:
        right = read_test_set(metrics.test_set, metrics.language_pair)
    left = read_text(source) if source else None
    translations = []
    if recipe.input.input_format == "json":
        found = []
        paths: Sequence[Path | None] = systems or [None]
        for path in paths:
            with _opened(path) as (stream, name):
                found.append(read_translated(stream, name))
        left = common_source([one for one, _ in found])
        translations = [text for _, text in found]
    elif systems:
        translations = [read_text(path) for path in systems]
    else:
        lines = decode_lines(standard_input(), INPUT, "error", warn)
        translations = [Text(INPUT, list(lines))]
    texts = Texts(translations, right, left)
    texts.check()
    for warning in line_type(metrics).input_warnings(texts):
        warn(warning)
    return texts


@contextmanager
def _opened(path: Path | None) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file of translations, or standard input; return it with its name in messages."""
    from nmtkit.text.lines import open_bytes

    if path is None:
        yield standard_input(), INPUT
    else:
        with open_bytes(path) as stream:
            yield stream, str(path)


@contextmanager
def _opened_pairs(system: Path | None, source: Path | None) -> Iterator[Iterator["TranslatedLine"]]:
    """Open translations with their sources, in JSON lines or in two texts."""
    from nmtkit.text.lines import decode_lines, pair_lines
    from nmtkit.text.translations import plain_line, read_translations

    with _opened(system) as (stream, name):
        if source is None:
            yield read_translations(stream, name)
            return
        with _opened(source) as (sources, source_name):
            texts = (
                decode_lines(sources, source_name, "error", warn),
                decode_lines(stream, name, "error", warn),
            )
            yield starmap(plain_line, pair_lines(*texts, (source_name, name)))


def score_by_model(
    recipe: ScoreRecipe, systems: Sequence[Path], model: Path, source: Path | None, as_json: bool
) -> None:
    """Print the log-probability of each translation; print the totals as a message.

    Args:
        recipe: the settings.
        systems: the file of translations; without one, they are standard input.
        model: the model.
        source: the file of sources; None = the translations are JSON lines, which have them.
        as_json: print an object per line.
    """
    if sys.stderr.isatty():
        say(f"opening {model} (loading PyTorch)")
    from nmtkit.decoding.loading import load_scorer
    from nmtkit.decoding.scorer import CHUNK_LINES, ScoredLine, Totals
    from nmtkit.text.json_lines import write_object
    from nmtkit.text.lines import FIRST_CHUNK_LINES, count_lines, numbered_chunks
    from nmtkit.text.translations import SCHEMA

    def plain(_line: "TranslatedLine", scored: ScoredLine) -> str:
        return f"{scored.log_prob:.6f}\t{len(scored.tokens)}"

    def detailed(line: "TranslatedLine", scored: ScoredLine) -> str:
        found = {
            "translation": line.best.text,
            "log_prob": scored.log_prob,
            "perplexity": scored.perplexity,
            "tokens": scored.tokens,
            "token_log_probs": scored.token_log_probs,
        }
        return write_object({"schema": SCHEMA, "source": line.source, **line.others, **found})

    totals = Totals()
    system = systems[0] if systems else None
    counted_file = source or system
    with _opened_pairs(system, source) as lines:
        scorer = load_scorer(model, recipe)
        total = count_lines(counted_file) if counted_file and counted_file.is_file() else None
        with line_reporter().counting("scored", "lines", total) as progress:
            for first, chunk in numbered_chunks(lines, CHUNK_LINES, FIRST_CHUNK_LINES):
                pairs = [(line.source, line.best.text) for line in chunk]
                scored = scorer.score_chunk(pairs, first, progress.add)
                write_lines(map(detailed if as_json else plain, chunk, scored))
                totals.add(scored)
    say(
        f"lines={totals.num_lines} tokens={totals.num_tokens} words={totals.num_words} "
        f"log_prob={totals.log_prob:.4f} perplexity={totals.perplexity:.4f} "
        f"word_perplexity={totals.word_perplexity:.4f}"
    )


def score_contrastive(recipe: ScoreRecipe, model: Path, as_json: bool) -> None:
    """Print how often a model is right in the contrastive suite of the recipe, per category.

    Args:
        recipe: the settings; with sentence_level, a line per example is printed instead, and the
            accuracy of all as a message.
        model: the model.
        as_json: print an object per category, or per example.
    """
    from nmtkit.decoding.contrastive import Tally, judge, read_examples
    from nmtkit.reporting.scores import accuracy_objects, accuracy_text, judgement_lines

    suite = Path(recipe.scoring.contrastive)
    # A pipe can be read only once.
    total = sum(1 + len(one.wrong) for one in read_examples(suite)) if suite.is_file() else None
    if sys.stderr.isatty():
        say(f"opening {model} (loading PyTorch)")
    from nmtkit.decoding.loading import load_scorer

    is_by_example = recipe.breakdown.sentence_level
    tally = Tally()
    scorer = load_scorer(model, recipe)
    reporter = line_reporter() if is_by_example else work_reporter()
    with reporter.counting("scored", "translations", total) as progress:
        for judgements in judge(scorer, read_examples(suite), progress.add):
            tally.add(judgements)
            if is_by_example:
                write_lines(judgement_lines(judgements, as_json))
    accuracies = tally.accuracies()
    if is_by_example:
        everything = accuracies[-1]
        say(
            f"examples={everything.num_examples} right={everything.num_right} "
            f"accuracy={everything.percent:.2f}"
        )
    elif as_json:
        write_lines(map(json.dumps, accuracy_objects(accuracies)))
    else:
        write_lines(accuracy_text(suite.name, accuracies))
