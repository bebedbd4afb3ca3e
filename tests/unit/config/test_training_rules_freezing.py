import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.config.training_rules import PARTS
from nmtkit.errors import ConfigError
from tests.messages import refuses

LAYERS = {"encoder_layers": 6, "decoder_layers": 4}


@pytest.mark.parametrize("part", [*PARTS, "encoder.1", "encoder.1-6", "encoder.6", "decoder.4"])
def test_parts_of_the_model_are_accepted(part: str) -> None:
    assert build(TrainRecipe, {**LAYERS, "freeze": (part,)}).training.freeze == (part,)


@pytest.mark.parametrize(
    ("part", "keys"),
    [
        ("encodr", "'encodr'; 'encoder' training.freeze"),
        ("Encoder", "'Encoder'; 'encoder' training.freeze"),
        ("cross_attention", "'cross_attention'; 'cross-attention'"),
        ("xyz", "'xyz'; embeddings source-embeddings target-embeddings"),
        ("", "''; embeddings"),
        ("encoder.", "'encoder.'; encoder"),
        ("encoder.-1", "'encoder.-1'; 'encoder.1'"),
        ("encoder.1-", "'encoder.1-'; 'encoder.1-3'"),
        ("projection.1", "'projection.1'"),
        ("encoder.1.self_attention", "'encoder.1.self_attention'"),
        ("encoder.7", "freeze 'encoder.7' 1 6; encoder.1 training.freeze"),
        ("decoder.5", "freeze 'decoder.5' 1 4; decoder.1"),
        ("decoder.3-5", "freeze 'decoder.3-5' 1 4"),
        ("encoder.0", "freeze 'encoder.0' 1 6"),
        ("encoder.3-2", "freeze 'encoder.3-2' 1 6"),
    ],
)
def test_other_parts_are_refused(part: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        build(TrainRecipe, {**LAYERS, "freeze": ("decoder", part)})
