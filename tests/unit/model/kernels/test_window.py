import pytest

from nmtkit.model.kernels.window import CAUSAL, FULL, Window, self_attention_window


@pytest.mark.parametrize(
    ("size", "is_causal", "longest", "expected"),
    [
        (0, False, 10**6, FULL),
        (0, True, 10**6, CAUSAL),
        (1, False, 2, Window(0, 0)),
        (1, True, 2, Window(0, 0)),
        (5, False, 4, Window(2, 2)),
        (4, False, 4, Window(2, 2)),
        (4, True, 5, Window(3, 0)),
        (5, False, 3, FULL),
        (4, True, 4, CAUSAL),
        (1, False, 1, FULL),
    ],
)
def test_a_window_is_half_on_either_side_or_causal(
    size: int, is_causal: bool, longest: int, expected: Window
) -> None:
    window = self_attention_window(size, is_causal, longest)
    assert window == expected
    assert window.is_limited is (expected not in (FULL, CAUSAL))
