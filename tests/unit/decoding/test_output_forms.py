"""Forms of outputs: each entry of the table searches, and keeps to what it demands."""

from collections.abc import Mapping
from typing import get_args

import pytest
import torch

from nmtkit.config.metrics import TargetType
from nmtkit.config.schema import ConstraintsConfig
from nmtkit.decoding.output_forms import OUTPUT_FORMS, output_form
from nmtkit.text.codec import TextCodec
from tests.tiny import tiny_codec
from tests.trees import parser_codec

CPU = torch.device("cpu")
CODECS: Mapping[TargetType, TextCodec] = {"text": tiny_codec(), "trees": parser_codec()}


def test_every_type_of_target_has_a_form() -> None:
    assert set(OUTPUT_FORMS) == set(get_args(TargetType)) == set(CODECS)


@pytest.mark.parametrize("target_type", OUTPUT_FORMS)
def test_the_fewest_tokens_are_enough_for_an_output(target_type: TargetType) -> None:
    codec, line = CODECS[target_type], "a b c"
    form = output_form(codec, ConstraintsConfig(), CPU)
    fewest = form.fewest_tokens(codec.encode_source(line), line)
    constraint = form.constraint([fewest], torch.tensor([fewest]))
    if constraint is None:
        assert fewest == 1
        return
    prefix: list[int] = []
    for _ in range(fewest):
        permitted = constraint.permitted(torch.tensor([[prefix]], dtype=torch.int64))[0, 0]
        prefix.append(int(permitted.nonzero()[0]))
    _, is_mended = codec.complete(codec.decode_target(prefix), line)
    assert not is_mended


def test_plain_text_may_have_any_form() -> None:
    form = output_form(tiny_codec(), ConstraintsConfig(), CPU)
    assert form.constraint([1, 1], torch.tensor([9, 9])) is None
    assert (form.no_shortlist, form.no_prefix) == ("", "")
