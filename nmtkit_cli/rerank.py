"""`nmtkit rerank`."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.rerank import FEATURES, feature_specs
from nmtkit.config.schema import RerankRecipe
from nmtkit_cli.command import FILE, given_one
from nmtkit_cli.options import recipe_command, refuse_idle_settings
from nmtkit_cli.streams import line_reporter, open_text, say, warn, work_reporter, write_lines

if TYPE_CHECKING:
    from nmtkit.text.translations import TranslatedLine

EXAMPLES = """\
# minimum Bayes risk (MBR): of 64 samples, the one most similar to all
nmtkit translate model/ --sample --n-best 64 --output-format json < test.en > samples.jsonl
nmtkit rerank --features mbr:chrf samples.jsonl > test.de

# 8-best lists by several features; weights from a dev set
nmtkit rerank --features model,backward:de-en/,length --tune dev.de dev.jsonl > weights.json
nmtkit rerank --features model,backward:de-en/,length --weights weights.json test.jsonl > test.de

# the best translations of two systems, by a third model
nmtkit rerank --features forced:model3/ system1.jsonl system2.jsonl > test.de"""


@recipe_command("rerank", RerankRecipe, EXAMPLES)
@click.argument("files", type=FILE, metavar="[FILE]...", nargs=-1)
@click.option(
    "--tune",
    type=FILE,
    multiple=True,
    metavar="REFERENCE",
    help="Tune weights for the best score against REFERENCE, and print them as JSON.",
)
def command(recipe: RerankRecipe, files: tuple[Path, ...], tune: tuple[Path, ...]) -> None:
    """Choose the best translation of each line by weighted features.

    FILE has the candidates, n-best lists or samples: JSON lines as `nmtkit translate
    --output-format json` writes them, or standard input. Several files have translations of the
    same lines by several systems. Files may be gzipped.

    Prints the candidate of each line with the highest weighted sum of features; of equal ones, the
    first. --output-format json prints all candidates in their new order. Several features need
    --weights; --tune finds them on a dev set and prints them as JSON.
    """
    _check_usage(recipe, tune)
    if sys.stderr.isatty() and any(
        "device" in FEATURES[spec.kind].settings for spec in feature_specs(recipe.rerank.features)
    ):
        say("loading PyTorch and the models")
    if tune:
        _tune(recipe, files, tune)
    else:
        _rerank(recipe, files)


def _check_usage(recipe: RerankRecipe, references: Sequence[Path]) -> None:
    """Raise click.UsageError for missing weights, and for options without effect."""
    weights = recipe.rerank.weights or None
    given_one({"--tune": references, "--weights": weights})
    specs = feature_specs(recipe.rerank.features)
    if len(specs) > 1 and not references and not weights:
        raise click.UsageError(
            f"{len(specs)} features need weights; find them with --tune REFERENCE on a dev set, "
            "then give --weights FILE"
        )
    idle, condition = (
        (("output",), "with --tune, which prints weights")
        if references
        else (("metrics", "seed"), "without --tune")
    )
    used = {"metric_command"}
    if any(spec.name == "mbr:bleu" for spec in specs):
        used |= {"tokenize", "language_pair"}
    refuse_idle_settings(recipe, idle, condition, used)


def _rerank(recipe: RerankRecipe, files: Sequence[Path]) -> None:
    """Print the best candidate of each line, or all in order."""
    from nmtkit.rerank.features import make_features
    from nmtkit.rerank.rerank import OUTPUT_FORMATS, read_weights, rerank
    from nmtkit.text.lines import count_lines

    names = [spec.name for spec in feature_specs(recipe.rerank.features)]
    weights = [1.0] * len(names)
    if recipe.rerank.weights:
        weights = read_weights(Path(recipe.rerank.weights), names)
    write = OUTPUT_FORMATS[recipe.output.output_format]
    with _open_candidates(files) as lines:
        features = make_features(recipe, warn)
        total = count_lines(files[0]) if files and files[0].is_file() else None
        with line_reporter().counting("reranked", "lines", total) as counting:
            for chunk in rerank(lines, features, weights, recipe.rerank.chunk_lines):
                write_lines(map(write, chunk))
                counting.add(len(chunk))


def _tune(recipe: RerankRecipe, files: Sequence[Path], references: Sequence[Path]) -> None:
    """Print the weights that are best on a dev set; report scores as messages."""
    from numpy import eye

    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.evaluation.texts import Text, Texts, read_text
    from nmtkit.rerank.features import language_pair, make_features
    from nmtkit.rerank.rerank import make_dev_set
    from nmtkit.rerank.tuning import tune

    own = replace(recipe.metrics, language_pair=language_pair(recipe))
    metric, *_ = make_metrics(MetricsConfig(**vars(own)))
    right = [read_text(path) for path in references]
    with _open_candidates(files) as read:
        lines = list(read)
    name = str(files[0]) if files else "standard input"
    Texts([Text(name, [one.source for one in lines])], right).check()
    features, reporter = make_features(recipe, warn), work_reporter()
    dev_set = make_dev_set(lines, right, features, metric, recipe.rerank.chunk_lines, reporter)
    sign = 1 if metric.is_higher_better else -1
    for feature, alone in zip(features, eye(len(features)), strict=True):
        say(f"{metric.name} = {sign * dev_set.score(alone):.4g} by {feature} alone")
    weights = tune(dev_set, recipe.seed.seed, reporter)
    say(f"{metric.name} = {sign * dev_set.score(weights):.4g} tuned, on {len(lines):,} lines")
    of_names = dict(zip(features, weights.tolist(), strict=True))
    write_lines(json.dumps(of_names, indent=2).split("\n"))


@contextmanager
def _open_candidates(files: Sequence[Path]) -> "Iterator[Iterator[TranslatedLine]]":
    """Open the files of candidates, or standard input."""
    from nmtkit.rerank.rerank import read_candidates

    with ExitStack() as stack:
        yield read_candidates([stack.enter_context(open_text(path)) for path in files or (None,)])
