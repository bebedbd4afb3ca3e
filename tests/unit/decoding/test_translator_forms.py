"""Output forms: a search keeps to each entry of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor

from nmtkit.config.metrics import TargetType
from nmtkit.config.schema import TranslateRecipe
from nmtkit.config.translation import ConstraintsConfig
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.answers import Request
from nmtkit.decoding.constraints import IMPOSSIBLE, Constraint
from nmtkit.decoding.translator import OUTPUT_FORMS, Translator, output_form
from nmtkit.errors import ConfigError, DataError
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from tests.messages import refuses
from tests.tiny import tiny_codec, tiny_model
from tests.translating import answers_to, translate
from tests.trees import parser_codec

CPU = torch.device("cpu")
CODECS: Mapping[TargetType, TextCodec] = {"text": tiny_codec(), "trees": parser_codec()}


def test_every_type_of_target_has_a_form() -> None:
    assert set(OUTPUT_FORMS) == set(get_args(TargetType)) == set(CODECS)


@pytest.mark.parametrize("target_type", OUTPUT_FORMS)
def test_the_fewest_tokens_are_enough_for_an_output(target_type: TargetType) -> None:
    codec, line = CODECS[target_type], "a b c"
    form = output_form(codec, ConstraintsConfig(), CPU)
    if form is None:
        return
    fewest = form.fewest_tokens(codec.encode_source(line), line)
    constraint = form.constraint([fewest], torch.tensor([fewest]))
    assert constraint is not None
    prefix: list[int] = []
    for _ in range(fewest):
        sums = torch.zeros(1, 1, codec.target.size)
        constraint.apply(sums, torch.tensor([[prefix]], dtype=torch.int64))
        prefix.append(int((sums[0, 0] == 0).nonzero()[0]))
    _, is_repaired = codec.complete(codec.decode_target(prefix), line)
    assert not is_repaired


def test_plain_text_has_no_form() -> None:
    assert output_form(tiny_codec(), ConstraintsConfig(), CPU) is None


class Echo(Constraint):
    """Permits one token, three times."""

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        is_permitted = torch.zeros(sums.shape[2], dtype=torch.bool)
        is_permitted[TOKEN if prefixes.shape[2] < 3 else EOS_ID] = True
        sums.masked_fill_(~is_permitted, IMPOSSIBLE)


class EchoForm:
    no_shortlist = "an echo is short"
    no_prefix = "comes before an echo"

    def __init__(self, codec: TextCodec, config: ConstraintsConfig, device: torch.device) -> None:
        pass

    def fewest_tokens(self, ids: list[int], line: str) -> int:  # noqa: ARG002
        return 4

    def constraint(self, fewest: Sequence[int], max_lengths: Tensor) -> Constraint:
        assert set(fewest) == {4}
        assert int(max_lengths.min()) >= 4
        return Echo()


TOKEN = 5


def test_a_form_is_an_entry_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = tiny_codec()
    model, recipe = tiny_model(codec), TranslateRecipe()
    recipe = replace(
        recipe, search=replace(recipe.search, max_length_ratio=0.1, max_length_offset=1)
    )
    monkeypatch.setitem(OUTPUT_FORMS, "text", EchoForm)
    translator = Translator([model], codec, recipe, lambda _: None)
    echo = " ".join([codec.target.piece(TOKEN)] * 3)
    assert list(translate(translator, ["a b c", "a", ""])) == [echo, echo, ""]
    with refuses(DataError, "line 7 target_prefix"):
        answers_to(translator, [Request("a", target_prefix="b")], 7)
    with refuses(ConfigError, "--shortlist"):
        Translator([model], codec, recipe, lambda _: None, Shortlist.__new__(Shortlist))


def test_a_setting_of_another_type_of_target_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ConstraintsConfig(ban_unknown=True)
    output_form(tiny_codec(), config, CPU)
    settings = {"text": {}, "trees": {"ban_unknown": "nobody echoes"}}
    monkeypatch.setattr("nmtkit.decoding.translator.CONSTRAINT_SETTINGS", settings)
    with refuses(ConfigError, "ban_unknown True"):
        output_form(tiny_codec(), config, CPU)
