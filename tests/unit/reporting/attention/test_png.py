import struct
import sys

import pytest

from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.png import png, require_png

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


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ConfigError) as caught:
        require_png()
    assert str(caught.value) == (
        "format (png): the package resvg-py is not installed; run `pip install 'nmtkit[plot]'`, "
        "or take --format svg [view.format]"
    )
