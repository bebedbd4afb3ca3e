"""The two ways of `nmtkit score`: against a reference, and by a model."""

import json
from pathlib import Path

from nmtkit.config.schema import ScoreRecipe
from nmtkit.errors import DataError
from nmtkit_cli.streams import Progress, say, standard_input, warn, write_lines

INPUT = "standard input"


def score_by_reference(reference: Path, metric: str, as_json: bool) -> None:
    """Print the metrics of the translations on standard input."""
    from nmtkit.evaluation.metrics import parse_metrics, score_corpus
    from nmtkit.text.lines import decode_lines, read_lines

    metrics = parse_metrics(metric)
    translations = list(decode_lines(standard_input(), INPUT, "error", warn))
    references = list(read_lines(reference))
    if len(translations) != len(references):
        raise DataError(
            f"{INPUT} has {len(translations)} lines and {reference} has "
            f"{len(references)}; give one translation a reference, in the same order"
        )
    scores = score_corpus(metrics, translations, references)
    if as_json:
        table = {one.name: {"score": one.score, "signature": one.signature} for one in scores}
        write_lines([json.dumps(table)])
    else:
        write_lines(f"{one.name} = {one.score:.2f}  {one.signature}" for one in scores)


def score_by_model(recipe: ScoreRecipe, model: Path, source: Path, as_json: bool) -> None:
    """Print the log-probability of each translation on standard input, and tell the sums."""
    from nmtkit.decoding.scorer import ScoredLine, Scorer, Totals
    from nmtkit.model_path import load_model
    from nmtkit.runtime import set_up
    from nmtkit.text.lines import decode_lines, open_bytes, pair_lines

    def plain(line: ScoredLine) -> str:
        return f"{line.log_prob:.6f}\t{len(line.tokens)}"

    def detailed(line: ScoredLine) -> str:
        return json.dumps(
            {
                "log_prob": line.log_prob,
                "tokens": line.tokens,
                "token_log_probs": line.token_log_probs,
            },
            ensure_ascii=False,
        )

    translations = standard_input()
    progress, totals = Progress("scored"), Totals()
    with open_bytes(source) as stream:
        pairs = pair_lines(
            decode_lines(stream, str(source), "error", warn),
            decode_lines(translations, INPUT, "error", warn),
            (str(source), INPUT),
        )
        loaded = load_model(model, set_up(recipe.runtime))
        scorer = Scorer(loaded.model, loaded.codec, recipe.scoring)
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
