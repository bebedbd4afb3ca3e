"""Log-probabilities from hidden vectors, a chunk of tokens at a time."""

import pytest
import torch

from nmtkit.decoding import forced
from nmtkit.decoding.forced import token_log_probs
from nmtkit.model.transformer import Transformer
from tests.doubles import LargestTensor
from tests.tiny import tiny_codec, tiny_model

NUM_TOKENS, CHUNK = 23, 5


def model() -> Transformer:
    return tiny_model(tiny_codec())


@pytest.mark.parametrize("chunk", [1, CHUNK, NUM_TOKENS, 100])
def test_log_probs_equal_those_of_the_whole_softmax(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forced, "chunk_size", lambda *_: chunk)
    own = model().double()
    num_entries, model_size = own.output_weight.shape
    hidden = torch.randn(NUM_TOKENS, model_size, dtype=torch.float64)
    targets = torch.randint(num_entries, (NUM_TOKENS,))
    expected = -torch.nn.functional.cross_entropy(own.logits(hidden), targets, reduction="none")
    actual = token_log_probs(own, hidden, targets)
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=1e-12)


def test_log_probs_of_low_precision_are_summed_in_float32() -> None:
    own = model().bfloat16()
    hidden = torch.randn(NUM_TOKENS, own.output_weight.shape[1]).bfloat16()
    targets = torch.zeros(NUM_TOKENS, dtype=torch.int64)
    actual = token_log_probs(own, hidden, targets)
    expected = own.logits(hidden).float().log_softmax(-1)[:, 0]
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=1e-6)


def test_logits_of_all_tokens_never_exist_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forced, "chunk_size", lambda *_: CHUNK)
    own = model()
    num_entries, model_size = own.output_weight.shape
    hidden = torch.randn(NUM_TOKENS, model_size)
    targets = torch.zeros(NUM_TOKENS, dtype=torch.int64)
    with LargestTensor() as watch:  # type: ignore[no-untyped-call]
        token_log_probs(own, hidden, targets)
    assert watch.num_elements == max(CHUNK * num_entries, num_entries * model_size)
