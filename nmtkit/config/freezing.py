"""The parts of a model that `nmtkit train --freeze` can name."""

import re
from collections.abc import Iterator

from nmtkit.config.problems import Problem, suggestion
from nmtkit.config.training import ModelConfig

PARTS = {
    "embeddings": r"(source|target)_embedding\.",
    "source-embeddings": r"source_embedding\.",
    "target-embeddings": r"target_embedding\.",
    "encoder": r"encoder(_norm)?\.",
    "decoder": r"decoder(_norm)?\.",
    "self-attention": r".*\.self_attention\.",
    "cross-attention": r".*\.memory_attention\.",
    "feed-forward": r".*\.feed_forward\.",
    "norms": r"(.*\.)?(norm|encoder_norm|decoder_norm)\.",
    "output": r"projection\.|output_bias",
}
"""Expressions that match the beginning of the names of a part's parameters."""

_LAYERS = re.compile(r"(encoder|decoder)\.([0-9]{1,4})(?:-([0-9]{1,4}))?", re.ASCII)


def pattern_of(part: str) -> re.Pattern[str]:
    """Return the expression that matches the names of the parameters of a valid part."""
    match = _LAYERS.fullmatch(part)
    if match is None:
        return re.compile(PARTS[part])
    stack, first, last = match.groups()
    numbers = range(int(first) - 1, int(last or first))
    return re.compile(rf"{stack}\.({'|'.join(map(str, numbers))})\.")


def freezing_problems(parts: tuple[str, ...], model: ModelConfig) -> Iterator[Problem]:
    """Yield the problems of --freeze: unknown parts, and layers that the model lacks."""
    numbers = {"encoder": model.encoder_layers, "decoder": model.decoder_layers}
    for part in parts:
        match = _LAYERS.fullmatch(part)
        if match is not None:
            stack, first, last = match.groups()
            if not 1 <= int(first) <= int(last or first) <= numbers[stack]:
                yield Problem(
                    ("freeze", f"{stack}_layers"),
                    f"freeze ({part!r}): the {stack} has layers 1 to {numbers[stack]}; give such "
                    f"as {stack}.1 or {stack}.1-{numbers[stack]} [training.freeze]",
                )
        elif part not in PARTS:
            yield Problem(
                ("freeze",),
                f"freeze ({part!r}): no part of this name; {suggestion(part, PARTS)}, and layers "
                "such as encoder.1-3 [training.freeze]",
            )
