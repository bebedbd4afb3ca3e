"""The flow of `nmtkit attention`: lines -> pairs -> sentences -> a page, objects, or a picture."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from nmtkit.config.schema import AttentionRecipe
from nmtkit.errors import ConfigError, DataError
from nmtkit.reporting.attention.drawing import draw
from nmtkit.reporting.attention.page import page
from nmtkit.reporting.attention.pairs import Pair, read_pairs
from nmtkit.reporting.attention.png import png, require_png
from nmtkit.reporting.attention.selection import select
from nmtkit.reporting.attention.sentence_json import as_object, json_line, packed
from nmtkit.reporting.attention.sentences import Observer, Sentence
from nmtkit.runtime.devices import set_up
from nmtkit.storage.model_path import load_model


def show(path: Path, recipe: AttentionRecipe, lines: Iterable[str], name: str) -> Iterator[bytes]:
    """Look at a model's attention in some sentences.

    Args:
        path: of a model, a checkpoint or a run.
        recipe: what to show, and how.
        lines: the sentences; see `read_pairs`. No more are read than are shown.
        name: what messages call the lines.

    Yields:
        the bytes of the page or the picture, or of an object a line.

    Raises:
        ConfigError: what is asked for is not there, or PNG cannot be written here.
        DataError: a line is not what it should be, or too long.
        DamagedError: there is no model, or it is not whole.
    """
    form = recipe.view.format
    if form == "png":
        require_png()
    observer = Observer(load_model(path, set_up(recipe.runtime)), recipe)
    pairs = read_pairs(lines, recipe.view.input_format, name)
    if form == "json":
        for pair in pairs:
            yield f"{json_line(observer.observe(pair))}\n".encode()
    elif form == "html":
        yield _page(str(path), recipe, observer, pairs).encode()
    else:
        svg = _picture(recipe, observer, pairs)
        yield png(svg) if form == "png" else svg.encode()


def _picture(recipe: AttentionRecipe, observer: Observer, pairs: Iterator[Pair]) -> str:
    """Draw the selected sentence alone."""
    wanted = recipe.selection.sentence
    first = list(islice(pairs, wanted))
    if len(first) < wanted:
        raise _no_such_sentence(wanted, len(first))
    selection = select(observer.observe(first[-1]), recipe.selection)
    return draw(selection, recipe.selection.drawing)


def _page(title: str, recipe: AttentionRecipe, observer: Observer, pairs: Iterable[Pair]) -> str:
    """Make a page of all sentences, which shows what is selected first."""
    limit = recipe.view.max_weights
    sentences: list[Sentence] = []
    num_weights = 0
    for pair in pairs:
        sentences.append(observer.observe(pair))
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
    data = {
        "selection": {
            "sentence": wanted,
            "attention": selection.kind,
            "layer": selection.layer,
            "heads": ",".join(map(str, selection.heads)),
            "drawing": recipe.selection.drawing,
            "between": "words" if recipe.selection.join_subwords else "subwords",
            "word": "" if selection.word is None else f"row-{selection.word + 1}",
        },
        "sentences": [as_object(sentence, packed) for sentence in sentences],
    }
    return page(title, json.dumps(data, ensure_ascii=False))


def _no_such_sentence(wanted: int, num_lines: int) -> ConfigError:
    lines = "1 line" if num_lines == 1 else f"{num_lines} lines"
    return ConfigError(
        f"sentence ({wanted}): there {'is' if num_lines == 1 else 'are'} {lines}; give a number up "
        "to that [selection.sentence]"
    )
