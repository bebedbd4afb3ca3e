"""`nmtkit score`: translations against references, or their log-probabilities by a model."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.metrics import MetricsConfig, uses_source
from nmtkit.config.schema import ScoreRecipe
from nmtkit.errors import ConfigError
from nmtkit_cli.command import FILE, PATH, given_one, refuse_without_effect
from nmtkit_cli.options import recipe_command, refuse_idle_settings
from nmtkit_cli.output_options import OutputFile, output_options
from nmtkit_cli.streams import (
    line_reporter,
    open_pairs,
    open_text,
    say,
    say_opening,
    warn,
    work_reporter,
    write_lines,
    write_report,
)

if TYPE_CHECKING:
    from nmtkit.evaluation.texts import Text, Texts
    from nmtkit.text.translations import TranslatedLine

EXAMPLES = """\
nmtkit score --reference test.de < translations.de

# two systems, whether their difference is significant, and a page that compares them
nmtkit score --reference test.de --metric bleu,chrf --paired-ar --html page.html old.de new.de

# how many terms of a glossary are translated as it says
nmtkit score --reference test.de --source test.en --metric terms --glossary terms.tsv new.de

# how many lines keep the tags of the reference
nmtkit score --reference test.de --metric markup --markup xml new.de

nmtkit score --reference gold.trees --metric brackets < parsed.trees

# log-probabilities of translations by a model
nmtkit score --model model/ --source test.en test.de"""

BY_REFERENCE, BY_MODEL = ("metrics", "significance", "breakdown"), ("scoring", "runtime")


@dataclass(frozen=True)
class _TextFiles:
    """The texts of `nmtkit score`.

    Attributes:
        systems: files of translations; none = standard input.
        references: files of references; none = the recipe names a test set, or a model scores.
        source: the file of the source; None = there is none, or the translations have it.
    """

    systems: Sequence[Path]
    references: Sequence[Path]
    source: Path | None


@recipe_command("score", ScoreRecipe, EXAMPLES)
@click.argument("systems", type=FILE, metavar="[SYSTEM]...", nargs=-1)
@click.option("--reference", type=FILE, multiple=True, metavar="FILE", help="Reference file.")
@click.option("--model", type=PATH, metavar="MODEL", help="Model, checkpoint or run.")
@click.option("--source", type=FILE, metavar="FILE", help="Source text.")
@output_options("--html", "page", "Also write a page that compares systems and sentences.")
@click.option("--json", "as_json", is_flag=True, help="Print an object per system, or per line.")
def command(
    recipe: ScoreRecipe,
    systems: tuple[Path, ...],
    reference: tuple[Path, ...],
    model: Path | None,
    source: Path | None,
    page: OutputFile | None,
    as_json: bool,
) -> None:
    """Score translations against references or by a model.

    SYSTEM is a file of translations, one per line, or standard input. Files may be gzipped. With
    --reference or --test-set, prints a line per metric: name, score and sacreBLEU's signature
    of all settings; of several systems, a table. Higher is better, except for TER; BLEU and chrF
    end at 100. --metric brackets scores trees by EVALB's F1.

    With --model and --source, prints a line per translation: its natural log-probability, a tab,
    and the number of its tokens; both include the end symbol. Totals go to standard error.
    """
    texts = _TextFiles(systems, reference, source)
    _check_usage(recipe, texts, model, page)
    if model:
        _score_by_model(recipe, texts, model, as_json)
    else:
        _score_by_reference(recipe, texts, page, as_json)


def _check_usage(
    recipe: ScoreRecipe, texts: _TextFiles, model: Path | None, page: OutputFile | None
) -> None:
    """Raise click.UsageError unless one mode is chosen, without options of the other one."""
    systems, references, source = texts.systems, texts.references, texts.source
    test_set = recipe.metrics.test_set
    given = {"--reference": references, "--test-set": test_set or None, "--model": model}
    if given_one(given) is None:
        what = "; files without an option are translations" if systems else ""
        raise click.UsageError(f"give --reference, --test-set, or --model and --source{what}")
    if model is not None or recipe.breakdown.sentence_level:
        when = f"with {'--model' if model else '--sentence-level'}"
        refuse_without_effect({"--html": page}, when)
    _check_source(recipe, model, source, page)
    idle, condition = (BY_MODEL, "without") if model is None else (BY_REFERENCE, "with")
    refuse_idle_settings(recipe, idle, f"{condition} --model")
    if model is not None and len(systems) > 1:
        raise click.UsageError(
            f"--model scores one file of translations, not {len(systems)}; score each one with "
            "a separate command"
        )


def _check_source(
    recipe: ScoreRecipe, model: Path | None, source: Path | None, page: OutputFile | None
) -> None:
    """Raise click.UsageError unless --source is given exactly where sources are needed."""
    given = {"--source": source}
    if recipe.input.input_format == "json":
        refuse_without_effect(given, "with --input-format json, whose objects have the sources")
    elif model is not None and source is None:
        raise click.UsageError("--model needs --source or --input-format json; give one of them")
    elif model is None and page is None and not uses_source(recipe.metrics):
        refuse_without_effect(given, "without --model, --metric terms, --metric-command or --html")


def _score_by_reference(
    recipe: ScoreRecipe, texts: _TextFiles, page: OutputFile | None, as_json: bool
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
        from nmtkit.evaluation.evaluate import compare
        from nmtkit.reporting.page import write_page
        from nmtkit.reporting.systems.page import page as comparison_page

        comparison = compare(found, metrics, *config, work_reporter())
        write_page(page.path, comparison_page(comparison))
        evaluation = comparison.evaluation.only(recipe.breakdown)
    objects = as_objects(evaluation)
    write_report(map(json.dumps, objects) if as_json else as_text(evaluation))


def _check_page(metrics: MetricsConfig, texts: _TextFiles, page: OutputFile) -> None:
    """Raise ConfigError if the file may not be replaced, or lines have no words."""
    from nmtkit.evaluation.evaluate import line_type
    from nmtkit.reporting.page import check_is_free

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


def _read_texts(recipe: ScoreRecipe, files: _TextFiles) -> "Texts":
    """Read and check systems, references and source; warn about suspicious texts."""
    from nmtkit.evaluation.evaluate import line_type
    from nmtkit.evaluation.texts import (
        Texts,
        common_source,
        read_test_set,
        read_text,
    )

    metrics = recipe.metrics
    references = [read_text(path) for path in files.references]
    source_of_set = []
    if metrics.test_set:
        source, references = read_test_set(metrics.test_set, metrics.language_pair)
        if uses_source(metrics):
            source_of_set = [source]
    systems, sources = _read_systems(recipe.input.input_format, files.systems)
    if files.source:
        sources = [read_text(files.source)]
    sources = sources or source_of_set
    texts = Texts(systems, references, common_source(sources) if sources else None)
    texts.check()
    for warning in line_type(metrics).input_warnings(texts, metrics):
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


def _score_by_model(recipe: ScoreRecipe, texts: _TextFiles, model: Path, as_json: bool) -> None:
    """Print the log-probability of each translation; print the totals as a message.

    Args:
        recipe: the settings.
        texts: at most one file of translations, and the file of sources; without the latter, the
            translations are JSON lines, which have them.
        model: the model.
        as_json: print an object per line.
    """
    say_opening(model)
    from nmtkit.decoding.answers import ScoredLine
    from nmtkit.decoding.loading import load_scorer
    from nmtkit.decoding.scorer import CHUNK_LINES, Totals, line_names
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
        given = {"schema": SCHEMA, "source": line.source}
        if line.target_prefix:
            given["target_prefix"] = line.target_prefix
        return write_object({**given, **line.others, **line.best.values, **found})

    totals = Totals()
    system = texts.systems[0] if texts.systems else None
    counted_file = texts.source or system
    with _open_pairs(system, texts.source) as lines:
        scorer = load_scorer(model, recipe.scoring, recipe.runtime, warn)
        total = count_lines(counted_file) if counted_file and counted_file.is_file() else None
        with line_reporter().counting("scored", "lines", total) as progress:
            chunks = numbered_chunks(lines, CHUNK_LINES, FIRST_CHUNK_LINES, until_error=True)
            for first, chunk in chunks:
                pairs = [(line.source, line.best.text) for line in chunk]
                languages = [line.target_lang for line in chunk]
                scored = scorer.score(pairs, line_names(first), progress.add, languages)
                write_lines(map(detailed if as_json else plain, chunk, scored))
                totals.add(scored)
    say(
        f"lines={totals.num_lines} tokens={totals.num_tokens} words={totals.num_words} "
        f"log_prob={totals.log_prob:.4f} perplexity={totals.perplexity:.4f} "
        f"word_perplexity={totals.word_perplexity:.4f}"
    )


@contextmanager
def _open_pairs(system: Path | None, source: Path | None) -> Iterator[Iterator["TranslatedLine"]]:
    """Open translations with their sources, in JSON lines or in two texts."""
    from nmtkit.text.translations import plain_line, read_translations

    if source is None:
        with open_text(system) as (stream, name):
            yield read_translations(stream, name)
    else:
        with open_pairs(source, system) as pairs:
            yield starmap(plain_line, pairs)
