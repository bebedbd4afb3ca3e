"""The usage of `nmtkit score`, and its flow from translations and references to scores."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import ScoreRecipe
from nmtkit.errors import ConfigError
from nmtkit_cli.command import given_one, refuse_without_effect
from nmtkit_cli.options import idle_flags, typed_flags
from nmtkit_cli.page_options import PageFile
from nmtkit_cli.streams import line_reporter, open_text, say, warn, work_reporter, write_lines

if TYPE_CHECKING:
    from nmtkit.evaluation.texts import Text, Texts

BY_REFERENCE, BY_MODEL = ("metrics", "significance", "breakdown"), ("scoring", "runtime")


@dataclass(frozen=True)
class TextFiles:
    """The texts of `nmtkit score`.

    Attributes:
        systems: files of translations; none = standard input.
        references: files of references; none = the recipe names a test set, or a model scores.
        source: the file of the source; None = there is none, or the translations have it.
    """

    systems: Sequence[Path]
    references: Sequence[Path]
    source: Path | None


def check_usage(
    recipe: ScoreRecipe, texts: TextFiles, model: Path | None, page: PageFile | None
) -> None:
    """Raise click.UsageError unless one mode is chosen, without options of the other one."""
    systems, references, source = texts.systems, texts.references, texts.source
    test_set = recipe.metrics.test_set
    given = {"--reference": references or None, "--test-set": test_set or None, "--model": model}
    if given_one(given) is None:
        what = "; files without an option are translations" if systems else ""
        raise click.UsageError(f"give --reference, --test-set, or --model and --source{what}")
    if page is not None and (model is not None or recipe.breakdown.sentence_level):
        refuse_without_effect(["--html"], f"with {'--model' if model else '--sentence-level'}")
    _check_source(recipe, model, source, page)
    idle, condition = (BY_MODEL, "without") if model is None else (BY_REFERENCE, "with")
    refuse_without_effect(typed_flags(ScoreRecipe, idle), f"{condition} --model")
    if flags := idle_flags(recipe, idle):
        warn(f"{' and '.join(flags)} of --config: no effect {condition} --model")
    if model is not None and len(systems) > 1:
        raise click.UsageError(
            f"--model scores one file of translations, not {len(systems)}; score each one with "
            "a separate command"
        )


def _check_source(
    recipe: ScoreRecipe, model: Path | None, source: Path | None, page: PageFile | None
) -> None:
    """Raise click.UsageError unless --source is given exactly where sources are needed."""
    given = ["--source"] if source else []
    if recipe.input.input_format == "json":
        refuse_without_effect(given, "with --input-format json, whose objects have the sources")
    elif model is not None and source is None:
        raise click.UsageError("--model needs --source or --input-format json; give one of them")
    elif model is None and page is None and not recipe.metrics.metric_command:
        refuse_without_effect(given, "without --model, --metric-command or --html")


def score_by_reference(
    recipe: ScoreRecipe, texts: TextFiles, page: PageFile | None, as_json: bool
) -> None:
    """Print the scores of translations.

    Args:
        recipe: the settings.
        texts: the files of translations, references and source.
        page: write a page here, too.
        as_json: print an object per system, or per line.
    """
    from nmtkit.evaluation.evaluate import evaluate, line_type
    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.reporting.scores import as_objects, as_text

    if recipe.breakdown.sentence_level:
        report = line_type(recipe.metrics).line_report(recipe.metrics)
        for part in report(_read_texts(recipe, texts), as_json, line_reporter()):
            for remark in part.remarks:
                say(remark)
            write_lines(part.lines)
        return
    metrics = make_metrics(recipe.metrics)
    if page is not None:
        _check_page(recipe.metrics, texts, page)
    found = _read_texts(recipe, texts)
    config = (recipe.significance, recipe.breakdown)
    if page is None:
        evaluation = evaluate(found, metrics, *config, work_reporter())
    else:
        from nmtkit.evaluation.compare import compare
        from nmtkit.reporting.html import write_page
        from nmtkit.reporting.systems.page import page as comparison_page

        comparison = compare(found, metrics, *config, work_reporter())
        write_page(page.path, comparison_page(comparison))
        evaluation = comparison.evaluation
    objects = as_objects(evaluation)
    write_lines(map(json.dumps, objects) if as_json else as_text(evaluation))


def _check_page(metrics: MetricsConfig, texts: TextFiles, page: PageFile) -> None:
    """Raise ConfigError if the file may not be replaced, or lines have no words."""
    from nmtkit.evaluation.evaluate import line_type
    from nmtkit.reporting.html import check_is_free

    if not line_type(metrics).has_words:
        raise ConfigError(
            f"--html compares texts word by word, which the lines of {metrics.metric} are not; "
            "leave it out, or choose another --metric"
        )
    check_is_free(page.path, page.overwrite)
    given = [*texts.systems, *texts.references, *([texts.source] if texts.source else [])]
    # A text that is missing is reported when it is read.
    if page.path.exists() and any(map(page.path.samefile, filter(Path.exists, given))):
        raise ConfigError(f"--html {page.path} is one of the texts; choose another file")


def _read_texts(recipe: ScoreRecipe, files: TextFiles) -> "Texts":
    """Read and check systems, references and source; warn about suspicious texts."""
    from nmtkit.evaluation.evaluate import line_type
    from nmtkit.evaluation.texts import (
        Texts,
        common_source,
        read_test_set,
        read_test_source,
        read_text,
    )

    metrics = recipe.metrics
    references = [read_text(path) for path in files.references]
    if metrics.test_set:
        references = read_test_set(metrics.test_set, metrics.language_pair)
    systems, sources = _read_systems(recipe.input.input_format, files.systems)
    if files.source:
        sources = [read_text(files.source)]
    elif metrics.test_set and metrics.metric_command and not sources:
        sources = [read_test_source(metrics.test_set, metrics.language_pair)]
    texts = Texts(systems, references, common_source(sources) if sources else None)
    texts.check()
    for warning in line_type(metrics).input_warnings(texts):
        warn(warning)
    return texts


def _read_systems(input_format: str, paths: Sequence[Path]) -> tuple[list["Text"], list["Text"]]:
    """Read the translations of systems; return them, and their sources if JSON lines have them."""
    from nmtkit.evaluation.texts import Text, read_translated
    from nmtkit.text.lines import decode_lines

    systems, sources = [], []
    for path in paths or (None,):
        with open_text(path) as (stream, name):
            if input_format == "json":
                source, system = read_translated(stream, name)
                sources.append(source)
            else:
                system = Text(name, list(decode_lines(stream, name)))
            systems.append(system)
    return systems, sources
