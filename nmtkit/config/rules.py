"""Rules across settings; a setting without effect is an error too."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from nmtkit.config.metrics import (
    METRICS,
    NONE,
    SCORE_KEYS,
    TYPE_SETTINGS,
    TuningConfig,
    metric_commands,
    metric_names,
    metrics_of,
)
from nmtkit.config.preprocessing_rules import preprocessing_problems
from nmtkit.config.problems import (
    Problem,
    at_most,
    declared_effects,
    excluded,
    named_twice,
    placed,
    shown,
    suggestion,
    unknown_names,
    without_effect,
)
from nmtkit.config.rerank import FEATURES, FeatureSpec, feature_specs
from nmtkit.config.schema import (
    SEARCH_SETTINGS,
    AttentionRecipe,
    PreprocessRecipe,
    Recipe,
    RerankRecipe,
    ScoreRecipe,
    SearchConfig,
    TrainRecipe,
    TranslateRecipe,
)
from nmtkit.config.training_rules import training_problems
from nmtkit.config.translation import PLACEHOLDERS

_PROGRAM_NAME = re.compile(r"[A-Za-z][\w.+-]*", re.ASCII)
_REQUIRED_BY_METRICS = {
    "glossary": "--glossary FILE, the terms",
    "gold_base": "--gold-base 0 or 1, the number of a reference's first word",
    "markup": "--markup xml or html",
}
"""Settings that a metric which has them needs, and how to give each."""

_TAKEN_NAMES = {NONE, *SCORE_KEYS, *METRICS, *(info.label for info in METRICS.values())}


def contradictions(recipe: Recipe) -> Iterator[Problem]:
    """Yield the contradictions among settings that are valid by themselves."""
    yield from placed(recipe, _problems(recipe))


def _problems(recipe: Recipe) -> Iterator[Problem]:
    yield from declared_effects(recipe)
    if isinstance(recipe, PreprocessRecipe):
        yield from preprocessing_problems(recipe)
    if isinstance(recipe, TrainRecipe):
        yield from training_problems(recipe)
    if isinstance(recipe, TranslateRecipe):
        yield from _translation(recipe)
    if isinstance(recipe, ScoreRecipe):
        yield from _metrics(recipe)
        yield from _languages(recipe.metrics, recipe.metrics.test_set)
        yield from _significance(recipe)
    if isinstance(recipe, RerankRecipe):
        commands = [*metric_command_problems(recipe.metrics.metric_command)]
        yield from commands or _reranking(recipe)
        yield from _languages(recipe.metrics, "")
    if isinstance(recipe, AttentionRecipe):
        yield from _attention(recipe)


UNRATED = (
    *("max_output_length", "min_length_ratio", "min_length_offset"),
    *("no_repeat_ngram", "ban_unknown"),
)
"""Constraints that change what a calibration was learnt from."""


def _translation(recipe: TranslateRecipe) -> Iterator[Problem]:
    output, search = recipe.output, recipe.search
    if not recipe.sampling.sample:
        yield from at_most("n_best", output.n_best, "beam", search.beam)
    fewest, most = recipe.constraints.min_length_offset, recipe.constraints.max_output_length
    if most:
        yield from at_most("min_length_offset", fewest, "max_output_length", most)
    if recipe.translation.shortlist:
        reason = "need scores of the whole vocabulary, and a shortlist restricts them"
        yield from excluded(recipe, ("token_scores",), "shortlist", reason)
    if output.quality:
        reason = "changes translations, and `nmtkit calibrate` rates those of a free search"
        yield from excluded(recipe, UNRATED, "quality", reason)
    yield from _spans(recipe)
    yield from _search(recipe, search)


def _spans(recipe: TranslateRecipe) -> Iterator[Problem]:
    spans = recipe.constraints
    kinds = spans.placeholder_kinds
    yield from unknown_names("kind of placeholders", kinds, PLACEHOLDERS, "placeholders")
    if not spans.glossary and recipe.output.input_format != "json":  # which may name terms
        names = "glossary_case", "glossary_mode"
        yield from without_effect(recipe, names, "without --glossary", "glossary")
    if recipe.sampling.sample:
        demanding = "placeholders", "placeholder_pattern", "glossary"
        reason = "is for beam search, which can demand words"
        yield from excluded(recipe, demanding, "sample", reason)


def _search(recipe: Recipe, search: SearchConfig) -> Iterator[Problem]:
    if search.beam == 1:
        yield from without_effect(recipe, ("stop_when",), "with --beam 1, greedy search")


def _attention(recipe: AttentionRecipe) -> Iterator[Problem]:
    selection = recipe.selection
    if not re.fullmatch(r"(0*[1-9]\d*(,0*[1-9]\d*)*)?", selection.heads, re.ASCII):
        yield Problem(
            ("heads",),
            f"heads ({selection.heads!r}) must be comma-separated positive numbers, such as 5,6",
        )
    if recipe.view.translate:
        yield from _search(recipe, recipe.search)
    else:
        when = "without --translate"
        yield from without_effect(recipe, SEARCH_SETTINGS, when, "translate")


def _metrics(recipe: ScoreRecipe) -> Iterator[Problem]:
    names = metric_names(recipe.metrics.metric)
    unknown = [*unknown_names("metric", names, METRICS, "metric")]
    yield from unknown
    yield from metric_command_problems(recipe.metrics.metric_command)
    if not (names or recipe.metrics.metric_command):
        yield Problem(
            ("metric", "metric_command"),
            f"metric ({NONE!r}) needs --metric-command; name a metric or a program",
        )
    if unknown or not names:
        return
    compared = {METRICS[name].compares for name in names}
    if len(compared) > 1:
        kinds = ", others ".join(sorted(compared, reverse=True))
        yield Problem(
            ("metric",),
            f"metric ({recipe.metrics.metric!r}): some metrics compare {kinds}; score each kind "
            "with a separate command",
        )
        return
    if "text" not in compared:
        yield from without_effect(recipe, ("metric_command",), f"on {', '.join(names)}", "metric")
    unused = {*chain(*(info.settings for info in METRICS.values()), *TYPE_SETTINGS.values())}
    unused.difference_update(*(METRICS[name].settings for name in names))
    unused.difference_update(*(TYPE_SETTINGS[one] for one in compared))
    yield from without_effect(recipe, unused, f"on {', '.join(names)}")
    for name, remedy in _REQUIRED_BY_METRICS.items():
        if name not in unused and getattr(recipe.metrics, name) in ("", NONE):
            yield Problem((name,), f"{name} is missing; give {remedy}")


def _languages(metrics: TuningConfig, test_set: str) -> Iterator[Problem]:
    pair = metrics.language_pair
    needy = [
        f"metric {name}"
        for name in metric_names(metrics.metric)
        if name in METRICS and METRICS[name].needs_languages
    ]
    if test_set:
        needy.append("test_set")
    if pair and not re.fullmatch("[^-]+-[^-]+", pair):
        yield Problem(
            ("language_pair",),
            f"language_pair ({pair!r}) must be two languages and a hyphen; give codes without "
            "country and script, such as en-zh",
        )
    elif needy and not pair:
        yield Problem(
            ("language_pair", "metric", "test_set"),
            f"{needy[0]} needs the languages; give --language-pair, such as en-de",
        )


def _significance(recipe: ScoreRecipe) -> Iterator[Problem]:
    wanted = recipe.significance
    if wanted.paired_ar:
        yield from excluded(recipe, ("paired_bs",), "paired_ar", "excludes --paired-ar")
    if not (wanted.confidence or wanted.paired_bs):
        when = "without --confidence or --paired-bs"
        yield from without_effect(recipe, ("resamples",), when)


def _reranking(recipe: RerankRecipe) -> Iterator[Problem]:
    """Yield the contradictions among the settings of reranking."""
    specs = feature_specs(recipe.rerank.features) if recipe.rerank.features else []
    names = [spec.name for spec in specs]
    problems = [text for spec in specs if (text := _feature_problem(spec, recipe))]
    for text in problems:
        yield Problem(("features",), f"features: {text}")
    yield from named_twice("features", names)
    if specs and not problems:
        yield from _idle_features(recipe, specs)
    yield from _tuning_metric(recipe, names)


def _feature_problem(spec: FeatureSpec, recipe: RerankRecipe) -> str:
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


def _idle_features(recipe: RerankRecipe, specs: list[FeatureSpec]) -> Iterator[Problem]:
    """Yield the settings that have no effect on any of the features."""
    kinds = {spec.kind for spec in specs}
    used = {name for kind in kinds for name in FEATURES[kind].settings}
    if recipe.metrics.metric == NONE:
        used.add("metric_command")
    for kind, info in FEATURES.items():
        idle = {*info.settings} - used
        yield from without_effect(recipe, idle, f"without a feature such as {kind}", "features")
        used |= idle


def _tuning_metric(recipe: RerankRecipe, features: list[str]) -> Iterator[Problem]:
    """Yield the problems of the metric that weights are tuned by."""
    name = recipe.metrics.metric
    known = [*metrics_of("text"), *([NONE] if recipe.metrics.metric_command else [])]
    if name not in known:
        hint = suggestion(name, known)
        yield Problem(("metric",), f"metric ({name!r}) cannot tune; {hint}")
        return
    used = {*(METRICS[name].settings if name in METRICS else ())}
    if "mbr:bleu" in features:
        used.add("tokenize")
    yield from without_effect(recipe, {"tokenize", "lowercase"} - used, f"on {name}")


def metric_command_problems(entries: Sequence[str]) -> Iterator[Problem]:
    """Yield the problems of entries."""
    names = []
    for entry in entries:
        ((name, command),) = metric_commands([entry]).items()
        names.append(name)
        if not (command and _PROGRAM_NAME.fullmatch(name)):
            yield Problem(
                ("metric_command",),
                f"metric_command ({shown(entry)}) must be NAME=COMMAND, such as 'ratio=python3 "
                "ratio.py'; the name has letters, digits, '.', '+', '-' and '_', a letter first",
            )
        elif name in _TAKEN_NAMES:
            problem = f"metric_command: {name} is a metric, or a key of --json; choose another name"
            yield Problem(("metric_command",), problem)
    yield from named_twice("metric_command", names)
