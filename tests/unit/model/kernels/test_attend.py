"""All kernels give the same, from joined and from separate projections."""

import pytest
import torch
from torch import Tensor

from nmtkit.model.kernels import padded, unpadded
from nmtkit.model.kernels.attend import Projection, attend, attention_weights
from nmtkit.model.kernels.unpadded import CAUSAL, FULL, Window
from nmtkit.packed import Layout
from tests.doubles import pretend_flash
from tests.unit.model.tensors import assert_same

CPU = torch.device("cpu")
HEADS, KEY_SIZE, VALUE_SIZE = 2, 3, 4
SIZES = (HEADS * KEY_SIZE, HEADS * KEY_SIZE, HEADS * VALUE_SIZE)
LENGTHS = [7, 1, 5]

windows = pytest.mark.parametrize(
    "window", [FULL, CAUSAL, Window(2, 2), Window(3, 0)], ids=["all", "causal", "near", "last"]
)


def joint_projection(lengths: list[int] = LENGTHS) -> Projection:
    values = torch.randn(sum(lengths), sum(SIZES), dtype=torch.float64, requires_grad=True)
    return Projection(values, Layout(lengths, CPU), SIZES)


@windows
def test_projections_may_be_joined_or_separate(window: Window) -> None:
    joint = joint_projection()
    query, key_value = joint.values.split([SIZES[0], sum(SIZES[1:])], -1)
    separate = [
        Projection(query, joint.layout, SIZES[:1]),
        Projection(key_value, joint.layout, SIZES[1:]),
    ]
    expected = attend([joint], HEADS, window, 0.0)
    actual = attend(separate, HEADS, window, 0.0)
    assert_same(actual, expected)
    weights = torch.randn_like(expected)
    gradients = [
        torch.autograd.grad((context * weights).sum(), joint.values)[0]
        for context in (actual, expected)
    ]
    assert_same(*gradients)
    rows = [
        joint.layout.pack(attention_weights(one, HEADS, window).transpose(1, 2))
        for one in (separate, [joint])
    ]
    assert_same(*rows)


@windows
def test_flash_attention_receives_the_same_sequences_and_window(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint = joint_projection()
    expected = attend([joint], HEADS, window, 0.0)
    pretend_flash(monkeypatch)
    monkeypatch.delattr(padded, "attend")  # the other kernels need it
    assert_same(attend([joint], HEADS, window, 0.0), expected)


def refuse(*_: object) -> Tensor:
    raise AssertionError("this kernel must not be used")


@pytest.mark.parametrize(
    ("window", "other"),
    [
        (CAUSAL, "attend_in_window"),
        (FULL, "attend_in_window"),
        (Window(1, 1), "attend_flash"),
        (CAUSAL, "attend_flash"),
    ],
)
def test_a_cpu_uses_blocks_for_limited_windows_only_and_never_flash_attention(
    window: Window, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpadded, other, refuse)
    assert attend([joint_projection()], HEADS, window, 0.0).shape == (sum(LENGTHS), SIZES[2])


def test_a_window_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Layout, "unpack")
    attend([joint_projection()], HEADS, Window(1, 1), 0.0)


def test_flash_attention_is_not_used_with_dropout_of_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend_flash(monkeypatch)
    monkeypatch.setattr(unpadded, "attend_flash", refuse)
    for window in (CAUSAL, Window(1, 1)):
        attend([joint_projection()], HEADS, window, 0.1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_attention_within_a_window_is_equal_on_gpu_and_cpu(
    is_causal: bool, dtype: torch.dtype
) -> None:
    lengths, device = [300, 1, 70, 129], torch.device("cuda")
    window = Window(49, 0) if is_causal else Window(25, 25)
    leaf = torch.randn(sum(lengths), 3 * HEADS * 64).to(dtype).requires_grad_()
    weights = torch.randn(sum(lengths), HEADS * 64)

    def compute(place: torch.device, kind: torch.dtype) -> list[Tensor]:
        joint = Projection(leaf.to(place, kind), Layout(lengths, place), 3 * (HEADS * 64,))
        context = attend([joint], HEADS, window, 0.0)
        total = (context.float() * weights.to(place)).sum()
        return [context.float().cpu(), torch.autograd.grad(total, leaf)[0].float()]

    # bfloat16 has 8 bits, and gradients are sums of some tens of such products.
    tolerance = 2**-5 if dtype == torch.bfloat16 else 1e-4
    pairs = zip(compute(device, dtype), compute(CPU, torch.float32), strict=True)
    for actual, expected in pairs:
        error = (actual - expected).abs().max() / expected.abs().max()
        assert error.item() < tolerance
