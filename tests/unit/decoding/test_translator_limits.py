"""Batch sizes and lengths of translations."""

import pytest

from nmtkit.config.schema import SearchConfig, TranslateRecipe
from nmtkit.config.translation import (
    ConstraintsConfig,
    OutputConfig,
    SamplingConfig,
    TranslationConfig,
)
from nmtkit.decoding.answers import Request
from nmtkit.decoding.translator import Translator, scale_limit
from tests.doubles import watch_embedding
from tests.tiny import tiny_codec, tiny_model
from tests.translating import answers_to, translate

pytestmark = pytest.mark.sampled(every=3)


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
    list(translate(translator(recipe, batches), ["a b"] * 7))
    assert list(map(len, batches)) == [3, 3, 1]


@pytest.mark.parametrize(
    ("limit", "value", "sizes"),
    [
        ("translator.BATCH_SIZES", 3, [3, 3, 1]),
        ("forced.BATCH_TOKENS", 12, [4, 3]),  # "a b" and its end symbol
    ],
)
def test_without_limits_those_of_the_device_hold(
    limit: str, value: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"nmtkit.decoding.{limit}", {"cpu": value})
    batches: list[tuple[int, ...]] = []
    list(translate(translator(TranslateRecipe(), batches), ["a b"] * 7))
    assert list(map(len, batches)) == sizes


def test_forced_prefixes_count_as_sources_do() -> None:
    batches: list[tuple[int, ...]] = []
    recipe = TranslateRecipe(translation=TranslationConfig(max_tokens=12))
    answers_to(translator(recipe, batches), [Request("a", "h g f e d c"), *[Request("a")] * 5])
    assert list(map(len, batches)) == [2, 4]


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
    (answer,) = answers_to(translator(recipe), [Request(" ".join("a" * num_words))])
    # Among this many, some end as soon as they may.
    assert min(len(one.tokens) for one in answer.translation.n_best) == 3 * num_words + 1


@pytest.mark.parametrize(
    ("width", "limit"), [(1, 64), (4, 64), (5, 51), (8, 32), (64, 4), (1000, 1)]
)
def test_a_wider_beam_takes_fewer_sentences(width: int, limit: int) -> None:
    assert scale_limit(64, width) == limit
