"""Load translators and scorers from the paths of models.

A module of its own, so that translator and scorer read no files.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from nmtkit.config.schema import RuntimeConfig, ScoringConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.compiled_steps import compiled_step
from nmtkit.decoding.scorer import Scorer
from nmtkit.decoding.translator import Translator, num_rows
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import choose_precision, set_up
from nmtkit.storage.model_folder import LoadedModel, load_model
from nmtkit.text.codec import TextCodec


def load_translator(
    paths: Sequence[Path], recipe: TranslateRecipe, warn: Callable[[str], None]
) -> Translator:
    """Load a model, or several as an ensemble, ready to translate.

    Args:
        paths: paths of models, checkpoints or runs; at least one.
        recipe: settings of translation, device and precision.
        warn: takes one-line warnings.

    Raises:
        ConfigError: the vocabularies differ, the draft does not fit, or the device is missing.
        DamagedError: a model or the shortlist is missing or incomplete.
    """
    device, config = set_up(recipe.runtime), recipe.translation
    if config.compile == "on" and device.type != "cpu":
        raise ConfigError(
            "compile ('on') is for CPUs; use --device cpu, or leave out --compile "
            "[translation.compile]"
        )
    num_tokens = config.draft_tokens + 1 if config.draft else num_rows(recipe)
    loaded = [_load_for_steps(path, device, config, num_tokens, warn) for path in paths]
    first, *others = loaded
    for path, other in zip(paths[1:], others, strict=True):
        if other.codec.fingerprint != first.codec.fingerprint:
            raise ConfigError(
                f"{path}: its vocabulary differs from that of {paths[0]}, so the two cannot be an "
                "ensemble; give models that were trained on the same dataset"
            )
    models = [one.model for one in loaded]
    shortlist = _load_shortlist(config.shortlist, paths[0], first.codec)
    draft = _load_draft(config, device, paths[0], first.codec, warn)
    return Translator(models, first.codec, recipe, warn, shortlist, draft)


def load_scorer(path: Path, scoring: ScoringConfig, runtime: RuntimeConfig) -> Scorer:
    """Load a model, ready to score.

    Args:
        path: path of a model, checkpoint or run.
        scoring: batch size, longest line, precision.
        runtime: device and threads.

    Raises:
        ConfigError: the device is missing, or does not support the precision.
        DamagedError: the model is missing or incomplete.
    """
    loaded = _load_prepared(path, set_up(runtime), scoring.precision)
    return Scorer([loaded.model], loaded.codec, scoring)


def _load_prepared(path: Path, device: torch.device, precision: str) -> LoadedModel:
    """Load a model and prepare it for fast inference in a precision."""
    loaded = load_model(path, device)
    loaded.model.prepare(_dtype(precision, device))
    return loaded


def _load_for_steps(
    path: Path,
    device: torch.device,
    config: TranslationConfig,
    num_tokens: int,
    warn: Callable[[str], None],
) -> LoadedModel:
    """Load a model for a search; compile its steps of this size if the settings ask for it."""
    if config.compile == "off":
        return _load_prepared(path, device, config.precision)
    loaded, dtype = load_model(path, device), _dtype(config.precision, device)
    loaded.model.compiled_step = compiled_step(path, loaded.model, dtype, num_tokens, warn)
    loaded.model.prepare(dtype)
    return loaded


def _dtype(precision: str, device: torch.device) -> torch.dtype:
    return choose_precision(precision, device, trained_size=None) or torch.float32


def _load_draft(
    config: TranslationConfig,
    device: torch.device,
    model: Path,
    codec: TextCodec,
    warn: Callable[[str], None],
) -> Transformer | None:
    if not config.draft:
        return None
    path = Path(config.draft)
    draft = _load_for_steps(path, device, config, 1, warn)
    if draft.codec.fingerprint != codec.fingerprint:
        raise ConfigError(
            f"{path}: its vocabulary differs from that of {model}, so it cannot be its "
            "draft; train it on data from `nmtkit preprocess --vocabulary-of`"
        )
    return draft.model


def _load_shortlist(folder: str, model: Path, codec: TextCodec) -> Shortlist | None:
    if not folder:
        return None
    shortlist = Shortlist.load(Path(folder))
    if shortlist.codec != codec.fingerprint:
        raise ConfigError(
            f"{folder}: the shortlist has another vocabulary than {model}; make one from the "
            "model's dataset with `nmtkit shortlist`"
        )
    return shortlist
