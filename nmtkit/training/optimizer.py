"""Learning-rate schedules, gradient clipping, optimisers, averages, and frozen weights.

Source: paper, section 5.3.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from nmtkit.config.training import SCHEDULE_FREE, TrainingConfig
from nmtkit.config.training_rules import is_part_of
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer

Schedule = Callable[[int, int, TrainingConfig], float]
"""(update from 1, model size D, settings) -> learning rate."""


def paper_schedule(update: int, model_size: int, config: TrainingConfig) -> float:
    """Compute scale * D^-0.5 * min(update^-0.5, update * warmup^-1.5).

    Source: paper, equation 3.
    """
    shape = min(update**-0.5, update * config.warmup_updates**-1.5)
    return float(config.learning_rate_scale * model_size**-0.5 * shape)


def inverse_sqrt_schedule(update: int, _model_size: int, config: TrainingConfig) -> float:
    """Compute peak * min(update / warmup, (warmup / update)^0.5)."""
    warmup = config.warmup_updates
    return config.learning_rate * min(update / warmup, math.sqrt(warmup / update))


def constant_schedule(update: int, _model_size: int, config: TrainingConfig) -> float:
    """Compute peak * min(update / warmup, 1)."""
    return config.learning_rate * min(update / config.warmup_updates, 1.0)


def linear_schedule(update: int, _model_size: int, config: TrainingConfig) -> float:
    """Compute the warm-up, then final + (peak - final) * (1 - progress); see `_decay`."""
    return _decay(update, config, lambda progress: 1 - progress)


def cosine_schedule(update: int, _model_size: int, config: TrainingConfig) -> float:
    """Compute the warm-up, then final + (peak - final) * (1 + cos(pi * progress)) / 2.

    Source: Loshchilov and Hutter 2017, equation 5, without restarts; progress: see `_decay`.
    """
    return _decay(update, config, lambda progress: (1 + math.cos(math.pi * progress)) / 2)


def _decay(update: int, config: TrainingConfig, remaining: Callable[[float], float]) -> float:
    """Compute the warm-up, then final + (peak - final) * remaining(progress).

    Progress rises linearly from 0 at the end of warm-up to 1 at --decay-updates, and stays there.
    """
    warmup, peak, final = config.warmup_updates, config.learning_rate, config.final_learning_rate
    if update <= warmup:
        return peak * (update / warmup)
    progress = min((update - warmup) / (config.decay_updates - warmup), 1.0)
    return final + (peak - final) * remaining(progress)


SCHEDULES: dict[str, Schedule] = {
    "paper": paper_schedule,
    "inverse-sqrt": inverse_sqrt_schedule,
    "constant": constant_schedule,
    "linear": linear_schedule,
    "cosine": cosine_schedule,
    SCHEDULE_FREE: constant_schedule,
}


def learning_rate(update: int, model_size: int, config: TrainingConfig) -> float:
    """Return the learning rate of an update, which depends only on its number, from 1."""
    assert update >= 1, f"updates are counted from 1, not {update}"
    return SCHEDULES[config.schedule](update, model_size, config)


def highest_learning_rate(model_size: int, config: TrainingConfig, num_updates: int) -> float:
    """Return the highest learning rate of a run with a number of updates.

    It is the peak, at the end of warm-up; a shorter run ends before the peak.
    """
    return learning_rate(min(config.warmup_updates, num_updates), model_size, config)


def normalize_and_clip_gradients(
    parameters: Iterable[Tensor], num_target_tokens: float, clip_norm: float
) -> Tensor:
    """Divide the gradients of a loss sum by the number of target tokens, and clip them, in place.

    Args:
        parameters: parameters of the model; those without a gradient are skipped.
        num_target_tokens: target tokens of the update, on all ranks, as read: subword sampling
            changes the planned number.
        clip_norm: largest norm; 0 = no limit.

    Returns:
        (), norm of the mean gradients before clipping.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients, foreach=True) / num_target_tokens
    if gradients:
        scale = ((clip_norm or math.inf) / norm).clamp(max=1.0) / num_target_tokens
        torch._foreach_mul_(gradients, scale)
    return norm


def freeze(model: Transformer, parts: tuple[str, ...]) -> None:
    """Freeze parts of a model, as `--freeze` names them.

    A frozen parameter needs no gradient. So the optimiser, the average and DDP, which are made
    afterwards, leave it out.
    """
    # A tied parameter has several names.
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if is_part_of(name, parts):
            parameter.requires_grad_(False)


def describe_frozen(model: Transformer, parts: tuple[str, ...]) -> str:
    """Return a line about the parameters that are frozen, with the names that only a tie freezes.

    Raises:
        ConfigError: the parts are the whole model.
    """
    parameters = [*model.parameters()]
    total = sum(p.numel() for p in parameters)
    number = sum(p.numel() for p in parameters if not p.requires_grad)
    named = model.named_parameters(remove_duplicate=False)
    frozen = sorted(name for name, p in named if not p.requires_grad)
    tied = ", ".join(name for name in frozen if not is_part_of(name, parts))
    tie = f"; tied, so frozen too: {tied}" if tied else ""
    if number == total:
        raise ConfigError(
            f"freeze ({', '.join(parts)}) leaves no parameter to train{tie}; leave out a part "
            "[training.freeze]"
        )
    return f"frozen: {number} of {total} parameters ({', '.join(parts)}){tie}"


Groups = list[dict[str, Any]]
"""Groups of parameters with settings of their own, as torch's optimisers take them."""


@dataclass(frozen=True)
class OptimizerKind:
    """An optimiser of the table.

    Attributes:
        make: (groups, settings) -> the optimiser, which changes nothing in a step if its attribute
            `found_inf` is 1, as torch's fused ones do.
        num_moments: number of its state tensors that are as large as the parameters.
    """

    make: Callable[[Groups, TrainingConfig], torch.optim.Optimizer]
    num_moments: int


def make_adam(groups: Groups, config: TrainingConfig) -> torch.optim.Adam:
    """Make Adam, or AdamW if weights decay. Source: Loshchilov and Hutter 2019, algorithm 2.

    With a `ScheduleFreeAverage` in its place, the first moment is just the last gradient.
    """
    beta1 = 0.0 if config.schedule == SCHEDULE_FREE else config.adam_beta1
    return torch.optim.Adam(
        groups,
        lr=0.0,
        betas=(beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        fused=True,
        decoupled_weight_decay=config.weight_decay > 0,
    )


ADAM = "adam"
OPTIMIZERS = {ADAM: OptimizerKind(make_adam, num_moments=2)}


def make_optimizer(model: torch.nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Make the optimiser of a model; its learning rate is set before each update.

    Only matrices decay. Frozen parameters are left out.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups: Groups = [{"params": parameters}]
    if config.weight_decay:
        matrices = [p for p in parameters if p.dim() > 1]
        others = [p for p in parameters if p.dim() <= 1]
        groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others}]
    return OPTIMIZERS[ADAM].make(groups, config)


def unallocated_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Return the bytes of the moments that the first step allocates."""
    groups = [] if any(optimizer.state.values()) else optimizer.param_groups
    of_parameters: int = sum(p.nbytes for group in groups for p in group["params"])
    return OPTIMIZERS[ADAM].num_moments * of_parameters


def step_unless(optimizer: torch.optim.Optimizer, is_skipped: Tensor) -> None:
    """Run an update, unless it is skipped: then weights and moments stay unchanged.

    Args:
        optimizer: as `make_optimizer` returns it.
        is_skipped: (), bool, on the device, which decides; the host does not wait for it.
    """
    # As torch.amp.GradScaler uses it.
    optimizer.found_inf = is_skipped.float()  # type: ignore[attr-defined]
    optimizer.step()


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: torch.nn.Module
) -> dict[str, Tensor]:
    """Return the state tensors of the optimiser, named "<parameter>.<moment>"."""
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, model: torch.nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Restore the state tensors that `optimizer_tensors` returned."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            optimizer.state[parameter] = {
                key.rpartition(".")[2]: value.to(parameter.device).clone()
                for key, value in tensors.items()
                if key.rpartition(".")[0] == name
            }


class WeightAverage(ABC):
    """A copy of a model whose weights are an average of those that the model has in training.

    It is validated and saved. An update that is skipped counts: what Adam left as it was is added
    once more.

    Attributes:
        model: the copy.
        rate_factor: the optimiser's learning rate divided by the schedule's.
    """

    rate_factor = 1.0

    def __init__(self, model: Transformer) -> None:
        """Start with a model's weights; both models share the frozen ones."""
        frozen = {id(p): p for p in model.parameters() if not p.requires_grad}
        self.model = copy.deepcopy(model, frozen).requires_grad_(False).eval()

    @abstractmethod
    def add(self, model: Transformer, update: int) -> None:
        """Add the weights of a model after an update to the average."""

    def _pairs(self, model: Transformer) -> tuple[list[Tensor], list[Tensor]]:
        """Return the averages, and the weights that updates change."""
        pairs = zip(self.model.parameters(), model.parameters(), strict=True)
        averaged, trained = zip(*(pair for pair in pairs if pair[1].requires_grad), strict=True)
        return [*averaged], [one.detach() for one in trained]


class ExponentialMovingAverage(WeightAverage):
    """The exponential moving average (EMA). Source: Polyak and Juditsky 1992.

    After update n the decay, the weight of the old average, is at most (1 + n) / (10 + n), as in
    Abadi et al. 2016, tf.train.ExponentialMovingAverage.
    """

    def __init__(self, model: Transformer, decay: float) -> None:
        super().__init__(model)
        self._decay = decay

    def add(self, model: Transformer, update: int) -> None:
        """Add the weights with 1 - decay."""
        decay = min(self._decay, (1 + update) / (10 + update))
        get_ema_multi_avg_fn(decay)(*self._pairs(model), 0)


class ScheduleFreeAverage(WeightAverage):
    """The average x of Schedule-Free AdamW, which replaces the fall of the learning rate.

    Source: Defazio et al. 2024, https://arxiv.org/abs/2405.15682, algorithm 1. Gradients are of the
    model's weights, y = (1 - beta) z + beta x. The sequence z, which Adam changes without a first
    moment, is not stored: a step of z by the learning rate is one of y by 1 - beta of it. Each z
    enters the average with the square of its learning rate; in the paper also with Adam's
    correction of the second moment, 1 - beta2^t, which here is in the step alone.
    """

    def __init__(self, model: Transformer, beta: float, warmup: int) -> None:
        super().__init__(model)
        self.rate_factor = 1 - beta
        self._beta, self._warmup = beta, warmup

    def add(self, model: Transformer, update: int) -> None:
        """Add z to the average, and move the model's weights with it."""
        averaged, trained = self._pairs(model)
        # As y - x = (1 - beta) (z - x), x moves by step (y - x), and y by beta of that. Two passes
        # in place, y first: that of x then starts from the new y, 1 + beta step times as far away.
        step = self._weight(update) / (1 - self._beta)
        torch._foreach_lerp_(trained, averaged, -self._beta * step)
        torch._foreach_lerp_(averaged, trained, step / (1 + self._beta * step))

    def _weight(self, update: int) -> float:
        """Return the squared learning rate of an update over the sum of all until then."""
        rising = min(update, self._warmup)
        total = rising * (rising + 1) * (2 * rising + 1) / 6 + (update - rising) * self._warmup**2
        return rising**2 / total


def make_average(model: Transformer, config: TrainingConfig) -> WeightAverage | None:
    """Make the average that a recipe asks for, if any."""
    if config.schedule == SCHEDULE_FREE:
        return ScheduleFreeAverage(model, config.adam_beta1, config.warmup_updates)
    return ExponentialMovingAverage(model, config.ema_decay) if config.ema_decay else None
