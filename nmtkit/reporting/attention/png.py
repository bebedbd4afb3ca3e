"""Pictures as PNG, by resvg: it shapes every script, and needs nothing of the system but fonts."""

from nmtkit.errors import ConfigError

_ZOOM = 3
"""A pixel of the drawing, 1/96 inch, becomes as many: 288 a inch, which is enough for print."""


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
    """Return an SVG file as a PNG file; `require_png` has found the library."""
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_ZOOM))
