"""Parts of a model that `--freeze` names: their parameters, and their rules."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from nmtkit.config.problems import Problem, suggestion
from nmtkit.config.training import ModelConfig, TrainingConfig

PARTS: Mapping[str, tuple[str, ...]] = {
    "embeddings": ("source_embedding.*", "target_embedding.*"),
    "source-embeddings": ("source_embedding.*",),
    "target-embeddings": ("target_embedding.*",),
    "encoder": ("encoder.*", "encoder_norm.*"),
    "decoder": ("decoder.*", "decoder_norm.*"),
    "self-attention": ("*.self_attention.*",),
    "cross-attention": ("*.memory_attention.*",),
    "feed-forward": ("*.feed_forward.*",),
    "norms": ("*norm.*",),
    "output": ("projection.*", "output_bias"),
}
"""Names of the parameters of each part; * = any characters. Layers such as encoder.2-3 follow."""

_LAYERS = re.compile(r"(encoder|decoder)\.(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def is_part_of(name: str, parts: tuple[str, ...]) -> bool:
    """Whether a parameter's name is one of the parts, which are without problems."""
    return any(fnmatchcase(name, pattern) for part in parts for pattern in _patterns(part))


def freezing_problems(training: TrainingConfig, model: ModelConfig) -> Iterator[Problem]:
    """Yield a problem for each part of `--freeze` that the model does not have."""
    num_layers = {"encoder": model.encoder_layers, "decoder": model.decoder_layers}
    for part in training.freeze:
        if part in PARTS:
            continue
        if _LAYERS.fullmatch(part) is None:
            known = [*PARTS, "encoder.1", "encoder.1-3", "decoder.1", "decoder.1-3"]
            text = f"no part {part!r}; {suggestion(part, known)} [training.freeze]"
            yield Problem(("freeze",), text)
            continue
        stack, first, last = _layers(part)
        if not 1 <= first <= last <= num_layers[stack]:
            yield Problem(
                ("freeze", f"{stack}_layers"),
                f"freeze ({part!r}): the layers of the {stack} are 1 to {num_layers[stack]}; give "
                f"one of them, such as {stack}.1, or a range of them [training.freeze]",
            )


def _patterns(part: str) -> tuple[str, ...]:
    if part in PARTS:
        return PARTS[part]
    stack, first, last = _layers(part)
    return tuple(f"{stack}.{number - 1}.*" for number in range(first, last + 1))


def _layers(part: str) -> tuple[str, int, int]:
    """Return the stack of layers that a part names, and the first and last of them, from 1."""
    match = _LAYERS.fullmatch(part)
    assert match, part
    stack, first, last = match.groups()
    return stack, int(first), int(last or first)
