"""Rules of the settings of training, and what --freeze, --noise and --annotate name.

nmtkit/training/optimizer.py freezes the parts; `MODIFIERS` in nmtkit/text/noise.py changes text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from nmtkit.config.metrics import (
    AUTO,
    METRICS,
    NLL,
    NONE,
    base_metric,
    metric_names,
    not_validated,
)
from nmtkit.config.model import POSITIONS, ModelConfig, aligning_layer
from nmtkit.config.problems import (
    Problem,
    at_most,
    named_twice,
    shown,
    unknown_names,
    without_effect,
)
from nmtkit.config.schema import SEARCH_SETTINGS, TrainRecipe
from nmtkit.config.training import SCHEDULE_FREE, WITH_END, WITH_PEAK, TrainingConfig

PARTS: Mapping[str, tuple[str, ...]] = {
    "embeddings": ("source_embedding.*", "target_embedding.*"),
    "source-embeddings": ("source_embedding.*",),
    "target-embeddings": ("target_embedding.*",),
    "encoder": ("encoder.*", "encoder_norm.*"),
    "decoder": ("decoder.*", "decoder_norm.*"),
    "self-attention": ("*.self_attention.*",),
    "cross-attention": ("*.memory_attention.*",),
    "feed-forward": ("*.feed_forward.*",),
    "norms": ("*norm.*",),
    "output": ("projection.*", "output_bias"),
}
"""Names of the parameters of each part; * = any characters. Layers such as encoder.2-3 follow."""

_LAYERS = re.compile(r"(encoder|decoder)\.(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)

_LARGEST_BETA1 = 0.99
"""Without a schedule, weights are rounded 1 / (1 - beta1) times as much."""

JOIN_LINES = "join-lines"

MODIFIERS = (JOIN_LINES, "drop-final-punctuation", "typo", "title", "upper")
"""Modifiers in the order in which they are applied to a pair."""

TAGS, PLACEHOLDERS, TERMS = "tags", "placeholders", "terms"
ANNOTATIONS = (TAGS, PLACEHOLDERS, TERMS)
"""Kinds of annotations; nmtkit/spans/annotate.py draws them."""


def training_problems(recipe: TrainRecipe) -> Iterator[Problem]:
    """Yield the contradictions among the settings of training."""
    yield from _model(recipe)
    yield from _schedule(recipe)
    yield from _validation(recipe)
    yield from _freezing(recipe.training, recipe.model)
    yield from _drawn("noise", recipe.training.noise, "modifier", MODIFIERS)
    yield from _drawn("annotate", recipe.training.annotate, "kind", ANNOTATIONS)
    yield from _guided_alignment(recipe)
    if not recipe.validation.validate_every or recipe.validation.validate_metrics == NONE:
        when = "in training that does not translate the validation set"
        yield from without_effect(recipe, (*SEARCH_SETTINGS, "validate_samples"), when)


def is_part_of(name: str, parts: tuple[str, ...]) -> bool:
    """Whether a parameter's name is one of the parts, which are without problems."""
    return any(fnmatchcase(name, pattern) for part in parts for pattern in _patterns(part))


def noise_probabilities(text: str) -> dict[str, float]:
    """Return the probability of each modifier that a valid setting names, in their order."""
    return _probabilities(text, MODIFIERS)


def annotation_probabilities(text: str) -> dict[str, float]:
    """Return the probability of each kind of annotation that a valid setting names, in order."""
    return _probabilities(text, ANNOTATIONS)


def _probabilities(text: str, names: Sequence[str]) -> dict[str, float]:
    if text == NONE:
        return {}
    given = {name: float(number) for name, number in map(_named, text.split(","))}
    return {name: given[name] for name in names if name in given}


def _model(recipe: TrainRecipe) -> Iterator[Problem]:
    model = recipe.model
    heads, size = model.heads, model.model_size
    if size % heads and not (model.key_size and model.value_size):
        yield Problem(
            ("heads", "model_size", "key_size", "value_size"),
            f"heads ({heads}) must divide model_size ({size}); try {_divisors_near(heads, size)}, "
            "or give both key_size and value_size",
        )
    positions = POSITIONS[model.positions]
    if size % 2 and positions.needs_even_size:
        yield Problem(
            ("model_size", "positions"),
            f"model_size ({size}) must be even for {model.positions} positions; "
            f"try {size - 1} or {size + 1}",
        )
    key_size, _ = model.head_sizes
    if key_size % 2 and positions.is_rotary and (model.key_size or size % heads == 0):
        remedy = f"try --key-size {key_size + 1}" if model.key_size else "try other --heads"
        yield Problem(
            ("key_size", "heads", "positions"),
            f"key_size ({key_size}) must be even for {model.positions} positions; {remedy}",
        )
    # A window of twice the largest distance has no effect in the encoder, of the length none in the
    # decoder.
    if positions.is_learned and model.window >= max(
        2 * (model.max_positions - 1), model.max_positions
    ):
        when = f"with --max-positions {model.max_positions}, which are all within it"
        yield from without_effect(recipe, ("window",), when, "max_positions", "positions")


def with_alignment_head(recipe: TrainRecipe) -> TrainRecipe:
    """Return a recipe whose model names the layer of the head that is trained as an alignment."""
    model = recipe.model
    if not recipe.training.guided_alignment_weight or model.alignment_layer:
        return recipe
    layer = aligning_layer(model.decoder_layers) + 1
    return replace(recipe, model=replace(model, alignment_layer=layer))


def _guided_alignment(recipe: TrainRecipe) -> Iterator[Problem]:
    model = recipe.model
    if not recipe.training.guided_alignment_weight:
        return
    layers = model.decoder_layers
    yield from at_most("alignment_layer", model.alignment_layer, "decoder_layers", layers)
    yield from at_most("alignment_head", model.alignment_head, "heads", model.heads)


def _schedule(recipe: TrainRecipe) -> Iterator[Problem]:
    name = recipe.training.schedule
    if name in WITH_PEAK and not recipe.training.learning_rate:
        yield Problem(
            ("learning_rate", "schedule"),
            f"schedule ({name!r}) needs a peak learning rate; give --learning-rate, such as "
            f"{0.0025 if name == SCHEDULE_FREE else 0.0005}",
        )
    if name in WITH_END:
        yield from _decay(recipe.training)
    beta1 = recipe.training.adam_beta1
    if name == SCHEDULE_FREE and beta1 > _LARGEST_BETA1:
        yield Problem(
            ("adam_beta1", "schedule"),
            f"adam_beta1 ({beta1}) must be at most {_LARGEST_BETA1} for schedule {name!r}; give "
            "--adam-beta1 0.9",
        )


def _decay(training: TrainingConfig) -> Iterator[Problem]:
    """Yield the problems of a schedule with an end."""
    peak, final = training.learning_rate, training.final_learning_rate
    warmup, end = training.warmup_updates, training.decay_updates
    if end <= warmup:
        yield Problem(
            ("decay_updates", "warmup_updates", "schedule"),
            f"decay_updates ({end}) must be above warmup_updates ({warmup}) for schedule "
            f"{training.schedule!r}; give --decay-updates, such as the run's --max-updates, or "
            "fewer --warmup-updates",
        )
    elif not final and training.max_updates > end:
        yield Problem(
            ("max_updates", "decay_updates", "final_learning_rate"),
            f"max_updates ({training.max_updates}) is above decay_updates ({end}), after which the "
            f"learning rate is 0 and updates have no effect; give --max-updates {end}, or in a new "
            "run more --decay-updates or a --final-learning-rate",
        )
    if 0 < peak <= final:
        yield Problem(
            ("final_learning_rate", "learning_rate"),
            f"final_learning_rate ({final}) must be below learning_rate ({peak}); give a lower "
            "one, or --schedule constant",
        )


def _validation(recipe: TrainRecipe) -> Iterator[Problem]:
    every, save_every = recipe.validation.validate_every, recipe.checkpoints.save_every
    if every % save_every:
        above = save_every * (every // save_every + 1)
        below = above - save_every
        yield Problem(
            ("validate_every", "save_every"),
            f"validate_every ({every}) must be a multiple of save_every ({save_every}); "
            f"try {f'{below} or ' if below else ''}{above}",
        )
    yield from _validated_metrics(recipe)


def _validated_metrics(recipe: TrainRecipe) -> Iterator[Problem]:
    """Yield the problems that do not depend on the dataset; training finds the others."""
    validation = recipe.validation
    text, best = validation.validate_metrics, base_metric(validation.best_metric)
    names = [] if text in (AUTO, NONE) else metric_names(text)
    keys = ("validate_metrics", "best_metric")
    yield from unknown_names("metric", names, METRICS, *keys)
    with_source = [
        name for name in (*names, best) if name in METRICS and METRICS[name].needs_source
    ]
    for name in dict.fromkeys(with_source):
        yield Problem(
            keys,
            f"{name} needs the source, which validations do not compare; leave it out, and use "
            "`nmtkit score` on translations",
        )
    if names and not validation.validate_every:
        yield from without_effect(recipe, ("validate_metrics",), "without --validate-every")
    yield from unknown_names("metric", [best], [NLL, *METRICS], *keys[::-1])
    if best not in METRICS or with_source:
        return
    if not validation.validate_every:
        yield from without_effect(recipe, ("best_metric",), "without --validate-every")
    elif text != AUTO and best not in names:
        yield Problem(keys[::-1], not_validated(best, names))


def _freezing(training: TrainingConfig, model: ModelConfig) -> Iterator[Problem]:
    """Yield a problem for each part of `--freeze` that the model does not have."""
    num_layers = {"encoder": model.encoder_layers, "decoder": model.decoder_layers}
    for part in training.freeze:
        if part in PARTS:
            continue
        if _LAYERS.fullmatch(part) is None:
            known = [*PARTS, "encoder.1", "encoder.1-3", "decoder.1", "decoder.1-3"]
            yield from unknown_names("part", [part], known, "freeze")
            continue
        stack, first, last = _layers(part)
        if not 1 <= first <= last <= num_layers[stack]:
            yield Problem(
                ("freeze", f"{stack}_layers"),
                f"freeze ({part!r}): the layers of the {stack} are 1 to {num_layers[stack]}; give "
                f"one of them, such as {stack}.1, or a range of them",
            )


def _drawn(setting: str, text: str, what: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield the problems of what is drawn that do not depend on the dataset; training finds others.

    Args:
        setting: its name.
        text: comma-separated NAME=PROBABILITY, or none.
        what: the word for one.
        names: those that there are.
    """
    entries = [] if text == NONE else text.split(",")
    for entry in entries:
        name, number = _named(entry)
        if name == NONE:
            yield Problem(
                (setting,), f"{setting} ({shown(text)}): {NONE} stands alone; leave it out"
            )
        elif number and name not in names:
            yield from unknown_names(what, [name], names, setting)
        elif not _is_probability(number):
            yield Problem(
                (setting,),
                f"{setting} ({shown(entry.strip())}) must be {what.upper()}=PROBABILITY, separated "
                f"by commas, each above 0 and at most 1, such as {names[-1]}=0.07,"
                f"{names[-2]}=0.05; or {NONE}",
            )
    known = (name for name, _ in map(_named, entries) if name in names)
    yield from named_twice(setting, [*known])


def _divisors_near(number: int, dividend: int) -> str:
    """Return the nearest divisor below a number, and above it up to twice the number."""
    below = range(min(number, dividend), 0, -1)
    above = range(number + 1, min(2 * number, dividend) + 1)
    candidates = (
        next((try_ for try_ in side if dividend % try_ == 0), 0) for side in (below, above)
    )
    return " or ".join(str(divisor) for divisor in candidates if divisor)


def _patterns(part: str) -> tuple[str, ...]:
    if part in PARTS:
        return PARTS[part]
    stack, first, last = _layers(part)
    return tuple(f"{stack}.{number - 1}.*" for number in range(first, last + 1))


def _layers(part: str) -> tuple[str, int, int]:
    """Return the stack of layers that a part names, and the first and last of them, from 1."""
    match = _LAYERS.fullmatch(part)
    assert match, part
    stack, first, last = match.groups()
    return stack, int(first), int(last or first)


def _named(entry: str) -> tuple[str, str]:
    name, _, number = entry.partition("=")
    return name.strip(), number.strip()


def _is_probability(number: str) -> bool:
    try:
        return 0 < float(number) <= 1
    except ValueError:
        return False
