"""Sentences as JSON: with the weights as numbers for programs, or packed for a page."""

import base64
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from nmtkit.reporting.attention.heads import summarise
from nmtkit.reporting.attention.sentences import Sentence, View

_DIGITS = 6
"""Behind the point; float32 has about as many."""

_ONE = 2**16 - 1
"""What stands for the weight 1 in a page."""


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
