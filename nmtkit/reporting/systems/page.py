"""The page of `nmtkit score --html`: one file, which a browser shows without a network.

Scores and breakdowns are markup with plots; the script shows n-grams and sentences of two systems.
The page is also well-formed XML.
"""

from collections.abc import Sequence
from string import Template

from nmtkit.evaluation.compare import Comparison
from nmtkit.reporting.html import base_style, embedded, package_file, policy
from nmtkit.reporting.svg import style as plot_style
from nmtkit.reporting.svg_text import visible_text, xml_text
from nmtkit.reporting.systems.data import page_data
from nmtkit.reporting.systems.figures import figure_element, frequency_figure, length_figures
from nmtkit.reporting.systems.names import short_names
from nmtkit.reporting.systems.overview import notes, overview
from nmtkit.units import counted
from nmtkit.version import __version__

_SCRIPTS = ("words.js", "state.js", "ngrams.js", "histogram.js", "sentences.js", "page.js")
"""In order of dependency."""


def page(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    texts = comparison.texts
    labels = short_names([system.name for system in texts.systems])
    plots, own = package_file("nmtkit.reporting", "report.js"), map(_file, _SCRIPTS)
    # XML would read the script as markup, and HTML reads the marks around it as comments.
    script = f"//<![CDATA[\n{plots}{''.join(own)}//]]>"
    style = base_style() + plot_style() + _file("page.css")
    num_lines = len(texts.references[0].lines)
    evaluation = comparison.evaluation
    signatures = [f"{scores[0].name}: {scores[0].signature}" for scores in evaluation.scores]
    signatures.append(f"{comparison.line_metric.name} of a sentence: {comparison.line_signature}")
    title = f"{counted(len(labels), 'systems')} on {_last(texts.references[0].name)}"
    return Template(_file("page.html")).substitute(
        policy=policy(style, script),
        title=_text(title),
        origin=_text(f"{counted(num_lines, 'sentences')} \u00b7 nmtkit {__version__}"),
        style=style,
        overview=overview(evaluation, labels, _lengths(comparison)),
        notes=_text(" ".join(notes(evaluation, labels[0]))),
        figures="\n".join(map(figure_element, length_figures(comparison, labels))),
        frequency=figure_element(frequency_figure(comparison, labels)),
        counted=_text(_last(comparison.counted_text)),
        metric=_text(comparison.line_metric.name),
        files=_files(comparison, labels),
        signatures="".join(f"<li>{_text(one)}</li>" for one in signatures),
        data=embedded(page_data(comparison, labels).to_json()),
        script=script,
    )


def _lengths(comparison: Comparison) -> list[float]:
    """Return each system's words per word of the reference."""
    return [
        sum(one.num_translated for one in classes) / max(1, sum(one.num_words for one in classes))
        for classes in comparison.frequencies
    ]


def _files(comparison: Comparison, labels: Sequence[str]) -> str:
    """Return the list of all texts by their names on the page."""
    texts = comparison.texts
    named = [*zip(labels, texts.systems, strict=True)]
    named += [("reference", one) for one in texts.references]
    if comparison.texts.source is not None:
        named.append(("source", comparison.texts.source))
    names = [(label, text.name) for label, text in named]
    names.append(("word frequencies", comparison.counted_text))
    return "".join(f"<dt>{_text(label)}</dt><dd>{_text(name)}</dd>" for label, name in names)


def _last(name: str) -> str:
    return visible_text(name).rpartition("/")[2]


def _text(text: str) -> str:
    return xml_text(text)


def _file(name: str) -> str:
    return package_file(__package__, name)
