"""Rules across the settings of training: model, schedule, validation."""

from collections.abc import Iterator
from itertools import chain

from nmtkit.config.freezing import freezing_problems
from nmtkit.config.metrics import (
    AUTO,
    METRICS,
    NLL,
    NONE,
    metric_names,
    not_validated,
    unknown_metrics,
)
from nmtkit.config.noise import noise_problems
from nmtkit.config.problems import Problem, suggestion, without_effect
from nmtkit.config.schema import SEARCH_SETTINGS, TrainRecipe
from nmtkit.config.training import POSITIONS, SCHEDULES, ModelConfig, TrainingConfig

MIN_EMA_DECAY = 0.5
"""Smaller ones are meant as 1 - decay, as in Marian."""


def training_problems(recipe: TrainRecipe) -> Iterator[Problem]:
    """Yield the contradictions among the settings of training."""
    yield from _model(recipe.model)
    yield from _schedule(recipe)
    yield from _validation(recipe)
    yield from freezing_problems(recipe.training, recipe.model)
    decay = recipe.training.ema_decay
    if 0 < decay < MIN_EMA_DECAY:
        yield Problem(
            ("ema_decay",),
            f"ema_decay ({decay}) is the part of the average that an update keeps, so at least "
            f"{MIN_EMA_DECAY}; give {1 - decay:g} to keep all but {decay} [training.ema_decay]",
        )
    yield from noise_problems(recipe.training.noise)
    if recipe.training.subword_sampling == "none":
        yield from without_effect(recipe, ("subword_alpha",), "without --subword-sampling")
    if recipe.engine.deterministic and recipe.engine.compile == "on":
        yield Problem(
            ("compile", "deterministic"),
            "compile ('on') chooses kernels by their speed, so equal runs differ; leave out "
            "--compile or --deterministic [engine.compile]",
        )
    positions = recipe.model.positions
    if not POSITIONS[positions].is_learned:
        yield from without_effect(recipe, ("max_positions",), f"with {positions} positions")
    if not recipe.validation.validate_every or recipe.validation.validate_metrics == NONE:
        when = "in training that does not translate the validation set"
        yield from without_effect(recipe, (*SEARCH_SETTINGS, "validate_samples"), when)


def _model(model: ModelConfig) -> Iterator[Problem]:
    heads, size = model.heads, model.model_size
    if size % heads and not (model.key_size and model.value_size):
        yield Problem(
            ("heads", "model_size", "key_size", "value_size"),
            f"heads ({heads}) must divide model_size ({size}); try {_divisors_near(heads, size)}, "
            "or give both key_size and value_size [model.heads]",
        )
    positions = POSITIONS[model.positions]
    if size % 2 and positions.needs_even_size:
        yield Problem(
            ("model_size", "positions"),
            f"model_size ({size}) must be even for {model.positions} positions; "
            f"try {size - 1} or {size + 1} [model.model_size]",
        )
    # A window of twice the largest distance has no effect in the encoder, of the length none in the
    # decoder.
    whole = max(2 * (model.max_positions - 1), model.max_positions)
    if positions.is_learned and model.window >= whole:
        yield Problem(
            ("window", "max_positions", "positions"),
            f"window ({model.window}) has no effect, as all {model.max_positions} learned "
            f"positions are within it; leave it out, or give less than {whole} [model.window]",
            is_idle=True,
        )


def _schedule(recipe: TrainRecipe) -> Iterator[Problem]:
    name = recipe.training.schedule
    used = SCHEDULES[name]
    others = dict.fromkeys(chain.from_iterable(SCHEDULES.values()))
    unused = tuple(other for other in others if other not in used)
    yield from without_effect(recipe, unused, f"with --schedule {name}")
    if "learning_rate" in used and not recipe.training.learning_rate:
        yield Problem(
            ("learning_rate", "schedule"),
            f"schedule ({name!r}) needs a peak learning rate; give --learning-rate, such as 0.0005 "
            "[training.learning_rate]",
        )
    if "learning_rate_scale" in used and not recipe.training.learning_rate_scale:
        yield Problem(
            ("learning_rate_scale", "schedule"),
            "learning_rate_scale (0.0) makes every learning rate 0, so updates have no effect; "
            "leave it out, or give a larger one [training.learning_rate_scale]",
        )
    if "decay_updates" in used:
        yield from _decay(recipe.training)


def _decay(training: TrainingConfig) -> Iterator[Problem]:
    """Yield the problems of a schedule with an end."""
    peak, final = training.learning_rate, training.final_learning_rate
    warmup, end = training.warmup_updates, training.decay_updates
    if end <= warmup:
        yield Problem(
            ("decay_updates", "warmup_updates", "schedule"),
            f"decay_updates ({end}) must be above warmup_updates ({warmup}) for schedule "
            f"{training.schedule!r}; give --decay-updates, such as the run's --max-updates, or "
            "fewer --warmup-updates [training.decay_updates]",
        )
    elif not final and training.max_updates > end:
        yield Problem(
            ("max_updates", "decay_updates", "final_learning_rate"),
            f"max_updates ({training.max_updates}) is above decay_updates ({end}), after which the "
            f"learning rate is 0 and updates have no effect; give --max-updates {end}, or in a new "
            "run more --decay-updates or a --final-learning-rate [training.max_updates]",
        )
    if 0 < peak <= final:
        yield Problem(
            ("final_learning_rate", "learning_rate"),
            f"final_learning_rate ({final}) must be below learning_rate ({peak}); give a lower "
            "one, or --schedule constant [training.final_learning_rate]",
        )


def _validation(recipe: TrainRecipe) -> Iterator[Problem]:
    validation, save_every = recipe.validation, recipe.checkpoints.save_every
    every = validation.validate_every
    if every % save_every:
        above = save_every * (every // save_every + 1)
        below = above - save_every
        yield Problem(
            ("validate_every", "save_every"),
            f"validate_every ({every}) must be a multiple of save_every ({save_every}); "
            f"try {f'{below} or ' if below else ''}{above} [validation.validate_every]",
        )
    yield from _validated_metrics(recipe)
    if validation.patience and not every:
        yield Problem(
            ("patience", "validate_every"),
            f"patience ({validation.patience}) counts validations, and validate_every is 0; "
            "give --validate-every, or leave out --patience [validation.patience]",
            is_idle=True,
        )


def _validated_metrics(recipe: TrainRecipe) -> Iterator[Problem]:
    """Yield the problems that do not depend on the dataset; training finds the others."""
    validation = recipe.validation
    text, best = validation.validate_metrics, validation.best_metric
    names = [] if text in (AUTO, NONE) else metric_names(text)
    keys = ("validate_metrics", "best_metric")
    for name in unknown_metrics(names):
        message = f"no metric {name!r}; {suggestion(name, METRICS)} [validation.validate_metrics]"
        yield Problem(keys, message)
    if names and not validation.validate_every:
        yield from without_effect(recipe, ("validate_metrics",), "without --validate-every")
    if best == NLL:
        return
    if best not in METRICS:
        message = (
            f"no metric {best!r}; {suggestion(best, [NLL, *METRICS])} [validation.best_metric]"
        )
        yield Problem(keys, message)
    elif not validation.validate_every:
        yield from without_effect(recipe, ("best_metric",), "without --validate-every")
    elif text != AUTO and best not in names:
        yield Problem(keys, not_validated(best, names))


def _divisors_near(number: int, dividend: int) -> str:
    """Return the nearest divisor below a number, and above it up to twice the number."""
    below = range(min(number, dividend), 0, -1)
    above = range(number + 1, min(2 * number, dividend) + 1)
    candidates = (
        next((try_ for try_ in side if dividend % try_ == 0), 0) for side in (below, above)
    )
    return " or ".join(str(divisor) for divisor in candidates if divisor)
