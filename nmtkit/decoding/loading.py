"""Load translators, scorers and aligners from the paths of models; these read no files."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from nmtkit.config.schema import AlignRecipe, RuntimeConfig, ScoringConfig, TranslateRecipe
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.aligner import Aligner, AligningModel
from nmtkit.decoding.quality import calibration_for
from nmtkit.decoding.scorer import Scorer
from nmtkit.decoding.translator import Translator
from nmtkit.errors import RESTORE, ConfigError, DamagedError
from nmtkit.model.kernels.inference import weight_levels
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import choose_precision, set_up
from nmtkit.runtime.processor import keep_freed_memory
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import find_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.language_symbols import listed_languages


def load_translator(
    paths: Sequence[Path],
    recipe: TranslateRecipe,
    warn: Callable[[str], None],
) -> Translator:
    """Load a model, or several as an ensemble, ready to translate.

    Args:
        paths: paths of models, checkpoints or runs; at least one.
        recipe: settings of translation, device and precision.
        warn: takes one-line warnings.

    Raises:
        ConfigError: the vocabularies differ, the device is missing, or the model was not calibrated
            for the search.
        DamagedError: a model or the shortlist is missing or incomplete.
    """
    device, config = set_up(recipe.runtime), recipe.translation
    dtype = _dtype(config.precision, device)
    loaded = [load_model(path, device) for path in paths]
    first, *others = loaded
    for path, other in zip(paths[1:], others, strict=True):
        if other.codec.fingerprint != first.codec.fingerprint:
            raise ConfigError(
                f"{path}: its vocabulary differs from that of {paths[0]}, so the two cannot be an "
                "ensemble; give models that were trained on the same dataset"
            )
    models = [one.model for one in loaded]
    shortlist = _load_shortlist(config.shortlist, paths[0], first.codec)
    learnt = [{*one.manifest.get("provenance", {}).get("marks", [])} for one in loaded]
    calibration = None
    if recipe.output.quality:
        if first.codec.target_type != "text":
            raise ConfigError(
                f"quality (True): {paths[0]} writes {first.codec.target_type}, and chrF is of "
                "text; leave out --quality"
            )
        calibration = calibration_for([*map(find_model, paths)], recipe)
    translator = Translator(
        models, first.codec, recipe, warn, shortlist, set.intersection(*learnt), calibration
    )
    _prepare(models, dtype)
    return translator


def load_scorer(
    path: Path, scoring: ScoringConfig, runtime: RuntimeConfig, warn: Callable[[str], None]
) -> Scorer:
    """Load a model, ready to score.

    Args:
        path: path of a model, checkpoint or run.
        scoring: batch size, longest line, precision.
        runtime: device and threads.
        warn: takes one-line warnings.

    Raises:
        ConfigError: the device is missing, or does not support the precision.
        DamagedError: the model is missing or incomplete.
    """
    device = set_up(runtime)
    dtype = _dtype(scoring.precision, device)
    loaded = load_model(path, device)
    _prepare([loaded.model], dtype)
    return Scorer([loaded.model], loaded.codec, scoring, warn)


def load_aligner(
    paths: Sequence[Path], recipe: AlignRecipe, warn: Callable[[str], None]
) -> Aligner:
    """Load a model, or one per direction, ready to align.

    Args:
        paths: paths of models, checkpoints or runs: source to target; and target to source.
        recipe: settings of links, batches, device and precision.
        warn: takes one-line warnings.

    Raises:
        ConfigError: the second model does not translate in the other direction, lines are not
            text, or the device is missing.
        DamagedError: a model is missing or incomplete.
    """
    device = set_up(recipe.runtime)
    dtype = _dtype(recipe.aligning.precision, device)
    models = [_load_aligning_model(path, device) for path in paths]
    forward = models[0].codec
    for path, other in zip(paths[1:], models[1:], strict=True):
        if len(other.codec.target_langs) > 1 and not recipe.aligning.source_lang:
            raise ConfigError(
                f"source_lang is missing, to which {path} translates; give --source-lang, one of "
                f"{listed_languages(other.codec)}"
            )
        has_symbols = forward.target_langs or other.codec.target_langs
        swapped = forward.target_lang, forward.source_lang
        if not has_symbols and not other.codec.accepts_languages(*swapped):
            raise ConfigError(
                f"{path}: translates {other.codec.language_pair}, and {paths[0]} "
                f"{forward.language_pair}; give a model of the other direction to --reverse"
            )
    _prepare([one.model for one in models], dtype)
    return Aligner(models, recipe.links, recipe.aligning, warn)


def _load_aligning_model(path: Path, device: torch.device) -> AligningModel:
    loaded = load_model(path, device)
    if loaded.codec.target_type != "text":
        raise ConfigError(
            f"{path}: writes {loaded.codec.target_type}, and only words of text are aligned; give "
            "a model that translates"
        )
    return AligningModel(loaded.model, loaded.codec)


def _prepare(models: Sequence[Transformer], dtype: torch.dtype) -> None:
    """Prepare models for products in a type; from then on keep what malloc frees.

    So the system gets back the memory of the weights that the first models replace.
    """
    for model in models:
        model.prepare(dtype)
    keep_freed_memory()


def _dtype(precision: str, device: torch.device) -> torch.dtype:
    """Return the type of matrix products."""
    if precision == "int8":
        if device.type != "cpu":
            raise ConfigError(
                "precision ('int8') is for CPUs; use --device cpu, or leave out --precision"
            )
        if not weight_levels():
            raise ConfigError(
                f"precision ('int8'): torch {torch.__version__} does not multiply integers on this "
                "processor; use --precision float32"
            )
        return torch.int8
    return choose_precision(precision, device, trained_size=None) or torch.float32


def _load_shortlist(folder: str, model: Path, codec: TextCodec) -> Shortlist | None:
    if not folder:
        return None
    shortlist = Shortlist.load(Path(folder))
    if shortlist.codec != codec.fingerprint:
        raise ConfigError(
            f"{folder}: the shortlist has another vocabulary than {model}; make one from the "
            "model's dataset with `nmtkit shortlist`"
        )
    sizes = len(shortlist.candidates), shortlist.size
    if sizes != (codec.source.size, codec.target.size):
        raise DamagedError(
            f"{folder}: damaged, for {sizes[0]} source and {sizes[1]} target entries, where the "
            f"vocabularies of {model} have {codec.source.size} and {codec.target.size}; {RESTORE}"
        )
    return shortlist
