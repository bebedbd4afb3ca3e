"""The sections of a recipe that training alone has; see schema.py for the rest.

The tables of choices hold the facts that settings and counts need without torch. The tables of
implementations have the same names and keys: `POSITIONS` in nmtkit/model/embedding.py, `NORMS` and
`ACTIVATIONS` in nmtkit/model/layers.py.
"""

import sys
from dataclasses import dataclass

from nmtkit.config.metrics import AUTO, NLL
from nmtkit.config.setting import PrecisionConfig, setting


@dataclass(frozen=True)
class PositionEncoding:
    """Facts about a position encoding.

    Attributes:
        is_learned: each stack learns a vector for each of --max-positions positions; longer
            sequences are an error. Otherwise nothing is learned, and there is no limit.
        needs_even_size: the model size must be even.
    """

    is_learned: bool
    needs_even_size: bool


POSITIONS = {
    "sinusoidal": PositionEncoding(is_learned=False, needs_even_size=True),
    "learned": PositionEncoding(is_learned=True, needs_even_size=False),
}


@dataclass(frozen=True)
class Norm:
    """Facts about a place of LayerNorm.

    Attributes:
        has_final_norm: each stack ends with one more LayerNorm.
    """

    has_final_norm: bool


NORMS = {"post": Norm(has_final_norm=False), "pre": Norm(has_final_norm=True)}


@dataclass(frozen=True)
class Activation:
    """Facts about an activation.

    Attributes:
        keeps_input: its gradient needs its input besides its output.
    """

    keeps_input: bool


ACTIVATIONS = {"relu": Activation(keeps_input=False), "silu": Activation(keeps_input=True)}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The Transformer's shape. Source: paper, section 3 and table 3."""

    encoder_layers: int = setting(6, "Layers of the encoder.", minimum=1)
    decoder_layers: int = setting(6, "Layers of the decoder.", minimum=1)
    model_size: int = setting(512, "Width d_model of embeddings and layers.", minimum=2)
    feed_forward_size: int = setting(
        2048, "Inner width d_ff of the feed-forward layers.", minimum=1
    )
    activation: str = setting(
        "relu",
        "Between the two feed-forward layers: relu, the paper's, or silu, x * sigmoid(x).",
        choices=ACTIVATIONS,
    )
    heads: int = setting(8, "Attention heads h.", minimum=1)
    key_size: int = setting(
        0, "Width d_k of a head's queries and keys; 0 = model_size / heads.", minimum=0
    )
    value_size: int = setting(0, "Width d_v of a head's values; 0 = model_size / heads.", minimum=0)
    window: int = setting(
        0,
        "Neighbourhood r that self-attention is restricted to: r // 2 positions on either side in "
        "the encoder, the last r in the decoder; its time and memory then grow with the length, "
        "not with its square; 0 = all.",
        unit="positions",
        minimum=0,
    )
    dropout: float = setting(
        0.1,
        "Dropout of sub-layer outputs and of the sum of embedding and position.",
        minimum=0,
        maximum=0.99,
    )
    attention_dropout: float = setting(
        0.0, "Dropout of attention weights.", minimum=0, maximum=0.99
    )
    activation_dropout: float = setting(
        0.0,
        "Dropout inside the feed-forward layers, after the activation.",
        minimum=0,
        maximum=0.99,
    )
    norm: str = setting(
        "post",
        "post: LayerNorm(x + Sublayer(x)), the paper's; pre: x + Sublayer(LayerNorm(x)), "
        "with one more LayerNorm at the end of each stack.",
        choices=NORMS,
    )
    norm_epsilon: float = setting(1e-5, "Epsilon of LayerNorm.", minimum=1e-12)
    positions: str = setting(
        "sinusoidal",
        "Position encoding: fixed sinusoids, or learned.",
        choices=POSITIONS,
    )
    max_positions: int = setting(
        1024, "Number of learned positions; longer input is an error.", unit="tokens", minimum=1
    )
    tie_embeddings: bool = setting(
        True,
        "Share one matrix between the target embedding and the output projection, and, where "
        "the vocabulary is shared, the source embedding.",
    )
    output_bias: bool = setting(False, "Add a learned bias to the logits of each vocabulary entry.")

    @property
    def head_sizes(self) -> tuple[int, int]:
        """d_k and d_v, the widths of a head's keys and of its values."""
        own = self.model_size // self.heads
        return self.key_size or own, self.value_size or own

    @property
    def longest_sequence(self) -> int:
        """The number of tokens that a sequence may have; sys.maxsize = no limit."""
        return self.max_positions if POSITIONS[self.positions].is_learned else sys.maxsize


SCHEDULES = {
    "paper": "learning_rate_scale",
    "inverse-sqrt": "learning_rate",
    "constant": "learning_rate",
}
"""Learning-rate schedules, and the setting that gives the size of each.

`nmtkit/training/optimizer.py` computes them.
"""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Batches, loss and optimiser. Source: paper, section 5."""

    update_tokens: int = setting(
        25_000,
        "Largest update: at most this many source and this many target tokens, "
        "end symbols counted.",
        unit="tokens",
        minimum=1,
    )
    max_tokens: int = setting(
        4096,
        "Largest micro-batch (gradient accumulation): about this many source and target tokens "
        "are computed at a time, which bounds the memory; auto = the most that fit.",
        unit="tokens",
        zero="auto",
        minimum=0,
    )
    max_updates: int = setting(
        100_000, "Stop after this many updates.", unit="updates", minimum=1, on_resume="free"
    )
    max_epochs: int = setting(
        0, "Stop after this many passes over the corpus; 0 = no limit.", minimum=0, on_resume="free"
    )
    max_minutes: float = setting(
        0.0,
        "Stop after this much time in training, all sessions of the run together; 0 = no limit.",
        unit="minutes",
        minimum=0,
        on_resume="free",
    )
    schedule: str = setting(
        "paper",
        "Learning rate after warm-up. paper: --learning-rate-scale / sqrt(model size * update); "
        "inverse-sqrt: --learning-rate, falling with 1/sqrt(update); constant: --learning-rate.",
        choices=tuple(SCHEDULES),
    )
    warmup_updates: int = setting(
        4000, "Updates over which the learning rate rises linearly to its peak.", minimum=1
    )
    learning_rate_scale: float = setting(
        1.0, "Factor on the paper's schedule; the peak is printed at the start.", minimum=0
    )
    learning_rate: float = setting(
        0.0, "Peak of the other schedules, such as 0.0005.", minimum=0, maximum=1
    )
    adam_beta1: float = setting(0.9, "Adam's beta 1.", minimum=0, maximum=0.9999)
    adam_beta2: float = setting(0.98, "Adam's beta 2.", minimum=0, maximum=0.99999)
    adam_epsilon: float = setting(1e-9, "Adam's epsilon.", minimum=1e-20)
    label_smoothing: float = setting(
        0.1, "Probability mass spread evenly over the vocabulary.", minimum=0, maximum=0.99
    )
    subword_sampling: str = setting(
        "none",
        "Sample another segmentation of one side, or of both, each time a line is read: "
        "BPE-dropout, or sampling from a unigram model.",
        choices=("none", "source", "target", "both"),
    )
    subword_alpha: float = setting(
        0.1,
        "Strength of --subword-sampling: the share of merges that BPE leaves out, or the exponent "
        "of the probabilities of a unigram model's segmentations.",
        minimum=0.001,
        maximum=1,
    )
    clip_norm: float = setting(
        0.0, "Scale gradients of a larger norm down to this one; 0 = never.", minimum=0
    )
    average_decay: float = setting(
        0.0,
        "Validate and save a moving average of the weights instead of the last ones: this much of "
        "it stays in every update, less in the first ones, such as 0.999; 0 = none.",
        minimum=0,
        maximum=0.99999,
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Checkpoints to save and keep."""

    save_every: int = setting(
        1000,
        "Save a checkpoint after every N updates; averaging uses these.",
        unit="updates",
        minimum=1,
        on_resume="free",
    )
    save_minutes: float = setting(
        10.0,
        "Also save a checkpoint when the last one is this old; 0 = never.",
        unit="minutes",
        minimum=0,
        on_resume="free",
    )
    keep: int = setting(
        5,
        "Keep this many of the newest checkpoints made by --save-every.",
        minimum=1,
        on_resume="free",
    )
    keep_best: int = setting(
        1,
        "Also keep this many of the checkpoints that validated best.",
        minimum=1,
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """Validation, the best checkpoint, early stopping."""

    validate_every: int = setting(
        1000,
        "Validate after every N updates; a multiple of --save-every; 0 = never.",
        unit="updates",
        minimum=0,
        on_resume="free",
    )
    validate_metrics: str = setting(
        AUTO,
        "Comma-separated metrics of the translated validation set, as for `nmtkit score`; auto: "
        "bleu, or brackets of a parser; none: do not translate.",
        metavar="LIST",
        on_resume="free",
    )
    best_metric: str = setting(
        NLL,
        "Metric of the best checkpoint and of early stopping: nll or one of --validate-metrics.",
        metavar="METRIC",
    )
    patience: int = setting(
        0,
        "Stop after this many validations in a row without a new best; 0 = never.",
        minimum=0,
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class LoggingConfig:
    """Progress reports and logs."""

    log_every: int = setting(
        100,
        "Report progress after every N updates.",
        unit="updates",
        minimum=1,
        on_resume="free",
    )
    tensorboard: bool = setting(
        False,
        "Also log for TensorBoard, into the folder tensorboard of the run.",
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class EngineConfig(PrecisionConfig):
    """How updates are computed."""

    recompute: bool = setting(
        False,
        "Keep only the inputs of layers, and compute the rest again in the backward pass: "
        "a third more time, a fraction of the memory.",
        on_resume="free",
    )
    compile: str = setting(
        "auto",
        "Compile the residual tails of layers and the loss with torch.compile, which takes up to a "
        "minute at the start. auto: on GPUs without --deterministic; on: on CPUs too. If "
        "compiling fails, training prints the reason and continues without.",
        choices=("auto", "on", "off"),
        on_resume="free",
    )
    read_workers: int = setting(
        0,
        "Processes per device that read batches ahead; auto = none, or up to 4 with "
        "--subword-sampling on a GPU. The trained model does not depend on it.",
        zero="auto",
        minimum=0,
        maximum=1024,
        on_resume="free",
    )
    deterministic: bool = setting(
        False,
        "Use slower kernels on GPUs, so that equal runs are bit-for-bit equal, as always on CPUs.",
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class RanksConfig:
    """Several devices."""

    devices: int = setting(
        0,
        "Train on this many devices of this machine, one process per device; auto = all GPUs, or "
        "one process without any. Has no effect under torchrun.",
        zero="auto",
        minimum=0,
        on_resume="free",
    )
    rank_timeout: float = setting(
        10.0,
        "End training if a process has not answered the others for this long.",
        unit="minutes",
        minimum=0.01,
        on_resume="free",
    )
