"""Pictures as PNG, by resvg: it shapes every script, and needs nothing of the system but fonts.

resvg is optional (`nmtkit[plot]`); this module alone knows it.
"""

import re

from nmtkit.errors import ConfigError

_ZOOM = 3
"""A pixel of the drawing, 1/96 inch, becomes as many: 288 a inch, which is enough for print."""


_MAX_PIXELS = 100_000_000
"""Of four bytes each. resvg does not ask whether there is memory for them: it ends the process."""

_SIZE = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')


def require_png() -> None:
    """Raise ConfigError unless resvg is installed."""
    try:
        import resvg_py  # noqa: F401
    except ImportError:
        raise ConfigError(
            "format (png): the package resvg-py is not installed; run `pip install "
            "'nmtkit[plot]'`, or take --format svg [view.format]"
        ) from None


def png(svg: str) -> bytes:
    """Return an SVG file, which begins with its size, as a PNG file.

    `require_png` has found the library.

    Raises:
        ConfigError: the picture would be too large.
    """
    size = _SIZE.match(svg)
    assert size is not None, f"no width and height in {svg[:100]!r}"
    width, height = (_ZOOM * int(number) for number in size.groups())
    if width * height > _MAX_PIXELS:
        raise ConfigError(
            f"format (png): the picture has {width:,} x {height:,} pixels, more than "
            f"{_MAX_PIXELS:,}; shorten the line, or take --format svg [view.format]"
        )
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_ZOOM))
