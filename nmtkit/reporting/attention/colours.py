"""A colour a head: on white, and on black.

The first five are after Okabe and Ito, "Color Universal Design" (2008), which colour-blind readers
can tell apart; heads are numbered as well wherever that matters.
"""

_ON_WHITE = (
    "#0072b2", "#d55e00", "#009e73", "#b0558a", "#a07d00", "#6a4fc9", "#8c564b", "#c81e3a",
    "#4a9fd8", "#ec8a3c", "#57a83f", "#d264b6", "#7c8c00", "#8d79de", "#917a72", "#159999",
)  # fmt: skip
_ON_BLACK = (
    "#56b4e9", "#f28c4a", "#2fc79a", "#e0a0c8", "#e3c94a", "#a996ff", "#c99a8b", "#ff6b7d",
    "#9fd4f5", "#ffc08f", "#98e08b", "#ffb3e1", "#c6d64f", "#cfc4ff", "#d8c3bc", "#5fdcdc",
)  # fmt: skip


def colour(head: int) -> str:
    """Return the colour on white of a head, from 1; beyond the sixteenth they repeat."""
    return _ON_WHITE[(head - 1) % len(_ON_WHITE)]


def colour_variables() -> str:
    """Return a style sheet that names the colours --head-1 and so on, and tells their number."""
    light, dark = (
        "".join(f"--head-{number}: {name}; " for number, name in enumerate(colours, 1))
        for colours in (_ON_WHITE, _ON_BLACK)
    )
    lines = [
        f":root {{ --num-head-colours: {len(_ON_WHITE)}; {light}}}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}",
    ]
    return "\n".join(lines) + "\n"
