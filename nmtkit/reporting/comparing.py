"""Which runs may be compared by a result, and what keeps the others apart."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from nmtkit.config.metrics import METRICS, NLL
from nmtkit.reporting.runs import Run, signatures, validated_metrics

Groups = list[list[Run]]


@dataclass(frozen=True)
class Condition:
    """A property that runs must share, or a result does not compare them.

    Attributes:
        properties: names the property of several runs.
        of: returns the property of a run; None = not recorded.
        consequence: what cannot be compared without it.
        is_shown: sentences show the property itself.
    """

    properties: str
    of: Callable[[Run], object]
    consequence: str
    is_shown: bool = True

    def split(self, runs: Sequence[Run]) -> Groups:
        """Split runs into groups that share the property; each unknown one is a group."""
        groups: dict[object, list[Run]] = {}
        for run in runs:
            value = self.of(run)
            groups.setdefault(run.name if value is None else (value,), []).append(run)
        return list(groups.values())

    def sentence(self, groups: Groups) -> str:
        """Return a sentence that names the groups of `split` and what they differ in."""
        values = [self.of(group[0]) for group in groups]
        verb = "differ" if len({*values} - {None}) > 1 else "are not known to be equal"
        named = []
        for group, value in zip(groups, values, strict=True):
            shown = "not recorded" if value is None else f"{value}" * self.is_shown
            named.append(", ".join(run.name for run in group) + (f": {shown}" if shown else ""))
        return f"{self.properties} {verb} ({'; '.join(named)}), so {self.consequence}"


_NOTHING = "neither nll, perplexity nor scores can be compared between these runs"
_NO_NLL = (
    "nll and perplexity, which are per token, cannot be compared between these runs; scores of "
    "translations can"
)
_LANGUAGES = Condition("the languages", lambda run: run.languages, _NOTHING)
_TEXT = Condition("the validation texts", lambda run: run.validation_text, _NOTHING, is_shown=False)
_VOCABULARY = Condition("the vocabularies", lambda run: run.codec, _NO_NLL, is_shown=False)
_PAIRS = Condition(
    "the numbers of validation pairs within --max-length", lambda run: run.validation_pairs, _NO_NLL
)
_LABEL_SMOOTHING = Condition(
    "the values of --label-smoothing",
    lambda run: run.recipe.training.label_smoothing,
    "the training loss cannot be compared between these runs",
)
_TRAINING_LOSS = (_LANGUAGES, _VOCABULARY, _LABEL_SMOOTHING)


def comparable_by(metric: str, runs: Sequence[Run]) -> Groups:
    """Split the runs with a validation by nll or a metric into groups that it compares."""
    return _split([run for run in runs if run.best(metric)], _conditions(metric))


def comparable_by_training_loss(runs: Sequence[Run]) -> Groups:
    """Split runs into groups that the training loss compares."""
    return _split(runs, _TRAINING_LOSS)


def differences(runs: Sequence[Run]) -> list[str]:
    """Return a sentence per difference that keeps results of runs from being compared."""
    found: list[str] = []
    for metric in (NLL, *validated_metrics(runs)):
        with_result = [run for run in runs if run.best(metric)]
        found += _differences(with_result, _conditions(metric))
    return list(dict.fromkeys([*found, *_differences(runs, _TRAINING_LOSS)]))


def _conditions(metric: str) -> tuple[Condition, ...]:
    if metric == NLL:
        return (_LANGUAGES, _TEXT, _VOCABULARY, _PAIRS)
    label = METRICS[metric].label
    signature = Condition(
        f"the signatures of {label}",
        partial(_signature, metric),
        "it cannot be compared between these runs",
    )
    return (_LANGUAGES, _TEXT, signature)


def _signature(metric: str, run: Run) -> str | None:
    """Return the signature of a metric in a run, all of them if it changed; None without any."""
    return " and ".join(signatures([run], metric)) or None


def _split(runs: Sequence[Run], conditions: Sequence[Condition]) -> Groups:
    groups = [list(runs)]
    for condition in conditions:
        groups = [part for group in groups for part in condition.split(group)]
    return groups


def _differences(runs: Sequence[Run], conditions: Sequence[Condition]) -> Iterator[str]:
    """Yield a sentence for each group that a condition splits after the earlier ones."""
    for number, condition in enumerate(conditions):
        for group in _split(runs, conditions[:number]):
            parts = condition.split(group)
            if len(parts) > 1:
                yield condition.sentence(parts)
