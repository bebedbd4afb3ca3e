"""Builders of the small things that tests begin with."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from nmtkit.config.model import ModelConfig
from nmtkit.config.preprocessing import CorpusConfig, FilterConfig, VocabularyConfig
from nmtkit.config.schema import (
    AnyRecipe,
    PreprocessRecipe,
    RuntimeConfig,
    SearchConfig,
    TrainRecipe,
    Value,
    fields_of,
    recipe_of,
    values_of,
)
from nmtkit.config.training import CheckpointConfig, LoggingConfig, TrainingConfig, ValidationConfig
from nmtkit.data.encode import Encoder
from nmtkit.data.filters import HeldOutText
from nmtkit.data.prepare import SIZES, Sizes, prepare
from nmtkit.model.transformer import Transformer
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_folder import write_model
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec

Module = TypeVar("Module", bound=nn.Module)

WORDS = ("a", "b", "c", "d", "e", "f", "g", "h")

# Line n of one side says in capitals what line n of the other says.
TRAIN_LINES = (
    "a b c",
    "b c d e",
    "c",
    "d a",
    "e f g h a",
    "f f",
    "g h b c",
    "h a d",
    "a c e g",
    "b d f h",
)
VALID_LINES = ("a b", "h g f", "d d d d")


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def tiny_corpus(folder: Path, train_lines: Sequence[str] = TRAIN_LINES) -> tuple[str, str]:
    """Write parallel text, en and de; returns the prefixes of its training and validation part."""
    for name, lines in (("train", train_lines), ("valid", VALID_LINES)):
        write_lines(folder / f"{name}.en", lines)
        write_lines(folder / f"{name}.de", [line.upper() for line in lines])
    return str(folder / "train"), str(folder / "valid")


def tiny_codec() -> TextCodec:
    """Return a shared closed vocabulary of `WORDS` and their capitals."""
    words = Words([*WORDS, *(word.upper() for word in WORDS)])
    return TextCodec("en", "de", words, words, is_shared=True)


def tiny_recipe(train: str, valid: str) -> PreprocessRecipe:
    return PreprocessRecipe(
        corpus=CorpusConfig(source_lang="en", target_lang="de", train=(train,), valid=(valid,)),
        vocabulary=VocabularyConfig(segmentation="words"),
    )


def tiny_directions(folder: Path) -> PreprocessRecipe:
    """Write `tiny_corpus`, and the same lines backwards as nl; return a recipe of three directions.

    The last one, nl-en, has three training pairs, and no validation text.
    """
    train, valid = tiny_corpus(folder)
    for prefix, lines in ((train, TRAIN_LINES), (valid, VALID_LINES)):
        write_lines(Path(f"{prefix}.nl"), [line[::-1] for line in lines])
    few = str(folder / "few")
    for lang in ("nl", "en"):
        write_lines(Path(f"{few}.{lang}"), ["g h", "h", "f"])
    corpus = CorpusConfig(
        train=(f"{train}:en-de", f"{train}:en-nl", f"{few}:nl-en"),
        valid=(f"{valid}:en-de", f"{valid}:en-nl"),
    )
    return PreprocessRecipe(corpus=corpus, vocabulary=VocabularyConfig(segmentation="words"))


def tiny_encoder(filters: FilterConfig, num_shards: int) -> Encoder:
    """Return what encodes chunks of a single corpus by `tiny_codec`."""
    return Encoder(
        codec=tiny_codec(),
        filters=filters,
        held_out=HeldOutText.of(()),
        flags={},
        first_ids=((),),
        id_type="uint16",
        seed=1,
        num_shards=num_shards,
    )


def tiny_dataset(
    folder: Path, train_lines: Sequence[str] = TRAIN_LINES, sizes: Sizes = SIZES
) -> Path:
    """Make a dataset of `tiny_corpus` in a folder; returns the dataset's folder."""
    train, valid = tiny_corpus(folder, train_lines)
    prepared(tiny_recipe(train, valid), folder / "data", sizes=sizes)
    return folder / "data"


def tiny_subword_dataset(folder: Path, sizes: Sizes = SIZES) -> Path:
    """Make a dataset of `tiny_corpus`, its words without spaces, whose text BPE cuts."""
    train, valid = tiny_corpus(folder, [line.replace(" ", "") for line in TRAIN_LINES])
    # 256 bytes, 3 special symbols, 17 characters; the rest are merges.
    recipe = with_settings(tiny_recipe(train, valid), segmentation="bpe", vocab_size=300)
    prepared(recipe, folder / "data", sizes=sizes)
    return folder / "data"


def tiny_linked_dataset(folder: Path) -> Path:
    """Make a dataset as `tiny_subword_dataset`, with spaces and links of words in order."""
    train, valid = tiny_corpus(folder)
    links = {}
    for prefix, lines in ((train, TRAIN_LINES), (valid, VALID_LINES)):
        texts = (" ".join(f"{n}-{n}" for n in range(len(line.split()))) for line in lines)
        links[prefix] = str(write_lines(Path(f"{prefix}.links"), [*texts]))
    recipe = with_settings(
        tiny_recipe(train, valid),
        alignments=(links[train],),
        valid_alignments=links[valid],
        segmentation="bpe",
        vocab_size=290,
    )
    prepared(recipe, folder / "data")
    return folder / "data"


def never_warn(message: str) -> None:
    raise AssertionError(message)


def silent(_: str) -> None:
    """Report nothing."""


def prepared(
    recipe: PreprocessRecipe,
    out: Path,
    report: Callable[[str], None] = silent,
    sizes: Sizes = SIZES,
) -> dict[str, Any]:
    """Make a dataset in this process; returns its counts."""
    return prepare(
        recipe, out, workers=1, overwrite=False, reporter=WorkReporter(report), sizes=sizes
    )


# ------------------------------------------------------------------------------------- models


def tiny_model(codec: TextCodec, seed: int = 1, **shape: Any) -> Transformer:
    """Return an untrained model whose translations differ, in evaluation mode.

    Args:
        codec: of its vocabulary.
        seed: of its weights.
        shape: settings of `ModelConfig` that differ from those here.
    """
    torch.manual_seed(seed)
    usual: dict[str, Any] = {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "model_size": 16,
        "feed_forward_size": 32,
        "heads": 2,
        "tie_embeddings": False,
    }
    config = ModelConfig(**(usual | shape))
    model = Transformer(config, codec.source.size, codec.target.size, codec.is_shared)
    # With weights as they are drawn, most sources would get one and the same translation.
    for name, parameter in model.named_parameters():
        if "memory_attention" in name:
            parameter.data.mul_(2)
    return model.eval()


def write_tiny_model(
    folder: Path,
    codec: TextCodec | None = None,
    seed: int = 1,
    fields: Mapping[str, Json] = {},
    **shape: Any,
) -> Path:
    """Write the folder of a `tiny_model`, and return it.

    Args:
        folder: a new one.
        codec: of its vocabulary; None = `tiny_codec`.
        seed: of its weights.
        fields: of its manifest.
        shape: settings of `ModelConfig`, as for `tiny_model`.
    """
    codec = codec or tiny_codec()
    model = tiny_model(codec, seed, **shape)
    recipe = TrainRecipe(model=model.config)
    write_model(folder, model.state_dict(), recipe, codec, dict(fields), overwrite=False)
    return folder


def randomize(module: Module) -> Module:
    """Give every parameter values other than 0 and 1, so that forgetting one shows."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double()


def with_settings(recipe: AnyRecipe, **settings: Any) -> AnyRecipe:
    """Return a recipe with other values of some settings."""
    assert settings.keys() <= fields_of(type(recipe)).keys()
    return recipe_of(type(recipe), values_of(recipe) | settings)


def tiny_train_recipe(max_updates: int, dropout: float, **settings: Value) -> TrainRecipe:
    """Return a recipe for `tiny_dataset`: two micro-batches per update, all saved and logged.

    Its search has a small beam and short translations, or no settings without a validation.

    Args:
        max_updates: of the run.
        dropout: of the model.
        settings: others that differ from those here.
    """
    is_validated = settings.get("validate_every") != 0
    recipe = TrainRecipe(
        model=ModelConfig(
            encoder_layers=1,
            decoder_layers=1,
            model_size=16,
            feed_forward_size=32,
            heads=2,
            dropout=dropout,
        ),
        training=TrainingConfig(
            update_tokens=14,
            max_tokens=7,
            max_updates=max_updates,
            warmup_updates=4,
            learning_rate_scale=0.2,
        ),
        checkpoints=CheckpointConfig(save_every=1),
        validation=ValidationConfig(validate_every=4),
        search=SearchConfig(beam=2, max_length_offset=2) if is_validated else SearchConfig(),
        logging=LoggingConfig(log_every=1),
        runtime=RuntimeConfig(device="cpu", threads=1),
    )
    return with_settings(recipe, **settings)
