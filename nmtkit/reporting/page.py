"""A report as one HTML page without scripts or external files.

The page is also well-formed XML. Its Content-Security-Policy forbids loading anything.
"""

from collections.abc import Iterable, Sequence
from html import escape

from nmtkit.reporting.document import Cell, Section, Table
from nmtkit.reporting.svg import PALETTE, Plot, draw, style
from nmtkit.version import __version__

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """\
body {
  max-width: 84rem; margin: 0 auto; padding: 2rem 1.5rem 4rem;
  background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 0.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 0.75rem; }
.origin { color: var(--muted); margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.35rem 0.7rem; text-align: right; max-width: 16rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0.25rem; }
th { color: var(--muted); border-bottom: 2px solid var(--line); vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); white-space: nowrap; }
th, td:first-child { white-space: normal; overflow-wrap: break-word; }
.sentences th, .sentences td { text-align: left; white-space: normal; max-width: none; }
tbody tr:hover { background: var(--raised); }
ul { margin: 0; padding-left: 1.2rem; max-width: 64rem; }
.wide + ul { margin-top: 0.75rem; color: var(--muted); font-size: 0.9em; }
.plots {
  display: grid; gap: 1.25rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
}
figure { margin: 0; padding: 0.75rem; border: 1px solid var(--line); border-radius: 8px; }
"""


def page(
    title: str, overview: Sequence[Section], plots: Sequence[Plot], details: Sequence[Section]
) -> str:
    """Return a page: title, overview sections, plots, detail sections."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8"/>',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<title>{escape(title)}</title>",
        f"<style>\n{PALETTE}{_STYLE}{style()}\n</style>",
        "</head>",
        "<body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="origin">nmtkit {__version__}</p>',
        *map(_section, overview),
        "<section>",
        "<h2>Curves</h2>",
        '<div class="plots">',
        *(f"<figure>\n{draw(plot)}\n</figure>" for plot in plots),
        "</div>",
        "</section>",
        *map(_section, details),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.table is not None:
        parts.append(_table(section.table))
    if section.sentences:
        parts += ["<ul>", *(f"<li>{escape(one)}</li>" for one in section.sentences), "</ul>"]
    return "\n".join(["<section>", *parts, "</section>"])


def _table(table: Table) -> str:
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
