"""The cost of quantisation in an export: size, scores, BLEU before and after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import SearchConfig
from nmtkit.errors import DataError
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.interop.parity import Pair, Peer, draw_pairs
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import TOO_LONG, read_pair
from nmtkit.units import counted

QUANTIZATIONS = ("int8", "float16")


@dataclass(frozen=True)
class Trial:
    """The text that both precisions score and translate.

    Attributes:
        text: a description of the pairs.
        pairs: pairs to score.
        sources, references: lines to translate, and their reference; none to compare scores only.
        search: beam size and length penalty.
    """

    text: str
    pairs: list[Pair]
    sources: list[str]
    references: list[str]
    search: SearchConfig


@dataclass(frozen=True)
class Quality:
    """The results of a trial.

    Attributes:
        scores: the log-probability of each pair.
        bleu: BLEU of the translations; None without lines to translate.
        size: bytes of the exported weights.
    """

    scores: list[float]
    bleu: float | None
    size: int


def drawn_trial(codec: TextCodec, longest: int, search: SearchConfig) -> Trial:
    """Return a trial of pairs that are drawn from the vocabularies, with at most `longest` ids."""
    pairs = draw_pairs(codec, longest)
    return Trial(f"{len(pairs)} drawn pairs", pairs, [], [], search)


def read_trial(
    files: tuple[Path, Path], codec: TextCodec, longest: int, search: SearchConfig
) -> Trial:
    """Read a source text and its reference; pairs of more than `longest` ids are not scored.

    Raises:
        DataError: the files differ in their numbers of lines, or no pair can be scored.
        ConfigError: a file cannot be opened.
    """
    lines = [pair for pair in read_pair(*files) if TOO_LONG not in pair]
    pairs = [
        Pair(source, target, codec.encode_source(source), codec.encode_target(target))
        for source, target in lines
    ]
    pairs = [
        pair
        for pair in pairs
        if min(len(pair.source_ids), len(pair.target_ids)) > 1
        and max(len(pair.source_ids), len(pair.target_ids)) <= longest
    ]
    source, reference = files
    if not pairs:
        raise DataError(
            f"{source} and {reference}: no pair of lines has text of at most {longest:,} tokens; "
            "give a test set"
        )
    sources, references = (list(side) for side in zip(*lines, strict=True))
    return Trial(f"{counted(len(pairs), 'pairs')} of {source}", pairs, sources, references, search)


def measure(trial: Trial, peer: Peer, folder: Path) -> Quality:
    """Score and translate a trial with an exported model."""
    bleu = None
    if trial.sources:
        assert peer.translate is not None, "formats with quantisation translate"
        translations = peer.translate(trial.sources, trial.search)
        (score,) = score_corpus(make_metrics(MetricsConfig()), translations, [trial.references])
        bleu = score.score
    size = sum(path.stat().st_size for path in folder.glob("model.*"))
    return Quality(peer.score(trial.pairs), bleu, size)


def describe_cost(name: str, trial: Trial, exact: Quality, quantized: Quality) -> Iterator[str]:
    """Yield lines that compare a quantised model with the same model in float32.

    Args:
        name: the quantisation.
        trial: what both were tried on.
        exact, quantized: the results in float32, and of the quantised model.
    """
    differences = _per_token(trial.pairs, exact.scores, quantized.scores)
    yield (
        f"{name}: {quantized.size / 1e6:.1f} MB, in float32 {exact.size / 1e6:.1f} MB; "
        f"log-probabilities per token of {trial.text} differ by "
        f"{sum(differences) / len(differences):.2g} on average, {max(differences):.2g} at most"
    )
    if exact.bleu is not None and quantized.bleu is not None:
        difference = round(quantized.bleu - exact.bleu, 2) + 0.0  # no -0.00
        yield (
            f"{name}: BLEU {quantized.bleu:.2f}, in float32 {exact.bleu:.2f} "
            f"({difference:+.2f}), {counted(len(trial.sources), 'lines')} with "
            f"beam {trial.search.beam}"
        )


def _per_token(
    pairs: Sequence[Pair], exact: Sequence[float], quantized: Sequence[float]
) -> list[float]:
    return [
        abs(one - other) / len(pair.target_ids)
        for pair, one, other in zip(pairs, exact, quantized, strict=True)
    ]
