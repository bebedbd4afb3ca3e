"""Settings of how `nmtkit train` computes: precision, kernels, processes, devices."""

from dataclasses import dataclass

from nmtkit.config.setting import PrecisionConfig, setting


@dataclass(frozen=True, kw_only=True)
class EngineConfig(PrecisionConfig):
    """Computation."""

    activation_checkpointing: bool = setting(
        False,
        "Compute activations again in the backward pass instead of keeping them: a third more "
        "time, a fraction of the memory.",
        on_resume="free",
    )
    compile: str = setting(
        "auto",
        "Compile residual tails and the loss with torch.compile; takes up to a minute at the "
        "start. auto: on GPUs without --deterministic, where it is faster; on: on CPUs too. If "
        "compiling fails, training prints the reason and continues without it.",
        choices=("auto", "on", "off"),
        on_resume="free",
    )
    read_workers: int = setting(
        0,
        "Processes per device that load batches ahead; auto = 0, or up to 4 with "
        "--subword-sampling on a GPU. The trained model does not depend on it.",
        zero="auto",
        minimum=0,
        maximum=1024,
        on_resume="free",
    )
    deterministic: bool = setting(
        False,
        "Deterministic kernels on GPUs, which are slower; equal runs are then bit-identical, as "
        "they always are on CPUs.",
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class RanksConfig:
    """Distributed training."""

    devices: int = setting(
        0,
        "Devices of this machine to train on, one process per device; auto = all GPUs, or one "
        "process without GPUs. Has no effect under torchrun.",
        zero="auto",
        minimum=0,
        maximum=1024,
        on_resume="free",
    )
    rank_timeout: float = setting(
        10.0,
        "End training if a process does not answer the others for this long.",
        unit="minutes",
        minimum=0.01,
        maximum=100_000,
        on_resume="free",
    )
