"""The part of a sentence's attention that is drawn: kind, layer, heads, word."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from nmtkit.config.attention import SelectionConfig
from nmtkit.config.problems import suggestion
from nmtkit.decoding.attention import aligning_layer
from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.sentences import AttentionMap, Sentence

_SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "memory": ("target", "source"),
}
"""The sentences that attend, and that are attended to."""


@dataclass(frozen=True)
class Selection:
    """Attention weights to draw.

    Attributes:
        kind: "encoder", "decoder" or "memory".
        layer: the layer, counted from 1.
        num_layers: number of layers of the model's stack.
        heads: the heads, counted from 1, ascending.
        num_heads: number of heads of the model.
        rows, columns: the words or subwords that attend, and that are attended to.
        weights: (heads, rows, columns).
        word: index of the only row whose lines are drawn; None = all rows.
    """

    kind: str
    layer: int
    num_layers: int
    heads: tuple[int, ...]
    num_heads: int
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Tensor
    word: int | None

    @property
    def sides(self) -> tuple[str, str]:
        """The sentences of the rows and of the columns: "source" or "target"."""
        return _SIDES[self.kind]

    @property
    def title(self) -> str:
        """The caption: kind of attention, layer and heads."""
        numbers = ", ".join(map(str, self.heads))
        heads = f"head {numbers}" if len(self.heads) == 1 else f"heads {numbers}"
        if len(self.heads) == self.num_heads > 1:
            heads = f"all {self.num_heads} heads"
        kind = "cross-attention" if self.kind == "memory" else f"{self.kind} self-attention"
        return f"{kind}, layer {self.layer} of {self.num_layers}, {heads}"


def select(sentence: Sentence, config: SelectionConfig) -> Selection:
    """Select the attention weights that a configuration names.

    Raises:
        ConfigError: the sentence has no such attention, layer, head or word.
    """
    attention = _attention(sentence, config.attention)
    num_layers, num_heads = attention.weights.shape[:2]
    layer = config.layer or aligning_layer(num_layers) + 1
    if layer > num_layers:
        raise ConfigError(
            f"layer ({layer}): {attention.kind} attention has {_counted(num_layers, 'layer')}; "
            f"give 1 to {num_layers} [selection.layer]"
        )
    given = {int(head) for head in config.heads.split(",") if head}
    heads = tuple(sorted(given)) or tuple(range(1, num_heads + 1))
    if heads[-1] > num_heads:
        raise ConfigError(
            f"heads ({heads[-1]}): the model has {_counted(num_heads, 'head')}; give numbers "
            f"from 1 to {num_heads} [selection.heads]"
        )
    is_joined = config.join_subwords
    rows = attention.rows.words if is_joined else attention.rows.pieces
    weights = (attention.joined if is_joined else attention.weights)[layer - 1]
    return Selection(
        kind=attention.kind,
        layer=layer,
        num_layers=num_layers,
        heads=heads,
        num_heads=num_heads,
        rows=rows,
        columns=attention.columns.words if is_joined else attention.columns.pieces,
        weights=weights[[head - 1 for head in heads]],
        word=_row_index(config.word, rows),
    )


def _attention(sentence: Sentence, kind: str) -> AttentionMap:
    if kind == "auto":
        return sentence.attentions[-1]
    for attention in sentence.attentions:
        if attention.kind == kind:
            return attention
    raise ConfigError(
        f"attention ({kind}): the line has no translation; add it after a tab, or add "
        "--translate [selection.attention]"
    )


def _row_index(word: str, rows: Sequence[str]) -> int | None:
    """Return the index of the row with a text, or at a position counted from 1."""
    if not word:
        return None
    words = [row.strip("\u2581") for row in rows]
    found = [index for index, row in enumerate(words) if row == word]
    numbers = ", ".join(str(index + 1) for index in found)
    at = f"word ({word!r}) is at position{'s' * (len(found) > 1)} {numbers}"
    if word.isdecimal() and 1 <= int(word) <= len(rows):
        index = int(word) - 1
        if not found or index in found:
            return index
        raise ConfigError(
            f"{at}, but position {index + 1} has {words[index]!r}; give the position with a zero "
            f"in front, such as 0{found[0] + 1} [selection.word]"
        )
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{at}; give one of these numbers [selection.word]")
    raise ConfigError(
        f"word ({word!r}) is none of the {len(rows)} that attend; {suggestion(word, rows)} "
        "[selection.word]"
    )


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
