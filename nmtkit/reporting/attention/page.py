"""Sentences as one page of HTML with the script that draws them; it needs nothing from elsewhere.

This module puts together page.html, page.css and *.js of its folder, which it alone reads. A
browser keeps to it that nothing is loaded, and that nothing runs but this script, whatever the
sentences hold.
"""

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template

from nmtkit.reporting.attention.drawing import colour_variables
from nmtkit.reporting.svg import PALETTE
from nmtkit.version import __version__

_SCRIPTS = ("weights.js", "state.js", "lines.js", "matrix.js", "page.js")
"""In the order in which they build on each other."""


def page(title: str, data: str) -> str:
    """Return a page.

    Args:
        title: what the sentences are seen by: the model.
        data: the sentences and what is selected at first, as JSON.
    """
    script = "".join(_file(name) for name in _SCRIPTS)
    style = PALETTE + colour_variables() + _file("page.css")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    return Template(_file("page.html")).substitute(
        policy=policy,
        title=escape(title),
        version=__version__,
        style=style,
        # Of what JSON holds, this alone could end the element.
        data=data.replace("<", "\\u003c"),
        script=script,
    )


def _file(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return how a Content-Security-Policy names an inline script or style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
