import base64
import dataclasses
import json
from array import array

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.schema import AttentionRecipe, TranslateRecipe
from nmtkit.config.toml import build
from nmtkit.decoding.alignment import all_attention_weights
from nmtkit.decoding.translator import Translator
from nmtkit.errors import DataError
from nmtkit.model.transformer import Transformer
from nmtkit.reporting.attention.sentences import (
    SUMMARY,
    AttentionExtractor,
    Pair,
    Sentence,
    as_object,
    json_line,
    packed,
    read_pairs,
    summarize,
)
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from tests.messages import refuses
from tests.tiny import never_warn
from tests.translating import translate
from tests.unit.reporting.attention.builders import (
    HOSTILE,
    example_sentence,
    extractor,
    tiny_loaded,
)


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


def pairs(lines: list[str], input_format: str = "text") -> list[tuple[str, str | None]]:
    return [(pair.source, pair.target) for pair in read_pairs(lines, input_format, "in")]


def test_a_line_is_a_source_with_or_without_translation() -> None:
    assert pairs(["a b", "a\tA", "a\t", "", "\tA"]) == [
        ("a b", None),
        ("a", "A"),
        ("a", ""),
        ("", None),
        ("", "A"),
    ]


def test_objects_of_translate_are_read() -> None:
    lines = [
        json.dumps({"source": "a\tb", "translation": "A", "score": -0.5}),
        json.dumps({"id": 7, "source": "a"}),
    ]
    assert pairs(lines, "json") == [("a\tb", "A"), ("a", None)]


def test_objects_of_attention_are_read() -> None:
    (attention,) = example_sentence().attentions[:1]
    line = json_line(Sentence("a", None, (attention,)))
    assert pairs([line], "json") == [("a", None)]


@pytest.mark.parametrize(
    ("line", "input_format", "keys"),
    [
        ("a\tA\tb", "text", "in:2 2"),
        ("a", "json", "in:2 JSON"),
        ('{"translation": "A"}', "json", "in:2 source"),
        ('{"source": "a", "translation": 1}', "json", "translation"),
        ('{"source": "a", "translation": "\\ud800"}', "json", "translation"),
    ],
)
def test_a_malformed_line_is_refused(line: str, input_format: str, keys: str) -> None:
    first = "a" if input_format == "text" else '{"source": "a"}'
    with refuses(DataError, keys):
        pairs([first, line], input_format)


def test_empty_input_is_an_error() -> None:
    with refuses(DataError, "in"):
        pairs([])


def test_lines_are_read_on_demand() -> None:
    lines = iter(["a", "b"])
    next(read_pairs(lines, "text", "in"))
    assert list(lines) == ["b"]


def test_a_json_line_may_name_its_target_language() -> None:
    lines = ['{"source": "a", "target_lang": "nl"}', '{"source": "a"}']
    assert [one.target_lang for one in read_pairs(lines, "json", "in")] == ["nl", ""]


def test_an_object_has_all_fields_of_a_sentence() -> None:
    line = json_line(example_sentence())
    assert "\n" not in line
    values = json.loads(line)
    assert (values["source"], values["translation"]) == (HOSTILE, "das Haus")
    for attention, written in zip(example_sentence().attentions, values["attentions"], strict=True):
        assert written["kind"] == attention.kind
        for side, tokens in (("rows", attention.rows), ("columns", attention.columns)):
            assert written[side]["pieces"] == list(tokens.pieces)
            assert written[side]["word_of"] == list(tokens.word_of)
            assert written[side]["words"] == list(tokens.words)
        torch.testing.assert_close(
            torch.tensor(written["weights"]), attention.weights, rtol=0, atol=6e-7
        )
        assert {*written["summary"][2][1]} == {"entropy", "distance", "diagonal", "symbol"}


def test_numbers_are_written_with_six_digits_at_most() -> None:
    text = json_line(example_sentence())
    numbers = [part for part in text.replace("]", ",").replace("[", ",").split(",") if "0." in part]
    assert len(numbers) > 100
    assert all(len(number.strip().partition(".")[2]) <= 7 for number in numbers)


@pytest.mark.parametrize(("kind", "place"), [("encoder", 3), ("decoder", 0), ("memory", 3)])
def test_the_symbol_figure_is_the_mean_of_its_column(kind: str, place: int) -> None:
    (attention,) = (
        attention for attention in example_sentence().attentions if attention.kind == kind
    )
    values = as_object(example_sentence(), packed)
    (written,) = (one for one in values["attentions"] if one["kind"] == kind)
    expected = attention.weights[..., place].mean(-1)
    found = [[head["symbol"] for head in layer] for layer in written["summary"]]
    torch.testing.assert_close(torch.tensor(found), expected, rtol=0, atol=1e-5)


def test_packed_weights_are_exact_to_half_of_a_65535th() -> None:
    weights = torch.cat([torch.rand(3, 2, 4, 5), torch.ones(1, 2, 4, 5), torch.zeros(1, 2, 4, 5)])
    numbers = array("H", base64.b64decode(packed(weights)))
    restored = torch.tensor(numbers.tolist()).view(5, 2, 4, 5) / 65535
    torch.testing.assert_close(restored, weights, rtol=0, atol=0.51 / 65535)
    assert (numbers[-41], numbers[-1]) == (65535, 0)


def only(weights: list[list[float]], symbol: int) -> dict[str, float]:
    ((summary,),) = summarize(torch.tensor([[weights]]), symbol).tolist()
    return dict(zip(SUMMARY, summary, strict=True))


def test_the_summary_of_a_head_that_attends_to_its_own_position() -> None:
    assert only(torch.eye(4).tolist(), 3) == dict(zip(SUMMARY, (0, 0, 1, 0.25), strict=True))


def test_the_summary_of_a_head_that_attends_uniformly() -> None:
    summary = only([[0.25] * 4] * 4, 0)
    assert summary["entropy"] == pytest.approx(2.0)
    # From the ends 0, 1, 2, 3 and from within 1, 0, 1, 2: 10 / 8.
    assert summary["distance"] == pytest.approx(1.25)
    assert (summary["diagonal"], summary["symbol"]) == (0.25, 0.25)


def test_the_summary_of_a_head_that_attends_to_the_previous_token() -> None:
    rows = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    summary = only(rows, 2)
    assert summary["distance"] == pytest.approx(2 / 3)
    assert summary["diagonal"] == pytest.approx(1 / 3)
    assert summary["symbol"] == 0


def test_in_a_longer_sequence_the_own_position_is_proportional() -> None:
    rows = [[1.0, 0, 0, 0, 0], [0, 0, 1.0, 0, 0], [0, 0, 0, 0, 1.0]]
    summary = only(rows, 4)
    assert (summary["entropy"], summary["distance"], summary["diagonal"]) == (0, 0, 1)
    assert summary["symbol"] == pytest.approx(1 / 3)
    assert only([[0.0, 0.0, 1.0]], 2)["distance"] == 2


def test_layers_and_heads_keep_their_order() -> None:
    weights = torch.zeros(2, 3, 1, 6)
    for layer in range(2):
        for head in range(3):
            weights[layer, head, 0, 3 * layer + head] = 1
    distances = summarize(weights, 0)[..., SUMMARY.index("distance")].tolist()
    assert distances == [[0, 1, 2], [3, 4, 5]]
