"""Settings of the model; schema.py names the other modules of settings.

The tables of choices hold facts that are needed without torch. Tables of the same names and keys
hold the implementations: `POSITIONS` in nmtkit/model/embedding.py (rotations in attention.py),
`NORMS` and `ACTIVATIONS` in nmtkit/model/layers.py.
"""

import sys
from dataclasses import dataclass

from nmtkit.config.setting import GIVEN, common, setting

LARGEST_DEPTH, LARGEST_WIDTH = 1000, 65_536
"""Layers and size of the deepest and of the widest models that anybody has trained, rounded up."""


@dataclass(frozen=True)
class PositionEncoding:
    """Facts about a position encoding.

    Attributes:
        is_learned: each stack learns --max-positions vectors; longer sequences are an error.
            Otherwise the length has no limit.
        needs_even_size: the model size must be even.
        is_rotary: self-attention rotates queries and keys by their positions; their size must be
            even.
    """

    is_learned: bool
    needs_even_size: bool
    is_rotary: bool = False


POSITIONS = {
    "sinusoidal": PositionEncoding(is_learned=False, needs_even_size=True),
    "learned": PositionEncoding(is_learned=True, needs_even_size=False),
    "rotary": PositionEncoding(is_learned=False, needs_even_size=True, is_rotary=True),
}


@dataclass(frozen=True)
class Norm:
    """Facts about a position of LayerNorm.

    Attributes:
        has_final_norm: each stack ends with one more LayerNorm.
    """

    has_final_norm: bool


NORMS = {"post": Norm(has_final_norm=False), "pre": Norm(has_final_norm=True)}


@dataclass(frozen=True)
class Activation:
    """Facts about an activation of the feed-forward networks.

    Attributes:
        num_kept: tensors of the inner size that the backward pass keeps, the output counted.
        is_gated: it multiplies one half of its argument, which has twice the inner size, by a
            function of the other half.
    """

    num_kept: int
    is_gated: bool = False


ACTIVATIONS = {
    "relu": Activation(1),
    "silu": Activation(2),
    "squared-relu": Activation(2),
    "swiglu": Activation(4, is_gated=True),
}


@dataclass(frozen=True)
class AligningAttention:
    """The cross-attention from which alignments are read.

    Attributes:
        layer: decoder layer, from 0.
        head: from 0; None = the mean of all heads.
        is_shifted: a token is aligned by the row of the step that reads it, not of the step that
            predicts it. Source: Chen et al. 2020 (arXiv 2004.14837), section 3.1.
        sees_target: the decoder reads the target once more for it, without the causal mask.
    """

    layer: int
    head: int | None
    is_shifted: bool
    sees_target: bool = False

    @property
    def place(self) -> str:
        """Name of the layer, from 1, and of the step in messages, such as `5 read`."""
        return f"{self.layer + 1} {'read' if self.is_shifted else 'predicted'}"


def aligning_layer(num_decoder_layers: int) -> int:
    """Return the decoder layer, from 0, that aligns if nothing is known: the last but one.

    Source: Garg et al. 2019 (arXiv 1909.02074), who find the fifth of six layers to align best.
    """
    return max(0, num_decoder_layers - 2)


_GUIDED = {"guided_alignment_weight": GIVEN}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Model. Source: paper, section 3 and table 3."""

    encoder_layers: int = setting(6, "Encoder layers.", minimum=1, maximum=LARGEST_DEPTH)
    decoder_layers: int = setting(6, "Decoder layers.", minimum=1, maximum=LARGEST_DEPTH)
    model_size: int = setting(
        512, "Size d_model of embeddings and layers.", minimum=2, maximum=LARGEST_WIDTH
    )
    feed_forward_size: int = setting(
        2048, "Inner size d_ff of the feed-forward networks.", minimum=1, maximum=16 * LARGEST_WIDTH
    )
    activation: str = setting(
        "relu",
        "Activation of the feed-forward networks. relu: the paper's; silu: x * sigmoid(x); "
        "squared-relu: the square of relu; swiglu: silu(x W) * (x V), with a third matrix V.",
        choices=ACTIVATIONS,
    )
    heads: int = setting(8, "Attention heads h.", minimum=1, maximum=LARGEST_WIDTH)
    key_size: int = setting(
        0, "Size d_k of queries and keys per head; 0 = model_size / heads.", maximum=LARGEST_WIDTH
    )
    value_size: int = setting(
        0, "Size d_v of values per head; 0 = model_size / heads.", maximum=LARGEST_WIDTH
    )
    qk_norm: bool = setting(
        False, "LayerNorm of the queries and of the keys of each head, before they are compared."
    )
    window: int = setting(
        0,
        "Window r of self-attention (local attention); 0 = all positions. Encoder: r // 2 "
        "positions on either side; decoder: the last r. Time and memory are linear in the length.",
        unit="positions",
    )
    dropout: float = common(
        0.1,
        "Dropout of sub-layers and embeddings: of sub-layer outputs, and of the sum of embedding "
        "and position.",
        maximum=0.99,
    )
    attention_dropout: float = setting(0.0, "Dropout of attention weights.", maximum=0.99)
    activation_dropout: float = setting(
        0.0, "Dropout inside the feed-forward networks, after the activation.", maximum=0.99
    )
    norm: str = setting(
        "post",
        "Position of LayerNorm. post: LayerNorm(x + Sublayer(x)), the paper's; pre: x + "
        "Sublayer(LayerNorm(x)), and one more LayerNorm at the end of each stack.",
        choices=NORMS,
    )
    norm_epsilon: float = setting(1e-5, "Epsilon of LayerNorm.", minimum=1e-12)
    positions: str = setting(
        "sinusoidal",
        "Position encoding. sinusoidal: fixed vectors, the paper's; learned: learned vectors; "
        "rotary: sinusoidal, and self-attention rotates queries and keys by their positions.",
        choices=POSITIONS,
    )
    max_positions: int = setting(
        1024,
        "Number of learned positions; longer input is an error.",
        unit="tokens",
        minimum=1,
        maximum=1_000_000,
        only_with={"positions": [name for name, one in POSITIONS.items() if one.is_learned]},
    )
    tie_embeddings: bool = setting(
        True,
        "Share one matrix between target embedding and output projection; with a joint "
        "vocabulary, also the source embedding.",
    )
    output_bias: bool = setting(False, "Add a learned bias to the logits.")
    alignment_layer: int = setting(
        0,
        "Decoder layer, from 1, whose cross-attention has the head that "
        "--guided-alignment-weight trains; auto = the last but one.",
        zero="auto",
        maximum=LARGEST_DEPTH,
        only_with=_GUIDED,
    )
    alignment_head: int = setting(
        1,
        "That head, from 1; alignments are read from it.",
        minimum=1,
        maximum=LARGEST_WIDTH,
        only_with=_GUIDED,
    )
    full_context_alignment: bool = setting(
        False,
        "That head aligns a word when the decoder reads the whole target, in a pass of its own "
        "without the causal mask. Alignments are better, updates slower.",
        only_with=_GUIDED,
    )

    @property
    def head_sizes(self) -> tuple[int, int]:
        """The sizes d_k and d_v of a head's keys and values."""
        own = self.model_size // self.heads
        return self.key_size or own, self.value_size or own

    @property
    def inner_sizes(self) -> tuple[int, ...]:
        """Sizes of the products that a feed-forward network computes first: two with a gate."""
        return (self.feed_forward_size,) * (2 if ACTIVATIONS[self.activation].is_gated else 1)

    @property
    def trained_head(self) -> tuple[int, int] | None:
        """Decoder layer and head, from 0, whose cross-attention is trained as an alignment."""
        return (self.alignment_layer - 1, self.alignment_head - 1) if self.alignment_layer else None

    @property
    def longest_sequence(self) -> int:
        """The largest number of tokens in a sequence; sys.maxsize = no limit."""
        return self.max_positions if POSITIONS[self.positions].is_learned else sys.maxsize


MAY_DIFFER_FROM_PARENT = frozenset(
    {
        *("dropout", "attention_dropout", "activation_dropout"),
        *("alignment_layer", "alignment_head", "full_context_alignment"),
    }
)
"""Settings of `ModelConfig` that a run may change when it begins with another model's weights."""
