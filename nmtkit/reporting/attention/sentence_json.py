"""Sentences as JSON: weights, and what each head does in four numbers.

The weights are numbers for programs, or packed for a page.
"""

import base64
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from nmtkit.reporting.attention.sentences import Sentence, View

_DIGITS = 6
"""Behind the point; float32 has about as many."""

_ONE = 2**16 - 1
"""What stands for the weight 1 in a page."""


@dataclass(frozen=True)
class HeadSummary:
    """Means over the tokens that attend.

    A token's own place is where it stands itself or, in a sequence of another length, what stands
    as far along.

    Attributes:
        entropy: of the weights, in bits: 0 where all goes to one token.
        distance: in tokens, from the own place to what is attended to.
        diagonal: the share that goes to the own place.
        symbol: the share that goes to the end symbol, or to the begin symbol in the decoder.
    """

    entropy: float
    distance: float
    diagonal: float
    symbol: float


def json_line(sentence: Sentence) -> str:
    """Return an object of everything that is known of a sentence."""
    return json.dumps(as_object(sentence, _as_lists), ensure_ascii=False)


def as_object(sentence: Sentence, written: Callable[[Tensor], Any]) -> dict[str, Any]:
    """Return a sentence as JSON can hold it.

    Args:
        sentence: the sentence.
        written: turns weights (L, H, T, S) into their form.
    """
    return {
        "source": sentence.source,
        "translation": sentence.target,
        "attentions": [_view(view, written) for view in sentence.views],
    }


def packed(weights: Tensor) -> str:
    """Return weights as base64 of 16-bit numbers, little end first, of which 65535 means 1."""
    numbers = (weights * _ONE).round().to(torch.int32).numpy().astype("<u2")
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def summarise(weights: Tensor, symbol: int) -> list[list[HeadSummary]]:
    """Summarise the heads of each layer.

    Args:
        weights: (L, H, T, S).
        symbol: the column of the end symbol, or of the begin symbol.
    """
    num_rows, num_columns = weights.shape[2:]
    own = torch.arange(num_rows) * (num_columns - 1) / max(1, num_rows - 1)  # (T,)
    distances = (torch.arange(num_columns) - own[:, None]).abs()  # (T, S)
    diagonal = torch.nn.functional.one_hot(own.round().long(), num_columns)
    numbers = torch.stack(
        [
            torch.special.entr(weights).sum(-1) / math.log(2),
            (weights * distances).sum(-1),
            (weights * diagonal).sum(-1),
            weights[..., symbol],
        ],
        dim=-1,
    )  # (L, H, T, 4)
    return [[HeadSummary(*head) for head in layer] for layer in numbers.mean(2).tolist()]


def _view(view: View, written: Callable[[Tensor], Any]) -> dict[str, Any]:
    symbol = 0 if view.kind == "decoder" else len(view.columns.pieces) - 1
    summaries = [
        [{name: round(number, _DIGITS) for name, number in asdict(head).items()} for head in layer]
        for layer in summarise(view.weights, symbol)
    ]
    return {
        "kind": view.kind,
        "rows": asdict(view.rows),
        "columns": asdict(view.columns),
        "summary": summaries,
        "weights": written(view.weights),
    }


def _as_lists(weights: Tensor) -> Any:
    # Numbers of float32 would be written with the digits of float64.
    return torch.round(weights.double(), decimals=_DIGITS).tolist()
