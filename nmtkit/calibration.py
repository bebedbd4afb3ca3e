"""The flow of `nmtkit calibrate`: translate lines, score them, learn to predict the scores.

`nmtkit.decoding.quality` has the regression, and what it predicts from.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nmtkit.config.metrics import MetricsConfig
from nmtkit.config.schema import CalibrateRecipe, TranslateRecipe
from nmtkit.decoding.answers import Request
from nmtkit.decoding.quality import Calibration, Floats, Regression, signals
from nmtkit.decoding.workers import open_translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage.model_description import describe_model, hashes_of
from nmtkit.storage.run_folder import find_model
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
        pairs: lines and their references; those with a blank side are left out.
        reporter: takes messages and progress.
        warn: takes one-line warnings.

    Returns:
        lines about predictions for lines that they were not learnt from.

    Raises:
        ConfigError: the model does not write text, or as `load_translator`.
        DataError: there are too few lines.
        DamagedError: the model is missing or damaged.
        ResourceError: the file cannot be written.
    """
    folder = find_model(path)
    codec = describe_model(folder).codec
    if codec.target_type != "text":
        raise ConfigError(
            f"{path}: writes {codec.target_type}, and chrF is of text; give a model that translates"
        )
    whole = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    if len(whole) < MIN_LINES:
        raise DataError(
            f"{len(whole)} lines are too few to learn from; give at least {MIN_LINES} lines with "
            "their references"
        )
    measured, chrf = _measured(folder, recipe, whole, reporter, warn)
    Calibration(
        model=hashes_of(folder),
        search=vars(recipe.search),
        target_lang=recipe.translation.target_lang,
        num_lines=len(chrf),
        regression=Regression.learn(measured, chrf),
    ).save(folder)
    return [*_report(measured, chrf)]


def _measured(
    folder: Path,
    recipe: CalibrateRecipe,
    pairs: Pairs,
    reporter: WorkReporter,
    warn: Callable[[str], None],
) -> tuple[Floats, Floats]:
    """Translate lines; return the signals (N, 2) of the translations, and their chrF (N,)."""
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
            for answer, reference in zip(result.answers, references, strict=False):
                best = answer.translation
                if best.tokens:  # a line that is too long may be skipped
                    measured.append(signals(best))
                    chrf.append(metric.score_line(best.text, [reference]))
            counting.add(result.num_lines, result.num_tokens)
    return np.array(measured), np.array(chrf)


def _report(measured: Floats, chrf: Floats) -> Iterator[str]:
    """Yield the correlation of predictions with chrF, then both by groups of lines.

    Each tenth of the lines is predicted by what the others teach.
    """
    folds = np.arange(len(chrf)) % _NUM_FOLDS
    expected, error = np.empty_like(chrf), np.empty_like(chrf)
    for fold in range(_NUM_FOLDS):
        is_out = folds == fold
        learnt = Regression.learn(measured[~is_out], chrf[~is_out])
        expected[is_out], error[is_out] = learnt.predict(measured[is_out])
    ranks, true_ranks = (values.argsort().argsort() for values in (expected, chrf))
    correlation = np.corrcoef(ranks, true_ranks)[0, 1]
    yield f"lines={len(chrf)} chrF={chrf.mean():.2f} rank_correlation={correlation:.3f}"
    yield "expected\tchrF\texpected error\terror"
    for group in np.array_split(expected.argsort(kind="stable"), _NUM_GROUPS):
        deviation = np.sqrt(((expected[group] - chrf[group]) ** 2).mean())
        figures = expected[group].mean(), chrf[group].mean(), error[group].mean(), deviation
        yield "\t".join(f"{one:.2f}" for one in figures)
