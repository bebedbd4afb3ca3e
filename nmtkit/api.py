"""The Python API: load a model, translate, score, evaluate; docs/python.md describes it.

It checks arguments when it is called, and names them in messages. The work is that of the commands:
nmtkit.decoding and nmtkit.evaluation, which are imported when they are needed.
"""

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NoReturn, Unpack

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.keywords import (
    ScoreSettings,
    TranslateSettings,
    as_arguments,
    documented,
    naming_arguments,
    recipe_of_keywords,
)
from nmtkit.config.metrics import BreakdownConfig
from nmtkit.config.schema import ScoreRecipe, ScoringConfig, TranslateRecipe
from nmtkit.errors import ConfigError, DataError
from nmtkit.runtime.environment import shorten_spinning
from nmtkit.text.lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from nmtkit.decoding.answers import Translation
    from nmtkit.decoding.scorer import ScoredLine
    from nmtkit.evaluation.metric import Score

ModelPath = str | os.PathLike[str]


@documented(TranslateRecipe, TranslateSettings)
def load(
    model: ModelPath, /, *models: ModelPath, **settings: Unpack[TranslateSettings]
) -> "Translator":
    """Load a model, ready to translate and to score.

    Args:
        model: a model, a checkpoint or a run.
        models: more of them with the same vocabulary, for an ensemble.
        settings: options of `nmtkit translate`, listed below.

    Raises:
        ConfigError: a setting is unknown, out of range, without effect, or contradicts another; the
            vocabularies differ; the device is missing.
        DamagedError: a model is missing, damaged or incompatible.
        ResourceError: a model cannot be read.
    """
    for one in (model, *models):
        if not isinstance(one, str | os.PathLike):
            raise TypeError(f"model must be a path, not {type(one).__name__}")
    paths = [Path(one) for one in (model, *models)]
    known = TranslateSettings.__annotations__
    # The output format that uses all settings of results.
    recipe = recipe_of_keywords(TranslateRecipe, known, settings, {"output_format": "json"})
    return Translator(paths, recipe)


@documented(ScoreRecipe, ScoreSettings)
def evaluate(
    hypotheses: Iterable[str],
    references: Iterable[str],
    /,
    *more_references: Iterable[str],
    **settings: Unpack[ScoreSettings],
) -> "list[Score]":
    """Score translations against one or more references, in the order of `metric`.

    Args:
        hypotheses: the translations.
        references: the reference of each translation.
        more_references: further references of each translation.
        settings: options of `nmtkit score`, listed below; `metric` may be a list.

    Returns:
        the scores of each metric; most metrics have one.

    Raises:
        ConfigError: a setting is unknown, out of range, without effect, or contradicts another; a
            metric is repeated.
        DataError: there are no translations, the numbers of lines differ, or a line is malformed.
    """
    from nmtkit.evaluation.evaluate import evaluate, line_type
    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.evaluation.texts import Text, Texts

    if isinstance(metric := settings.get("metric"), list | tuple):
        _check_metrics([str(name) for name in metric])
        settings["metric"] = ",".join(map(str, metric))
    recipe = recipe_of_keywords(ScoreRecipe, ScoreSettings.__annotations__, settings, {})
    names = ["references", *(f"references {n}" for n in range(2, 2 + len(more_references)))]
    texts = Texts(
        [Text("hypotheses", _lines(hypotheses, "hypotheses"))],
        [
            Text(name, _lines(lines, name))
            for name, lines in zip(names, (references, *more_references), strict=True)
        ],
    )
    with naming_arguments():
        texts.check()
        for message in line_type(recipe.metrics).input_warnings(texts):
            warnings.warn(as_arguments(message), stacklevel=2)
        metrics = make_metrics(recipe.metrics)
        found = evaluate(texts, metrics, recipe.significance, BreakdownConfig())
    return [score for (score,) in found.scores]


class Translator:
    """A model or ensemble, ready to translate and to score; `nmtkit.load` returns it.

    Threads may share it: calls wait for each other. Processes cannot; each one loads its own.
    """

    def __init__(self, paths: Sequence[Path], recipe: TranslateRecipe) -> None:
        """Load the models."""
        shorten_spinning()
        from nmtkit.decoding.loading import load_translator

        self._paths = paths
        self._recipe = recipe
        self._lock = Lock()
        self._warnings: list[str] = []
        with naming_arguments():
            self._translator = load_translator(paths, recipe, self._warnings.append)
            messages = [as_arguments(message) for message in self._warnings]
        for message in messages:
            warnings.warn(message, stacklevel=3)

    def translate(
        self, lines: Iterable[str], *, target_prefixes: Iterable[str] | None = None
    ) -> "list[Translation]":
        """Translate lines; return the best translation of each, in order.

        The `n_best` of a translation has the others. A line that is too long is a warning.

        Args:
            lines: the lines; a blank one has a blank translation.
            target_prefixes: the beginning of each translation; "" = any. None = any for all.

        Raises:
            DataError: a line is malformed, or too long and `on_too_long` is "error"; no
                translation satisfies the constraints.
        """
        from nmtkit.decoding.input_formats import Request

        sources = _lines(lines, "lines")
        prefixes = [""] * len(sources)
        if target_prefixes is not None:
            prefixes = _lines(target_prefixes, "target_prefixes")
        _check_equal_lengths(sources, prefixes, "lines", "target_prefixes")
        requests = [*map(Request, sources, prefixes)]
        with self._lock, naming_arguments():
            self._warnings.clear()
            results = [*self._translator.answer_all([(1, requests)])]
            messages = [as_arguments(message) for message in self._warnings]
        for message in messages:
            warnings.warn(message, stacklevel=2)
        found = [answer.translations for result in results for answer in result.answers]
        return [replace(n_best[0], n_best=tuple(n_best)) for n_best in found]

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        *,
        max_length: int = ScoringConfig.max_length,
    ) -> "list[ScoredLine]":
        """Score given translations by forced decoding; return their log-probabilities, in order.

        Args:
            sources: the source lines.
            targets: the translation of each.
            max_length: tokens of the longest line on either side, the end symbol counted.

        Raises:
            ConfigError: max_length is out of range.
            DataError: a line is malformed or too long, or the numbers of lines differ.
        """
        given = {"max_length": max_length}
        implied = {"max_tokens": self._recipe.translation.max_tokens}
        config = recipe_of_keywords(ScoreRecipe, given, given, implied).scoring
        pairs = _lines(sources, "sources"), _lines(targets, "targets")
        _check_equal_lengths(*pairs, "sources", "targets")
        with self._lock, naming_arguments():
            scorer = self._translator.scorer(config)
            return scorer.score_chunk([*zip(*pairs, strict=True)], 1)

    def __repr__(self) -> str:
        """Return models and settings as in the call of `load`; defaults are left out."""
        fields, values = fields_of(TranslateRecipe), values_of(self._recipe)
        arguments = [repr(str(path)) for path in self._paths] + [
            f"{name}={values[name]!r}"
            for name in TranslateSettings.__annotations__
            if values[name] != fields[name].default
        ]
        return f"nmtkit.load({', '.join(arguments)})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        raise TypeError(
            "a Translator cannot be pickled or copied; call nmtkit.load in each process"
        )


def _lines(lines: Iterable[str], name: str) -> list[str]:
    """Return an argument as a list of lines.

    Raises:
        TypeError: it is no list of texts.
        DataError: a line is too long, or cannot be encoded.
    """
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise TypeError(f"{name} must be a list of lines, not {type(lines).__name__}; give a list")
    texts = list(lines)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise TypeError(f"{name}, line {number}: must be a str, not {type(text).__name__}")
        if len(text) > MAX_LINE_BYTES:
            raise DataError(
                f"{name}, line {number}: more than {MAX_LINE_BYTES:,} characters; break it into "
                "several lines"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{name}, line {number}: holds half a character ({text[error.start]!a}); "
                "decode the text again, with its encoding"
            ) from None
    return texts


def _check_metrics(names: Sequence[str]) -> None:
    if not names:
        raise ConfigError("metric is an empty list; name a metric, such as bleu")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"metric names {name!r} {names.count(name)} times; name it once")


def _check_equal_lengths(
    one: Sequence[str], other: Sequence[str], name: str, other_name: str
) -> None:
    if len(one) != len(other):
        raise DataError(
            f"{name} has {len(one)} lines and {other_name} has {len(other)}; give both the same "
            "number of lines, in the same order"
        )
