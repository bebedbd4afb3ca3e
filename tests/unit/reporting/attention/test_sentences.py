import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmtkit.config.fields import Value
from nmtkit.config.schema import AttentionRecipe, TranslateRecipe
from nmtkit.config.toml import build
from nmtkit.decoding.attention import all_weights
from nmtkit.decoding.translator import Translator
from nmtkit.errors import DataError
from nmtkit.model.transformer import Transformer
from nmtkit.reporting.attention.pairs import Pair
from nmtkit.reporting.attention.sentences import Observer
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from tests.unit.reporting.attention.scenes import observer, tiny_loaded


def pair(source: str, target: str | None = None) -> Pair:
    return Pair(source, target, "in, line 7")


def test_views_have_the_models_weights_and_the_tokens_that_they_are_between() -> None:
    sentence = observer().observe(pair("a b c", "A B"))
    loaded = tiny_loaded()
    source, target = loaded.codec.encode_source("a b c"), loaded.codec.encode_target("A B")
    expected = all_weights(loaded.model, source, target)
    encoder, decoder, memory = sentence.views
    assert (encoder.kind, decoder.kind, memory.kind) == ("encoder", "decoder", "memory")
    for view, weights in zip(sentence.views, dataclasses.astuple(expected), strict=True):
        assert torch.equal(view.weights, weights)
        assert view.weights.shape[2:] == (len(view.rows.pieces), len(view.columns.pieces))
    assert encoder.rows.pieces == encoder.columns.pieces == ("a", "b", "c", "</s>")
    assert decoder.rows.pieces == decoder.columns.pieces == ("<s>", "A", "B")
    assert memory.rows.pieces == ("A", "B", "</s>")
    assert memory.columns == encoder.columns
    assert sentence.num_weights == 2 * 2 * (4 * 4 + 3 * 3 + 3 * 4)


def test_a_source_alone_has_one_view() -> None:
    sentence = observer().observe(pair("a b"))
    assert [view.kind for view in sentence.views] == ["encoder"]
    assert (sentence.source, sentence.target) == ("a b", None)


def test_blank_lines_consist_of_their_symbols() -> None:
    sentence = observer().observe(pair("", ""))
    assert [view.rows.pieces for view in sentence.views] == [("</s>",), ("<s>",), ("</s>",)]
    assert all(torch.equal(view.weights, torch.ones(2, 2, 1, 1)) for view in sentence.views)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("source", ["a b c d", "h", ""])
def test_a_translation_that_is_found_is_that_of_translate(source: str, beam: int) -> None:
    loaded, settings = tiny_loaded(), {"beam": beam, "extra_length": 3}
    translator = Translator(
        [loaded.model], loaded.codec, build(TranslateRecipe, settings), lambda _: None
    )
    found = observer(translate=True, **settings).observe(pair(source))
    assert [found.target] == list(translator.translate([source]))
    assert found.views[2].rows.pieces == (*(found.target or "").split(), "</s>")


LINES = ["the house is old", "a new house", "houses and houses, the newest"] * 20


@pytest.fixture(scope="module")
def subword_model() -> LoadedModel:
    vocabulary = Subword.train(LINES, "bpe", 290, "en")
    codec = TextCodec("en", "en", vocabulary, vocabulary, is_shared=True)
    config = tiny_loaded().model.config
    torch.manual_seed(1)
    model = Transformer(config, vocabulary.size, vocabulary.size, is_shared=True).eval()
    return dataclasses.replace(tiny_loaded(), model=model, codec=codec)


def test_words_are_spelled_and_know_their_subwords(subword_model: LoadedModel) -> None:
    own = Observer(subword_model, AttentionRecipe())
    sentence = own.observe(pair("the newest \U0001f600", "hoses"))
    encoder, decoder, memory = sentence.views
    assert encoder.rows.words == ("the", "newest", "\U0001f600", "</s>")
    assert decoder.rows.words == ("<s>", "hoses")
    assert memory.rows.words == ("hoses", "</s>")
    for tokens in (encoder.rows, decoder.rows, memory.rows):
        assert len(tokens.pieces) == len(tokens.word_of) > len(tokens.words)
        assert sorted({*tokens.word_of}) == list(range(len(tokens.words)))
    # The decoder reads one place later what it writes, and the end symbol never.
    assert decoder.rows.pieces[1:] == memory.rows.pieces[:-1]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["the", "house", "x\u00df", "\U0001f600", ","]), max_size=6))
def test_joined_rows_sum_to_1(subword_model: LoadedModel, words: list[str]) -> None:
    own = Observer(subword_model, AttentionRecipe())
    for view in own.observe(pair(" ".join(words), "the house")).views:
        joined = view.joined
        assert joined.shape[2:] == (len(view.rows.words), len(view.columns.words))
        torch.testing.assert_close(joined.sum(-1), torch.ones(joined.shape[:-1]))


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (None, "in, line 7: 4 tokens have 64 attention weights, more than 63; shorten the line"),
        ("A", "in, line 7: 6 tokens have 112 attention weights, more than 111; shorten the line"),
    ],
)
def test_a_line_of_too_many_weights_is_refused(target: str | None, told: str) -> None:
    limit = 63 if target is None else 111
    with pytest.raises(DataError) as caught:
        observer(max_weights=limit).observe(pair("a b c", target))
    assert told in str(caught.value)
    assert observer(max_weights=limit + 1).observe(pair("a b c", target)).num_weights == limit + 1


def test_a_line_beyond_the_learned_positions_is_refused() -> None:
    loaded = tiny_loaded()
    config = dataclasses.replace(loaded.model.config, positions="learned", max_positions=4)
    size = loaded.codec.source.size
    model = Transformer(config, size, size, is_shared=True).eval()
    own = Observer(dataclasses.replace(loaded, model=model), AttentionRecipe())
    own.observe(pair("a b c", "A B C"))
    for source, target in (("a b c d", None), ("a", "A B C D")):
        with pytest.raises(DataError) as caught:
            own.observe(pair(source, target))
        assert str(caught.value) == (
            "in, line 7: 5 tokens, more than the model's 4 learned positions; shorten the line"
        )


def test_a_translation_is_not_both_given_and_found() -> None:
    with pytest.raises(DataError, match="line 7: has a translation already; leave it out, or"):
        observer(translate=True).observe(pair("a", "A"))


def test_translations_keep_to_the_limits_of_length() -> None:
    values: dict[str, Value] = {"max_length_ratio": 0.0, "extra_length": 2}
    found = observer(translate=True, **values).observe(pair("a b c d e"))
    assert len(found.views[2].rows.pieces) <= 2
    assert found.views[2].rows.pieces[-1] == "</s>"
