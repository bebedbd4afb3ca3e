import re
import struct
import sys

import pytest

from nmtkit.config.attention import SelectionConfig
from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.drawing import draw
from nmtkit.reporting.attention.png import png, require_png
from nmtkit.reporting.attention.selection import select
from tests.messages import refuses
from tests.unit.reporting.attention.builders import example_sentence

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" viewBox="0 0 40 20">'
    '<rect width="40" height="20" fill="#ff0000"/></svg>'
)


def test_a_picture_is_three_times_as_large_as_its_drawing() -> None:
    pytest.importorskip("resvg_py", reason="the extra plot is not installed")
    require_png()
    data = png(SVG)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (120, 60)


@pytest.mark.parametrize(("width", "height"), [(25_000, 24_000), (10, 10_000_000), (33_334, 334)])
def test_a_picture_of_more_than_100_million_pixels_is_refused_before_it_is_drawn(
    width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # resvg would end the process, or take all memory.
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    size = f'width="{width}" height="{height}"'
    keys = f"format png {3 * width:,} {3 * height:,} 100,000,000; --format svg view.format"
    with refuses(ConfigError, keys):
        png(f'<svg xmlns="http://www.w3.org/2000/svg" {size}><title>a\nb</title></svg>')


def test_the_size_is_read_from_the_drawing() -> None:
    pytest.importorskip("resvg_py", reason="the extra plot is not installed")
    svg = draw(select(example_sentence(), SelectionConfig()), "matrix")
    width, height = map(int, re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0])
    assert struct.unpack(">II", png(svg)[16:24]) == (3 * width, 3 * height)


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with refuses(ConfigError, "format png resvg-py; nmtkit[plot] --format svg view.format"):
        require_png()
