"""The flow of `nmtkit attention`: lines -> pairs -> sentences -> a page, JSON, or a picture.

The page is of page.html, page.css and the scripts of this folder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from nmtkit.config.schema import AttentionRecipe
from nmtkit.errors import ConfigError, DataError
from nmtkit.reporting.attention.drawing import color_variables, draw, select, without_weights
from nmtkit.reporting.attention.sentences import (
    AttentionExtractor,
    Pair,
    Sentence,
    as_object,
    json_line,
    packed,
    read_pairs,
)
from nmtkit.reporting.page import document, embedded
from nmtkit.runtime.devices import set_up
from nmtkit.storage.model_folder import load_model
from nmtkit.units import counted
from nmtkit.version import __version__


def show(
    path: Path,
    recipe: AttentionRecipe,
    lines: Iterable[str],
    name: str,
    warn: Callable[[str], None],
) -> Iterator[bytes]:
    """Write a model's attention weights in some sentences as a page, a picture or JSON.

    Args:
        path: the folder of a model, a checkpoint or a run.
        recipe: the settings.
        lines: the sentences, as for `read_pairs`; a picture reads them only up to its own.
        name: the name of the input in messages.
        warn: takes one-line warnings.

    Yields:
        the page, the picture, or a line of JSON per sentence, as bytes.

    Raises:
        ConfigError: the selected part does not exist.
        DataError: a line is malformed or too long.
        DamagedError: there is no model, or it is damaged.
    """
    form = recipe.view.format
    extractor = AttentionExtractor(load_model(path, set_up(recipe.runtime)), recipe, warn)
    pairs = read_pairs(lines, recipe.view.input_format, name)
    if form == "json":
        for pair in pairs:
            yield f"{json_line(extractor.extract(pair))}\n".encode()
    elif form == "html":
        yield _page(str(path), recipe, extractor, pairs).encode()
    else:
        yield _picture(recipe, extractor, pairs).encode()


def _picture(recipe: AttentionRecipe, extractor: AttentionExtractor, pairs: Iterator[Pair]) -> str:
    """Draw the selected sentence as SVG."""
    wanted = recipe.selection.sentence
    first = list(islice(pairs, wanted))
    if len(first) < wanted:
        raise _no_such_sentence(wanted, len(first))
    selection = select(extractor.extract(first[-1]), recipe.selection)
    return draw(selection, _drawing_of(recipe))


def _page(
    title: str, recipe: AttentionRecipe, extractor: AttentionExtractor, pairs: Iterable[Pair]
) -> str:
    """Return the page of all sentences, which shows the selection first."""
    limit = recipe.view.max_weights
    sentences: list[Sentence] = []
    num_weights = 0
    for pair in pairs:
        sentences.append(extractor.extract(pair))
        num_weights += sentences[-1].num_weights
        if num_weights > limit:
            raise DataError(
                f"{pair.where}: {len(sentences)} sentences have {num_weights:,} attention weights, "
                f"more than {limit:,}; give fewer lines, or raise --max-weights"
            )
    wanted = recipe.selection.sentence
    if len(sentences) < wanted:
        raise _no_such_sentence(wanted, len(sentences))
    selection = select(sentences[wanted - 1], recipe.selection)
    first_view = {
        "sentence": str(wanted),
        "attention": selection.kind,
        "layer": str(selection.layer),
        "heads": ",".join(map(str, selection.heads)),
        "drawing": _drawing_of(recipe),
        "between": "words" if recipe.selection.join_subwords else "subwords",
        "word": "" if selection.word is None else f"row-{selection.word + 1}",
    }
    return page(title, first_view, sentences)


def _drawing_of(recipe: AttentionRecipe) -> str:
    """Return the kind of drawing: a page begins with the one that shows all heads legibly."""
    if recipe.selection.drawing != "auto":
        return recipe.selection.drawing
    return "lines" if recipe.view.format == "svg" or recipe.selection.word else "matrix"


def _no_such_sentence(wanted: int, num_lines: int) -> ConfigError:
    return ConfigError(
        f"sentence ({wanted}): the text has {counted(num_lines, 'lines')}; give a number up to "
        "that [selection.sentence]"
    )


_FILES = ("page.html", "page.css", "controls.js", "weights.js", "drawing.js", "page.js")


def page(title: str, first_view: Mapping[str, str], sentences: Sequence[Sentence]) -> str:
    """Return a page.

    Args:
        title: the name of the model.
        first_view: what the script shows first, by the names of its controls.
        sentences: the sentences.
    """
    data = {"selection": first_view, "sentences": [*map(_with_drawings, sentences)]}
    return document(
        f"Attention of {title}",
        f"nmtkit {__version__}",
        __package__,
        _FILES,
        {"data": embedded(data)},
        color_variables(),
    )


def _with_drawings(sentence: Sentence) -> dict[str, Any]:
    """Return a sentence as an object, whose attentions have their drawings without weights."""
    found = as_object(sentence, packed)
    for attention, own in zip(sentence.attentions, found["attentions"], strict=True):
        labels = {
            "subwords": (attention.rows.pieces, attention.columns.pieces),
            "words": (attention.rows.words, attention.columns.words),
        }
        own["drawings"] = {
            between: {
                drawing: without_weights(drawing, attention.kind, rows, columns)
                for drawing in ("lines", "matrix")
            }
            for between, (rows, columns) in labels.items()
        }
    return found
