"""Sections of a report as Markdown or as one HTML page, and the parts that all HTML pages share.

A page has no external files. Its Content-Security-Policy forbids loading anything and running any
other script, whatever its texts contain. It is also well-formed XML.
"""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from nmtkit.errors import ConfigError
from nmtkit.reporting.svg import Plot, draw, xml_text
from nmtkit.storage.disk import creation_errors, disk_errors
from nmtkit.storage.durable import make_folder, replace_file
from nmtkit.storage.json_data import encode

_NOT_IN_SCRIPTS = re.compile("[<>&\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters of JSON that HTML or XML would read as markup, or that XML cannot hold."""


def package_file(package: str, name: str) -> str:
    """Return the text of a file of a package."""
    return (files(package) / name).read_text("utf-8")


def document(
    title: str,
    origin: str,
    package: str,
    names: Sequence[str],
    parts: Mapping[str, str],
    style: str = "",
) -> str:
    """Return a page.

    Args:
        title, origin: plain text, above the body.
        package: the package of the page.
        names: files of the package, or of this one if it lacks them: the template of the body, and
            styles and scripts in order of dependency.
        parts: markup, by its names in the template.
        style: further rules, before those of the files.
    """
    texts = {".html": "", ".css": package_file(__package__, "base.css") + style, ".js": ""}
    for name in names:
        is_own = (files(package) / name).is_file()
        texts[Path(name).suffix] += package_file(package if is_own else __package__, name)
    # XML would read the script as markup, and HTML reads the marks around it as comments.
    script = f"//<![CDATA[\n{texts['.js']}//]]>"
    return Template(package_file(__package__, "page.html")).substitute(
        policy=policy(texts[".css"], script),
        title=xml_text(title),
        origin=xml_text(origin),
        style=texts[".css"],
        body=Template(texts[".html"]).substitute(parts),
        script=script,
    )


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy that permits only this inline style and script."""
    return f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"


def embedded(value: Any) -> str:
    """Return a value as JSON, as the content of a script element in HTML and in XML.

    Markup, separators of lines, and characters that XML cannot hold are escaped, as JSON permits
    within strings, where alone they occur.
    """
    text = json.dumps(encode(value), ensure_ascii=False, separators=(",", ":"))
    return _NOT_IN_SCRIPTS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


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


# Markdown reads underscores only at the ends of a word.
_SPECIAL = re.compile(r"[\\`*<>\[\]~#&]|\b_|_\b")
_MIN_WIDTH = 3  # of the rule below the header


@dataclass(frozen=True)
class Cell:
    """A cell of a table: plain text; the best value is printed bold."""

    text: str
    is_best: bool = False


NOTHING = Cell("-")
"""The cell of an unknown or missing value."""


def cell(value: float | str | None, form: str = "") -> Cell:
    """Return the cell of a value in a format; None = unknown."""
    return NOTHING if value is None else Cell(format(value, form))


@dataclass(frozen=True)
class Table:
    """Headers and rows of cells; the first cell of a row names the row.

    Attributes:
        headers, rows: its cells.
        has_sentences: cells hold sentences, which are left-aligned, and wrapped on a page.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    has_sentences: bool = False


@dataclass(frozen=True)
class Section:
    """A title with a table, sentences, or both below it."""

    title: str
    table: Table | None
    sentences: Sequence[str]


def markdown(sections: Sequence[Section]) -> list[str]:
    """Return sections as lines of Markdown."""
    lines = [line for section in sections for line in _markdown_section(section)]
    return lines[:-1]  # an empty line ends each section


def _markdown_section(section: Section) -> Iterator[str]:
    yield f"## {markdown_text(section.title)}"
    yield ""
    if section.table is not None:
        yield from _markdown_table(section.table)
        yield ""
    if section.sentences:
        yield from (f"- {markdown_text(sentence)}" for sentence in section.sentences)
        yield ""


def _markdown_table(table: Table) -> Iterator[str]:
    """Yield the lines of a table: first column left-aligned, numbers right-aligned."""
    rows = [[_markdown_cell(Cell(header)) for header in table.headers]]
    rows += [[_markdown_cell(cell) for cell in row] for row in table.rows]
    widths = [max(_MIN_WIDTH, *map(len, column)) for column in zip(*rows, strict=True)]
    left, *right = widths
    align, end = (str.ljust, "-") if table.has_sentences else (str.rjust, ":")
    rule = ["-" * left, *("-" * (width - 1) + end for width in right)]
    for first, *others in (rows[0], rule, *rows[1:]):
        padded = [align(text, width) for text, width in zip(others, right, strict=True)]
        yield f"| {' | '.join([first.ljust(left), *padded])} |"


def _markdown_cell(cell: Cell) -> str:
    text = markdown_text(cell.text).replace("|", r"\|")
    return f"**{text}**" if cell.is_best else text


def markdown_text(text: str) -> str:
    """Return a text in which nothing is markup of Markdown."""
    return _SPECIAL.sub(r"\\\g<0>", text)


Figure = Mapping[str, Plot]
"""The same curves over each quantity of the x axis, by its name."""


def page(
    title: str,
    verdict: str,
    origin: str,
    overview: Sequence[Section],
    figures: Sequence[Figure],
    details: Sequence[Section],
) -> str:
    """Return a page: title, verdict, origin, overview sections, figures, detail sections.

    All figures have plots over the quantities of report.html, of which the reader chooses one.
    """
    parts = {
        "verdict": xml_text(verdict),
        "overview": "\n".join(map(_section, overview)),
        "figures": "\n".join(map(_figure, figures)),
        "details": "\n".join(map(_section, details)),
    }
    names = ("report.html", "report.css", "plot.css", "report.js")
    return document(title, origin, __package__, names, parts)


def _figure(figure: Figure) -> str:
    plots = (
        f'<div class="by-{name}">\n{draw(plot)}\n<output></output></div>'
        for name, plot in figure.items()
    )
    return "\n".join(["<figure>", *plots, "</figure>"])


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.table is not None:
        parts.append(table_element(section.table))
    if section.sentences:
        parts += ["<ul>", *(f"<li>{escape(one)}</li>" for one in section.sentences), "</ul>"]
    return "\n".join(["<section>", *parts, "</section>"])


def table_element(table: Table) -> str:
    """Return a table in a box in which it scrolls."""
    header = _row("th", map(escape, table.headers))
    rows = [_row("td", map(_cell, row)) for row in table.rows]
    parts = [f"<thead>{header}</thead>", "<tbody>", *rows, "</tbody>"]
    kind = ' class="sentences"' if table.has_sentences else ""
    return "\n".join([f'<div class="wide"><table{kind}>', *parts, "</table></div>"])


def _row(element: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{element}>{cell}</{element}>" for cell in cells) + "</tr>"


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    return f"<strong>{text}</strong>" if cell.is_best else text
