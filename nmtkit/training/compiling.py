"""Compiling what training computes, where that pays and can be done.

Compiled are what layers compute between attentions, and the loss of a chunk of logits; matrix
products and attention are kernels already. Everything is compiled at once, by a batch of nothing
but end symbols, so that no update has to wait for it, and it is known whether it can be done.
"""

from collections.abc import Callable
from subprocess import SubprocessError

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import EngineConfig
from nmtkit.data.batch import Batch, batch_of
from nmtkit.data.binary import Sequences
from nmtkit.errors import ResourceError
from nmtkit.model.compiled import compiled, compiled_between, set_between
from nmtkit.model.layers import PLAIN
from nmtkit.symbols import EOS_ID
from nmtkit.training.loss import normalise
from nmtkit.training.memory import fits
from nmtkit.training.objective import Objective

TRIAL_TOKENS = 4096
"""Tokens of a side at most in the batch that is compiled for; the code is laid out for as many."""

LEAST_TRIAL_TOKENS = 64
"""Tokens of a side of the smallest batch that is tried, if larger ones do not fit into memory."""

TRIAL_LENGTH = 32


def compile_if_wanted(
    objective: Objective, recipe: TrainRecipe, report: Callable[[str], None]
) -> None:
    """Compile what an objective computes in training, if settings ask for it and it can be done.

    Args:
        objective: has no gradients, and gets none; torch's random numbers stay as they are.
        recipe: all settings.
        report: is told why it cannot be done; then the objective is as it was.

    Raises:
        ResourceError: see `compile_objective`.
    """
    if not is_wanted(recipe.engine, objective.model.output_weight.device):
        return
    training = recipe.training
    num_tokens = min(training.max_tokens or training.update_tokens, TRIAL_TOKENS)
    reason = compile_objective(objective, num_tokens)
    if reason is not None:
        report(f"not compiled: {reason}; training goes on without --compile")


def is_wanted(engine: EngineConfig, device: torch.device) -> bool:
    """Tell whether settings ask for compiling on a device."""
    is_chosen = device.type == "cuda" and not engine.deterministic
    return engine.compile == "on" or (engine.compile == "auto" and is_chosen)


def compile_objective(objective: Objective, num_tokens: int) -> str | None:
    """Compile what an objective computes in training, and try it.

    Args:
        objective: see `compile_if_wanted`.
        num_tokens: that batches have, about; half as many are tried, and so on, if they do not fit.

    Returns:
        None; or why it cannot be done, and then the objective is as it was.

    Raises:
        ResourceError: not even a few tokens fit into memory.
    """
    set_between(objective.model, compiled_between())
    objective.normalise = compiled(normalise)
    device = objective.model.output_weight.device
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            _try(objective.train(), num_tokens, device)
    except (RuntimeError, OSError, SubprocessError) as error:
        set_between(objective.model, PLAIN)
        objective.normalise = normalise
        return " ".join(str(error).partition("\n\n")[0].split())
    return None


def _try(objective: Objective, num_tokens: int, device: torch.device) -> None:
    # How much fits is found out later, by what is compiled here.
    while not fits(objective, iter([_batch_of_ends(num_tokens, device)])):
        if num_tokens <= LEAST_TRIAL_TOKENS:
            raise ResourceError(
                f"out of memory, even for a batch of {num_tokens} tokens; take a smaller model or "
                "a larger machine"
            )
        num_tokens = max(num_tokens // 2, LEAST_TRIAL_TOKENS)


def _batch_of_ends(num_tokens: int, device: torch.device) -> Batch:
    """Return a batch of about so many tokens a side; of one alone nothing is compiled."""
    num_sentences = max(2, num_tokens // TRIAL_LENGTH)
    length = max(1, num_tokens // num_sentences)
    ends = Sequences.pack([[EOS_ID] * length] * num_sentences, "uint16")
    return batch_of(ends, ends, device)
