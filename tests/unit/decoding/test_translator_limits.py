"""Batch sizes and lengths of translations."""

from itertools import count

import pytest

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import (
    ConstraintsConfig,
    OutputConfig,
    SamplingConfig,
    TranslationConfig,
)
from nmtkit.decoding import batching
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.translator import Translator
from tests.doubles import watch_embedding
from tests.tiny import tiny_codec, tiny_model


def translator(recipe: TranslateRecipe, lengths: list[tuple[int, ...]] | None = None) -> Translator:
    """Make a tiny translator; a list takes the lengths of the sources of each batch."""
    codec = tiny_codec()
    model = tiny_model(codec)
    if lengths is not None:
        watch_embedding(model.source_embedding, lengths)
    return Translator([model], codec, recipe, print)


@pytest.mark.parametrize(
    "width",
    [
        {"search": SearchConfig(beam=8)},
        {
            "sampling": SamplingConfig(sample=True),
            "output": OutputConfig(n_best=8, output_format="json"),
        },
    ],
)
@pytest.mark.parametrize(
    "config", [TranslationConfig(batch_size=6), TranslationConfig(max_tokens=18)]
)
def test_batches_hold_fewer_sentences_of_wider_beams(
    config: TranslationConfig,
    width: dict[str, SearchConfig],
) -> None:
    recipe = TranslateRecipe(translation=config, **width)  # type: ignore[arg-type]
    batches: list[tuple[int, ...]] = []
    list(translator(recipe, batches).translate(["a b"] * 7))
    assert list(map(len, batches)) == [3, 3, 1]


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        ({"BATCH_SIZES": {"cpu": 3}}, [3, 3, 1]),
        ({"BATCH_TOKENS": {"cpu": 12}}, [4, 3]),  # "a b" and its end symbol
    ],
)
def test_without_limits_those_of_the_device_hold(
    limits: dict[str, dict[str, int]], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, values in limits.items():
        monkeypatch.setattr(batching, name, values)
    batches: list[tuple[int, ...]] = []
    list(translator(TranslateRecipe(), batches).translate(["a b"] * 7))
    assert list(map(len, batches)) == sizes


def test_forced_prefixes_count_as_sources_do() -> None:
    batches: list[tuple[int, ...]] = []
    recipe = TranslateRecipe(translation=TranslationConfig(max_tokens=12))
    translator(recipe, batches).answer([Request("a", "h g f e d c"), *[Request("a")] * 5], 1)
    assert list(map(len, batches)) == [2, 4]


def test_a_stream_is_answered_line_by_line() -> None:
    recipe = TranslateRecipe(translation=TranslationConfig(stream=True))
    numbers = count(1)
    translations = translator(recipe).translate("a" for _ in numbers)
    next(translations)
    assert next(numbers) == 2


@pytest.mark.parametrize("num_words", [1, 5, 9])
def test_the_shortest_translation_counts_words_of_the_source_without_its_end(
    num_words: int,
) -> None:
    recipe = TranslateRecipe(
        search=SearchConfig(max_length_ratio=3),
        constraints=ConstraintsConfig(min_length_ratio=3),
        sampling=SamplingConfig(sample=True),
        output=OutputConfig(n_best=100, output_format="json"),
    )
    (answer,) = translator(recipe).answer([Request(" ".join("a" * num_words))], 1)
    # Among this many, some end as soon as they may.
    assert min(len(one.tokens) for one in answer.translations) == 3 * num_words + 1
