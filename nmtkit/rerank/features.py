"""Features of candidates: `FEATURES` has the implementation of each kind.

Every feature is a number, the higher the better if its weight is positive. A blank line has the
value 0 for all of them. Candidates with equal texts are scored once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path

import numpy as np

from nmtkit.config.metrics import (
    AUTO,
    GENERAL_TOKENIZER,
    MetricsConfig,
    base_language,
    metric_commands,
    tokenizer_of,
)
from nmtkit.config.rerank import FeatureSpec, feature_specs
from nmtkit.config.schema import RerankRecipe
from nmtkit.errors import DataError
from nmtkit.evaluation.metric_command import run_metric_command
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.rerank.mbr import expected_utilities
from nmtkit.rerank.tuning import Floats
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.run_folder import find_model
from nmtkit.text.codec import SEVERAL
from nmtkit.text.lines import one_line
from nmtkit.text.translations import Candidate, TranslatedLine
from nmtkit.text.words import is_spaceless, words_of

MAX_EXACT_PAIRS = 4096
"""Pairs of a line up to which `--mbr auto` is exact: 64 candidates against themselves."""

Pair = tuple[str, str]
"""A source and one of its translations, without line feeds."""

ScorePairs = Callable[[Mapping[Pair, str]], Sequence[float]]
"""Returns the scores of pairs, given with the names of their lines."""

Feature = Callable[[Sequence[TranslatedLine]], Sequence[Sequence[float]]]
"""Returns the value of each candidate of lines that are not blank."""


def make_features(recipe: RerankRecipe, warn: Callable[[str], None]) -> dict[str, Feature]:
    """Return the features by name, in order; models are loaded.

    Args:
        recipe: the settings.
        warn: takes one-line warnings.

    Raises:
        ConfigError: a device is missing.
        DamagedError: a model is missing or damaged.
    """
    specs = feature_specs(recipe.rerank.features)
    return {spec.name: FEATURES[spec.kind](spec, recipe, warn) for spec in specs}


def feature_values(
    lines: Sequence[TranslatedLine], features: Mapping[str, Feature]
) -> list[Floats]:
    """Return the values (candidates, features) of each line.

    Raises:
        DataError: a feature cannot be computed.
    """
    found = [np.zeros((len(line.candidates), len(features))) for line in lines]
    places = [place for place, line in enumerate(lines) if line.source.strip()]
    for column, feature in enumerate(features.values()):
        for place, own in zip(places, feature([lines[place] for place in places]), strict=True):
            found[place][:, column] = own
    return found


def language_pair(recipe: RerankRecipe) -> str:
    """Return the given languages, or those of the first model among the features; "" = unknown.

    Raises:
        ConfigError, DamagedError: the model is missing or damaged.
    """
    if recipe.metrics.language_pair:
        return recipe.metrics.language_pair
    if recipe.scoring.target_lang:
        return (
            f"{recipe.scoring.source_lang or SEVERAL}-{base_language(recipe.scoring.target_lang)}"
        )
    for spec in feature_specs(recipe.rerank.features):
        if spec.kind in VIEWS:
            pair = describe_model(find_model(Path(spec.argument))).codec.language_pair
            return "-".join(reversed(pair.split("-"))) if spec.kind == "backward" else pair
    return ""


def _score_that_is_there(one: Candidate) -> float:
    if "score" not in one.values:
        raise DataError(
            f"{one.named('score')} is missing, which the feature model needs; add it, or leave out "
            "the feature"
        )
    return float(one.values["score"])


def _by_candidate(value: Callable[[Candidate], float]) -> Feature:
    return lambda lines: [[value(one) for one in line.candidates] for line in lines]


def _by_text(score: ScorePairs) -> Feature:
    """Return the feature that scores each distinct pair once, all pairs together."""

    def pair(line: TranslatedLine, one: Candidate) -> Pair:
        return one_line(line.source), one_line(one.text)

    def values(lines: Sequence[TranslatedLine]) -> list[list[float]]:
        names: dict[Pair, str] = {}
        for line in lines:
            for one in line.candidates:
                names.setdefault(pair(line, one), one.where)
        scores = dict(zip(names, score(names) if names else [], strict=True))
        return [[scores[pair(line, one)] for one in line.candidates] for line in lines]

    return values


def _make_command(spec: FeatureSpec, recipe: RerankRecipe, _: Callable[[str], None]) -> Feature:
    command = metric_commands(recipe.metrics.metric_command)[spec.argument]

    def score(pairs: Mapping[Pair, str]) -> list[float]:
        segments = [(*pair, "") for pair in pairs]
        return run_metric_command(spec.argument, command, segments)

    return _by_text(score)


def _make_mbr(spec: FeatureSpec, recipe: RerankRecipe, _: Callable[[str], None]) -> Feature:
    config = MetricsConfig(
        metric=spec.argument,
        tokenize=recipe.metrics.tokenize,
        language_pair=language_pair(recipe),
    )
    is_by_script = config.tokenize == AUTO and tokenizer_of(config) == GENERAL_TOKENIZER
    by_language, by_character = (
        make_metrics(one)[0] for one in (config, replace(config, tokenize="char"))
    )

    def utilities(line: TranslatedLine) -> list[float]:
        texts = [one.text for one in line.candidates]
        metric = by_character if is_by_script and is_spaceless(texts) else by_language
        is_large = len({*texts}) ** 2 > MAX_EXACT_PAIRS
        is_aggregated = {"auto": is_large, "exact": False, "aggregate": True}[recipe.rerank.mbr]
        return expected_utilities(spec.argument, metric, texts, is_aggregated)

    return lambda lines: [*map(utilities, lines)]


def reversed_words(text: str) -> str:
    """Return the words of a text, which are between white space, in reverse order."""
    return " ".join(reversed(text.split()))


VIEWS: dict[str, Callable[[str, str], Pair]] = {
    "forced": lambda source, translation: (source, translation),
    "backward": lambda source, translation: (translation, source),
    "right-to-left": lambda source, translation: (source, reversed_words(translation)),
}
"""What each kind of feature by a model gives to it as source and target."""


def _make_by_model(spec: FeatureSpec, recipe: RerankRecipe, warn: Callable[[str], None]) -> Feature:
    from nmtkit.decoding.loading import load_scorer  # imports torch

    view = VIEWS[spec.kind]
    scoring = recipe.scoring
    has_symbols = {
        one: bool(describe_model(find_model(Path(one.argument))).codec.target_langs)
        for one in feature_specs(recipe.rerank.features)
        if one.kind in VIEWS
    }
    if any(has_symbols.values()) and not has_symbols[spec]:
        scoring = replace(scoring, source_lang="", target_lang="")
    elif spec.kind == "backward":
        source, target = scoring.source_lang, scoring.target_lang
        scoring = replace(scoring, source_lang=target, target_lang=source)
    scorer = load_scorer(Path(spec.argument), scoring, recipe.runtime, warn)

    def score(pairs: Mapping[Pair, str]) -> list[float]:
        names = [f"{where}: {spec.name}" for where in pairs.values()]
        return [one.log_prob for one in scorer.score([*starmap(view, pairs)], names)]

    of_texts, language = _by_text(score), recipe.scoring.target_lang

    def values(lines: Sequence[TranslatedLine]) -> Sequence[Sequence[float]]:
        for line in lines:
            if scorer.codec.target_langs and line.target_lang not in ("", language):
                raise DataError(
                    f"{line.where}: target_lang is {line.target_lang!r}; rerank the lines of one "
                    "language together, with --target-lang"
                )
        return of_texts(lines)

    return values


Maker = Callable[[FeatureSpec, RerankRecipe, Callable[[str], None]], Feature]
FEATURES: dict[str, Maker] = {
    "model": lambda *_: _by_candidate(_score_that_is_there),
    "length": lambda *_: _by_candidate(lambda one: len(words_of(one.text))),
    **dict.fromkeys(VIEWS, _make_by_model),
    "command": _make_command,
    "mbr": _make_mbr,
}
"""Makers of the kinds of features; `FEATURES` in nmtkit/config/rerank.py has their facts."""
