"""The flows of `nmtkit rerank`: choosing candidates, and tuning weights."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.metric_commands import metric_commands
from nmtkit.config.rerank import FEATURES, feature_specs
from nmtkit.config.schema import RerankRecipe
from nmtkit_cli.command import given_one, refuse_without_effect
from nmtkit_cli.options import idle_flags, typed_flags
from nmtkit_cli.streams import line_reporter, say, standard_input, warn, work_reporter, write_lines

if TYPE_CHECKING:
    from nmtkit.rerank.candidates import CandidateList
    from nmtkit.rerank.features import Feature

INPUT = "standard input"
OF_FEATURES = ("--metric-command",)
"""Flags of the section of metrics that features use."""


def check_usage(recipe: RerankRecipe, references: Sequence[Path]) -> None:
    """Raise click.UsageError for missing weights, and for options without effect."""
    weights = recipe.rerank.weights or None
    given_one({"--tune": references or None, "--weights": weights})
    specs = feature_specs(recipe.rerank.features)
    if len(specs) > 1 and not references and not weights:
        raise click.UsageError(
            f"{len(specs)} features need weights; find them with --tune REFERENCE on a dev set, "
            "then give --weights FILE"
        )
    idle, condition = (
        (("output",), "with --tune, which prints weights")
        if references
        else (("tuning", "seed", "metrics"), "without --tune")
    )
    typed = [flag for flag in typed_flags(RerankRecipe, idle) if flag not in OF_FEATURES]
    refuse_without_effect(typed, condition)
    if flags := idle_flags(recipe, idle):
        warn(f"{' and '.join(flags)} of --config: no effect {condition}")


def rerank_files(recipe: RerankRecipe, files: Sequence[Path]) -> None:
    """Print the best candidate of each line, or all in order."""
    from nmtkit.rerank.rerank import OUTPUT_FORMATS, rerank
    from nmtkit.rerank.weights import read_weights
    from nmtkit.text.lines import FIRST_CHUNK_LINES, count_lines

    specs, size = feature_specs(recipe.rerank.features), recipe.rerank.chunk_lines
    names = [spec.name for spec in specs]
    is_slow = any(FEATURES[spec.kind].has_slow_start for spec in specs)
    first_size = size if is_slow else FIRST_CHUNK_LINES
    weights = dict.fromkeys(names, 1.0)
    if recipe.rerank.weights:
        weights = read_weights(Path(recipe.rerank.weights), names)
    write = OUTPUT_FORMATS[recipe.output.output_format]
    with _open_candidates(recipe, files) as lines:
        features = _make_features(recipe)
        total = count_lines(files[0]) if files and files[0].is_file() else None
        with line_reporter().counting("reranked", "lines", total) as counting:
            for chunk in rerank(lines, features, weights, size, first_size):
                write_lines(write(line, recipe.output) for line in chunk)
                counting.add(len(chunk))


def tune_weights(recipe: RerankRecipe, files: Sequence[Path], references: Sequence[Path]) -> None:
    """Print the weights that are best on a dev set; report scores as messages."""
    from nmtkit.evaluation.texts import read_text
    from nmtkit.rerank.dev_set import check_references, make_dev_set, make_metric
    from nmtkit.rerank.tuning import single_features, tune
    from nmtkit.rerank.weights import dump_weights

    metric = make_metric(recipe.metrics)
    right = [read_text(path) for path in references]
    with _open_candidates(recipe, files) as read:
        lines = list(read)
    check_references(str(files[0]) if files else INPUT, len(lines), right)
    features, reporter = _make_features(recipe), work_reporter()
    dev_set = make_dev_set(lines, right, features, metric, recipe.rerank.chunk_lines, reporter)
    for name, score in zip(features, single_features(dev_set, metric.objective), strict=True):
        say(f"{metric.shown(score)} by {name} alone")
    tuned = tune(dev_set, metric.objective, recipe.tuning.restarts, recipe.seed.seed, reporter)
    say(f"{metric.shown(tuned.score)} tuned, on {len(lines):,} lines")
    text = dump_weights(dict(zip(features, tuned.weights, strict=True)))
    write_lines(text.removesuffix("\n").split("\n"))


@contextmanager
def _open_candidates(
    recipe: RerankRecipe, files: Sequence[Path]
) -> "Iterator[Iterator[CandidateList]]":
    """Open the files of candidates, or standard input, and that of samples."""
    from nmtkit.rerank.candidates import Input, read_candidates
    from nmtkit.text.lines import open_bytes

    with ExitStack() as stack:
        systems = [Input(str(path), stack.enter_context(open_bytes(path))) for path in files]
        samples = None
        if name := recipe.rerank.samples:
            samples = Input(name, stack.enter_context(open_bytes(Path(name))))
        yield read_candidates(systems or [Input(INPUT, standard_input())], samples)


def _make_features(recipe: RerankRecipe) -> "dict[str, Feature]":
    """Make the features; models are loaded."""
    from nmtkit.rerank.features import Resources, make_features
    from nmtkit.rerank.rerank import model_loader

    specs = feature_specs(recipe.rerank.features)
    if any("device" in FEATURES[spec.kind].settings for spec in specs) and sys.stderr.isatty():
        say("loading PyTorch and the models")
    resources = Resources(
        load_model=model_loader(recipe.scoring, recipe.runtime),
        commands=metric_commands(recipe.metrics.metric_command),
        mbr=recipe.rerank.mbr,
    )
    return make_features(specs, resources)
