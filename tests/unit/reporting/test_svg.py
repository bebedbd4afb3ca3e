import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.reporting.page import package_file
from nmtkit.reporting.svg import Axis, Curve, Plot, draw, fit_axis
from tests.unit.reporting.builders import HOSTILE

HEIGHTS = st.lists(st.floats(-1e100, 1e100) | st.just(math.nan) | st.just(math.inf), max_size=80)
ROUNDED = 0.05
"""Pixels are written to a tenth."""

Element = ElementTree.Element


def plot_of(*heights: Sequence[float], from_zero: bool = False) -> Plot:
    curves = [
        Curve(f"run {number}", [(100 * update, height) for update, height in enumerate(one, 1)])
        for number, one in enumerate(heights)
    ]
    return Plot("Loss", curves, from_zero)


def parsed(plot: Plot) -> Element:
    return ElementTree.fromstring(draw(plot))


def curves_of(drawn: Element) -> list[Element]:
    """Return the groups of curves, which follow the frame; those of the legend come before."""
    children = list(drawn)
    (frame,) = (index for index, child in enumerate(children) if child.tag == "rect")
    return children[frame + 1 :]


def lines_of(curve: Element) -> list[list[tuple[float, float]]]:
    (path,) = curve.findall("path")
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", line)]
        for line in path.attrib["d"].split("M")[1:]
    ]


def places_of(curve: Element) -> Iterator[tuple[float, float]]:
    for line in lines_of(curve):
        yield from line
    for dot in curve.findall("circle"):
        yield float(dot.attrib["cx"]), float(dot.attrib["cy"])


def texts_of(drawn: Element) -> list[str]:
    return [element.text or "" for element in drawn.iter("text")]


@given(st.lists(HEIGHTS, min_size=1, max_size=4), st.booleans())
def test_every_point_lies_within_the_frame(heights: list[list[float]], from_zero: bool) -> None:
    heights[0].append(1.0)
    drawn = parsed(plot_of(*heights, from_zero=from_zero))
    (frame,) = drawn.findall("rect")
    left, top, width, height = (float(frame.attrib[name]) for name in ("x", "y", "width", "height"))
    places = [place for curve in curves_of(drawn) for place in places_of(curve)]
    assert places
    for x, y in places:
        assert left - ROUNDED <= x <= left + width + ROUNDED
        assert top - ROUNDED <= y <= top + height + ROUNDED


@given(HEIGHTS)
def test_every_finite_point_is_drawn_and_no_other(heights: list[float]) -> None:
    heights.append(1.0)
    (curve,) = curves_of(parsed(plot_of(heights)))
    num_finite = sum(map(math.isfinite, heights))
    assert sum(map(len, lines_of(curve))) == num_finite


def test_higher_values_are_drawn_higher_and_later_ones_further_right() -> None:
    (curve,) = curves_of(parsed(plot_of([3.0, 1.0, 2.0])))
    ((first, second, third),) = lines_of(curve)
    assert first[0] < second[0] < third[0]
    assert first[1] < third[1] < second[1]


def test_a_value_that_is_not_finite_is_a_gap_and_an_isolated_point_a_dot() -> None:
    heights = [1.0] * 100
    heights[30] = heights[60] = math.nan
    heights[62] = math.inf
    (curve,) = curves_of(parsed(plot_of(heights)))
    assert [len(line) for line in lines_of(curve)] == [30, 29, 1, 37]
    (dot,) = curve.findall("circle")
    assert (float(dot.attrib["cx"]), float(dot.attrib["cy"])) == lines_of(curve)[2][0]


@given(HEIGHTS)
def test_a_curve_has_the_values_of_the_points_of_its_line(heights: list[float]) -> None:
    heights.append(1.0)
    (curve,) = curves_of(parsed(plot_of(heights)))
    points = [place for line in lines_of(curve) for place in line]
    xs, ys = (curve.attrib[name].split(" ") for name in ("data-x", "data-y"))
    assert len(points) == len(xs) == len(ys)
    finite = [(100 * n, y) for n, y in enumerate(heights, 1) if math.isfinite(y)]
    assert [float(x.replace(",", "")) for x in xs] == [x for x, _ in finite]
    assert [float(y.replace(",", "")) for y in ys] == pytest.approx([y for _, y in finite], 1e-4)


def test_curves_differ_by_colour_and_dashes() -> None:
    curves = curves_of(parsed(plot_of(*([1.0, 2.0],) * 30)))
    looks = [(one.attrib["class"], one.attrib["stroke-dasharray"]) for one in curves]
    assert len(set(looks)) == 30
    assert len({dashes for _, dashes in looks[:5]}) == len({name for name, _ in looks[:5]}) == 5


def test_every_colour_of_a_curve_is_given_for_light_and_for_dark() -> None:
    used = {
        name
        for curve in curves_of(parsed(plot_of(*([1.0],) * 30)))
        for name in curve.attrib["class"].split()
        if name.startswith("color-")
    }
    light, dark = package_file("nmtkit.reporting", "plot.css").split(
        "@media (prefers-color-scheme: dark)"
    )
    for sheet in (light, dark):
        colours = dict(re.findall(r"\.(color-\d+) \{ color: (#[0-9a-f]{6}); \}", sheet))
        assert colours.keys() == used
        assert len(set(colours.values())) == len(used)


def test_a_run_keeps_its_colour_if_another_has_no_points() -> None:
    (curve,) = curves_of(parsed(plot_of([], [1.0, 2.0], [math.nan])))
    both = curves_of(parsed(plot_of([2.0], [1.0, 2.0])))
    assert curve.attrib == both[1].attrib


def test_text_is_escaped() -> None:
    name = HOSTILE[:40]  # a longer one is shortened
    drawn = parsed(Plot(HOSTILE, [Curve(name, [(1, 2.0)]), Curve("", [])], False))
    assert drawn.attrib["aria-label"] == HOSTILE
    assert {HOSTILE, name} <= {*texts_of(drawn)}
    assert not list(drawn.iter("script"))


@pytest.mark.parametrize("heights", [[5.0], [0.0], [-3.0, -3.0]])
def test_a_single_value_is_drawn_with_ticks_around_it(heights: list[float]) -> None:
    drawn = parsed(plot_of(heights))
    numbers = [float(text) for text in texts_of(drawn) if re.fullmatch(r"-?[\d.]+", text)]
    assert any(number < heights[0] for number in numbers)
    assert any(number > heights[0] for number in numbers)


def test_named_places_of_the_axis_are_ticks_and_values() -> None:
    names = ["1-10", "11-20", "<61+>"]
    curve = Curve("run", [(0, 1.0), (1, math.nan), (2, 3.0)])
    drawn = parsed(Plot("Score", [curve], False, "words", names))
    assert [one.text for one in drawn.iter("text") if one.get("class") == "category"] == names
    (group,) = curves_of(drawn)
    assert group.attrib["data-x"] == "1-10 <61+>"
    ticks = [float(one.attrib["x"]) for one in drawn.iter("text") if one.text in names]
    (first,), (last,) = lines_of(group)
    assert [first[0], last[0]] == [ticks[0], ticks[2]]
    assert ticks[1] - ticks[0] == pytest.approx(ticks[2] - ticks[1], abs=2 * ROUNDED)


VALUES = st.lists(st.floats(-1e100, 1e100), min_size=1)
PIXELS = (300.0, 20.0)


def axis_of(values: list[float], from_zero: bool) -> Axis:
    return fit_axis(values, PIXELS, from_zero=from_zero)


@given(VALUES, st.booleans())
def test_every_value_has_its_place_between_the_ends(values: list[float], from_zero: bool) -> None:
    axis = axis_of(values, from_zero)
    assert all(20 <= axis.pixel(value) <= 300 for value in values)
    assert (axis.pixel(axis.low), axis.pixel(axis.high)) == PIXELS


@given(VALUES, st.booleans())
def test_larger_values_are_further_along(values: list[float], from_zero: bool) -> None:
    places = [axis_of(values, from_zero).pixel(value) for value in sorted(values)]
    assert places == sorted(places, reverse=True)


@given(VALUES, st.booleans(), st.integers(3, 9))
def test_ticks_are_even_within_the_range_with_distinct_labels(
    values: list[float], from_zero: bool, most: int
) -> None:
    axis = axis_of(values, from_zero)
    ticks = axis.ticks(most, min_step=0)
    margin = (axis.high - axis.low) * 1e-6
    assert all(axis.low - margin <= value <= axis.high + margin for value, _ in ticks)
    assert 1 <= len(ticks) <= most + 1
    assert len({label for _, label in ticks}) == len(ticks)
    steps = [later - earlier for (earlier, _), (later, _) in pairwise(ticks)]
    assert all(abs(step - steps[0]) <= margin for step in steps)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(3, 9))
def test_a_label_reads_as_its_value(first: float, second: float, most: int) -> None:
    axis = axis_of([first, second], from_zero=False)
    for value, label in axis.ticks(most, min_step=0):
        read = float(label.replace(",", ""))
        # What floats leave of a sum of steps.
        assert read == pytest.approx(value, rel=1e-9, abs=(axis.high - axis.low) * 1e-9)


def test_an_axis_may_begin_at_zero_and_does_not_hide_what_is_below() -> None:
    assert axis_of([3.0, 5.0], from_zero=True).low == 0
    assert axis_of([3.0, 5.0], from_zero=False).low > 2
    assert axis_of([-1.0, 5.0], from_zero=True).low < -1


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 20_000.0, ["0", "5,000", "10,000", "15,000", "20,000"]),
        (0.0, 7e-4, ["0", "0.0002", "0.0004", "0.0006"]),
        (0.0, 4e-7, ["0", "1e-7", "2e-7", "3e-7", "4e-7"]),
        (1.9, 3.1, ["2.0", "2.5", "3.0"]),
        (1.2e9, 1.5e9, ["1.2e9", "1.3e9", "1.4e9", "1.5e9"]),
    ],
)
def test_labels_are_round_and_no_longer_than_they_must_be(
    low: float, high: float, labels: list[str]
) -> None:
    axis = Axis(low, high, *PIXELS)
    assert [label for _, label in axis.ticks(4, min_step=0)] == labels


def test_updates_are_not_divided() -> None:
    labels = [label for _, label in Axis(0, 3, *PIXELS).ticks(7, min_step=1)]
    assert labels == ["0", "1", "2", "3"]
