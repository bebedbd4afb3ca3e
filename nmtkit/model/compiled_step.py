"""The decoder's layers as compiled code, for steps with one sentence on a CPU.

A step with few rows spends most of its time in the overhead of its 250 operators. torch compiles
all layers into one C++ function, with the weights in it. This function is compiled for a number W
of rows, and for any number of stored entries and source positions. It reads all entries of the
capacity instead of those stored: the bias masks the others.

Source: AOTInductor, https://docs.pytorch.org/docs/stable/torch.compiler_aot_inductor.html.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from nmtkit.model.kernels.inference import PlainLinear, replace_linears
from nmtkit.model.layers import DecoderLayer, step_layers
from nmtkit.model.state import DecoderState, StepTensors


class CompiledStep:
    """Compiled code, loaded from a file."""

    def __init__(self, path: Path, width: int) -> None:
        """Load the code.

        Args:
            path: the file of a compiled `StepFunction`; it is executed.
            width: W, as it was compiled.
        """
        self._shape = (1, width)
        self._code = torch._inductor.aoti_load_package(str(path))

    def fits(self, x: Tensor) -> bool:
        """Return whether the code is for steps with such new tokens, x (B, W, D)."""
        return x.shape[:2] == self._shape

    def __call__(self, x: Tensor, state: DecoderState) -> Tensor:
        """Run the layers over the embedded new tokens, as `Transformer.advance` does.

        Args:
            x: (1, W, D).
            state: in which the step has begun; the step changes it.

        Returns:
            (1, W, D).
        """
        output: Tensor = self._code(x, state.step_tensors())
        return output


class StepFunction(nn.Module):
    """The function that is compiled."""

    def __init__(self, layers: Sequence[DecoderLayer], norm: nn.Module, dtype: torch.dtype) -> None:
        """Replace the linear layers of the decoder's layers; `norm` is for the output of these."""
        super().__init__()
        self.layers, self.norm = layers, norm
        replace_linears(self, partial(PlainLinear, dtype=dtype))

    def forward(self, x: Tensor, tensors: StepTensors) -> Tensor:
        """Run the layers over the embedded new tokens (1, W, D); store their keys and values."""
        output: Tensor = self.norm(step_layers(self.layers, x, _WholeState(*tensors)))
        return output


class _WholeState:
    """The state in a step, as `DecoderState`, with all entries of the capacity."""

    def __init__(
        self,
        new: Tensor,
        bias: Tensor,
        memory_bias: Tensor,
        keys: list[Tensor],
        values: list[Tensor],
        memory_keys: list[Tensor],
        memory_values: list[Tensor],
    ) -> None:
        self.prefix_bias, self.memory_bias = bias, memory_bias  # the former for all heads
        self._new, self._keys, self._values = new, keys, values
        self._memory = list(zip(memory_keys, memory_values, strict=True))

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        stored_keys, stored_values = self._keys[layer], self._values[layer]
        scaled = (keys * keys.shape[-1] ** -0.5).to(stored_keys.dtype)
        stored_keys.index_copy_(2, self._new, scaled)
        stored_values.index_copy_(2, self._new, values.to(stored_values.dtype))
        return stored_keys.flatten(0, 1).mT, stored_values.flatten(0, 1)

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        return self._memory[layer]
