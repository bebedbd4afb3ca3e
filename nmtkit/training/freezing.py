"""The parameters that a run does not train.

A frozen parameter needs no gradient. So the optimiser, the EMA and DDP, which are made afterwards,
leave it out.
"""

import re
from collections.abc import Sequence

from torch import nn

from nmtkit.config.freezing import layer_range
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer

PARTS = {
    "embeddings": r"(source|target)_embedding\..*",
    "source-embeddings": r"source_embedding\..*",
    "target-embeddings": r"target_embedding\..*",
    "encoder": r"encoder(_norm)?\..*",
    "decoder": r"decoder(_norm)?\..*",
    "self-attention": r"(en|de)coder\.\d+\.self_attention\..*",
    "cross-attention": r"decoder\.\d+\.memory_attention\..*",
    "feed-forward": r"(en|de)coder\.\d+\.feed_forward\..*",
    "norms": r"(.*\.)?(norm|encoder_norm|decoder_norm)\..*",
    "output": r"projection\..*|output_bias",
}
"""Patterns of the parameters' names; `FREEZABLE` in nmtkit/config/freezing.py has the parts."""


def freeze(model: Transformer, parts: Sequence[str]) -> None:
    """Freeze parts of a model, as `--freeze` names them."""
    named = _named_parameters(model)
    for name in frozen_parameters(model, parts):
        named[name].requires_grad_(False)


def frozen_parameters(model: Transformer, parts: Sequence[str]) -> frozenset[str]:
    """Return the names of the parameters of parts, and the other names of the tied ones."""
    named = _named_parameters(model)
    tensors = {id(named[name]) for name in _names_of(named, parts)}
    return frozenset(name for name, parameter in named.items() if id(parameter) in tensors)


def describe_frozen(model: Transformer, parts: Sequence[str]) -> str:
    """Return a line about the frozen parameters, with the names that only a tie freezes.

    Raises:
        ConfigError: the parts are the whole model.
    """
    named, frozen = _named_parameters(model), frozen_parameters(model, parts)
    tied = sorted(frozen - set(_names_of(named, parts)))
    total = sum(parameter.numel() for parameter in model.parameters())
    # A tied parameter has several names, and is counted once.
    sizes = {id(named[name]): named[name].numel() for name in frozen}
    number = sum(sizes.values())
    if number == total:
        raise ConfigError(
            f"freeze ({', '.join(parts)}) leaves no parameter to train"
            f"{_tie(tied)}; leave out a part [training.freeze]"
        )
    return f"frozen: {number} of {total} parameters ({', '.join(parts)}){_tie(tied)}"


def _tie(names: Sequence[str]) -> str:
    return f"; tied, so frozen too: {', '.join(names)}" if names else ""


def _names_of(named: dict[str, nn.Parameter], parts: Sequence[str]) -> list[str]:
    pattern = "|".join(map(_pattern, parts))
    return [name for name in named if re.fullmatch(pattern, name)]


def _pattern(part: str) -> str:
    layers = layer_range(part)
    if layers is None:
        return PARTS[part]
    indices = "|".join(map(str, range(layers.first - 1, layers.last)))
    return rf"{layers.stack}\.({indices})\..*"


def _named_parameters(model: Transformer) -> dict[str, nn.Parameter]:
    """Return all parameters; a tied one has several names."""
    return dict(model.named_parameters(remove_duplicate=False))
