"""What HTML pages share: a style sheet, files of this package, and a policy.

The Content-Security-Policy of a page forbids loading anything and running any other script,
whatever its texts contain.
"""

import base64
import hashlib
from importlib.resources import files

from nmtkit.reporting.svg import PALETTE


def package_file(package: str, name: str) -> str:
    """Return the text of a file of a package."""
    return (files(package) / name).read_text("utf-8")


def base_style() -> str:
    """Return the style sheet of all pages: colours, texts, tables, and controls as keys."""
    return PALETTE + package_file(__package__, "base.css")


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy that permits only this inline style and script."""
    return f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"


def _hash(text: str) -> str:
    """Return the source expression of an inline script or style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
