"""The two ways of `nmtkit score`: against references, and by a model."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.metrics import METRICS, MetricsConfig, metric_names
from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.command import given_one, refuse_without_effect
from nmtkit_cli.options import changed_flags
from nmtkit_cli.streams import Progress, say, standard_input, warn, write_lines

if TYPE_CHECKING:
    from nmtkit.evaluation.metrics import Metric
    from nmtkit.evaluation.texts import Texts

BY_REFERENCE, BY_MODEL = ("metrics", "significance", "breakdown"), ("scoring", "runtime")
INPUT = "standard input"


def check_usage(
    recipe: ScoreRecipe,
    systems: Sequence[Path],
    references: Sequence[Path],
    model: Path | None,
    source: Path | None,
) -> None:
    """Raise click.UsageError unless one way is chosen, and nothing is given for the other one."""
    test_set = recipe.metrics.test_set
    given = {"--reference": references or None, "--test-set": test_set or None, "--model": model}
    if given_one(given) is None:
        raise click.UsageError("give --reference, --test-set, or --model and --source")
    if (model is None) != (source is None):
        raise click.UsageError("--model and --source go together; give both or neither")
    if model is None:
        refuse_without_effect(changed_flags(recipe, BY_MODEL), "without --model")
    else:
        files = ["SYSTEM"] if systems else []
        refuse_without_effect([*files, *changed_flags(recipe, BY_REFERENCE)], "with --model")


def score_by_reference(
    recipe: ScoreRecipe, systems: Sequence[Path], references: Sequence[Path], as_json: bool
) -> None:
    """Print the scores of translations, which are on standard input if there are no files."""
    from nmtkit.evaluation.evaluate import evaluate
    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.reporting.scores import as_objects, as_text

    if recipe.breakdown.sentence and metric_names(recipe.metrics.metric) == ["brackets"]:
        _print_trees(recipe.metrics, systems, references, as_json)
        return
    metrics = make_metrics(recipe.metrics)
    texts = _read_texts(recipe.metrics, systems, references)
    if recipe.breakdown.sentence:
        _print_lines(texts, metrics, as_json)
    else:
        evaluation = evaluate(texts, metrics, recipe.significance, recipe.breakdown)
        objects = as_objects(evaluation)
        write_lines(map(json.dumps, objects) if as_json else as_text(evaluation))


def _read_texts(
    metrics: MetricsConfig, systems: Sequence[Path], references: Sequence[Path]
) -> "Texts":
    """Read systems and references, and warn of what looks wrong."""
    from nmtkit.evaluation.doubts import doubts, doubts_of_trees
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
    compares = METRICS[metric_names(metrics.metric)[0]].compares
    for doubt in doubts_of_trees(texts) if compares == "trees" else doubts(texts):
        warn(doubt)
    return texts


def _print_lines(texts: "Texts", metrics: "Sequence[Metric]", as_json: bool) -> None:
    """Print the scores of each line."""
    from nmtkit.evaluation.evaluate import score_lines

    for scores in score_lines(texts, metrics):
        table = {metric.name: score for metric, score in zip(metrics, scores, strict=True)}
        plain = "\t".join(f"{score:.2f}" for score in scores)
        write_lines([json.dumps(table) if as_json else plain])
    for metric in metrics:
        say(f"{metric.name}: {metric.line_signature()}")


def _print_trees(
    config: MetricsConfig, systems: Sequence[Path], references: Sequence[Path], as_json: bool
) -> None:
    """Print the output of EVALB to both streams, and the signature."""
    from nmtkit.evaluation.evaluate import compare_trees
    from nmtkit.evaluation.metrics import bracket_signature
    from nmtkit.parsing.bracket_counts import Counts, counts_of, total
    from nmtkit.parsing.bracket_report import HEAD, as_object, end, row
    from nmtkit.parsing.prm import parameters_of

    parameters = parameters_of(config.prm)
    comparisons = compare_trees(_read_texts(config, systems, references), parameters)
    counts, short = [], [Counts()]
    write_lines([] if as_json else HEAD)
    for number, one in enumerate(comparisons, 1):
        for problem in one.problems:
            say(f"{number} : {problem}")
        write_lines([json.dumps(as_object(one)) if as_json else row(number, one)])
        counts.append(counts_of(one))
        if one.length <= parameters.cutoff_length:
            short.append(counts[-1])
    if not as_json:
        write_lines(end(total(counts), total(short), parameters.cutoff_length))
    say(f"F1: {bracket_signature(parameters)}")


def score_by_model(recipe: ScoreRecipe, model: Path, source: Path, as_json: bool) -> None:
    """Print the log-probability of each translation on standard input, and report the sums."""
    from nmtkit.decoding.loading import load_scorer
    from nmtkit.decoding.scorer import ScoredLine, Totals
    from nmtkit.text.lines import decode_lines, open_bytes, pair_lines

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

    translations = standard_input()
    progress, totals = Progress("scored", time.monotonic), Totals()
    with open_bytes(source) as stream:
        pairs = pair_lines(
            decode_lines(stream, str(source), "error", warn),
            decode_lines(translations, INPUT, "error", warn),
            (str(source), INPUT),
        )
        scorer = load_scorer(model, recipe)
        for chunk in scorer.score_chunks(pairs):
            write_lines(map(detailed if as_json else plain, chunk))
            totals.add(chunk)
            progress.add(len(chunk), sum(len(line.tokens) for line in chunk))
    progress.end()
    say(
        f"lines={totals.num_lines} tokens={totals.num_tokens} words={totals.num_words} "
        f"log_prob={totals.log_prob:.4f} perplexity={totals.perplexity:.4f} "
        f"word_perplexity={totals.word_perplexity:.4f}"
    )
