"""The flow of `nmtkit calibrate`: translate lines, score them, learn to predict the scores.

`nmtkit.decoding.quality` has the regression, and what it predicts from.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import CalibrateRecipe, TranslateRecipe
from nmtkit.decoding.answers import Request
from nmtkit.decoding.quality import Calibration, Floats, Regression, settings_of, signals
from nmtkit.decoding.workers import open_translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage.model_description import describe_model, hashes_of
from nmtkit.storage.run_folder import find_model
from nmtkit.text.language_symbols import listed_languages
from nmtkit.text.lines import FIRST_CHUNK_LINES, numbered_chunks

MIN_LINES = 100
"""Fewest lines to learn from."""

_NUM_FOLDS = 10
_NUM_GROUPS = 5
"""Groups of lines by their expected chrF, in the report."""

Pairs = Sequence[tuple[str, str]]


def calibrate(
    path: Path,
    recipe: CalibrateRecipe,
    pairs: Pairs,
    reporter: WorkReporter,
    warn: Callable[[str], None],
) -> list[str]:
    """Learn to predict the chrF of a model's translations, and store that with the model.

    Args:
        path: the path of a model, a checkpoint or a run.
        recipe: the settings of the search.
        pairs: lines and their references; at least `MIN_LINES` are not blank.
        reporter: takes messages and progress.
        warn: takes one-line warnings.

    Returns:
        lines about predictions for lines that they were not learnt from.

    Raises:
        ConfigError: the model does not write text, its language is missing, or as
            `load_translator`.
        DataError: there are too few lines, or their chrF is equal.
        DamagedError: the model is missing or damaged.
        ResourceError: the file cannot be written.
    """
    folder = find_model(path)
    codec = describe_model(folder).codec
    if codec.target_type != "text":
        raise ConfigError(
            f"{path}: writes {codec.target_type}, and chrF is of text; give a model that translates"
        )
    if len(codec.target_langs) > 1 and not recipe.translation.target_lang:
        raise ConfigError(
            f"target_lang is missing, to which {path} translates; give --target-lang, one of "
            f"{listed_languages(codec)}"
        )
    _check_enough(sum(bool(source.strip() and reference.strip()) for source, reference in pairs))
    measured, chrf = _measured(folder, recipe, pairs, reporter, warn)
    _check_enough(len(chrf))
    if chrf.min() == chrf.max():
        raise DataError(
            f"every translation has chrF {chrf[0]:.2f}, so there is nothing to learn; give lines "
            "and their translations into the model's language"
        )
    Calibration(
        model=hashes_of(folder),
        settings=settings_of(recipe.search, recipe.translation),
        num_lines=len(chrf),
        regression=Regression.learn(measured, chrf),
    ).save(folder)
    return agreement(measured, chrf)


def _check_enough(num_lines: int) -> None:
    if num_lines < MIN_LINES:
        raise DataError(
            f"{num_lines} lines are too few to learn from; give at least {MIN_LINES} lines with "
            "their references"
        )


def _measured(
    folder: Path,
    recipe: CalibrateRecipe,
    pairs: Pairs,
    reporter: WorkReporter,
    warn: Callable[[str], None],
) -> tuple[Floats, Floats]:
    """Translate lines; return the signals (N, 2) of the translations, and their chrF (N,).

    Pairs with a blank side are left out.
    """
    (metric,) = make_metrics(MetricsConfig(metric="chrf"))
    search = TranslateRecipe(
        search=recipe.search, translation=recipe.translation, runtime=recipe.runtime
    )
    translator = open_translator([folder], search, warn, reporter.message, reads_ahead=True)
    requests = (Request(source) for source, _ in pairs)
    chunks = numbered_chunks(requests, recipe.translation.chunk_lines, FIRST_CHUNK_LINES)
    references = (reference for _, reference in pairs)
    measured, chrf = [], []
    with reporter.counting("translated", "lines", len(pairs)) as counting:
        for result in translator.answer_all(chunks):
            for answer in result.answers:
                best, reference = answer.translation, next(references)
                if best.tokens and reference.strip():
                    measured.append(signals(best))
                    chrf.append(metric.score_line(best.text, [reference]))
            counting.add(result.num_lines, result.num_tokens)
    return np.array(measured), np.array(chrf)


def agreement(measured: Floats, chrf: Floats) -> list[str]:
    """Return lines about how predictions agree with chrF.

    The correlation of their ranks, then means by groups of lines. Each tenth of the lines is
    predicted by what the others teach.

    Args:
        measured: (N, 2), the signals of translations.
        chrf: (N,), their chrF.
    """
    folds = np.arange(len(chrf)) % _NUM_FOLDS
    expected, error = np.empty_like(chrf), np.empty_like(chrf)
    for fold in range(_NUM_FOLDS):
        is_out = folds == fold
        learnt = Regression.learn(measured[~is_out], chrf[~is_out])
        expected[is_out], error[is_out] = learnt.predict(measured[is_out])
    correlation = rank_correlation(expected, chrf)
    lines = [f"lines={len(chrf)} chrF={chrf.mean():.2f} rank_correlation={correlation:.3f}"]
    lines.append("expected\tchrF\texpected error\terror")
    for group in np.array_split(expected.argsort(kind="stable"), _NUM_GROUPS):
        deviation = np.sqrt(((expected[group] - chrf[group]) ** 2).mean())
        figures = expected[group].mean(), chrf[group].mean(), error[group].mean(), deviation
        lines.append("\t".join(f"{one:.2f}" for one in figures))
    return lines


def rank_correlation(one: Floats, other: Floats) -> float:
    """Compute Spearman's correlation; equal values have their mean rank. 0 if all are equal."""
    ranks = []
    for values in (one, other):
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        own = (counts.cumsum() - (counts + 1) / 2)[places]
        ranks.append(own - own.mean())
    norm = np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum())
    return float((ranks[0] * ranks[1]).sum() / norm) if norm else 0.0
