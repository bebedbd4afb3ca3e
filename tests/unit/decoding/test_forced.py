import math
import random

import pytest
import torch
from torch import Tensor, nn

from nmtkit.config.model import AligningAttention
from nmtkit.config.schema import SearchConfig
from nmtkit.decoding import forced
from nmtkit.decoding.forced import (
    attention_by_ensemble,
    attention_of_pairs,
    score_pairs,
    token_log_probs,
)
from nmtkit.decoding.search import beam_search
from nmtkit.decoding.stepper import Stepper
from nmtkit.errors import DamagedError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID, EOS_ID
from tests.doubles import LargestTensor, watch_embedding
from tests.messages import refuses
from tests.tiny import tiny_codec, tiny_model

CPU = torch.device("cpu")
VOCABULARY = tiny_codec().target.size
TOLERANCE = 1e-5
FIRST_LAYER = AligningAttention(0, head=None, is_shifted=False)
"""float32: batches of other shapes sum in another order."""


def random_ids(generator: random.Random, longest: int) -> list[int]:
    return [*generator.choices(range(3, VOCABULARY), k=generator.randint(0, longest)), EOS_ID]


def random_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    """Make pairs of all lengths, some sides blank."""
    generator = random.Random(1)
    return [(random_ids(generator, 12), random_ids(generator, 9)) for _ in range(count)]


def test_scores_are_log_softmax_at_each_token_of_a_sentence_alone() -> None:
    model, pairs = tiny_model(tiny_codec()), random_pairs(30)
    with torch.no_grad():
        for (source, target), score in zip(pairs, score_pairs(model, pairs, 60), strict=True):
            expected = []
            for position, token in enumerate(target):
                prefix = pack_sequences([[BOS_ID, *target[:position]]], CPU)
                hidden = model.decode(prefix, model.encode(pack_sequences([source], CPU)))
                log_probs = nn.functional.log_softmax(model.logits(hidden[-1]), 0)
                expected.append(float(log_probs[token]))
            assert score == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("batch_tokens", [1, 17, 100, 10_000])
def test_a_score_depends_on_no_other_pair(batch_tokens: int) -> None:
    model, pairs = tiny_model(tiny_codec()), random_pairs(40)
    together = score_pairs(model, pairs, batch_tokens)
    backwards = score_pairs(model, pairs[::-1], batch_tokens)[::-1]
    for pair, one, other in zip(pairs, together, backwards, strict=True):
        (alone,) = score_pairs(model, [pair], batch_tokens)
        assert one == pytest.approx(alone, abs=TOLERANCE)
        assert other == pytest.approx(alone, abs=TOLERANCE)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("num_models", [1, 3])
@pytest.mark.parametrize("batch_tokens", [1, 100, 10_000])
def test_attention_is_the_mean_of_models_and_depends_on_no_other_pair(
    batch_tokens: int, num_models: int
) -> None:
    models = [tiny_model(tiny_codec(), seed) for seed in range(num_models)]
    pairs = random_pairs(40)
    memories = Stepper(models).encode([source for source, _ in pairs])
    found = attention_by_ensemble(models, pairs, memories, batch_tokens)
    for pair, one in zip(pairs, found, strict=True):
        alone = [attention_of_pairs(model, [pair], [FIRST_LAYER])[0][0] for model in models]
        expected = torch.stack(alone).mean(0)
        torch.testing.assert_close(one, expected, rtol=0.0, atol=TOLERANCE)


def test_the_tokens_of_a_batch_are_bounded_on_both_sides() -> None:
    batches: list[tuple[int, ...]] = []
    model = tiny_model(tiny_codec())
    watch_embedding(model.source_embedding, batches)
    watch_embedding(model.target_embedding, batches)
    score_pairs(model, random_pairs(200), 50)
    assert 40 < max(len(batch) * max(batch) for batch in batches) <= 50


@pytest.mark.parametrize("beam", [1, 4])
def test_scores_equal_those_of_a_search_for_its_hypotheses(beam: int) -> None:
    model = tiny_model(tiny_codec())
    sources = [source for source, _ in random_pairs(20) if len(source) > 1]
    config = SearchConfig(beam=beam)
    with torch.inference_mode():
        memory = model.encode(pack_sequences(sources, CPU))
        longest = torch.tensor([len(source) + 4 for source in sources])
        found = beam_search(model.step, model.start(memory), longest, config, n_best=beam)
    hypotheses = [hypothesis for of_sentence in found for hypothesis in of_sentence]
    pairs = [(s, h.ids) for s, own in zip(sources, found, strict=True) for h in own]
    assert len(pairs) >= beam * len(sources) / 2
    for hypothesis, score in zip(hypotheses, score_pairs(model, pairs, 200), strict=True):
        assert sum(score) == pytest.approx(hypothesis.log_prob, abs=1e-4)


@pytest.mark.parametrize("is_shifted", [False, True])
@pytest.mark.parametrize("own_head", [None, 0, 1])
@pytest.mark.parametrize("layer", [0, 1])
def test_attention_is_the_softmax_of_queries_and_keys(
    layer: int, own_head: int | None, is_shifted: bool
) -> None:
    model, pairs = tiny_model(tiny_codec()).double(), random_pairs(12)
    read = AligningAttention(layer, own_head, is_shifted)
    (weights,) = attention_of_pairs(model, pairs, [read])
    for (source, target), found in zip(pairs, weights, strict=True):
        seen: list[Tensor] = []
        attention = model.decoder[layer].memory_attention
        attention.query.register_forward_hook(lambda _, __, out: seen.append(out))  # noqa: B023
        with torch.no_grad():
            memory = model.encode(pack_sequences([source], CPU))
            model.decode(pack_sequences([[BOS_ID, *target[:-1]]], CPU), memory)
            keys = attention.key_value(memory.values)
        expected = torch.zeros(len(target), len(source), dtype=torch.float64)
        key_size = attention.sizes[0] // attention.heads
        heads = range(attention.heads) if own_head is None else [own_head]
        for head in heads:
            own = slice(head * key_size, (head + 1) * key_size)
            products = seen[-1][:, own] @ keys[:, own].T / math.sqrt(key_size)
            expected += products.softmax(-1) / len(heads)
        if is_shifted:  # the step that reads a token is the one after the step that predicts it
            expected[:-1] = expected[1:].clone()
        torch.testing.assert_close(found, expected.float(), rtol=0.0, atol=1e-6)
        torch.testing.assert_close(found.sum(1), torch.ones(len(target)))


def test_a_head_that_sees_the_target_reads_the_words_after_a_token() -> None:
    model = tiny_model(tiny_codec()).double()
    source, target, other = [3, 4, 5, EOS_ID], [3, 5, 4, EOS_ID], [3, 5, 7, EOS_ID]
    for sees_target in (False, True):
        read = AligningAttention(1, 0, is_shifted=True, sees_target=sees_target)
        ((one, two),) = attention_of_pairs(model, [(source, target), (source, other)], [read])
        assert torch.equal(one[0], two[0]) != sees_target
        assert not torch.equal(one[2], two[2])


def test_a_model_whose_logits_are_not_numbers_is_damaged() -> None:
    model = tiny_model(tiny_codec())
    model.output_weight.data[7, 0] = math.nan
    with refuses(DamagedError, "logits; score"):
        score_pairs(model, random_pairs(2), 100)


def test_a_model_in_training_mode_is_refused() -> None:
    with pytest.raises(AssertionError, match="evaluation mode"):
        score_pairs(tiny_model(tiny_codec()).train(), random_pairs(1), 100)


# ---------------------------------------------------------------------- a chunk of tokens at a time


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
