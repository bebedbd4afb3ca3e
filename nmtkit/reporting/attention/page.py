"""The interactive HTML page of attention weights, without external files.

A module of its own: it alone reads page.html, page.css and *.js of its folder.

The Content-Security-Policy of the page forbids loading anything and running any other script,
whatever the sentences contain.
"""

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template

from nmtkit.reporting.attention.drawing import color_variables
from nmtkit.reporting.svg import PALETTE
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
    style = PALETTE + color_variables() + _file("page.css")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    return Template(_file("page.html")).substitute(
        policy=policy,
        title=escape(title),
        version=__version__,
        style=style,
        # Only "<" could end the script element.
        data=data.replace("<", "\\u003c"),
        script=script,
    )


def _file(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the source expression of an inline script or style for the policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
