import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.preprocessing import SCRIPTS, FilterConfig
from nmtkit.data.filters import REASONS, HeldOut, drop_reason
from nmtkit.text.scripts import NAMES_OF_SCRIPTS

NOTHING = HeldOut.of(())
LENGTHS = st.integers(1, 30)
CONFIGS = st.builds(
    FilterConfig, max_length=st.integers(2, 30), max_ratio=st.sampled_from([0.0, 1.0, 1.5, 3.0])
)


def by_length(num_source: int, num_target: int, config: FilterConfig) -> str | None:
    return drop_reason(("a", "b"), (num_source, num_target), False, config, NOTHING)


def by_text(source: str, target: str, config: FilterConfig, held_out: HeldOut) -> str | None:
    return drop_reason((source, target), (5, 5), False, config, held_out)


@pytest.mark.parametrize(
    ("num_source", "num_target", "expected"),
    [
        (1, 1, "empty"),
        (1, 11, "empty"),  # also too long, and of any ratio
        (5, 1, "empty"),
        (10, 10, None),
        (11, 10, "too long"),
        (3, 11, "too long"),  # also of a bad ratio
        (2, 4, None),  # 1 word and 3: just 3 times as many
        (2, 5, "ratio"),
        (9, 3, "ratio"),
        (7, 3, None),
    ],
)
def test_a_pair_is_dropped_for_its_first_reason(
    num_source: int, num_target: int, expected: str | None
) -> None:
    config = FilterConfig(max_length=10, max_ratio=3.0)
    assert by_length(num_source, num_target, config) == expected


@given(LENGTHS, LENGTHS, CONFIGS)
def test_sides_are_treated_alike(one: int, other: int, config: FilterConfig) -> None:
    assert by_length(one, other, config) == by_length(other, one, config)


@given(LENGTHS, LENGTHS)
def test_ratio_0_keeps_every_ratio(one: int, other: int) -> None:
    config = FilterConfig(max_length=30, max_ratio=0.0)
    assert by_length(one, other, config) == ("empty" if 1 in (one, other) else None)


def test_every_filter_is_off_unless_it_is_asked_for() -> None:
    assert by_text("same", "same", FilterConfig(), NOTHING) is None
    assert drop_reason(("a", "b"), (2, 2), False, FilterConfig(), NOTHING) is None


def test_a_pair_of_another_script_is_dropped() -> None:
    config = FilterConfig(source_script="latin", target_script="cyrillic")
    privet = "\u043f\u0440\u0438\u0432\u0435\u0442"
    assert by_text("hello", privet, config, NOTHING) is None
    assert by_text(privet, privet, config, NOTHING) == "script"
    assert by_text("hello", "hello", config, NOTHING) == "script"


def test_a_copy_is_dropped_whatever_its_white_space() -> None:
    config = FilterConfig(drop_copies=True)
    assert by_text("www.x.org  a", " www.x.org a", config, NOTHING) == "copy"
    assert by_text("a b", "b a", config, NOTHING) is None


def test_a_pair_with_a_line_of_held_out_text_is_dropped() -> None:
    held_out = HeldOut.of([("a test", "ein Test"), ("b", "c")])
    config = FilterConfig()
    assert by_text(" a  test", "etwas", config, held_out) == "held out"
    assert by_text("something", "ein Test", config, held_out) == "held out"
    assert by_text("ein Test", "a test", config, held_out) is None  # each side has its own


def test_a_repeated_pair_is_dropped() -> None:
    assert drop_reason(("a", "b"), (2, 2), True, FilterConfig(), NOTHING) == "duplicate"


def test_reasons_come_in_their_order() -> None:
    config = FilterConfig(max_ratio=2.0, source_script="greek", drop_copies=True, max_length=9)
    held_out = HeldOut.of([("a", "a"), ("\u03b1", "x")])
    cases = [
        (("a", "a"), (1, 20)),
        (("a", "a"), (2, 20)),
        (("a", "a"), (2, 9)),
        (("a", "a"), (2, 2)),
        (("\u03b1", "\u03b1"), (2, 2)),
        (("\u03b1", "y"), (2, 2)),
        (("\u03b2", "y"), (2, 2)),
    ]
    found = [drop_reason(pair, sizes, True, config, held_out) for pair, sizes in cases]
    assert tuple(found) == REASONS


def test_every_script_that_can_be_chosen_is_known() -> None:
    assert set(SCRIPTS) == {"any", *NAMES_OF_SCRIPTS}
