"""The verdict of a report: which run is better, by how much, and whether that may be chance.

Two runs are compared by the lines that training stores of their best validations.
Source: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation".
"""

from collections.abc import Sequence

from nmtkit.config.metrics import METRICS, NLL, MetricsConfig, base_metric, label_of
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.significance import paired_bootstrap
from nmtkit.reporting.run_tables import comparable_by, is_finished, obstacles
from nmtkit.reporting.runs import Run, validated_metrics

NUM_RESAMPLES = 1000
SIGNIFICANCE_LEVEL = 0.05


def verdict(runs: Sequence[Run]) -> str:
    """Return a sentence: the best run and its lead over the second; of one run, how far it is.

    Runs are compared by their common --best-metric, if it is a score, or by the first other score
    of all of them in the order of `METRICS`; otherwise by nll.

    Raises:
        ConfigError: SACREBLEU_SEED is not valid.
    """
    if len(runs) == 1:
        return f"{_progress(runs[0])}; {_best_validation(runs[0])}."
    preferred = {run.recipe.validation.best_metric for run in runs}
    scores = sorted(validated_metrics(runs), key=lambda metric: preferred != {metric})
    metrics = [*scores, NLL]
    shared = [metric for metric in metrics if all(run.best(metric) for run in runs)]
    for metric in shared:
        if len(comparable_by(metric, runs)) == 1:
            return f"{_comparison(metric, runs)}."
    reasons = dict.fromkeys(reason for metric in shared for reason in obstacles(metric, runs))
    none = " and ".join(run.name for run in runs if not run.validations)
    text = ", and ".join(reasons) if shared else f"no validation of {none}"
    return f"The runs cannot be compared: {text}."


def _comparison(metric: str, runs: Sequence[Run]) -> str:
    """Compare the best two of runs that a metric compares."""
    first, second = sorted(runs, key=lambda run: run.cost(metric))[:2]
    costs = [run.cost(metric) for run in (first, second)]
    digits = 4 if metric == NLL else 2
    figures = [f"{abs(one):.{digits}f}" for one in costs]
    of_all = f", the second best of {len(runs)} runs," if len(runs) > 2 else ""
    if costs[0] == costs[1]:
        return f"{first.name} equals {second.name}{of_all} by dev {label_of(metric)}: {figures[0]}"
    lead = f"{costs[1] - costs[0]:.{digits}f} dev {label_of(metric)} ({' against '.join(figures)})"
    is_proven, test = _test(metric, first, second)
    verb = "is better than" if is_proven else "is ahead of"
    return f"{first.name} {verb} {second.name}{of_all} by {lead}, {test}"


def _test(metric: str, first: Run, second: Run) -> tuple[bool, str]:
    """Return whether a difference is more than chance, and a clause about it."""
    if base_metric(metric) not in METRICS:
        return False, "not tested for chance, as only scores of translations are"
    # Scores of statistics do not depend on the tokenizer, whose packages may be missing here.
    config = MetricsConfig(
        metric=base_metric(metric), tokenize="none", language_pair=first.languages or ""
    )
    made = make_metrics(config)[0]
    lines = {run.name: run.statistics(metric) or [] for run in (first, second)}
    if missing := [name for name, one in lines.items() if not one]:
        return (
            False,
            f"not tested for chance, as the lines of {' and '.join(missing)} are not stored",
        )
    p_value = paired_bootstrap(made, lines[first.name], lines[second.name], NUM_RESAMPLES)
    is_proven = p_value < SIGNIFICANCE_LEVEL
    return is_proven, (
        f"which {'is more than' if is_proven else 'may be'} chance (p = {p_value:.4f}, paired "
        f"bootstrap of {NUM_RESAMPLES:,} resamples)"
    )


def _progress(run: Run) -> str:
    if is_finished(run):
        return f"{run.name} is finished after {run.last.update:,} updates"
    most = run.recipe.training.max_updates
    return f"{run.name} is not finished, with {run.last.update:,} of {most:,} updates"


def _best_validation(run: Run) -> str:
    """Return a clause about the best validation by --best-metric."""
    metric = run.recipe.validation.best_metric
    best = run.best(metric)
    if best is None:
        return "it has no validation"
    scores = [
        f"{label_of(name)} {best.scores[name]:.2f}" for name in METRICS if name in best.scores
    ]
    results = ", ".join([f"{label_of(NLL)} {best.nll:.4f}", *scores])
    return f"its best validation by {label_of(metric)}, at update {best.update:,}, has {results}"
