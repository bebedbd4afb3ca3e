import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nmtkit.config.model import AligningAttention, ModelConfig
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.symbols import BOS_ID, EOS_ID

CPU = torch.device("cpu")
VOCABULARY = 19
TINY = ModelConfig(
    encoder_layers=2,
    decoder_layers=2,
    model_size=16,
    feed_forward_size=24,
    heads=4,
    max_positions=64,
)
SHAPES = {
    "post": TINY,
    "pre": replace(TINY, norm="pre"),
    "learned": replace(TINY, positions="learned"),
    "rotary, QK-norm": replace(TINY, positions="rotary", qk_norm=True),
    "rotary, window": replace(TINY, positions="rotary", key_size=6, value_size=5, window=4),
    "unequal sizes": replace(TINY, key_size=3, value_size=5),
    "untied": replace(TINY, tie_embeddings=False),
    "silu, output bias": replace(TINY, activation="silu", output_bias=True),
    "window": replace(TINY, window=4),
    "swiglu": replace(TINY, activation="swiglu"),
    "QK-norm, squared ReLU": replace(TINY, qk_norm=True, activation="squared-relu"),
}
SOURCES = [[3, 4, 5, EOS_ID], [6, EOS_ID], [7, 8, 9, 10, 11, 12, EOS_ID], [EOS_ID], [9, 4, EOS_ID]]
TARGETS = [[BOS_ID, 5, 3], [BOS_ID, 5, 6, 7, 8], [BOS_ID], [BOS_ID, 18, 17], [BOS_ID, 4]]

shapes = pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES.keys())


def make(config: ModelConfig, dtype: torch.dtype) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(config, VOCABULARY, VOCABULARY, is_shared=True).to(dtype).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:  # biases and norms: forgetting one changes the result
            nn.init.normal_(parameter, mean=0.5, std=0.5)
    return model


def logits_of(model: Transformer, sources: list[list[int]], targets: list[list[int]]) -> Tensor:
    target = pack_sequences(targets, CPU)
    hidden = model.decode(target, model.encode(pack_sequences(sources, CPU)))
    return model.logits(hidden)


@pytest.mark.sampled(every=3)
@shapes
@pytest.mark.parametrize("dtype", [None, torch.float32])
def test_narrowed_logits_equal_full_logits(config: ModelConfig, dtype: torch.dtype | None) -> None:
    model = make(config, torch.float32)
    if dtype:
        model.prepare(dtype)
    hidden, entries = torch.randn(2, 3, TINY.model_size), torch.tensor([4, 0, 17])
    narrowed = model.partial_projection(entries)(hidden)
    torch.testing.assert_close(narrowed, model.logits(hidden)[..., entries], rtol=0.0, atol=1e-5)


@shapes
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_a_sentence_alone_scores_as_in_any_batch(
    config: ModelConfig, dtype: torch.dtype, tolerance: float
) -> None:
    model = make(config, dtype)
    together = logits_of(model, SOURCES, TARGETS).log_softmax(-1)
    alone = [
        logits_of(model, [source], [target]).log_softmax(-1)
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(alone), rtol=0.0, atol=tolerance)


def assert_steps_equal_decode(
    model: Transformer, logits: Tensor, sources: list[list[int]], rows: list[list[list[int]]]
) -> None:
    """Compare the logits (B, W, V) of a step with those of decoding each row's prefix alone."""
    for sentence, source in enumerate(sources):
        for row, prefix in enumerate(rows[sentence]):
            expected = logits_of(model, [source], [prefix])[-1]
            torch.testing.assert_close(logits[sentence, row], expected, rtol=0.0, atol=1e-12)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", SHAPES.keys())
@settings(max_examples=8)
@given(st.data())
def test_steps_equal_decode_after_any_expand_reorder_and_keep(
    name: str, data: st.DataObject
) -> None:
    model = make(SHAPES[name], torch.float64)
    sources = data.draw(st.permutations(SOURCES))[: data.draw(st.integers(1, 4))]
    width = data.draw(st.integers(1, 3))
    with torch.inference_mode():
        state = model.start(model.encode(pack_sequences(sources, CPU)))
        rows = [[[BOS_ID]] for _ in sources]
        assert_steps_equal_decode(
            model, model.step(torch.tensor(rows)[:, :, -1], state), sources, rows
        )
        state.expand(width)
        rows = [[list(own[0]) for _ in range(width)] for own in rows]
        for _ in range(data.draw(st.integers(1, 6))):
            kept = sorted(data.draw(st.sets(st.integers(0, len(sources) - 1), min_size=1)))
            state.keep(torch.tensor(kept))
            sources, rows = [sources[s] for s in kept], [rows[s] for s in kept]
            choice = st.tuples(st.integers(0, width - 1), st.integers(0, VOCABULARY - 1))
            chosen = [[data.draw(choice) for _ in range(width)] for _ in sources]
            state.reorder(torch.tensor([[parent for parent, _ in own] for own in chosen]))
            rows = [
                [[*own[parent], token] for parent, token in choices]
                for own, choices in zip(rows, chosen, strict=True)
            ]
            tokens = torch.tensor([[prefix[-1] for prefix in own] for own in rows])
            assert_steps_equal_decode(model, model.step(tokens, state), sources, rows)


@pytest.mark.parametrize("window", [0, 7])
def test_steps_equal_decode_beyond_the_first_capacity(window: int) -> None:
    model = make(replace(TINY, window=window), torch.float64)
    generator = torch.Generator().manual_seed(1)
    sources = SOURCES[:2]
    with torch.inference_mode():
        state = model.start(model.encode(pack_sequences(sources, CPU)))
        state.expand(3)
        rows = [[[BOS_ID]] * 3] * 2
        model.step(torch.full((2, 3), BOS_ID), state)
        for _ in range(60):
            parents = torch.randint(3, (2, 3), generator=generator)
            tokens = torch.randint(VOCABULARY, (2, 3), generator=generator)
            state.reorder(parents)
            logits = model.step(tokens, state)
            rows = [
                [[*rows[s][int(parents[s, w])], int(tokens[s, w])] for w in range(3)]
                for s in range(2)
            ]
        assert_steps_equal_decode(model, logits, sources, rows)


@shapes
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-5), (torch.bfloat16, 8 * 2**-8)])
def test_a_prepared_copy_is_the_prepared_model_and_the_model_trains_on(
    dtype: torch.dtype, most: float, config: ModelConfig
) -> None:
    model, prepared = make(config, torch.float32), make(config, torch.float32)
    prepared.prepare(dtype)
    exact = logits_of(model, SOURCES, TARGETS).detach()
    model.train()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    copied = model.prepared_copy(dtype)
    with torch.inference_mode():
        expected = logits_of(prepared, SOURCES, TARGETS)
        assert torch.equal(logits_of(copied, SOURCES, TARGETS), expected)
    # The logits are the model's, but for rounding: errors of the layers add up to some units of it.
    assert expected.dtype == torch.float32
    error = (expected - exact).abs().max() / exact.abs().max()
    assert error < most
    assert error > 0 or dtype == torch.float32
    assert model.training
    assert not copied.training
    assert copied.output_weight.data_ptr() == model.output_weight.data_ptr()
    logits_of(model, SOURCES, TARGETS).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad, name
        assert torch.equal(parameter, before[name])
    assert all(parameter.grad is None for parameter in copied.parameters())


def test_a_model_prepared_in_bfloat16_projects_to_logits_in_its_own_precision() -> None:
    model, prepared = make(TINY, torch.float32), make(TINY, torch.float32)
    prepared.prepare(torch.bfloat16)
    hidden = torch.randn(5, TINY.model_size)
    torch.testing.assert_close(prepared.logits(hidden), model.logits(hidden), rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("stores_products", [("cuda",), ("cpu",)], ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.25)])
def test_steps_of_a_prepared_model_equal_decode(
    dtype: torch.dtype,
    tolerance: float,
    stores_products: tuple[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nmtkit.model.state.STORES_PRODUCTS", stores_products)
    model = make(SHAPES["pre"], torch.float32)
    model.prepare(dtype)
    prefix = [BOS_ID, 5, 6, 7, 8]
    expected = logits_of(model, SOURCES, [prefix] * len(SOURCES)).view(
        len(SOURCES), len(prefix), -1
    )
    with torch.inference_mode():
        state = model.start(model.encode(pack_sequences(SOURCES, CPU)))
        for place, token in enumerate(prefix):
            logits = model.step(torch.full((len(SOURCES), 1), token), state)
            torch.testing.assert_close(logits[:, 0], expected[:, place], rtol=0.0, atol=tolerance)


@pytest.mark.parametrize(
    ("stores_products", "dtype"), [(("cuda",), torch.float32), (("cpu",), torch.bfloat16)], ids=str
)
def test_a_state_has_the_type_of_products_or_that_of_hidden_vectors(
    stores_products: tuple[str], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmtkit.model.state.STORES_PRODUCTS", stores_products)
    model = make(SHAPES["window"], torch.float32)
    model.prepare(torch.bfloat16)
    with torch.inference_mode():
        state = model.start(model.encode(pack_sequences(SOURCES, CPU)))
        state.expand(20)
        for _ in range(2):  # the storage grows
            logits = model.step(torch.full((len(SOURCES), 20), 5), state)
        new = torch.zeros(len(SOURCES), model.config.heads, 20, model.config.head_sizes[0])
        stored = (*state.append(0, new, new), *state.memory(0))
    assert {one.dtype for one in stored} == {dtype}
    assert logits.dtype == torch.float32


@shapes
def test_a_later_target_token_does_not_change_earlier_logits(config: ModelConfig) -> None:
    model = make(config, torch.float64)
    source, target = [SOURCES[0]], [BOS_ID, 5, 6, 7, 8, 9]
    before = logits_of(model, source, [target])
    for place in range(1, len(target)):
        changed = [*target[:place], 13, *target[place + 1 :]]
        differs = (logits_of(model, source, [changed]) != before).any(1)
        assert differs.tolist() == [other >= place for other in range(len(target))]


def test_every_source_token_is_seen_from_every_target_position() -> None:
    model = make(TINY, torch.float64)
    before = logits_of(model, [SOURCES[0]], [TARGETS[1]])
    for place in range(len(SOURCES[0])):
        changed = [*SOURCES[0][:place], 13, *SOURCES[0][place + 1 :]]
        assert bool((logits_of(model, [changed], [TARGETS[1]]) != before).any(1).all())


def test_a_window_limits_self_attention_and_not_cross_attention() -> None:
    # Two layers with a window of 2 carry a change two positions on; cross-attention has no window.
    model = make(replace(TINY, window=2), torch.float64)
    source, target = SOURCES[2], [BOS_ID, 5, 6, 7, 8, 9]
    memory = model.encode(pack_sequences([source], CPU)).values
    other_memory = model.encode(pack_sequences([[13, *source[1:]]], CPU)).values
    is_changed = (memory != other_memory).any(1).tolist()
    assert is_changed == [place <= 2 for place in range(len(source))]
    before = logits_of(model, [source], [target])
    later = logits_of(model, [source], [[BOS_ID, 13, *target[2:]]])
    assert (before != later).any(1).tolist() == [1 <= place <= 3 for place in range(len(target))]
    assert bool((before != logits_of(model, [[13, *source[1:]]], [target])).any(1).all())


@pytest.mark.parametrize(
    ("ties", "is_shared", "source_is_target", "target_is_output"),
    [(True, True, True, True), (True, False, False, True), (False, True, False, False)],
)
def test_embeddings_are_tied_as_asked(
    ties: bool, is_shared: bool, source_is_target: bool, target_is_output: bool
) -> None:
    model = Transformer(replace(TINY, tie_embeddings=ties), VOCABULARY, VOCABULARY, is_shared)
    source, target = model.source_embedding.tokens, model.target_embedding.tokens
    assert (source.weight is target.weight) == source_is_target
    assert (target.weight is model.output_weight) == target_is_output


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_new_model_predicts_almost_uniformly(norm: str) -> None:
    # Hidden vectors leave a LayerNorm with norm sqrt(D) and are multiplied by weights of variance
    # 1/D. So logits begin with variance one, and the first loss is about log(V) + 1/2.
    config = ModelConfig(
        encoder_layers=2,
        decoder_layers=2,
        model_size=128,
        feed_forward_size=256,
        heads=4,
        norm=norm,
    )
    torch.manual_seed(1)
    model = Transformer(config, 2000, 2000, is_shared=True).eval()
    generator = torch.Generator().manual_seed(2)
    sentences = torch.randint(3, 2000, (20, 10), generator=generator)
    with torch.inference_mode():
        logits = logits_of(model, sentences.tolist(), sentences.roll(1, 0).tolist())
    labels = torch.randint(3, 2000, (200,), generator=generator)
    loss = nn.functional.cross_entropy(logits, labels).item()
    assert logits.std().item() == pytest.approx(1.0, rel=0.15)
    # 200 tokens whose loss has standard deviation one: four standard errors are 0.28.
    assert loss == pytest.approx(math.log(2000) + 0.5, abs=0.35)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_both_stacks_end_with_a_norm(norm: str) -> None:
    # The norms of a new model neither scale nor shift.
    model = Transformer(replace(TINY, norm=norm), VOCABULARY, VOCABULARY, is_shared=True)
    memory = model.eval().encode(pack_sequences(SOURCES, CPU))
    hidden = model.decode(pack_sequences(TARGETS, CPU), memory)
    for output in (memory.values, hidden):
        means, variances = output.mean(-1), output.var(-1, correction=0)
        torch.testing.assert_close(means, torch.zeros_like(means), rtol=0.0, atol=1e-5)
        torch.testing.assert_close(variances, torch.ones_like(means), rtol=0.0, atol=1e-3)


@shapes
def test_every_parameter_receives_a_gradient(config: ModelConfig) -> None:
    model = make(config, torch.float64)
    logits_of(model, SOURCES, TARGETS).log_softmax(-1)[:, EOS_ID].sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert without == []


def test_a_trained_head_comes_before_a_stored_layer_and_that_before_the_last_but_one() -> None:
    found = []
    deep = replace(TINY, decoder_layers=3)
    for config, stored in (
        (replace(deep, alignment_layer=2, alignment_head=3), AligningAttention(0, None, False)),
        (
            replace(deep, alignment_layer=1, full_context_alignment=True),
            AligningAttention(2, None, is_shifted=True),
        ),
        (deep, AligningAttention(2, None, is_shifted=True)),
        (deep, None),
        (replace(deep, decoder_layers=1), None),
    ):
        model = make(config, torch.float32)
        model.stored_aligning_attention = stored
        found.append(model.aligning_attention)
    assert found == [
        AligningAttention(1, 2, is_shifted=False),
        AligningAttention(0, 0, is_shifted=True, sees_target=True),
        AligningAttention(2, None, is_shifted=True),
        AligningAttention(1, None, is_shifted=False),
        AligningAttention(0, None, is_shifted=False),
    ]


@shapes
def test_decoding_by_few_layers_is_that_of_a_model_with_few(config: ModelConfig) -> None:
    model = make(config, torch.float32)
    sources, targets = pack_sequences(SOURCES, CPU), pack_sequences(TARGETS, CPU)
    memory = model.encode(sources)
    whole = model.decode(targets, memory, 2)
    assert torch.equal(whole, model.decode(targets, memory))
    part = model.decode(targets, memory, 1)
    model.decoder = model.decoder[:1]
    assert torch.equal(part, model.decode(targets, memory))


@pytest.mark.parametrize(
    ("own", "product", "tolerance"),
    [
        (torch.float64, torch.float32, 1e-4),
        (torch.float32, torch.bfloat16, 0.1),
        (torch.float32, torch.float32, 1e-4),
    ],
)
def test_qk_norm_computes_in_every_type(
    own: torch.dtype, product: torch.dtype, tolerance: float
) -> None:
    model = make(SHAPES["QK-norm, squared ReLU"], own)
    expected = logits_of(model, SOURCES, TARGETS).detach()
    model.prepare(product)
    found = logits_of(model, SOURCES, TARGETS)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)
