"""Models to convert: small, with random weights, and vocabularies of SentencePiece."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.interop import marian
from nmtkit.interop.parity import NUM_POSITIONS, draw_pairs, own_scores
from nmtkit.model.transformer import Transformer
from nmtkit.storage.model_folder import LoadedModel, write_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword

LINES = (
    "the cat sat on the mat",
    "the dog ran to the cat",
    "dogs and cats ran and sat",
    "a cat and a dog sat on a dog",
)
SHAPE = {
    "encoder_layers": 2,
    "decoder_layers": 3,
    "model_size": 16,
    "feed_forward_size": 24,
    "heads": 2,
}


@cache
def shared_codec() -> TextCodec:
    both = Subword.train(LINES, "bpe", 290, "x")
    return TextCodec("en", "de", both, both, is_shared=True)


@cache
def separate_codec() -> TextCodec:
    """Return a codec whose two vocabularies differ in size."""
    target = Subword.train([line.upper() for line in LINES], "unigram", 275, "x")
    return TextCodec("en", "de", shared_codec().source, target, is_shared=False)


def random_model(codec: TextCodec, settings: dict[str, Any]) -> LoadedModel:
    """Return a model of `SHAPE`, except some settings, with random biases and norms."""
    recipe = build(TrainRecipe, {**SHAPE, **settings})
    torch.manual_seed(1)
    model = Transformer(recipe.model, codec.source.size, codec.target.size, codec.is_shared)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=0.5, std=0.5)
    return LoadedModel(model.eval(), codec, recipe, {"update": 0, "provenance": {}})


def write_random_model(folder: Path, codec: TextCodec, settings: dict[str, Any]) -> LoadedModel:
    """Write the folder of a random model, and return the model."""
    loaded = random_model(codec, settings)
    tensors = loaded.model.state_dict()
    write_model(folder, tensors, loaded.recipe, codec, loaded.manifest, overwrite=False)
    return loaded


def write_marian(loaded: LoadedModel, folder: Path) -> Path:
    """Write a model in Hugging Face's format, without a comparison."""
    folder.mkdir()
    marian.write(loaded, folder)
    return folder


def scores(loaded: LoadedModel, codec: TextCodec) -> list[float]:
    """Return scores of pairs drawn from a codec, with ids of the model's own codec."""
    pairs = [
        replace(
            pair,
            source_ids=loaded.codec.encode_source(pair.source),
            target_ids=loaded.codec.encode_target(pair.target),
        )
        for pair in draw_pairs(codec, longest=NUM_POSITIONS)
    ]
    return own_scores(loaded.model, pairs)


def refused_on_page(section: str) -> set[str]:
    """Return the names in the list of refusals of a section of docs/interop.md."""
    page = Path("docs/interop.md").read_text("utf-8")
    (text,) = re.findall(rf"^## {section}$(.*?)(?=^## )", page, re.M | re.S)
    return {*re.findall(r"`([\w.]+)`", text.partition("Refused, by name:")[2])}
