"""The names of parts match the parameters that they say, and no others."""

import pytest

from nmtkit.config.freezing import PARTS, freezing_problems, pattern_of
from nmtkit.config.training import ModelConfig
from nmtkit.model.transformer import Transformer

CONFIG = ModelConfig(
    encoder_layers=12,
    decoder_layers=3,
    model_size=8,
    feed_forward_size=8,
    heads=2,
    norm="pre",
    positions="learned",
    tie_embeddings=False,
    output_bias=True,
)
NAMES = [name for name, _ in Transformer(CONFIG, 9, 9, is_shared=True).named_parameters()]


def names_of(part: str) -> set[str]:
    return {name for name in NAMES if pattern_of(part).match(name)}


def test_every_parameter_is_in_a_part_of_each_kind() -> None:
    by_stack = ("embeddings", "encoder", "decoder", "output")
    by_layer = ("self-attention", "cross-attention", "feed-forward", "norms")
    for parts in (by_stack, ("embeddings", "output", *by_layer)):
        found = [names_of(part) for part in parts]
        assert set().union(*found) == set(NAMES)
        assert sum(map(len, found)) == len(NAMES)
    assert names_of("embeddings") == names_of("source-embeddings") | names_of("target-embeddings")
    assert {*by_stack, *by_layer, "source-embeddings", "target-embeddings"} == {*PARTS}


def test_an_embedding_has_its_positions() -> None:
    assert names_of("source-embeddings") == {
        "source_embedding.tokens.weight",
        "source_embedding.positions.table.weight",
    }


def test_norms_are_those_of_layers_and_stacks() -> None:
    assert {"encoder_norm.weight", "decoder.2.residuals.2.norm.bias"} <= names_of("norms")
    assert all("norm" in name for name in names_of("norms"))
    assert sum("norm" in name for name in NAMES) == len(names_of("norms"))


@pytest.mark.parametrize(
    ("part", "layers"),
    [
        ("encoder.1", {0}),
        ("encoder.1-3", {0, 1, 2}),
        ("encoder.12", {11}),
        ("encoder.2-12", {*range(1, 12)}),
    ],
)
def test_layers_are_counted_from_1(part: str, layers: set[int]) -> None:
    expected = {name for name in NAMES if name.startswith("encoder.")}
    expected = {name for name in expected if int(name.split(".")[1]) in layers}
    assert names_of(part) == expected


def test_every_valid_part_is_accepted() -> None:
    assert not [*freezing_problems((*PARTS, "encoder.12", "decoder.1-3"), CONFIG)]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            "enc",
            "freeze ('enc'): no part of this name; did you mean 'encoder'?, and layers such as",
        ),
        ("xyz", "freeze ('xyz'): no part of this name; known are: embeddings, source-embeddings"),
        (
            "decoder.4",
            "freeze ('decoder.4'): the decoder has layers 1 to 3; give such as decoder.1",
        ),
        ("encoder.0", "the encoder has layers 1 to 12"),
        ("encoder.3-2", "the encoder has layers 1 to 12; give such as encoder.1 or encoder.1-12"),
        ("encoder.11-13", "the encoder has layers 1 to 12"),
        ("encoder.", "no part of this name"),
        ("encoder.1-", "no part of this name"),
    ],
)
def test_a_wrong_part_is_named(part: str, expected: str) -> None:
    (problem,) = freezing_problems((part,), CONFIG)
    assert expected in problem.text
    assert problem.text.endswith("[training.freeze]")
