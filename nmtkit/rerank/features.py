"""Features of candidates: `FEATURES` has the implementation of each kind.

Every feature is a number, the higher the better if its weight is positive. A blank line has the
value 0 for all of them. Candidates with equal texts are scored once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from nmtkit.config.rerank import FeatureSpec
from nmtkit.errors import DataError
from nmtkit.evaluation.metric_command import Segment, run_metric_command
from nmtkit.rerank.candidates import CandidateList
from nmtkit.rerank.mbr import expected_utilities
from nmtkit.text.lines import one_line

MAX_EXACT_PAIRS = 4096
"""Pairs of a line up to which `--mbr auto` is exact: 64 candidates against themselves."""

Values = list[list[float]]
"""Per line, the value of each candidate."""

Feature = Callable[[Sequence[CandidateList]], Values]
"""Returns the values of the candidates of lines that are not blank."""


@dataclass(frozen=True)
class Pair:
    """A source and one of its translations.

    Attributes:
        source, translation: texts without line feeds.
        where: name of the line in messages.
    """

    source: str
    translation: str
    where: str


ScorePairs = Callable[[Sequence[Pair]], Sequence[float]]


@dataclass(frozen=True)
class Resources:
    """The resources that features are made with.

    Attributes:
        load_model: loads a model; from the name of a feature and its path, to a function from pairs
            to log-probabilities.
        commands: programs by name, as of --metric-command.
        mbr: "auto", "exact" or "aggregate".
    """

    load_model: Callable[[FeatureSpec], ScorePairs]
    commands: Mapping[str, str]
    mbr: str


def make_features(specs: Sequence[FeatureSpec], resources: Resources) -> dict[str, Feature]:
    """Return the features by name, in order; models are loaded.

    Raises:
        ConfigError, DamagedError: a model cannot be used.
    """
    return {spec.name: FEATURES[spec.kind](spec, resources) for spec in specs}


def feature_values(
    lines: Sequence[CandidateList], features: Mapping[str, Feature]
) -> list[list[dict[str, float]]]:
    """Return the values of all features of each candidate of each line, by name.

    Raises:
        DataError: a feature cannot be computed.
    """
    found = [[dict.fromkeys(features, 0.0) for _ in line.candidates] for line in lines]
    places = [place for place, line in enumerate(lines) if not line.is_blank]
    for name, feature in features.items():
        values = feature([lines[place] for place in places])
        for place, own in zip(places, values, strict=True):
            for target, value in zip(found[place], own, strict=True):
                target[name] = value
    return found


def _make_model(_spec: FeatureSpec, _resources: Resources) -> Feature:
    return _scores_that_are_there


def _scores_that_are_there(lines: Sequence[CandidateList]) -> Values:
    """Return the value of the key `score`."""
    for line in lines:
        for one in line.candidates:
            if "score" not in one.values:
                raise DataError(
                    f"{one.named('score')} is missing, which the feature model needs; add it, or "
                    "leave out the feature"
                )
    return [[float(one.values["score"]) for one in line.candidates] for line in lines]


def _make_length(_spec: FeatureSpec, _resources: Resources) -> Feature:
    return partial(_by_text, lambda pairs: [float(len(one.translation.split())) for one in pairs])


def _make_forced(spec: FeatureSpec, resources: Resources) -> Feature:
    return partial(_by_text, resources.load_model(spec))


def _make_command(spec: FeatureSpec, resources: Resources) -> Feature:
    command = resources.commands[spec.argument]

    def score(pairs: Sequence[Pair]) -> list[float]:
        segments = [Segment(one.source, one.translation, ()) for one in pairs]
        return run_metric_command(spec.argument, command, segments)

    return partial(_by_text, score)


def _make_mbr(spec: FeatureSpec, resources: Resources) -> Feature:
    return partial(_utilities, spec.argument, resources.mbr)


def _utilities(utility: str, how: str, lines: Sequence[CandidateList]) -> Values:
    """Return the expected utility of each candidate over the samples or candidates of its line."""
    found = []
    for line in lines:
        texts = [one.text for one in line.candidates]
        references = line.samples or texts
        num_pairs = len({*texts}) * len({*references})
        is_aggregated = how == "aggregate" or (how == "auto" and num_pairs > MAX_EXACT_PAIRS)
        found.append(expected_utilities(utility, texts, references, is_aggregated))
    return found


def _by_text(score: ScorePairs, lines: Sequence[CandidateList]) -> Values:
    """Score each distinct pair of source and translation once, all pairs together."""
    pairs: dict[tuple[str, str], Pair] = {}
    for line in lines:
        for one in line.candidates:
            pair = Pair(one_line(line.source), one_line(one.text), one.where)
            pairs.setdefault((line.source, one.text), pair)
    scores = dict(zip(pairs, score([*pairs.values()]), strict=True)) if pairs else {}
    return [[scores[line.source, one.text] for one in line.candidates] for line in lines]


Maker = Callable[[FeatureSpec, Resources], Feature]
FEATURES: dict[str, Maker] = {
    "model": _make_model,
    "length": _make_length,
    "forced": _make_forced,
    "backward": _make_forced,
    "right-to-left": _make_forced,
    "command": _make_command,
    "mbr": _make_mbr,
}
"""Makers of the kinds of features; `FEATURES` in nmtkit/config/rerank.py has their facts."""
