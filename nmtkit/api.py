"""The Python API: load a model, translate, score, align, evaluate; docs/python.md describes it.

It checks arguments when it is called, and names them in messages. The work is that of the commands:
nmtkit.decoding and nmtkit.evaluation, which are imported when they are needed.
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from threading import Lock
from typing import NoReturn

from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.config.problems import placed, raise_problems, without_effect
from nmtkit.config.schema import (
    AlignRecipe,
    AnyRecipe,
    RuntimeConfig,
    ScoreRecipe,
    ScoringConfig,
    SearchConfig,
    TranslateRecipe,
    Value,
    Values,
    sections_of,
    values_of,
)
from nmtkit.config.translation import (
    AligningConfig,
    ConstraintsConfig,
    LinksConfig,
    OutputConfig,
    SamplingConfig,
    TranslationConfig,
)
from nmtkit.config.validate import check_recipe, check_values
from nmtkit.decoding.answers import AlignedPair, Pair, Request, ScoredLine, Translation
from nmtkit.errors import DataError
from nmtkit.evaluation.metric import Score
from nmtkit.runtime.environment import short_spinning
from nmtkit.text.lines import MAX_LINE_BYTES

ModelPath = str | os.PathLike[str]

COMMAND_SETTINGS = (
    # Results are objects with scores; all lines are given, and one process translates them.
    *("input_format", "output_format", "scores", "probabilities"),
    *("chunk_lines", "stream", "devices"),
    # One system is scored, and its references are given.
    *("test_set", "metric_command", "paired_bs", "paired_ar", "trials"),
)
"""Settings of commands that have no effect in Python."""

_TRANSLATE, _ALIGN, _SCORE = TranslateRecipe(), AlignRecipe(), ScoreRecipe()


def load(
    *models: ModelPath,
    search: SearchConfig = _TRANSLATE.search,
    constraints: ConstraintsConfig = _TRANSLATE.constraints,
    sampling: SamplingConfig = _TRANSLATE.sampling,
    output: OutputConfig = _TRANSLATE.output,
    translation: TranslationConfig = _TRANSLATE.translation,
    runtime: RuntimeConfig = _TRANSLATE.runtime,
) -> "Translator":
    """Load a model, ready to translate and to score.

    The other arguments are the sections of the settings of `nmtkit translate`.

    Args:
        models: a model, a checkpoint or a run; several with the same vocabulary are an ensemble.
        search: beam and longest translation.
        constraints: what translations may contain, and what they must.
        sampling: samples instead of the best translations.
        output: the number of translations, and their annotations.
        translation: precision, batches, long lines.
        runtime: device and threads.

    Raises:
        ConfigError: a setting is out of range, without effect, or contradicts another; the
            vocabularies differ; the device is missing.
        DamagedError: a model is missing, damaged or incompatible.
        ResourceError: a model cannot be read.
    """
    if not models:
        raise TypeError("load needs the path of a model")
    paths = [*map(_path, models)]
    recipe = TranslateRecipe(
        search=search,
        constraints=constraints,
        sampling=sampling,
        output=output,
        translation=translation,
        runtime=runtime,
    )
    # The output format that uses all settings of results.
    return Translator(paths, _checked(recipe, {"output_format": "json"}))


def load_aligner(
    model: ModelPath,
    reverse: ModelPath | None = None,
    *,
    links: LinksConfig = _ALIGN.links,
    aligning: AligningConfig = _ALIGN.aligning,
    runtime: RuntimeConfig = _ALIGN.runtime,
) -> "Aligner":
    """Load a model, or one per direction, ready to align.

    The other arguments are the sections of the settings of `nmtkit align`.

    Args:
        model: a model, a checkpoint or a run.
        reverse: a model of the other direction; None = none.
        links: how links are read and combined.
        aligning: precision, batches, long lines.
        runtime: device and threads.

    Raises:
        ConfigError: a setting is out of range or without effect; the models do not fit together;
            the device is missing.
        DamagedError: a model is missing, damaged or incompatible.
        ResourceError: a model cannot be read.
    """
    paths = [_path(model), *([] if reverse is None else [_path(reverse)])]
    recipe = AlignRecipe(links=links, aligning=aligning, runtime=runtime)
    checked = _checked(recipe, {"probabilities": True})
    if reverse is None:
        idle = without_effect(checked, ("symmetrize",), "without reverse")
        raise_problems([*placed(checked, idle)])
    return Aligner(paths, checked)


def evaluate(
    hypotheses: Iterable[str],
    references: Iterable[str],
    /,
    *more_references: Iterable[str],
    sources: Iterable[str] | None = None,
    metrics: MetricsConfig = _SCORE.metrics,
    significance: SignificanceConfig = _SCORE.significance,
) -> list[Score]:
    """Score translations against one or more references, in the order of the metrics.

    Args:
        hypotheses: the translations.
        references: the reference of each translation.
        more_references: further references of each translation.
        sources: the source of each translation, for metric terms.
        metrics: the metrics, and their settings.
        significance: confidence intervals.

    Returns:
        the scores of each metric; most metrics have one.

    Raises:
        ConfigError: a setting is out of range, without effect, or contradicts another.
        DataError: there are no translations, the numbers of lines differ, or a line is malformed.
    """
    from nmtkit.evaluation.evaluate import evaluate, line_type
    from nmtkit.evaluation.metrics import make_metrics
    from nmtkit.evaluation.texts import Text, Texts

    recipe = _checked(ScoreRecipe(metrics=metrics, significance=significance), {})
    names = ["references", *(f"references {n}" for n in range(2, 2 + len(more_references)))]
    texts = Texts(
        [Text("hypotheses", _lines(hypotheses, "hypotheses"))],
        [
            Text(name, _lines(lines, name))
            for name, lines in zip(names, (references, *more_references), strict=True)
        ],
        None if sources is None else Text("sources", _lines(sources, "sources")),
    )
    texts.check()
    for message in line_type(recipe.metrics).input_warnings(texts, recipe.metrics):
        warnings.warn(message, stacklevel=2)
    made = make_metrics(recipe.metrics)
    found = evaluate(texts, made, recipe.significance, BreakdownConfig())
    return [score for (score,) in found.scores]


class Aligner:
    """A model, or one per direction, ready to align; `nmtkit.load_aligner` returns it.

    Threads may share it, as a `Translator`.
    """

    def __init__(self, paths: Sequence[Path], recipe: AlignRecipe) -> None:
        """Load the models."""
        self._calls = _Calls()
        with self._calls.one(stacklevel=5), short_spinning():
            from nmtkit.decoding.loading import load_aligner

            self._aligner = load_aligner(paths, recipe, self._calls.warn)

    def align(self, sources: Iterable[str], targets: Iterable[str]) -> list[AlignedPair]:
        """Link the words of sources and targets; return the links of each pair, in order.

        A pair that is too long has no links, and is a warning.

        Args:
            sources: the source lines.
            targets: the translation of each; a pair with a blank line has no links.

        Raises:
            DataError: a line is malformed, or the numbers of lines differ.
        """
        sides = _paired(sources, "sources", targets, "targets")
        with self._calls.one():
            results = [*self._aligner.answer_all([(1, [*map(Pair, *sides)])])]
        return [answer for result in results for answer in result.answers]


class Translator:
    """A model or ensemble, ready to translate and to score; `nmtkit.load` returns it.

    Threads may share it: calls wait for each other. Processes cannot; each one loads its own.
    """

    def __init__(self, paths: Sequence[Path], recipe: TranslateRecipe) -> None:
        """Load the models."""
        self._paths = paths
        self._recipe = recipe
        self._calls = _Calls()
        with self._calls.one(stacklevel=5), short_spinning():
            from nmtkit.decoding.loading import load_translator

            self._translator = load_translator(paths, recipe, self._calls.warn)

    def translate(
        self,
        lines: Iterable[str],
        *,
        target_prefixes: Iterable[str] | None = None,
        target_lang: str = "",
    ) -> list[Translation]:
        """Translate lines; return the best translation of each, in order.

        The `n_best` of a translation has the others. A line that is too long is a warning.

        Args:
            lines: the lines; a blank one has a blank translation.
            target_prefixes: the beginning of each translation; "" = any. None = any for all.
            target_lang: language of the translations; "" = that of the loaded settings.

        Raises:
            DataError: a line is malformed, or too long and `on_too_long` is "error"; no
                translation satisfies the constraints.
        """
        sources = _lines(lines, "lines")
        given = [""] * len(sources) if target_prefixes is None else target_prefixes
        _, prefixes = _paired(sources, "lines", given, "target_prefixes")
        requests = [
            Request(source, prefix, target_lang=target_lang)
            for source, prefix in zip(sources, prefixes, strict=True)
        ]
        with self._calls.one():
            results = [*self._translator.answer_all([(1, requests)])]
        return [answer.translation for result in results for answer in result.answers]

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        *,
        max_length: int = ScoringConfig.max_length,
    ) -> list[ScoredLine]:
        """Score given translations by forced decoding; return their log-probabilities, in order.

        Args:
            sources: the source lines.
            targets: the translation of each.
            max_length: tokens of the longest line on either side, the end symbol counted.

        Raises:
            ConfigError: max_length is out of range.
            DataError: a line is malformed or too long, or the numbers of lines differ.
        """
        from nmtkit.decoding.scorer import line_names

        own = self._recipe.translation
        scoring = ScoringConfig(
            max_length=max_length,
            max_tokens=own.max_tokens,
            source_lang=own.source_lang,
            target_lang=own.target_lang,
        )
        config = _checked(ScoreRecipe(scoring=scoring), {}).scoring
        pairs = _paired(sources, "sources", targets, "targets")
        with self._calls.one():
            scorer = self._translator.scorer(config)
            return scorer.score([*zip(*pairs, strict=True)], line_names(1))

    def __repr__(self) -> str:
        """Return models and settings as in the call of `load`; defaults are left out."""
        arguments = [repr(str(path)) for path in self._paths]
        for section, kind in sections_of(TranslateRecipe).items():
            changed = [
                f"{name}={value!r}"
                for name, value in vars(getattr(self._recipe, section)).items()
                if value != getattr(kind(), name) and name not in COMMAND_SETTINGS
            ]
            if changed:
                arguments.append(f"{section}={kind.__name__}({', '.join(changed)})")
        return f"nmtkit.load({', '.join(arguments)})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        raise TypeError(
            "a Translator cannot be pickled or copied; call nmtkit.load in each process"
        )


def _path(model: ModelPath | None) -> Path:
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"model must be a path, not {type(model).__name__}")
    return Path(model)


def _checked(recipe: AnyRecipe, implied: Values) -> AnyRecipe:
    """Return a recipe with checked values, and others that are implied.

    Raises:
        TypeError: a section has another type.
        ConfigError: all problems of its values.
    """
    for section, kind in sections_of(type(recipe)).items():
        if not isinstance(value := getattr(recipe, section), kind):
            found = type(value).__name__
            raise TypeError(f"{section} must be a nmtkit.{kind.__name__}, not {found}")
    given = {name: _plain(value) for name, value in values_of(recipe).items()}
    values, bad = check_values(type(recipe), given)
    names = tuple(name for name in COMMAND_SETTINGS if name in given)
    idle = placed(recipe, without_effect(recipe, names, "in Python"))
    checked, problems = check_recipe(type(recipe), {**values, **implied}, [*bad, *idle])
    raise_problems(problems)
    return checked


def _plain(value: Value) -> Value:
    """Convert paths, numbers of NumPy and devices of torch, whatever the annotation says."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        return int(value) if isinstance(value, Integral) else float(value)
    # By its name, because torch is imported by the first `load` only.
    return str(value) if type(value).__qualname__ == "device" else value


class _Calls:
    """The calls of a model: they wait for each other, and each one shows its warnings."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._messages: list[str] = []
        self.warn = self._messages.append

    @contextmanager
    def one(self, stacklevel: int = 4) -> Iterator[None]:
        """Wait for the call before; then show what the work warned of, in the user's line."""
        with self._lock:
            self._messages.clear()
            yield
            found = [*self._messages]
        for message in found:
            warnings.warn(message, stacklevel=stacklevel)


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


def _paired(
    lines: Iterable[str], name: str, other_lines: Iterable[str], other_name: str
) -> tuple[list[str], list[str]]:
    """Return two arguments as lists of lines; DataError if their numbers differ."""
    one, other = _lines(lines, name), _lines(other_lines, other_name)
    if len(one) != len(other):
        raise DataError(
            f"{name} has {len(one)} lines and {other_name} has {len(other)}; give both the same "
            "number of lines, in the same order"
        )
    return one, other
