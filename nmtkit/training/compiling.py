"""How training computes: its precision, and the functions that torch.compile compiles.

Both are chosen before the model is built. The residual tails of layers and the softmax of the loss
are compiled; matrix products and attention are kernels already. A small model of the same widths
compiles them on batches of end symbols, of the largest and of a small size, so no update waits for
the compiler. If compiling fails, the functions stay eager.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from subprocess import SubprocessError
from typing import TypeVar

import torch
from torch import Tensor

from nmtkit.config.engine import EngineConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch, make_batch
from nmtkit.data.binary import Sequences
from nmtkit.errors import NmtkitError, ResourceError
from nmtkit.model.layers import EAGER, ResidualTail, add_and_norm, add_norm_feed_forward
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import choose_precision
from nmtkit.symbols import EOS_ID
from nmtkit.training.memory_search import fits
from nmtkit.training.objective import Objective, softmax_in_place

MIN_TRIAL_TOKENS = 64
"""Tokens per side of the smallest batch that the functions are compiled with.

The largest has as many as a micro-batch: code that is compiled for one may not hold for the other.
"""

MAX_CPU_TRIAL_TOKENS = 4096
"""Tokens per side of the largest one on a CPU, where memory that does not suffice is no error."""

TRIAL_LENGTH = 32
"""Tokens per sentence of these batches, or the model's positions if these are fewer."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Execution:
    """Precision and functions with which training computes.

    Attributes:
        precision: type of matrix products; None = type of the weights.
        tail: residual tail of the layers, eager or compiled.
        softmax: `objective.softmax_in_place`, eager or compiled.
    """

    precision: torch.dtype | None
    tail: ResidualTail = EAGER
    softmax: Callable[[Tensor, Tensor], Tensor] = softmax_in_place

    @property
    def is_compiled(self) -> bool:
        """The functions are compiled."""
        return self.tail is not EAGER


def choose_execution(
    recipe: TrainRecipe, target_size: int, device: torch.device, report: Callable[[str], None]
) -> Execution:
    """Choose the precision, and compile functions if the settings ask for it and it works.

    The state of torch's random number generators stays unchanged.

    Args:
        recipe: all settings.
        target_size: V, number of entries in the target vocabulary.
        device: where the model is trained.
        report: prints a line if compiling fails.

    Raises:
        ConfigError: the GPU cannot compute in the precision.
        ResourceError: not even a small batch fits into memory.
    """
    size = recipe.model.model_size
    eager = Execution(choose_precision(recipe.engine.precision, device, trained_size=size))
    if not should_compile(recipe.engine, device):
        return eager
    tail = ResidualTail(compiled(add_and_norm), compiled(add_norm_feed_forward))
    execution = replace(eager, tail=tail, softmax=compiled(softmax_in_place))
    training = recipe.training
    num_tokens = training.max_tokens or training.update_tokens
    if device.type == "cpu":
        num_tokens = min(num_tokens, MAX_CPU_TRIAL_TOKENS)
    try:
        # torch's compiler makes use of what torch itself warns of.
        with (
            torch.random.fork_rng([device] if device.type == "cuda" else []),
            warnings.catch_warnings(action="ignore"),
        ):
            _compile(_small_objective(recipe, target_size, device, execution), num_tokens, device)
    except NmtkitError:
        raise
    except (RuntimeError, OSError, SubprocessError) as error:
        reason = " ".join(str(error).partition("\n\n")[0].split())
        report(f"not compiled: {reason}; training continues without --compile")
        return eager
    return execution


def should_compile(engine: EngineConfig, device: torch.device) -> bool:
    """Return whether the settings ask for compilation on a device."""
    is_chosen = device.type == "cuda" and not engine.deterministic
    return engine.compile == "on" or (engine.compile == "auto" and is_chosen)


def compiled(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that is compiled at its first call, once for all numbers of tokens.

    torch.compile recompiles for new shapes, and the number of tokens differs between batches.
    Therefore this dimension is marked as dynamic. torch would specialise on a single token, so
    the eager function computes that case.

    Args:
        function: function of tensors (tokens, ...) and other arguments; each argument has the
            same type in every call.
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


def _small_objective(
    recipe: TrainRecipe, target_size: int, device: torch.device, execution: Execution
) -> Objective:
    """Build a model with one layer per stack, which calls the same functions as the full model."""
    model = Transformer(
        replace(recipe.model, encoder_layers=1, decoder_layers=1),
        target_size,
        target_size,
        is_shared=True,
        tail=execution.tail,
        activation_checkpointing=recipe.engine.activation_checkpointing,
    )
    smoothing = recipe.training.label_smoothing
    return Objective(model.to(device), smoothing, execution.precision, execution.softmax).train()


def _compile(objective: Objective, num_tokens: int, device: torch.device) -> None:
    longest = objective.model.config.longest_sequence
    while not fits(objective, iter([eos_batch(num_tokens, longest, device)])):
        if num_tokens <= MIN_TRIAL_TOKENS:
            raise ResourceError(
                f"out of memory, even for a batch of {num_tokens} tokens; use a smaller model or "
                "a larger machine"
            )
        num_tokens = max(num_tokens // 2, MIN_TRIAL_TOKENS)
    if num_tokens > MIN_TRIAL_TOKENS:
        fits(objective, iter([eos_batch(MIN_TRIAL_TOKENS, longest, device)]))


def eos_batch(num_tokens: int, longest: int, device: torch.device) -> Batch:
    """Build a batch of about `num_tokens` per side; at least 2, as one token compiles nothing."""
    num_sentences = max(2, num_tokens // min(TRIAL_LENGTH, longest))
    length = max(1, min(num_tokens // num_sentences, longest))
    ends = Sequences.pack([[EOS_ID] * length] * num_sentences, "uint16")
    return make_batch(ends, ends, device)
