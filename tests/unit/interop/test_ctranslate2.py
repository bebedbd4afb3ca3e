"""Models that CTranslate2 does not support are refused by name; exports: tests/integration."""

from dataclasses import fields
from typing import Any

import pytest
import torch

from nmtkit.config import model as model_config
from nmtkit.config.model import ModelConfig
from nmtkit.interop import ctranslate2
from nmtkit.model.attention import CrossAttention
from nmtkit.packed import Layout, Packed
from tests.conversions import random_model, refused_on_page, shared_codec
from tests.tiny import tiny_codec
from tests.trees import parser_codec

CPU = torch.device("cpu")
REFUSED = {
    "key_size": (3, "key_size (3) must be model_size / heads (8) [model.key_size]"),
    "value_size": (5, "value_size (5) must be model_size / heads (8) [model.value_size]"),
    "window": (8, "window (8) must be 0 [model.window]"),
    "positions": (
        "rotary",
        "positions (rotary) must be sinusoidal or learned [model.positions]",
    ),
    "qk_norm": (True, "qk_norm (True) must be False [model.qk_norm]"),
}


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        *(({name: value}, [message]) for name, (value, message) in REFUSED.items()),
        ({"key_size": 8, "value_size": 8, "norm": "pre", "positions": "learned"}, []),
    ],
)
def test_attention_that_the_library_lacks_is_refused_and_nothing_else(
    settings: dict[str, Any], messages: list[str]
) -> None:
    problems = [
        *ctranslate2.unsupported(random_model(tiny_codec(), settings).model.config, tiny_codec())
    ]
    assert [problem.text for problem in problems] == messages


def test_the_page_on_other_libraries_names_every_setting_that_is_refused() -> None:
    names = refused_on_page("To CTranslate2")
    assert names & {field.name for field in fields(ModelConfig)} == {*REFUSED}


def test_an_unknown_norm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(model_config.NORMS, "other", model_config.Norm(has_final_norm=False))
    (problem,) = ctranslate2.unsupported(ModelConfig(norm="other"), shared_codec())
    assert problem.text == "norm (other) must be post or pre [model.norm]"


@pytest.mark.parametrize("head", [0, 2, 3])
def test_an_attention_with_another_first_head_computes_the_same(head: int) -> None:
    torch.manual_seed(1)
    attention = CrossAttention(ModelConfig(model_size=12, heads=4, value_size=5))
    torch.nn.init.normal_(attention.key_value.bias)
    x, memory = torch.randn(7, 12), Packed(torch.randn(9, 12), Layout((5, 4), CPU))
    arguments = x, Layout((3, 4), CPU), memory
    swapped = ctranslate2.with_first_head(attention, head)
    torch.testing.assert_close(swapped(*arguments), attention(*arguments))
    weights = attention.weights(*arguments)
    order = [head, *(other for other in range(4) if other != head)]
    torch.testing.assert_close(swapped.weights(*arguments), weights[:, order])


def test_parsers_are_refused() -> None:
    (problem,) = ctranslate2.unsupported(ModelConfig(), parser_codec())
    assert problem.text.startswith("the target vocabulary (of trees) must be of text")
