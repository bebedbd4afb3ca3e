"""Rules across the settings of `nmtkit rerank`: features, metric of tuning.

A module of its own: nmtkit/config/rules.py would be too long with it.
"""

from collections.abc import Iterator

from nmtkit.config.metric_commands import metric_commands
from nmtkit.config.metrics import METRICS, NONE, metrics_of
from nmtkit.config.problems import Problem, suggestion, without_effect
from nmtkit.config.rerank import FEATURES, FeatureSpec, feature_specs
from nmtkit.config.schema import RerankRecipe

_PLACE = "[rerank.features]"


def rerank_problems(recipe: RerankRecipe) -> Iterator[Problem]:
    """Yield the contradictions among the settings of reranking."""
    specs = feature_specs(recipe.rerank.features) if recipe.rerank.features else []
    names = [spec.name for spec in specs]
    problems = [text for spec in specs if (text := _problem(spec, recipe))]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    problems += [f"{name} is named twice; leave one out" for name in twice]
    for text in problems:
        yield Problem(("features",), f"features: {text} {_PLACE}")
    if specs and not problems:
        yield from _idle(recipe, specs)
    yield from _metric(recipe)


def _problem(spec: FeatureSpec, recipe: RerankRecipe) -> str:
    """Return what is wrong with a feature; "" if nothing is."""
    if spec.kind not in FEATURES:
        return f"no feature {spec.kind!r}; {suggestion(spec.kind, FEATURES)}"
    info = FEATURES[spec.kind]
    if not info.argument:
        return f"{spec.kind} has no argument; write {spec.kind}" if ":" in spec.name else ""
    if not spec.argument:
        return f"{spec.kind} needs an argument; write {spec.kind}:{info.argument}"
    if info.choices and spec.argument not in info.choices:
        return f"no {spec.kind} of {spec.argument!r}; {suggestion(spec.argument, info.choices)}"
    commands = metric_commands(recipe.metrics.metric_command)
    if spec.kind == "command" and spec.argument not in commands:
        return f"no program {spec.argument!r}; give --metric-command {spec.argument}='PROGRAM ...'"
    return ""


def _idle(recipe: RerankRecipe, specs: list[FeatureSpec]) -> Iterator[Problem]:
    """Yield the settings that have no effect on any of the features."""
    kinds = {spec.kind for spec in specs}
    used = {name for kind in kinds for name in FEATURES[kind].settings}
    if recipe.metrics.metric == NONE:
        used.add("metric_command")
    for kind, info in FEATURES.items():
        idle = tuple(name for name in info.settings if name not in used)
        yield from without_effect(recipe, idle, f"without a feature such as {kind}", "features")
        used |= set(idle)


def _metric(recipe: RerankRecipe) -> Iterator[Problem]:
    """Yield the problems of the metric that weights are tuned by."""
    name = recipe.metrics.metric
    known = [*metrics_of("text"), *([NONE] if recipe.metrics.metric_command else [])]
    if name not in known:
        hint = suggestion(name, known)
        yield Problem(("metric",), f"metric ({name!r}) cannot tune; {hint} [metrics.metric]")
        return
    used = METRICS[name].settings if name in METRICS else ()
    idle = tuple(one for one in ("tokenize", "lowercase") if one not in used)
    yield from without_effect(recipe, idle, f"on {name}")
