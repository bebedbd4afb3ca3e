"""How training computes: its precision, and the functions that torch.compile compiles.

Both are chosen before the model is built. The residual tails of layers and the softmax of the loss
are compiled; matrix products and attention are kernels already. A small model of the same widths
compiles them on batches of end symbols, of the largest and of a small size, so no update waits for
the compiler. The functions stay eager if compiling fails, or if `auto` measures that compiled
updates are not faster, as they ask more of the host.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from subprocess import SubprocessError
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from nmtkit.config.engine import EngineConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import ModelConfig
from nmtkit.data.batch import Batch, make_batch
from nmtkit.data.binary import Sequences
from nmtkit.errors import ConfigError, ResourceError, first_paragraph
from nmtkit.model.layers import EAGER, ResidualTail, add_and_norm, add_norm_feed_forward
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.devices import choose_precision
from nmtkit.runtime.environment import use_own_compiler_cache
from nmtkit.runtime.host_copies import HostCopy
from nmtkit.symbols import EOS_ID
from nmtkit.training.distributed import Ranks
from nmtkit.training.memory_search import fits
from nmtkit.training.objective import Objective, softmax_in_place

MIN_TRIAL_TOKENS = 64
"""Tokens per side of the smallest batch that the functions are compiled with.

The largest has as many as a micro-batch: code that is compiled for one may not hold for the other.
"""

MAX_CPU_TRIAL_TOKENS = 4096
"""Tokens per side of the largest one on a CPU, where memory that does not suffice is no error."""

NUM_TIMED = 5
"""Passes over the largest batch that are timed, compiled and eager in turn."""

MAX_COMPILED_TIME = 0.97
"""`auto` compiles if a compiled pass takes at most this share of the time of an eager one."""

TRIAL_LENGTH = 32
"""Tokens per sentence of these batches, or the model's positions if these are fewer."""

Result = TypeVar("Result")


class CompilingProgress(Protocol):
    """What a run has decided in an earlier session; see `nmtkit.training.state.Progress`."""

    num_micro_batches: int
    is_compiled: bool | None


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

    @property
    def eager(self) -> "Execution":
        """The same precision, and nothing compiled."""
        return Execution(self.precision)


def choose_execution(
    recipe: TrainRecipe,
    target_size: int,
    device: torch.device,
    report: Callable[[str], None],
    num_micro_batches: int = 1,
    *,
    is_faster: bool | None = None,
) -> Execution:
    """Choose the precision, and compile functions if the settings ask for it and it works.

    The state of torch's random number generators stays unchanged.

    Args:
        recipe: all settings.
        target_size: V, number of entries in the target vocabulary.
        device: where the model is trained.
        report: prints a line if compiling fails or does not pay.
        num_micro_batches: smallest number of micro-batches per update.
        is_faster: what the run has measured in an earlier session; None = measure it, for `auto`.

    Raises:
        ConfigError: the GPU cannot compute in the precision.
        ResourceError: not even a small batch fits into memory.
    """
    size = recipe.model.model_size
    eager = Execution(choose_precision(recipe.engine.precision, device, trained_size=size))
    is_auto = is_measured(recipe.engine, device)
    if not should_compile(recipe.engine, device) or (is_auto and is_faster is False):
        return eager
    training, ratio = recipe.training, None
    num_tokens = math.ceil(training.update_tokens / num_micro_batches)
    num_tokens = min(num_tokens, training.max_tokens or num_tokens)
    if device.type == "cpu":
        num_tokens = min(num_tokens, MAX_CPU_TRIAL_TOKENS)
    try:
        use_own_compiler_cache()  # before torch's compiler is imported
        tail = ResidualTail(compiled(add_and_norm), compiled(add_norm_feed_forward))
        execution = replace(eager, tail=tail, softmax=compiled(softmax_in_place))
        # torch's compiler makes use of what torch itself warns of.
        with (
            torch.random.fork_rng([device] if device.type == "cuda" else []),
            warnings.catch_warnings(action="ignore"),
        ):
            small = replace(recipe.model, encoder_layers=1, decoder_layers=1)
            objective = _trial_objective(recipe, small, target_size, device, execution)
            num_tokens = _largest_that_fits(objective, num_tokens, device)
            if num_tokens > MIN_TRIAL_TOKENS:
                _largest_that_fits(objective, MIN_TRIAL_TOKENS, device)
            if is_auto and is_faster is None:
                del objective
                ratio = compiled_time(recipe, target_size, device, execution, num_tokens)
    except ResourceError:
        raise
    except (ConfigError, RuntimeError, OSError, SubprocessError) as error:
        report(f"not compiled: {first_paragraph(error)}; training continues without --compile")
        return eager
    if ratio is not None and ratio > MAX_COMPILED_TIME:
        report(
            f"not compiled: a compiled pass takes {ratio:.2f} times as long as an eager one; "
            "--compile on compiles it"
        )
        return eager
    return execution


def choose_common_execution(
    recipe: TrainRecipe,
    target_size: int,
    device: torch.device,
    ranks: Ranks,
    progress: CompilingProgress,
    report: Callable[[str], None],
) -> Execution:
    """Choose as `choose_execution`, so that all ranks compile, or none.

    Compiled functions draw other dropout masks. So what the first session has measured holds for
    the run.

    Args:
        recipe, target_size, device: see `choose_execution`.
        ranks: all processes of the run.
        progress: of the run; it stores what is measured.
        report: prints when compiling begins, and why a rank does not compile.
    """
    reasons: list[str] = []
    if not should_compile(recipe.engine, device):
        return choose_execution(recipe, target_size, device, report)
    is_auto, is_faster = is_measured(recipe.engine, device), progress.is_compiled
    if not is_auto or is_faster is not False:
        report("compiling the loss and the residual tails of layers")
    number = max(progress.num_micro_batches, ranks.size)
    execution = choose_execution(
        recipe, target_size, device, reasons.append, number, is_faster=is_faster
    )
    for rank, reason in enumerate(ranks.gather(" ".join(reasons))):
        if reason:
            report(reason if ranks.is_alone else f"rank {rank}: {reason}")
    is_compiled = all(ranks.gather(execution.is_compiled))
    if is_auto:
        progress.is_compiled = is_compiled
    return execution if is_compiled else execution.eager


def is_measured(engine: EngineConfig, device: torch.device) -> bool:
    """Return whether the settings ask to measure if compiling pays on a device."""
    return engine.compile == "auto" and should_compile(engine, device)


def compiled_time(
    recipe: TrainRecipe,
    target_size: int,
    device: torch.device,
    execution: Execution,
    num_tokens: int,
) -> float:
    """Return the time of a compiled forward and backward pass, divided by that of an eager one.

    Models of the full depth compute both: with fewer layers, launches would not limit the speed as
    in training.

    Args:
        recipe: all settings.
        target_size: V, number of entries in the target vocabulary.
        device: of the passes.
        execution: with compiled functions, which are compiled already.
        num_tokens: tokens per side, of which as many are used as fit into memory.
    """
    objectives = [
        _trial_objective(recipe, recipe.model, target_size, device, one)
        for one in (execution, execution.eager)
    ]
    for objective in objectives:
        num_tokens = _largest_that_fits(objective, num_tokens, device)
    batch = eos_batch(num_tokens, recipe.model.longest_sequence, device)
    rounds = [[_pass_seconds(one, batch) for one in objectives] for _ in range(NUM_TIMED)]
    compiled_s, eager_s = (min(one[which] for one in rounds) for which in (0, 1))
    return compiled_s / eager_s


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
    # torch would keep precompiled headers in a temporary folder that others may write to.
    fast = torch.compile(function, fullgraph=True, options={"cpp_cache_precompile_headers": False})

    def call(*arguments: object) -> Result:
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        if any(tensor.shape[0] == 1 for tensor in tensors):
            return function(*arguments)
        for tensor in tensors:
            torch._dynamo.mark_dynamic(tensor, 0)
        return fast(*arguments)

    return call


def _trial_objective(
    recipe: TrainRecipe,
    config: ModelConfig,
    target_size: int,
    device: torch.device,
    execution: Execution,
) -> Objective:
    """Build a model with random weights that calls the functions of an execution."""
    with device:
        model = Transformer(
            config,
            target_size,
            target_size,
            is_shared=True,
            tail=execution.tail,
            activation_checkpointing=recipe.engine.activation_checkpointing,
        )
    smoothing = recipe.training.label_smoothing
    return Objective(model, smoothing, execution.precision, execution.softmax).train()


def _largest_that_fits(objective: Objective, num_tokens: int, device: torch.device) -> int:
    """Run a forward and backward pass; return its number of tokens, halved until it fits."""
    longest = objective.model.config.longest_sequence
    while not fits(objective, iter([eos_batch(num_tokens, longest, device)])):
        if num_tokens <= MIN_TRIAL_TOKENS:
            raise ResourceError(
                f"out of memory, even for a batch of {num_tokens} tokens; use a smaller model or "
                "a larger machine"
            )
        num_tokens = max(num_tokens // 2, MIN_TRIAL_TOKENS)
    return num_tokens


def _pass_seconds(objective: Objective, batch: Batch) -> float:
    """Return the seconds of a forward and backward pass, until the device is done."""
    start = time.perf_counter()
    loss = objective(batch).loss
    loss.backward()
    objective.zero_grad()
    HostCopy(loss.detach()[None]).tolist()
    return time.perf_counter() - start


def eos_batch(num_tokens: int, longest: int, device: torch.device) -> Batch:
    """Build a batch of about `num_tokens` per side; at least 2, as one token compiles nothing."""
    num_sentences = max(2, num_tokens // min(TRIAL_LENGTH, longest))
    length = max(1, min(num_tokens // num_sentences, longest))
    ends = Sequences.pack([[EOS_ID] * length] * num_sentences, "uint16")
    return make_batch(ends, ends, device)
