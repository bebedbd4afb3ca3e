"""`nmtkit score --model`: log-probabilities of given translations, and contrastive suites."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.scoring import TextFiles
from nmtkit_cli.streams import line_reporter, open_text, say, work_reporter, write_lines

if TYPE_CHECKING:
    from nmtkit.text.translations import TranslatedLine


def score_by_model(recipe: ScoreRecipe, texts: TextFiles, model: Path, as_json: bool) -> None:
    """Score a contrastive suite if the recipe names one, otherwise translations."""
    score = _score_suite if recipe.scoring.contrastive else _score_translations
    score(recipe, texts, model, as_json)


def _score_translations(recipe: ScoreRecipe, texts: TextFiles, model: Path, as_json: bool) -> None:
    """Print the log-probability of each translation; print the totals as a message.

    Args:
        recipe: the settings.
        texts: at most one file of translations, and the file of sources; without the latter, the
            translations are JSON lines, which have them.
        model: the model.
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
        given = {"schema": SCHEMA, "source": line.source}
        if line.target_prefix:
            given["target_prefix"] = line.target_prefix
        return write_object({**given, **line.others, **line.best.values, **found})

    totals = Totals()
    system = texts.systems[0] if texts.systems else None
    counted_file = texts.source or system
    with _open_pairs(system, texts.source) as lines:
        scorer = load_scorer(model, recipe.scoring, recipe.runtime)
        total = count_lines(counted_file) if counted_file and counted_file.is_file() else None
        with line_reporter().counting("scored", "lines", total) as progress:
            chunks = numbered_chunks(lines, CHUNK_LINES, FIRST_CHUNK_LINES, until_error=True)
            for first, chunk in chunks:
                pairs = [(line.source, line.best.text) for line in chunk]
                scored = scorer.score_chunk(pairs, first, progress.add)
                write_lines(map(detailed if as_json else plain, chunk, scored))
                totals.add(scored)
    say(
        f"lines={totals.num_lines} tokens={totals.num_tokens} words={totals.num_words} "
        f"log_prob={totals.log_prob:.4f} perplexity={totals.perplexity:.4f} "
        f"word_perplexity={totals.word_perplexity:.4f}"
    )


def _score_suite(recipe: ScoreRecipe, _texts: TextFiles, model: Path, as_json: bool) -> None:
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


@contextmanager
def _open_pairs(system: Path | None, source: Path | None) -> Iterator[Iterator["TranslatedLine"]]:
    """Open translations with their sources, in JSON lines or in two texts."""
    from nmtkit.text.lines import decode_lines, pair_lines
    from nmtkit.text.translations import plain_line, read_translations

    with open_text(system) as (stream, name):
        if source is None:
            yield read_translations(stream, name)
            return
        with open_text(source) as (sources, source_name):
            texts = (
                decode_lines(sources, source_name),
                decode_lines(stream, name),
            )
            yield starmap(plain_line, pair_lines(*texts, (source_name, name)))
