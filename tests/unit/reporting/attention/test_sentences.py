import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.schema import AttentionRecipe, TranslateRecipe, Value
from nmtkit.config.toml import build
from nmtkit.decoding.alignment import all_attention_weights
from nmtkit.decoding.translator import Translator
from nmtkit.errors import DataError
from nmtkit.model.transformer import Transformer
from nmtkit.reporting.attention.sentences import AttentionExtractor, Pair
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from tests.messages import refuses
from tests.tiny import never_warn
from tests.translating import translate
from tests.unit.reporting.attention.builders import extractor, tiny_loaded


def pair(source: str, target: str | None = None) -> Pair:
    return Pair(source, target, "in:7")


def test_attention_maps_have_the_model_s_weights_and_tokens() -> None:
    sentence = extractor().extract(pair("a b c", "A B"))
    loaded = tiny_loaded()
    source, target = loaded.codec.encode_source("a b c"), loaded.codec.encode_target("A B")
    expected = all_attention_weights(loaded.model, source, target)
    encoder, decoder, memory = sentence.attentions
    assert (encoder.kind, decoder.kind, memory.kind) == ("encoder", "decoder", "memory")
    for attention, weights in zip(sentence.attentions, dataclasses.astuple(expected), strict=True):
        assert torch.equal(attention.weights, weights)
        assert attention.weights.shape[2:] == (
            len(attention.rows.pieces),
            len(attention.columns.pieces),
        )
    assert encoder.rows.pieces == encoder.columns.pieces == ("a", "b", "c", "</s>")
    assert decoder.rows.pieces == decoder.columns.pieces == ("<s>", "A", "B")
    assert memory.rows.pieces == ("A", "B", "</s>")
    assert memory.columns == encoder.columns
    assert sentence.num_weights == 2 * 2 * (4 * 4 + 3 * 3 + 3 * 4)


def test_a_source_without_translation_has_encoder_attention_only() -> None:
    sentence = extractor().extract(pair("a b"))
    assert [attention.kind for attention in sentence.attentions] == ["encoder"]
    assert (sentence.source, sentence.target) == ("a b", None)


def test_blank_lines_have_only_symbols() -> None:
    sentence = extractor().extract(pair("", ""))
    assert [attention.rows.pieces for attention in sentence.attentions] == [
        ("</s>",),
        ("<s>",),
        ("</s>",),
    ]
    assert all(
        torch.equal(attention.weights, torch.ones(2, 2, 1, 1)) for attention in sentence.attentions
    )


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("source", ["a b c d", "h", ""])
def test_the_translation_equals_that_of_nmtkit_translate(source: str, beam: int) -> None:
    loaded, settings = tiny_loaded(), {"beam": beam, "max_length_offset": 3}
    translator = Translator(
        [loaded.model], loaded.codec, build(TranslateRecipe, settings), lambda _: None
    )
    found = extractor(translate=True, **settings).extract(pair(source))
    assert [found.target] == list(translate(translator, [source]))
    assert found.attentions[2].rows.pieces == (*(found.target or "").split(), "</s>")


LINES = ["the house is old", "a new house", "houses and houses, the newest"] * 20


@pytest.fixture(scope="module")
def subword_model() -> LoadedModel:
    vocabulary = Subword.train(LINES, "bpe", 290, "en")
    codec = TextCodec("en", "en", vocabulary, vocabulary, is_shared=True)
    config = tiny_loaded().model.config
    torch.manual_seed(1)
    model = Transformer(config, vocabulary.size, vocabulary.size, is_shared=True).eval()
    return dataclasses.replace(tiny_loaded(), model=model, codec=codec)


def test_words_have_their_text_and_subwords(subword_model: LoadedModel) -> None:
    own = AttentionExtractor(subword_model, AttentionRecipe(), never_warn)
    sentence = own.extract(pair("the newest \U0001f600", "hoses"))
    encoder, decoder, memory = sentence.attentions
    assert encoder.rows.words == ("the", "newest", "\U0001f600", "</s>")
    assert decoder.rows.words == ("<s>", "hoses")
    assert memory.rows.words == ("hoses", "</s>")
    for tokens in (encoder.rows, decoder.rows, memory.rows):
        assert len(tokens.pieces) == len(tokens.word_of) > len(tokens.words)
        assert sorted({*tokens.word_of}) == list(range(len(tokens.words)))
    # The decoder reads one place later what it writes, and the end symbol never.
    assert decoder.rows.pieces[1:] == memory.rows.pieces[:-1]


def test_words_that_share_a_token_are_shown_as_one(subword_model: LoadedModel) -> None:
    vocabulary = Subword.train(["我们喜欢 苹果"] * 20, "bpe", 272, "zh")
    codec = TextCodec("zh", "zh", vocabulary, vocabulary, is_shared=True)
    sizes = vocabulary.size, vocabulary.size
    model = Transformer(subword_model.model.config, *sizes, is_shared=True).eval()
    loaded = dataclasses.replace(subword_model, model=model, codec=codec)
    (encoder,) = (
        AttentionExtractor(loaded, AttentionRecipe(), never_warn)
        .extract(pair("我们喜欢你果"))
        .attentions
    )
    assert encoder.rows.words == ("我们喜欢", "你", "果", "</s>")
    assert len(encoder.rows.pieces) > 4  # of bytes
    torch.testing.assert_close(encoder.joined.sum(-1), torch.ones(encoder.joined.shape[:-1]))


@given(st.lists(st.sampled_from(["the", "house", "x\u00df", "\U0001f600", ","]), max_size=6))
def test_joined_rows_sum_to_1(subword_model: LoadedModel, words: list[str]) -> None:
    own = AttentionExtractor(subword_model, AttentionRecipe(), never_warn)
    for attention in own.extract(pair(" ".join(words), "the house")).attentions:
        joined = attention.joined
        assert joined.shape[2:] == (len(attention.rows.words), len(attention.columns.words))
        torch.testing.assert_close(joined.sum(-1), torch.ones(joined.shape[:-1]))


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        (None, "in:7 4 64 63; --max-weights"),
        ("A", "in:7 6 112 111; --max-weights"),
    ],
)
def test_a_line_with_too_many_weights_is_refused(target: str | None, keys: str) -> None:
    limit = 63 if target is None else 111
    with refuses(DataError, keys):
        extractor(max_weights=limit).extract(pair("a b c", target))
    assert extractor(max_weights=limit + 1).extract(pair("a b c", target)).num_weights == limit + 1


def test_a_line_beyond_the_learned_positions_is_refused() -> None:
    loaded = tiny_loaded()
    config = dataclasses.replace(loaded.model.config, positions="learned", max_positions=4)
    size = loaded.codec.source.size
    model = Transformer(config, size, size, is_shared=True).eval()
    own = AttentionExtractor(
        dataclasses.replace(loaded, model=model), AttentionRecipe(), never_warn
    )
    own.extract(pair("a b c", "A B C"))
    for source, target in (("a b c d", None), ("a", "A B C D")):
        with refuses(DataError, "in:7 5 4"):
            own.extract(pair(source, target))


def test_a_translation_is_refused_with_translate() -> None:
    with refuses(DataError, "in:7; --translate"):
        extractor(translate=True).extract(pair("a", "A"))


def test_translations_obey_the_length_limits() -> None:
    values: dict[str, Value] = {"max_length_ratio": 0.0, "max_length_offset": 2}
    found = extractor(translate=True, **values).extract(pair("a b c d e"))
    assert len(found.attentions[2].rows.pieces) <= 2
    assert found.attentions[2].rows.pieces[-1] == "</s>"
