"""Parts of a model that `--freeze` names, and their rules.

`PARTS` in nmtkit/training/freezing.py has the parameters of each part.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nmtkit.config.problems import Problem, suggestion
from nmtkit.config.training import ModelConfig, TrainingConfig

FREEZABLE = (
    "embeddings",
    "source-embeddings",
    "target-embeddings",
    "encoder",
    "decoder",
    "self-attention",
    "cross-attention",
    "feed-forward",
    "norms",
    "output",
)
"""Parts besides layers, which are `encoder.N`, `encoder.N-M`, `decoder.N` and `decoder.N-M`."""


@dataclass(frozen=True)
class LayerRange:
    """Consecutive layers of a stack.

    Attributes:
        stack: encoder or decoder.
        first, last: numbers from 1, both included.
    """

    stack: str
    first: int
    last: int


def layer_range(part: str) -> LayerRange | None:
    """Return the layers that a part such as encoder.2 or decoder.1-3 names; None for others."""
    match = re.fullmatch(r"(encoder|decoder)\.(\d{1,9})(?:-(\d{1,9}))?", part, re.ASCII)
    if match is None:
        return None
    stack, first, last = match.groups()
    return LayerRange(stack, int(first), int(last or first))


def freezing_problems(training: TrainingConfig, model: ModelConfig) -> Iterator[Problem]:
    """Yield a problem for each part of `--freeze` that the model does not have."""
    num_layers = {"encoder": model.encoder_layers, "decoder": model.decoder_layers}
    for part in training.freeze:
        layers = layer_range(part)
        if layers is None and part not in FREEZABLE:
            known = [*FREEZABLE, "encoder.1", "encoder.1-3", "decoder.1", "decoder.1-3"]
            text = f"no part {part!r}; {suggestion(part, known)} [training.freeze]"
            yield Problem(("freeze",), text)
        elif layers and not 1 <= layers.first <= layers.last <= num_layers[layers.stack]:
            yield Problem(
                ("freeze", f"{layers.stack}_layers"),
                f"freeze ({part!r}): the layers of the {layers.stack} are 1 to "
                f"{num_layers[layers.stack]}; give one of them, such as {layers.stack}.1, or a "
                "range of them [training.freeze]",
            )
