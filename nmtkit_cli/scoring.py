"""The two modes of `nmtkit score`: against references, and by a model."""

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import ScoreRecipe
from nmtkit.errors import ConfigError, DataError
from nmtkit_cli.command import given_one, refuse_without_effect
from nmtkit_cli.options import idle_flags, typed_flags
from nmtkit_cli.page_options import PageFile
from nmtkit_cli.streams import line_reporter, say, standard_input, warn, work_reporter, write_lines

if TYPE_CHECKING:
    from nmtkit.evaluation.texts import Text, Texts

BY_REFERENCE, BY_MODEL = ("metrics", "significance", "breakdown"), ("scoring", "runtime")
INPUT = "standard input"


def check_usage(
    recipe: ScoreRecipe,
    systems: Sequence[Path],
    references: Sequence[Path],
    model: Path | None,
    source: Path | None,
    page: PageFile | None,
) -> None:
    """Raise click.UsageError unless one mode is chosen, without options of the other one."""
    test_set = recipe.metrics.test_set
    given = {"--reference": references or None, "--test-set": test_set or None, "--model": model}
    if given_one(given) is None:
        what = "; files without an option are translations" if systems else ""
        raise click.UsageError(f"give --reference, --test-set, or --model and --source{what}")
    if (model is None) != (source is None) and page is None:
        raise click.UsageError("--model and --source go together; give both or neither")
    idle, condition = (BY_MODEL, "without") if model is None else (BY_REFERENCE, "with")
    refuse_without_effect(typed_flags(ScoreRecipe, idle), f"{condition} --model")
    if page is not None:
        conflict = "--model" if model else "--sentence-level"
        is_idle = model is not None or recipe.breakdown.sentence_level
        refuse_without_effect(["--html"] if is_idle else [], f"with {conflict}")
    if flags := idle_flags(recipe, idle):
        warn(f"{' and '.join(flags)} of --config: no effect {condition} --model")
    if model is not None and len(systems) > 1:
        raise click.UsageError(
            f"--model scores one file of translations, not {len(systems)}; score each one with "
            "a separate command"
        )


def score_by_reference(
    recipe: ScoreRecipe,
    systems: Sequence[Path],
    references: Sequence[Path],
    source: Path | None,
    page: PageFile | None,
    as_json: bool,
) -> None:
    """Print the scores of translations from files, or from standard input without any.

    Args:
        recipe: the settings.
        systems: the files of translations; without one, they are standard input.
        references: the files of references; without one, the recipe names a test set.
        source: the file of the source, for the page.
        page: write a page here, too.
        as_json: print an object per system, or per line.
    """
    from nmtkit.evaluation.compare import compare
    from nmtkit.evaluation.evaluate import evaluate, line_type
    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.reporting.html import write_page
    from nmtkit.reporting.scores import as_objects, as_text
    from nmtkit.reporting.systems.page import page as comparison_page

    if recipe.breakdown.sentence_level:
        report = line_type(recipe.metrics).line_report(recipe.metrics)
        texts = _read_texts(recipe.metrics, systems, references)
        for part in report(texts, as_json, line_reporter()):
            for remark in part.remarks:
                say(remark)
            write_lines(part.lines)
        return
    metrics = make_metrics(recipe.metrics)
    if page is not None:
        _check_page(recipe.metrics, page)
    texts = _read_texts(recipe.metrics, systems, references)
    config = (recipe.significance, recipe.breakdown)
    if page is None:
        evaluation = evaluate(texts, metrics, *config, work_reporter())
    else:
        origin = _read_source(source, texts.references[0])
        comparison = compare(texts, origin, metrics, *config, work_reporter())
        write_page(page.path, comparison_page(comparison))
        evaluation = comparison.evaluation
    objects = as_objects(evaluation)
    write_lines(map(json.dumps, objects) if as_json else as_text(evaluation))


def _check_page(metrics: MetricsConfig, page: PageFile) -> None:
    """Raise ConfigError if the file exists and may not be replaced, or lines have no words."""
    from nmtkit.evaluation.evaluate import line_type
    from nmtkit.reporting.html import check_is_free

    if not line_type(metrics).has_words:
        raise ConfigError(
            f"--html compares texts word by word, which the lines of {metrics.metric} are not; "
            "leave it out, or choose another --metric"
        )
    check_is_free(page.path, page.overwrite)


def _read_source(path: Path | None, reference: "Text") -> "Text | None":
    """Read the source of a reference; DataError if its number of lines differs."""
    from nmtkit.evaluation.texts import read_text

    source = None if path is None else read_text(path)
    if source is not None and len(source.lines) != len(reference.lines):
        raise DataError(
            f"{source.name} has {len(source.lines)} lines and {reference.name} has "
            f"{len(reference.lines)}; give the source of each reference, in the same order"
        )
    return source


def _read_texts(
    metrics: MetricsConfig, systems: Sequence[Path], references: Sequence[Path]
) -> "Texts":
    """Read and check systems and references; warn about suspicious texts."""
    from nmtkit.evaluation.evaluate import line_type
    from nmtkit.evaluation.texts import Text, Texts, read_test_set, read_text
    from nmtkit.text.lines import decode_lines

    right = [read_text(path) for path in references]
    if metrics.test_set:
        right = read_test_set(metrics.test_set, metrics.language_pair)
    translations = [read_text(path) for path in systems]
    if not systems:
        lines = decode_lines(standard_input(), INPUT, "error", warn)
        translations = [Text(INPUT, list(lines))]
    texts = Texts(translations, right)
    texts.check()
    for warning in line_type(metrics).input_warnings(texts):
        warn(warning)
    return texts


def score_by_model(
    recipe: ScoreRecipe, systems: Sequence[Path], model: Path, source: Path, as_json: bool
) -> None:
    """Print the log-probability of each translation; print the totals as a message.

    Args:
        recipe: the settings.
        systems: the file of translations; without one, they are standard input.
        model: the model.
        source: the file of sources.
        as_json: print an object per line.
    """
    if sys.stderr.isatty():
        say(f"opening {model} (loading PyTorch)")
    from nmtkit.decoding.loading import load_scorer
    from nmtkit.decoding.scorer import ScoredLine, Totals
    from nmtkit.text.lines import count_lines, decode_lines, open_bytes, pair_lines

    def plain(line: ScoredLine) -> str:
        return f"{line.log_prob:.6f}\t{len(line.tokens)}"

    def detailed(line: ScoredLine) -> str:
        return json.dumps(
            {
                "log_prob": line.log_prob,
                "perplexity": line.perplexity,
                "tokens": line.tokens,
                "token_log_probs": line.token_log_probs,
            },
            ensure_ascii=False,
        )

    name = str(systems[0]) if systems else INPUT
    totals = Totals()
    with (
        open_bytes(source) as stream,
        open_bytes(systems[0]) if systems else nullcontext(standard_input()) as translations,
    ):
        pairs = pair_lines(
            decode_lines(stream, str(source), "error", warn),
            decode_lines(translations, name, "error", warn),
            (str(source), name),
        )
        scorer = load_scorer(model, recipe)
        total = count_lines(source) if source.is_file() else None
        with line_reporter().counting("scored", "lines", total) as progress:
            for chunk in scorer.score_chunks(pairs, on_batch=progress.add):
                write_lines(map(detailed if as_json else plain, chunk))
                totals.add(chunk)
    say(
        f"lines={totals.num_lines} tokens={totals.num_tokens} words={totals.num_words} "
        f"log_prob={totals.log_prob:.4f} perplexity={totals.perplexity:.4f} "
        f"word_perplexity={totals.word_perplexity:.4f}"
    )
