"""Flash attention over packed tokens equals attention in a padded block."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmtkit.config.model import ModelConfig
from nmtkit.model.attention import CrossAttention, SelfAttention
from nmtkit.model.kernels import unpadded
from nmtkit.packed import Layout, Packed, pack_sequences
from tests.doubles import pretend_flash
from tests.tiny import randomize, tiny_codec, tiny_model

CPU, GPU = torch.device("cpu"), torch.device("cuda")
MODEL_SIZE, HEADS = 6, 2
TOLERANCE = 1e-12
"""In float64 another order of summation changes less than this."""

pairs_of_lengths = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6)
sizes_of_heads = pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (5, 2)])


def shape(sizes: tuple[int, int]) -> ModelConfig:
    """Return the shape of a model with these sizes of keys and values."""
    key_size, value_size = sizes
    return ModelConfig(model_size=MODEL_SIZE, heads=HEADS, key_size=key_size, value_size=value_size)


def with_gradients(output: Tensor, leaves: list[Tensor]) -> Iterator[Tensor]:
    """Yield an output, and the gradients of its sum with a different weight per element."""
    yield output.detach()
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    yield from torch.autograd.grad((output * weights).sum(), leaves)


def assert_same(actual: Iterator[Tensor], expected: Iterator[Tensor]) -> None:
    for own, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(own, other, rtol=0.0, atol=TOLERANCE)


@sizes_of_heads
@pytest.mark.parametrize("is_causal", [False, True])
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_self_attention_equals_attention_in_a_padded_block(
    sizes: tuple[int, int], is_causal: bool, lengths: list[int]
) -> None:
    attention = SelfAttention(shape(sizes))
    randomize(attention)
    x = torch.randn(sum(lengths), MODEL_SIZE, dtype=torch.float64, requires_grad=True)
    leaves = [x, *attention.parameters()]

    def attend() -> Iterator[Tensor]:
        return with_gradients(attention(x, Layout(lengths, CPU), is_causal), leaves)

    with pytest.MonkeyPatch.context() as patch:
        pretend_flash(patch)
        actual = list(attend())
    assert_same(iter(actual), attend())


@sizes_of_heads
@given(lengths=pairs_of_lengths)
def test_cross_attention_equals_attention_in_a_padded_block(
    sizes: tuple[int, int], lengths: list[tuple[int, int]]
) -> None:
    attention = CrossAttention(shape(sizes))
    randomize(attention)
    target, source = ([pair[side] for pair in lengths] for side in (0, 1))
    x, memory = (
        torch.randn(sum(side), MODEL_SIZE, dtype=torch.float64, requires_grad=True)
        for side in (target, source)
    )
    leaves = [x, memory, *attention.parameters()]

    def attend() -> Iterator[Tensor]:
        packed = Packed(memory, Layout(source, CPU))
        return with_gradients(attention(x, Layout(target, CPU), packed), leaves)

    with pytest.MonkeyPatch.context() as patch:
        pretend_flash(patch)
        actual = list(attend())
    assert_same(iter(actual), attend())


@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_model_with_flash_attention_pads_no_block(
    window: int, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(tiny_codec(), key_size=2, window=window, norm=norm).double()
    source = pack_sequences([[3, 4, 5, 6, 7], [8], [9, 10]], CPU)
    target = pack_sequences([[1, 12], [1, 13, 14, 15, 16, 17], [1]], CPU)

    def compute() -> Iterator[Tensor]:
        return with_gradients(
            model.decode(target, model.encode(source)),
            list(model.encoder[0].parameters()),
        )

    expected = list(compute())
    pretend_flash(monkeypatch)
    for name in ("pack", "unpack"):
        monkeypatch.delattr(Layout, name)
    assert_same(compute(), iter(expected))


@pytest.mark.parametrize(
    ("dtype", "sizes", "dropout", "expected"),
    [
        (torch.bfloat16, (64, 64), 0.0, True),
        (torch.float16, (64, 64), 0.0, False),
        (torch.bfloat16, (192, 8), 0.0, True),
        (torch.float32, (64, 64), 0.0, False),
        (torch.bfloat16, (64, 64), 0.1, False),
        (torch.bfloat16, (64, 60), 0.0, True),
        (torch.bfloat16, (60, 60), 0.0, False),
        (torch.bfloat16, (64, 200), 0.0, False),
    ],
)
def test_it_is_supported_on_gpus_for_some_types_and_sizes(
    dtype: torch.dtype,
    sizes: tuple[int, int],
    dropout: float,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unpadded, "_has_kernel", lambda _: True)
    assert unpadded.is_flash_supported(GPU, dtype, sizes, dropout) is expected
    assert not unpadded.is_flash_supported(CPU, dtype, sizes, dropout)


@pytest.mark.parametrize("is_cross", [False, True])
@pytest.mark.parametrize(
    ("longest", "window", "expected"),
    [
        (unpadded.MAX_PADDED_LENGTH, 0, False),
        (unpadded.MAX_PADDED_LENGTH + 1, 0, True),
        (3, 2, True),
    ],
)
def test_batches_of_short_sequences_are_padded_unless_a_window_limits_attention(
    longest: int, window: int, expected: bool, is_cross: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_cross and window:
        pytest.skip("attention to the memory has no window")
    limit = unpadded.MAX_PADDED_LENGTH
    pretend_flash(monkeypatch)
    monkeypatch.setattr(unpadded, "MAX_PADDED_LENGTH", limit)
    computed: list[Tensor] = []

    def attend(query: Tensor, *_: object) -> Tensor:
        computed.append(query)
        return query

    monkeypatch.setattr(unpadded, "attend_flash", attend)
    layout = Layout([2, longest], CPU)
    x = torch.randn(layout.num_tokens, MODEL_SIZE)
    if is_cross:  # the longer side decides
        short, y = Layout([2, 1], CPU), torch.randn(3, MODEL_SIZE)
        CrossAttention(shape((3, 3)))(y, short, Packed(x, layout))
    else:
        SelfAttention(replace(shape((3, 3)), window=window))(x, layout, is_causal=True)
    assert bool(computed) is expected


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Pretend that there is a GPU, and a torch, with flash attention."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    unpadded._has_kernel.cache_clear()
    yield monkeypatch
    unpadded._has_kernel.cache_clear()


@pytest.mark.parametrize(
    ("capability", "expected"), [((7, 5), False), ((8, 0), True), ((8, 6), True), ((12, 0), True)]
)
def test_it_is_supported_from_a_capability_on(
    capability: tuple[int, int], expected: bool, gpu: pytest.MonkeyPatch
) -> None:
    gpu.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert unpadded.is_flash_supported(GPU, torch.bfloat16, (64, 64), 0.0) is expected


def test_it_is_not_supported_by_a_torch_built_without_it(gpu: pytest.MonkeyPatch) -> None:
    gpu.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: False)
    assert not unpadded.is_flash_supported(GPU, torch.bfloat16, (64, 64), 0.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("sizes", [(64, 64), (16, 64), (64, 32)])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "rotary decoder", "memory"])
def test_results_are_equal_on_gpu_and_cpu(kind: str, sizes: tuple[int, int]) -> None:
    model_size = 128
    target, source = [300, 1, 70, 129], [9, 200, 1, 64]
    config = replace(shape(sizes), model_size=model_size, heads=2)
    if kind == "rotary decoder":
        config = replace(config, positions="rotary", qk_norm=True)
    attention = CrossAttention(config) if kind == "memory" else SelfAttention(config)
    x = torch.randn(sum(target), model_size, requires_grad=True)
    memory = torch.randn(sum(source), model_size, requires_grad=True)

    def attend(place: torch.device, dtype: torch.dtype) -> list[Tensor]:
        attention.to(place)
        layout = Layout(target, place)
        with torch.autocast(place.type, dtype, enabled=dtype != torch.float32):
            if isinstance(attention, CrossAttention):
                packed = Packed(memory.to(place), Layout(source, place))
                output = attention(x.to(place), layout, packed)
            else:
                output = attention(x.to(place), layout, kind.endswith("decoder"))
        leaves = [x, memory] if kind == "memory" else [x]
        weights = torch.linspace(-1, 1, output.numel()).view_as(output).to(place)
        gradients = torch.autograd.grad((output.float() * weights).sum(), leaves)
        return [output.float().cpu(), *gradients]

    assert unpadded.is_flash_supported(GPU, torch.bfloat16, sizes, 0.0)
    pairs = zip(attend(GPU, torch.bfloat16), attend(CPU, torch.float32), strict=True)
    for actual, expected in pairs:
        # bfloat16 has 8 bits, and gradients are sums of some tens of such products.
        error = (actual - expected).abs().max() / expected.abs().max()
        assert error.item() < 2**-5


@pytest.mark.thorough
def test_a_process_that_translates_on_a_cpu_does_not_import_the_compiler() -> None:
    program = """
import sys
from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.translator import Translator
from tests.tiny import tiny_codec, tiny_model
from tests.translating import translate
codec = tiny_codec()
(line,) = translate(Translator([tiny_model(codec)], codec, TranslateRecipe(), print), ["a b"])
assert line
print("torch._dynamo" in sys.modules)"""
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert found.stdout.strip() == b"False"
