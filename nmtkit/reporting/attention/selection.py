"""What of a sentence is drawn: one attention of one layer, some heads, perhaps one word's lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from nmtkit.config.attention import SelectionConfig
from nmtkit.config.problems import suggestion
from nmtkit.decoding.attention import aligning_layer
from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.sentences import Sentence, View


@dataclass(frozen=True)
class Selection:
    """What is drawn.

    Attributes:
        kind: of the attention.
        layer: from 1, of num_layers.
        heads: from 1, of num_heads, in ascending order.
        rows, columns: the words or subwords, as they are written.
        weights: (heads, rows, columns).
        word: the place, from 0, of the row whose lines alone are drawn; None = all rows.
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
    def title(self) -> str:
        """What is drawn, in words."""
        numbers = ", ".join(map(str, self.heads))
        heads = f"head {numbers}" if len(self.heads) == 1 else f"heads {numbers}"
        if len(self.heads) == self.num_heads > 1:
            heads = f"all {self.num_heads} heads"
        kind = "memory attention" if self.kind == "memory" else f"{self.kind} self-attention"
        return f"{kind}, layer {self.layer} of {self.num_layers}, {heads}"


def select(sentence: Sentence, config: SelectionConfig) -> Selection:
    """Find what a configuration asks for.

    Raises:
        ConfigError: the sentence has no such attention, layer, head or word.
    """
    view = _view(sentence, config.attention)
    num_layers, num_heads = view.weights.shape[:2]
    layer = config.layer or aligning_layer(num_layers) + 1
    if layer > num_layers:
        raise ConfigError(
            f"layer ({layer}): {config.attention} attention has {_counted(num_layers, 'layer')}; "
            f"give a number up to that [selection.layer]"
        )
    given = {int(head) for head in config.heads.split(",") if head}
    heads = tuple(sorted(given)) or tuple(range(1, num_heads + 1))
    if heads[-1] > num_heads:
        raise ConfigError(
            f"heads ({heads[-1]}): the model has {_counted(num_heads, 'head')}; give numbers up "
            "to that [selection.heads]"
        )
    is_joined = config.join_subwords
    rows = view.rows.words if is_joined else view.rows.pieces
    weights = (view.joined if is_joined else view.weights)[layer - 1]
    return Selection(
        kind=view.kind,
        layer=layer,
        num_layers=num_layers,
        heads=heads,
        num_heads=num_heads,
        rows=rows,
        columns=view.columns.words if is_joined else view.columns.pieces,
        weights=weights[[head - 1 for head in heads]],
        word=_place(config.word, rows),
    )


def _view(sentence: Sentence, kind: str) -> View:
    for view in sentence.views:
        if view.kind == kind:
            return view
    raise ConfigError(
        f"attention ({kind}): the line has no translation; give it behind a tab, or add "
        "--translate [selection.attention]"
    )


def _place(word: str, rows: Sequence[str]) -> int | None:
    """Return the place of the word that a text names, by itself or by its place from 1."""
    if not word:
        return None
    words = [row.strip("\u2581") for row in rows]
    places = [place for place, row in enumerate(words) if row == word]
    numbers = ", ".join(str(place + 1) for place in places)
    stands = f"word ({word!r}) stands at the place{'s' * (len(places) > 1)} {numbers}"
    if word.isdecimal() and 1 <= int(word) <= len(rows):
        named = int(word) - 1
        if not places or named in places:
            return named
        raise ConfigError(
            f"{stands}, but place {named + 1} has {words[named]!r}; give the place that is meant "
            f"with a zero before it, such as 0{places[0] + 1} [selection.word]"
        )
    if len(places) == 1:
        return places[0]
    if places:
        raise ConfigError(f"{stands}; give one of these numbers [selection.word]")
    raise ConfigError(
        f"word ({word!r}) is none of the {len(rows)} that attend; {suggestion(word, rows)} "
        "[selection.word]"
    )


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
