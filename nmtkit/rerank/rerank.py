"""The flows of `nmtkit rerank`: candidates in a new order, and weights from a dev set."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nmtkit.config.toml import read_text
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.evaluate import prepare
from nmtkit.evaluation.metric import Metric
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.progress.counting import WorkReporter
from nmtkit.rerank.features import Feature, feature_values
from nmtkit.rerank.tuning import DevSet, Floats, weighted_sums
from nmtkit.storage.json_data import decode_text
from nmtkit.text.json_lines import write_object
from nmtkit.text.lines import numbered_chunks, one_line
from nmtkit.text.translations import SCHEMA, TranslatedLine, read_translations


def read_candidates(systems: Sequence[tuple[BinaryIO, str]]) -> Iterator[TranslatedLine]:
    """Yield each line with the candidates of all systems as `n_best`; no line is read ahead.

    Args:
        systems: streams of JSON lines, with their names; the candidates of several ones get the
            key `system`. Of other keys of a line, the first system's win.

    Raises:
        DataError: see `read_translations`; a system has another number of lines, or other sources.
    """
    names = [name for _, name in systems]
    readers = [read_translations(*one) for one in systems]
    for number, lines in enumerate(zip_longest(*readers)):
        own = _same_lines(lines, names, number)
        candidates = [
            replace(one, values={**one.values, "system": name}) if len(systems) > 1 else one
            for line, name in zip(own, names, strict=True)
            for one in line.candidates
        ]
        others = {key: value for line in reversed(own) for key, value in line.others.items()}
        yield replace(own[0], n_best=candidates, others=others)


def _same_lines(
    lines: Sequence[TranslatedLine | None], names: Sequence[str], number: int
) -> list[TranslatedLine]:
    """Return the lines; DataError if they do not translate the same text, or some are missing."""
    hint = "give files with translations of the same lines"
    there = [line for line in lines if line]
    if len(there) < len(lines):
        ended = names[lines.index(None)]
        raise DataError(f"{ended} has {number} lines, and another file has more; {hint}")
    for line in there:
        if (line.source, line.target_prefix) != (there[0].source, there[0].target_prefix):
            differs = f"another source or target_prefix than {there[0].where}"
            raise DataError(f"{line.where}: {differs}; {hint}")
    return there


def rerank(
    lines: Iterable[TranslatedLine],
    features: Mapping[str, Feature],
    weights: Sequence[float],
    chunk_lines: int,
) -> Iterator[list[TranslatedLine]]:
    """Order the candidates of each line by the weighted sum of their features, chunk by chunk.

    They get the keys `features` and `rerank_score`; equal ones keep their order. A chunk is read
    when the one before has been consumed.

    Args:
        lines: read as needed.
        features: by name, as `make_features` returns them.
        weights: one per feature.
        chunk_lines: lines that are held in memory and scored together.

    Raises:
        DataError: a line is malformed, or a feature cannot be computed.
    """

    def ranked(line: TranslatedLine, values: Floats) -> TranslatedLine:
        scores = weighted_sums(values, np.array(weights))
        if not np.isfinite(scores).all():
            hint = "use smaller weights, or fix the scores"
            raise DataError(f"{line.where}: the weighted sum of features is not finite; {hint}")
        scored = []
        for place in np.argsort(-scores, kind="stable").tolist():
            one, own = line.candidates[place], zip(features, values[place].tolist(), strict=True)
            added = {"features": dict(own), "rerank_score": float(scores[place])}
            scored.append(replace(one, values={**one.values, **added}))
        return replace(line, best=scored[0], n_best=scored)

    for _, chunk in numbered_chunks(lines, chunk_lines):
        yield [*map(ranked, chunk, feature_values(chunk, features))]


def make_dev_set(
    lines: Sequence[TranslatedLine],
    references: Sequence[Text],
    features: Mapping[str, Feature],
    metric: Metric,
    chunk_lines: int,
    reporter: WorkReporter,
) -> DevSet:
    """Compute the features of all candidates, and their statistics for a metric.

    Args:
        lines: one or more.
        references: one or more references of each line.
        features: by name.
        metric: the metric of the tuning.
        chunk_lines: lines whose features are computed together.
        reporter: receives the progress.

    Raises:
        ConfigError, DataError, ProgramError: a feature or the metric cannot be computed.
    """
    values: list[Floats] = []
    with reporter.counting("scored candidates of", "lines", len(lines)) as counting:
        for _, chunk in numbered_chunks(lines, chunk_lines):
            values += feature_values(chunk, features)
            counting.add(len(chunk))
    places = [(number, one) for number, line in enumerate(lines) for one in line.candidates]

    def of_candidates(text: Text) -> Text:
        return replace(text, lines=[text.lines[number] for number, _ in places])

    system = Text("candidates", [one_line(one.text) for _, one in places])
    source = of_candidates(Text("source", [line.source for line in lines]))
    texts = Texts([system], [*map(of_candidates, references)], source)
    prepared = prepare(texts, metric, reporter)
    counted = metric.count(prepared.systems[0].lines, [one.lines for one in prepared.references])
    sign = 1 if metric.is_higher_better else -1
    return DevSet(
        values=np.concatenate(values),
        statistics=np.array(counted, np.float64),
        sizes=np.array([*map(len, values)]),
        objective=lambda sums: sign * metric.score_sums(sums),
    )


def read_weights(path: Path, names: Sequence[str]) -> list[float]:
    """Read the weights of features: a JSON object with a number for each name.

    Raises:
        ConfigError: the file cannot be read, or is no such object.
    """
    wanted = f"not a JSON object with one number for each of {', '.join(names)}"
    try:
        weights = decode_text(dict[str, float], read_text(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; check --weights") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {wanted}: {error}; give what --tune printed") from None
    if weights.keys() != {*names}:
        raise ConfigError(f"{path}: {wanted}; give what --tune printed")
    return [weights[name] for name in names]


def _json_line(line: TranslatedLine) -> str:
    prefix = {"target_prefix": line.target_prefix} if line.target_prefix else {}
    ranked = {**line.best.values, "n_best": [one.values for one in line.n_best]}
    return write_object(
        {"schema": SCHEMA, "source": line.source, **prefix, **line.others, **ranked}
    )


OUTPUT_FORMATS: dict[str, Callable[[TranslatedLine], str]] = {
    "text": lambda line: one_line(line.best.text),
    "json": _json_line,
}
"""Functions from a line, with its candidates in their new order, to a line of output."""
