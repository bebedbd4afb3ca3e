"""Conversion of SVG to PNG by resvg, which shapes every script for which there is a font.

A module of its own: resvg is optional (`nmtkit[plot]`), and only this module imports it.
"""

import re

from nmtkit.errors import ConfigError

_ZOOM = 3
"""PNG pixels per pixel of the drawing (1/96 inch): 288 per inch, enough for print."""

_MAX_PIXELS = 100_000_000
"""Four bytes each. resvg ends the process if memory does not suffice."""

_SIZE = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')


def require_png() -> None:
    """Raise ConfigError unless resvg is installed."""
    try:
        import resvg_py  # noqa: F401
    except ImportError:
        raise ConfigError(
            "format (png): the package resvg-py is not installed; run `pip install "
            "'nmtkit[plot]'`, or use --format svg [view.format]"
        ) from None


def png(svg: str) -> bytes:
    """Convert an SVG file with width and height to a PNG file.

    The caller has checked `require_png`.

    Raises:
        ConfigError: the picture would be too large.
    """
    size = _SIZE.match(svg)
    assert size is not None, f"no width and height in {svg[:100]!r}"
    width, height = (_ZOOM * int(number) for number in size.groups())
    if width * height > _MAX_PIXELS:
        raise ConfigError(
            f"format (png): the picture has {width:,} x {height:,} pixels, more than "
            f"{_MAX_PIXELS:,}; shorten the line, or use --format svg [view.format]"
        )
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_ZOOM))
