"""Adam and the paper's learning-rate schedule. Source: paper, section 5.3."""

import torch

from nmtkit.config.training import TrainingConfig


def learning_rate(update: int, model_size: int, config: TrainingConfig) -> float:
    """Compute the learning rate of one update, a pure function of its number.

    scale * D^-0.5 * min(update^-0.5, update * warmup^-1.5). Source: paper, equation 3.

    Args:
        update: counted from 1.
        model_size: D.
        config: warm-up and scale.
    """
    assert update >= 1, f"updates are counted from 1, not {update}"
    warmup = config.warmup_updates
    shape = min(update**-0.5, update * warmup**-1.5)
    return float(config.learning_rate_scale * model_size**-0.5 * shape)


def make_adam(model: torch.nn.Module, config: TrainingConfig) -> torch.optim.Adam:
    """Make the optimiser; its learning rate is set before each update."""
    return torch.optim.Adam(
        model.parameters(),
        lr=0.0,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        fused=True,
    )


def optimizer_tensors(
    optimizer: torch.optim.Adam, model: torch.nn.Module
) -> dict[str, torch.Tensor]:
    """Collect the optimiser's state, named "<parameter>.<moment>"."""
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
    }


def restore_optimizer(
    optimizer: torch.optim.Adam, model: torch.nn.Module, tensors: dict[str, torch.Tensor]
) -> None:
    """Put back what `optimizer_tensors` collected."""
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            key.rpartition(".")[2]: value.to(parameter.device).clone()
            for key, value in tensors.items()
            if key.rpartition(".")[0] == name
        }
