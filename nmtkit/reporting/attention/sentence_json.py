"""Sentences as JSON: attention weights, and a summary of each head in four numbers.

Weights are lists of numbers for programs, or packed as base64 for the page.
"""

import base64
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from nmtkit.reporting.attention.sentences import AttentionMap, Sentence

_DIGITS = 6
"""Decimal places; float32 has about this precision."""

_ONE = 2**16 - 1
"""The number that stands for weight 1 in the page."""


@dataclass(frozen=True)
class HeadSummary:
    """The summary of a head: means over the tokens that attend.

    A token's own position is its index or, in a sequence of another length, the proportional one.

    Attributes:
        entropy: entropy of the weights, in bits; 0 if one token gets all weight.
        distance: mean distance from the own position to the attended one, in tokens.
        diagonal: weight of the own position.
        symbol: weight of the end symbol, or of the begin symbol in the decoder.
    """

    entropy: float
    distance: float
    diagonal: float
    symbol: float


def json_line(sentence: Sentence) -> str:
    """Return a sentence as a line of JSON."""
    return json.dumps(as_object(sentence, _as_lists), ensure_ascii=False)


def as_object(sentence: Sentence, written: Callable[[Tensor], Any]) -> dict[str, Any]:
    """Return a sentence as a JSON object.

    Args:
        sentence: the sentence.
        written: converts weights (L, H, T, S) to a JSON value.
    """
    return {
        "source": sentence.source,
        "translation": sentence.target,
        "attentions": [_attention(attention, written) for attention in sentence.attentions],
    }


def packed(weights: Tensor) -> str:
    """Return weights as base64 of 16-bit little-endian numbers; 65535 means 1."""
    numbers = (weights * _ONE).round().to(torch.int32).numpy().astype("<u2")
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def summarize(weights: Tensor, symbol: int) -> list[list[HeadSummary]]:
    """Summarise the heads of each layer.

    Args:
        weights: (L, H, T, S).
        symbol: the column of the end symbol, or of the begin symbol.
    """
    num_rows, num_columns = weights.shape[2:]
    positions = torch.arange(num_rows) * (num_columns - 1) / max(1, num_rows - 1)  # (T,)
    distances = (torch.arange(num_columns) - positions[:, None]).abs()  # (T, S)
    diagonal = torch.nn.functional.one_hot(positions.round().long(), num_columns)
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


def _attention(attention: AttentionMap, written: Callable[[Tensor], Any]) -> dict[str, Any]:
    symbol = 0 if attention.kind == "decoder" else len(attention.columns.pieces) - 1
    summaries = [
        [{name: round(number, _DIGITS) for name, number in asdict(head).items()} for head in layer]
        for layer in summarize(attention.weights, symbol)
    ]
    return {
        "kind": attention.kind,
        "rows": asdict(attention.rows),
        "columns": asdict(attention.columns),
        "summary": summaries,
        "weights": written(attention.weights),
    }


def _as_lists(weights: Tensor) -> Any:
    # Rounded as float64: json would write all digits of a rounded float32.
    return torch.round(weights.double(), decimals=_DIGITS).tolist()
