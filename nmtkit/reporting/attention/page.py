"""The interactive HTML page of attention weights, without external files.

A module of its own: it alone reads page.html, page.css and *.js of its folder.
"""

from html import escape
from string import Template

from nmtkit.reporting.attention.drawing import color_variables
from nmtkit.reporting.html import base_style, embedded, package_file, policy
from nmtkit.version import __version__

_SCRIPTS = ("weights.js", "state.js", "lines.js", "matrix.js", "page.js")
"""In order of dependency."""


def page(title: str, data: str) -> str:
    """Return a page.

    Args:
        title: the name of the model.
        data: the sentences and the initial selection, as JSON.
    """
    script = "".join(_file(name) for name in _SCRIPTS)
    style = base_style() + color_variables() + _file("page.css")
    return Template(_file("page.html")).substitute(
        policy=policy(style, script),
        title=escape(title),
        version=__version__,
        style=style,
        data=embedded(data),
        script=script,
    )


def _file(name: str) -> str:
    return package_file(__package__, name)
