"""Writer and reader of Marian's format are each other's inverse, and refuse by name."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.model import ModelConfig
from nmtkit.interop import marian
from nmtkit.interop.marian_reading import read
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from nmtkit.text.vocabulary import Steps, Vocabulary
from tests.conversions import (
    random_model,
    refused_on_page,
    scores,
    separate_codec,
    shared_codec,
    write_marian,
)
from tests.tiny import tiny_codec

CARRIED = {
    "activation": "silu",
    "output_bias": True,
    "tie_embeddings": False,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "model_size": 8,
    "feed_forward_size": 10,
    "heads": 4,
    "dropout": 0.3,
    "attention_dropout": 0.2,
    "activation_dropout": 0.25,
}
REFUSED = {
    "key_size": 3,
    "value_size": 5,
    "norm": "pre",
    "norm_epsilon": 1e-6,
    "positions": "learned",
    "window": 8,
    "activation": "swiglu",
    "qk_norm": True,
}
WITHOUT_EFFECT = {
    *("max_positions", "alignment_layer", "alignment_head", "full_context_alignment"),
}
"""Settings that change no translation in the other library."""


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("make_codec", [shared_codec, separate_codec])
@pytest.mark.parametrize("settings", [{}, *({name: CARRIED[name]} for name in CARRIED)], ids=str)
def test_a_model_that_was_written_is_read_back(
    settings: dict[str, Any], make_codec: Callable[[], TextCodec], tmp_path: Path
) -> None:
    codec = make_codec()
    loaded = random_model(codec, settings)
    assert [*marian.unsupported(loaded.model.config, loaded.codec)] == []
    again = read(write_marian(loaded, tmp_path / "marian"))
    num_layers = loaded.recipe.model.decoder_layers
    assert again.recipe.model == replace(loaded.recipe.model, alignment_layer=num_layers)
    assert scores(again, codec) == scores(loaded, codec)
    assert (again.codec.source_lang, again.codec.target_lang) == ("en", "de")


@pytest.mark.parametrize(("name", "value"), [*REFUSED.items(), ("positions", "rotary")])
def test_unsupported_settings_are_refused_by_name(name: str, value: object) -> None:
    (problem,) = marian.unsupported(
        random_model(shared_codec(), {name: value}).model.config, shared_codec()
    )
    assert re.fullmatch(rf"{name} \({value}\) must be .* \[model\.{name}\]", problem.text)


def test_the_page_on_other_libraries_names_every_setting_that_is_refused() -> None:
    names = refused_on_page("To Hugging Face's Marian")
    assert names & {field.name for field in fields(ModelConfig)} == {*REFUSED}


def test_every_setting_of_a_model_is_carried_or_refused() -> None:
    decided = {*CARRIED, *REFUSED, *WITHOUT_EFFECT}
    assert decided == {field.name for field in fields(ModelConfig)}


def test_words_are_refused_on_each_side() -> None:
    problems = marian.unsupported(ModelConfig(), tiny_codec())
    assert [problem.text for problem in problems] == [
        f"the {side} vocabulary (of words) must be SentencePiece's, over plain text"
        for side in ("source", "target")
    ]


def test_text_that_is_prepared_for_its_vocabulary_is_refused() -> None:
    plain = shared_codec()
    assert isinstance(plain.target, Subword)
    prepared: dict[str, Vocabulary] = {
        "moses": plain.target.with_steps(Steps(moses_lang="de")),
        "unescape": plain.target.with_steps(Steps(unescape=True)),
    }
    for name, target in prepared.items():
        (problem,) = marian.unsupported(ModelConfig(), replace(plain, target=target))
        assert problem.text.startswith(
            f"the target vocabulary (of text after {name}) must be Sentence"
        )
