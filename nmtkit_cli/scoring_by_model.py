"""`nmtkit score --model`: log-probabilities of given translations."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.scoring import TextFiles
from nmtkit_cli.streams import line_reporter, open_text, say, write_lines

if TYPE_CHECKING:
    from nmtkit.text.translations import TranslatedLine


def score_by_model(recipe: ScoreRecipe, texts: TextFiles, model: Path, as_json: bool) -> None:
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
