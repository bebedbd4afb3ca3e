"""Functions of packed tokens, compiled once for any number of them.

torch.compile writes code for the shapes that it meets, and anew when others come. The number of
tokens differs from batch to batch, so it is declared to be free from the first call on; only a
single token, for which torch would make code of its own, is computed as it is.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from nmtkit.model.layers import Between, Layer, join, join_and_feed
from nmtkit.model.transformer import Transformer

Result = TypeVar("Result")


def compiled(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that is compiled when it is first called.

    Args:
        function: of tensors (tokens, ...), and of what is none, which is to be of the same kind
            in every call.
    """
    fast = torch.compile(function, fullgraph=True)

    def call(*arguments: object) -> Result:
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        if any(tensor.shape[0] == 1 for tensor in tensors):
            return function(*arguments)
        for tensor in tensors:
            torch._dynamo.mark_dynamic(tensor, 0)
        return fast(*arguments)

    return call


def set_between(model: Transformer, between: Between) -> None:
    """Have all layers of a model compute in training what is between attentions by this."""
    for layer in model.modules():
        if isinstance(layer, Layer):
            layer.between = between


def compiled_between() -> Between:
    """Return the plain functions, compiled."""
    return Between(compiled(join), compiled(join_and_feed))
