"""Functions shared by the export formats."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sentencepiece

from nmtkit.config import training
from nmtkit.config.problems import Problem
from nmtkit.config.training import ModelConfig
from nmtkit.interop import ctranslate2, marian
from nmtkit.interop.parity import SOURCE, TARGET, num_positions, write_sentencepiece
from nmtkit.text.codec import TextCodec
from tests.conversions import separate_codec, shared_codec
from tests.tiny import tiny_codec


@pytest.mark.parametrize("unsupported", [marian.unsupported, ctranslate2.unsupported])
def test_an_unknown_activation_is_refused(
    unsupported: Callable[[ModelConfig, TextCodec], Iterator[Problem]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(training.ACTIVATIONS, "tanh", training.Activation(keeps_input=False))
    (problem,) = unsupported(ModelConfig(activation="tanh"), shared_codec())
    assert problem.text == "activation (tanh) must be relu or silu [model.activation]"


def test_sentencepiece_models_are_those_of_the_sides(tmp_path: Path) -> None:
    codec = separate_codec()
    write_sentencepiece(codec, tmp_path)
    for name, vocabulary in ((SOURCE, codec.source), (TARGET, codec.target)):
        model = sentencepiece.SentencePieceProcessor(str(tmp_path / name))
        assert model.encode_as_ids("the cat") == vocabulary.encode("the cat")


def test_a_vocabulary_of_words_has_no_model(tmp_path: Path) -> None:
    write_sentencepiece(tiny_codec(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("positions", "longest"), [("sinusoidal", 2048), ("learned", 77)])
def test_learned_positions_are_the_longest_sequence_of_an_export(
    positions: str, longest: int
) -> None:
    assert num_positions(ModelConfig(positions=positions, max_positions=77)) == longest
