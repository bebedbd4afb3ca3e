"""The flow of `nmtkit rerank`: candidates -> features -> weighted sums -> candidates in order."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nmtkit.config.rerank import FeatureSpec, RerankOutputConfig
from nmtkit.config.schema import RuntimeConfig, ScoringConfig
from nmtkit.errors import DataError
from nmtkit.rerank.candidates import CandidateList
from nmtkit.rerank.features import Feature, ScorePairs, feature_values
from nmtkit.text.json_lines import write_object
from nmtkit.text.lines import numbered_chunks, one_line
from nmtkit.text.translations import SCHEMA, Candidate

if TYPE_CHECKING:
    from nmtkit.rerank.models import Models


@dataclass(frozen=True)
class RankedCandidate:
    """A candidate with its score.

    Attributes:
        candidate: the candidate as it was read.
        features: the value of each feature, by name.
        score: their weighted sum.
    """

    candidate: Candidate
    features: Mapping[str, float]
    score: float


@dataclass(frozen=True)
class RankedLine:
    """A line with its candidates in order.

    Attributes:
        line: the line as it was read.
        ranked: its candidates, the highest score first; equal scores in the order of the input.
    """

    line: CandidateList
    ranked: Sequence[RankedCandidate]


def rerank(
    lines: Iterable[CandidateList],
    features: Mapping[str, Feature],
    weights: Mapping[str, float],
    chunk_lines: int,
    first_chunk_lines: int,
) -> Iterator[list[RankedLine]]:
    """Order the candidates of each line by the weighted sum of their features, chunk by chunk.

    A chunk is read when the one before has been consumed.

    Args:
        lines: read as needed.
        features: by name, as `make_features` returns them.
        weights: of the features, by name.
        chunk_lines: largest number of lines that are held in memory and scored together.
        first_chunk_lines: those of the first chunk; see `numbered_chunks`.

    Raises:
        DataError: a line is malformed, or a feature cannot be computed.
    """
    assert features.keys() == weights.keys(), (features.keys(), weights.keys())
    for _, chunk in numbered_chunks(lines, chunk_lines, first_chunk_lines):
        found = feature_values(chunk, features)
        yield [_ranked(*one, weights) for one in zip(chunk, found, strict=True)]


def _ranked(
    line: CandidateList, found: Sequence[Mapping[str, float]], weights: Mapping[str, float]
) -> RankedLine:
    ranked = [
        RankedCandidate(candidate, values, _weighted_sum(values, weights))
        for candidate, values in zip(line.candidates, found, strict=True)
    ]
    for one in ranked:
        if not math.isfinite(one.score):
            raise DataError(
                f"{one.candidate.where}: the weighted sum of features is not finite; use smaller "
                "weights, or fix the scores"
            )
    return RankedLine(line, sorted(ranked, key=lambda one: one.score, reverse=True))


def _weighted_sum(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the sum, rounded as by `nmtkit.rerank.tuning.weighted_sums`."""
    total = 0.0
    for name, value in values.items():
        total += weights[name] * value
    return total


def model_loader(
    scoring: ScoringConfig, runtime: RuntimeConfig
) -> Callable[[FeatureSpec], ScorePairs]:
    """Return the function that loads models; torch is imported when it is first called."""

    @cache
    def models() -> "Models":
        from nmtkit.rerank.models import Models

        return Models(scoring, runtime)

    return lambda spec: models().load(spec)


def _text_lines(line: RankedLine, _output: RerankOutputConfig) -> str:
    return one_line(line.ranked[0].candidate.text)


def _json_lines(line: RankedLine, output: RerankOutputConfig) -> str:
    """Return an object of the schema; with other numbers than 1, it has the list of candidates."""
    own = line.line
    values: dict[str, Any] = {"schema": SCHEMA, "source": own.source}
    if own.target_prefix:
        values["target_prefix"] = own.target_prefix
    values |= own.others
    values |= _values(line.ranked[0])
    if output.n_best != 1:
        values["n_best"] = [_values(one) for one in line.ranked[: output.n_best or None]]
    return write_object(values)


def _values(one: RankedCandidate) -> dict[str, Any]:
    return {**one.candidate.values, "features": one.features, "rerank_score": one.score}


OUTPUT_FORMATS: dict[str, Callable[[RankedLine, RerankOutputConfig], str]] = {
    "text": _text_lines,
    "json": _json_lines,
}
"""Functions from a line and the settings to a line of output."""
