"""A report as one HTML page without external files.

The page is also well-formed XML.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from nmtkit.reporting.document import Cell, Section, Table
from nmtkit.reporting.html import base_style, package_file, policy
from nmtkit.reporting.svg import Plot, draw
from nmtkit.reporting.svg import style as plot_style

Figure = Mapping[str, Plot]
"""The same curves over each quantity of the x axis, by its name."""


def page(
    title: str,
    origin: str,
    overview: Sequence[Section],
    figures: Sequence[Figure],
    details: Sequence[Section],
) -> str:
    """Return a page: title, origin, overview sections, figures, detail sections.

    All figures have plots over the same quantities. The reader chooses one of them.
    """
    quantities = list(figures[0]) if figures else []
    style = base_style() + package_file(__package__, "report.css") + plot_style()
    style += "".join(map(_choice_rule, quantities))
    # XML would read the script as markup, and HTML reads the marks around it as comments.
    script = f"//<![CDATA[\n{package_file(__package__, 'report.js')}//]]>"
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8"/>',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(style, script))}"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="origin">{escape(origin)}</p>',
        *map(_section, overview),
        "<section>",
        "<h2>Curves</h2>",
        *_choice(quantities),
        '<div class="plots">',
        *map(_figure, figures),
        "</div>",
        "</section>",
        *map(_section, details),
        f'<script type="module">{script}</script>',
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _choice(quantities: Sequence[str]) -> list[str]:
    """Return the choice of the x axis, which style alone puts into effect."""
    inputs = []
    for number, name in enumerate(quantities):
        checked = ' checked="checked"' if number == 0 else ""
        control = f'<input type="radio" name="x" id="by-{name}"{checked}/>'
        inputs.append(f"<label>{control}<span>{name}</span></label>")
    legend = "<legend>Horizontal axis</legend>"
    return ["<form><fieldset>", legend, *inputs, "</fieldset></form>"] if inputs else []


def _choice_rule(name: str) -> str:
    """Return the rule that hides the plots over other quantities."""
    return f"body:has(#by-{name}:checked) figure > div:not(.by-{name}) {{ display: none; }}\n"


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
