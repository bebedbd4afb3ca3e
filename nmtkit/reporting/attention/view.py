"""The flow of `nmtkit attention`: lines -> pairs -> sentences -> a page, JSON, or a picture."""

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
from nmtkit.reporting.attention.sentences import AttentionExtractor, Sentence
from nmtkit.runtime.devices import set_up
from nmtkit.storage.model_folder import load_model


def show(path: Path, recipe: AttentionRecipe, lines: Iterable[str], name: str) -> Iterator[bytes]:
    """Write a model's attention weights in some sentences as a page, a picture or JSON.

    Args:
        path: the folder of a model, a checkpoint or a run.
        recipe: the settings.
        lines: the sentences, as for `read_pairs`; a picture reads them only up to its own.
        name: the name of the input in messages.

    Yields:
        the page, the picture, or a line of JSON per sentence, as bytes.

    Raises:
        ConfigError: the selected part does not exist, or PNG needs a missing package.
        DataError: a line is malformed or too long.
        DamagedError: there is no model, or it is damaged.
    """
    form = recipe.view.format
    if form == "png":
        require_png()
    extractor = AttentionExtractor(load_model(path, set_up(recipe.runtime)), recipe)
    pairs = read_pairs(lines, recipe.view.input_format, name)
    if form == "json":
        for pair in pairs:
            yield f"{json_line(extractor.extract(pair))}\n".encode()
    elif form == "html":
        yield _page(str(path), recipe, extractor, pairs).encode()
    else:
        svg = _picture(recipe, extractor, pairs)
        yield png(svg) if form == "png" else svg.encode()


def _picture(recipe: AttentionRecipe, extractor: AttentionExtractor, pairs: Iterator[Pair]) -> str:
    """Draw the selected sentence as SVG."""
    wanted = recipe.selection.sentence
    first = list(islice(pairs, wanted))
    if len(first) < wanted:
        raise _no_such_sentence(wanted, len(first))
    selection = select(extractor.extract(first[-1]), recipe.selection)
    return draw(selection, recipe.selection.drawing)


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
