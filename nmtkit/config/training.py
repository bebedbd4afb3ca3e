"""Settings of `nmtkit train`; schema.py names the other modules of settings."""

from dataclasses import dataclass

from nmtkit.config.metrics import AUTO, NLL, NONE
from nmtkit.config.setting import GIVEN, common, setting

DEFAULT_MAX_TOKENS = 4096
"""Tokens per micro-batch by default, and on a CPU with `auto`."""

MAY_CHANGE_ON_RESUME = frozenset(
    {
        *("checkpoints", "search", "logging", "runtime", "engine", "ranks"),
        *("max_updates", "max_epochs", "max_minutes"),
        *("validate_every", "validate_metrics", "validate_samples", "patience"),
    }
)
"""Sections and settings of `TrainRecipe` that may change between the sessions of a run.

The others define the model.
"""


SCHEDULE_FREE = "schedule-free"

SCHEDULES = ("paper", "inverse-sqrt", "constant", "linear", "cosine", SCHEDULE_FREE)
"""Learning-rate schedules; `nmtkit/training/optimizer.py` computes them."""

WITH_PEAK = ("inverse-sqrt", "constant", "linear", "cosine", SCHEDULE_FREE)
"""Schedules that have `learning_rate` as their peak."""

WITH_END = ("linear", "cosine")
"""Schedules that end at a final learning rate."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Batches, optimiser and loss. Source: paper, section 5."""

    update_tokens: int = common(
        25_000,
        "Batch size per update, over all devices: at most this many source and this many target "
        "tokens; end symbols count.",
        unit="tokens",
        minimum=1,
    )
    max_tokens: int = common(
        DEFAULT_MAX_TOKENS,
        "Micro-batch size (gradient accumulation): a device computes about this many source and "
        "target tokens at a time, which bounds memory use; auto = as many as fit into a GPU, "
        f"{DEFAULT_MAX_TOKENS} on a CPU.",
        unit="tokens",
        zero="auto",
    )
    max_updates: int = common(100_000, "Stop after this many updates.", unit="updates", minimum=1)
    max_epochs: int = setting(0, "Stop after this many epochs; 0 = no limit.")
    max_minutes: float = common(
        0.0,
        "Stop after this much training time; all sessions of the run count; 0 = no limit.",
        unit="minutes",
    )
    schedule: str = common(
        "paper",
        "Learning-rate schedule. paper: --learning-rate-scale / sqrt(model size * "
        "update); inverse-sqrt: --learning-rate, falling with 1/sqrt(update); constant: "
        "--learning-rate; linear, cosine: falling to --final-learning-rate along a line or half a "
        "cosine; schedule-free: --learning-rate, and an average of the weights instead of a fall.",
        choices=SCHEDULES,
    )
    warmup_updates: int = common(4000, "Updates of linear warm-up.", minimum=1)
    learning_rate_scale: float = setting(
        1.0,
        "Factor of --schedule paper; the peak is printed at the start.",
        minimum=1e-9,  # 0 would make every learning rate 0
        only_with={"schedule": ("paper",)},
    )
    learning_rate: float = common(
        0.0,
        "Peak learning rate, at the end of warm-up, of every --schedule except paper, such as "
        "0.0005.",
        maximum=1,
        only_with={"schedule": WITH_PEAK},
    )
    final_learning_rate: float = setting(
        0.0,
        "Final learning rate of --schedule linear and cosine.",
        maximum=1,
        only_with={"schedule": WITH_END},
    )
    decay_updates: int = setting(
        0,
        "Update at which --schedule linear and cosine reach --final-learning-rate, such as "
        "--max-updates; the rate then stays.",
        unit="updates",
        only_with={"schedule": WITH_END},
    )
    adam_beta1: float = setting(
        0.9,
        "Adam's beta 1; with schedule-free, the weight of the average where gradients are taken.",
        maximum=0.9999,
    )
    adam_beta2: float = setting(0.98, "Adam's beta 2.", maximum=0.99999)
    adam_epsilon: float = setting(1e-9, "Adam's epsilon.", minimum=1e-20)
    weight_decay: float = setting(
        0.0,
        "Decoupled weight decay of matrices (AdamW), such as 0.01; 0 = off. Embeddings decay; "
        "biases and LayerNorm do not.",
        maximum=1,
    )
    label_smoothing: float = setting(
        0.1, "Label smoothing: probability mass spread evenly over the vocabulary.", maximum=0.99
    )
    guided_alignment_weight: float = setting(
        0.0,
        "Weight of the loss that trains an attention head on the word alignment of the dataset, "
        "such as 0.05 (`preprocess --alignments`); 0 = off.",
        maximum=100,
    )
    subword_sampling: str = setting(
        "none",
        "Subword sampling of one side or both: a random segmentation each time a line is read, by "
        "BPE-dropout or from the unigram model.",
        choices=("none", "source", "target", "both"),
    )
    subword_alpha: float = setting(
        0.1,
        "Strength of --subword-sampling: the dropout rate of BPE merges, or the exponent of the "
        "unigram model's probabilities.",
        minimum=0.001,
        maximum=1,
        only_with={"subword_sampling": ("source", "target", "both")},
    )
    noise: str = setting(
        NONE,
        "Noise on training pairs: comma-separated MODIFIER=PROBABILITY. upper, title, typo: of the "
        "source; drop-final-punctuation, join-lines: of both sides.",
        metavar="LIST",
    )
    annotate: str = setting(
        NONE,
        "Part of the training pairs with marks at aligned words (`preprocess --marks`): "
        "comma-separated KIND=PROBABILITY, such as tags=0.1,placeholders=0.05,terms=0.1.",
        metavar="LIST",
    )
    sampling_temperature: float = setting(
        1.0,
        "Temperature T of sampling the directions of a dataset: one with n pairs has a share of "
        "the epoch proportional to n^(1/T). 1 = by size; 5 = small directions more often; large = "
        "all equally.",
        minimum=1,
        maximum=1000,
    )
    clip_norm: float = setting(0.0, "Clip the norm of gradients to this value; 0 = never.")
    freeze: tuple[str, ...] = setting(
        (),
        "Part of the model that stays unchanged; may be repeated: embeddings, source-embeddings, "
        "target-embeddings, encoder, decoder, self-attention, cross-attention, feed-forward, "
        "norms, output, or layers such as encoder.1 and decoder.2-4. Dropout still applies.",
        metavar="PART",
    )
    ema_decay: float = setting(
        0.0,
        "EMA decay of the weights, such as 0.999 (lower in the first updates); 0 = off. The "
        "averaged weights are validated and saved.",
        minimum=0.5,
        maximum=0.99999,
        only_with={"schedule": tuple(one for one in SCHEDULES if one != SCHEDULE_FREE)},
    )

    @property
    def is_averaged(self) -> bool:
        """Whether an average of the weights is validated and saved, not the weights themselves."""
        return self.ema_decay > 0 or self.schedule == SCHEDULE_FREE


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Checkpoints."""

    save_every: int = common(
        1000,
        "Save a checkpoint every N updates; average-checkpoints uses these.",
        unit="updates",
        minimum=1,
    )
    save_minutes: float = setting(
        10.0,
        "Also save after this much training without a save (0 = never); training ends if saves "
        "fail for this long.",
        unit="minutes",
    )
    keep: int = setting(
        5, "Number of newest checkpoints of --save-every and --every-epoch to keep.", minimum=1
    )
    keep_best: int = setting(
        1, "Number of best checkpoints to keep as well, by --best-metric.", minimum=1
    )
    every_epoch: bool = setting(
        False,
        "Also save a checkpoint at the end of every epoch, and validate it unless "
        "--validate-every is 0.",
    )


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """Validation and early stopping."""

    validate_every: int = common(
        1000, "Validate every N updates; a multiple of --save-every; 0 = never.", unit="updates"
    )
    validate_metrics: str = setting(
        AUTO,
        "Comma-separated metrics of the translated validation set, as in `nmtkit score`; auto = "
        "bleu, bleu,chrf for several directions, or brackets for a parser; none = do not "
        "translate.",
        metavar="LIST",
    )
    validate_samples: int = setting(
        0,
        "Validation lines to log with source, reference and translation (0 = none); the same ones "
        "in every validation, spread evenly.",
        unit="lines",
    )
    best_metric: str = setting(
        NLL,
        "Metric for the best checkpoint and early stopping: nll or one of --validate-metrics. With "
        "several directions, it is their average, or that of one, such as bleu:en-sv.",
        metavar="METRIC",
    )
    patience: int = setting(
        0,
        "Stop after this many validations in a row without improvement; 0 = never.",
        only_with={"validate_every": GIVEN},
    )


@dataclass(frozen=True, kw_only=True)
class LoggingConfig:
    """Progress and logs."""

    log_every: int = setting(100, "Report progress every N updates.", unit="updates", minimum=1)
    tensorboard: bool = setting(
        False, "Also write TensorBoard logs, to the run's folder tensorboard."
    )


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Computation."""

    precision: str = setting(
        "auto",
        "Number format of matrix products. auto: bfloat16 on GPUs that support it, and with "
        "--model-size 256 or more on CPUs that support it; otherwise float32.",
        choices=("auto", "float32", "bfloat16"),
    )
    activation_checkpointing: bool = setting(
        False,
        "Compute activations again in the backward pass instead of keeping them: a third more "
        "time, a fraction of the memory.",
    )
    read_workers: int = setting(
        0,
        "Processes per device that load batches ahead; auto = 0, or up to 4 with "
        "--subword-sampling on a GPU. The trained model does not depend on it.",
        zero="auto",
        maximum=1024,
    )
    deterministic: bool = setting(
        False,
        "Deterministic kernels on GPUs, which are slower; equal runs are then bit-identical, as "
        "they always are on CPUs.",
    )


@dataclass(frozen=True, kw_only=True)
class RanksConfig:
    """Distributed training."""

    devices: int = common(
        0,
        "Devices of this machine to train on, one process per device; auto = all GPUs, or one "
        "process without GPUs. Has no effect under torchrun.",
        zero="auto",
        maximum=1024,
    )
    rank_timeout: float = setting(
        10.0,
        "End training if a process does not answer the others for this long.",
        unit="minutes",
        minimum=0.01,
        maximum=100_000,
    )
