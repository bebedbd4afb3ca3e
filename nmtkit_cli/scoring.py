"""The modes of `nmtkit score`: against references, by a model, and a contrastive suite."""

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.command import given_one, refuse_without_effect
from nmtkit_cli.options import idle_flags, typed_flags
from nmtkit_cli.streams import line_reporter, say, standard_input, warn, work_reporter, write_lines

if TYPE_CHECKING:
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
        _refuse_texts(systems, source)
    elif (model is None) != (source is None):
        raise click.UsageError(
            "--model and --source go together; give both or neither, or --contrastive with --model"
        )
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


def _refuse_texts(systems: Sequence[Path], source: Path | None) -> None:
    """Raise click.UsageError if texts are given that a contrastive suite has itself."""
    refuse_without_effect(["--source"] if source else [], "with --contrastive")
    refuse_without_effect(list(map(str, systems)), "with --contrastive")


def score_by_reference(
    recipe: ScoreRecipe, systems: Sequence[Path], references: Sequence[Path], as_json: bool
) -> None:
    """Print the scores of translations from files, or from standard input without any."""
    from nmtkit.evaluation.evaluate import evaluate, line_type
    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.reporting.scores import as_objects, as_text

    if recipe.breakdown.sentence_level:
        report = line_type(recipe.metrics).line_report(recipe.metrics)
        texts = _read_texts(recipe.metrics, systems, references)
        for part in report(texts, as_json, line_reporter()):
            for remark in part.remarks:
                say(remark)
            write_lines(part.lines)
        return
    metrics = make_metrics(recipe.metrics)
    texts = _read_texts(recipe.metrics, systems, references)
    evaluation = evaluate(texts, metrics, recipe.significance, recipe.breakdown, work_reporter())
    objects = as_objects(evaluation)
    write_lines(map(json.dumps, objects) if as_json else as_text(evaluation))


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
        scorer = load_scorer(model, recipe.scoring, recipe.runtime)
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
    scorer = load_scorer(model, recipe.scoring, recipe.runtime)
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
