import pytest

from nmtkit.config.freezing import PARTS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError
from tests.messages import refuses

LAYERS = {"encoder_layers": 6, "decoder_layers": 4}


@pytest.mark.parametrize("part", [*PARTS, "encoder.1", "encoder.1-6", "encoder.6", "decoder.4"])
def test_parts_of_the_model_are_accepted(part: str) -> None:
    assert build(TrainRecipe, {**LAYERS, "freeze": (part,)}).training.freeze == (part,)


@pytest.mark.parametrize(
    ("part", "keys"),
    [
        ("encodr", "no part 'encodr'; did you mean 'encoder'? [training.freeze]"),
        ("Encoder", "no part 'Encoder'; did you mean 'encoder'? [training.freeze]"),
        ("cross_attention", "no part 'cross_attention'; did you mean 'cross-attention'?"),
        ("xyz", "no part 'xyz'; known are: embeddings, source-embeddings, target-embeddings, "),
        ("", "no part ''; known are: embeddings"),
        ("encoder.", "no part 'encoder.'; did you mean 'encoder"),
        ("encoder.-1", "no part 'encoder.-1'; did you mean 'encoder.1'?"),
        ("encoder.1-", "no part 'encoder.1-'; did you mean 'encoder.1-3'?"),
        ("projection.1", "no part 'projection.1'; "),
        ("encoder.1.self_attention", "no part 'encoder.1.self_attention'; "),
        (
            "encoder.7",
            "freeze ('encoder.7'): the layers of the encoder are 1 to 6; give one of them, such "
            "as encoder.1, or a range of them [training.freeze]",
        ),
        ("decoder.5", "freeze ('decoder.5'): the layers of the decoder are 1 to 4; give"),
        ("decoder.3-5", "freeze ('decoder.3-5'): the layers of the decoder are 1 to 4"),
        ("encoder.0", "freeze ('encoder.0'): the layers of the encoder are 1 to 6"),
        ("encoder.3-2", "freeze ('encoder.3-2'): the layers of the encoder are 1 to 6"),
    ],
)
def test_other_parts_are_refused(part: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        build(TrainRecipe, {**LAYERS, "freeze": ("decoder", part)})
