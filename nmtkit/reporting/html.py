"""The parts that HTML pages share: a style sheet, files of this package, and a policy.

The Content-Security-Policy of a page forbids loading anything and running any other script,
whatever its texts contain.
"""

import base64
import hashlib
import os
import re
from importlib.resources import files
from pathlib import Path

from nmtkit.errors import ConfigError
from nmtkit.reporting.svg import PALETTE
from nmtkit.storage.disk_errors import creation_errors, disk_errors
from nmtkit.storage.durable import make_folder, replace_file

_NOT_IN_SCRIPTS = re.compile("[<>&\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters of JSON that HTML or XML would read as markup, or that XML cannot hold."""


def package_file(package: str, name: str) -> str:
    """Return the text of a file of a package."""
    return (files(package) / name).read_text("utf-8")


def base_style() -> str:
    """Return the style sheet of all pages: colours, texts, tables, and controls as keys."""
    return PALETTE + package_file(__package__, "base.css")


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy that permits only this inline style and script."""
    return f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"


def embedded(data: str) -> str:
    """Return JSON as the content of a script element, in HTML and in XML.

    Markup, separators of lines, and characters that XML cannot hold are escaped, as JSON permits
    within strings, where alone they occur.
    """
    return _NOT_IN_SCRIPTS.sub(lambda match: f"\\u{ord(match[0]):04x}", data)


def check_is_free(path: Path, overwrite: bool) -> None:
    """Raise ConfigError if a page exists and may not be replaced."""
    with disk_errors(path):
        if os.path.lexists(path) and not overwrite:
            raise ConfigError(f"{path}: already exists; choose another name or add --overwrite")


def write_page(path: Path, page: str) -> None:
    """Write a page; its folder is created if missing.

    Raises:
        ConfigError: the path is impossible.
        ResourceError: the file cannot be written.
    """
    parent = path.absolute().parent
    with disk_errors(path):
        if not parent.is_dir():
            make_folder(parent)
    with creation_errors(path):
        replace_file(path, page.encode())


def _hash(text: str) -> str:
    """Return the source expression of an inline script or style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
