"""A target language gives what a line with its symbol gives, in the words of the line."""

import pytest

from nmtkit.config.schema import ScoringConfig, TranslateRecipe
from nmtkit.config.translation import AligningConfig, LinksConfig, OutputConfig, TranslationConfig
from nmtkit.decoding.aligner import Aligner, AligningModel
from nmtkit.decoding.answers import Answer, Pair, Request
from nmtkit.decoding.long_lines import LineSplitter
from nmtkit.decoding.scorer import Scorer, line_names
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from tests.conversions import LINES, random_model
from tests.messages import refuses
from tests.tiny import never_warn

LONG = " ".join(LINES)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    symbols = ("<2de>", "<2nl>", "<from-en>")
    words = Subword.train(LINES, "bpe", 290, "x", symbols)
    codec = TextCodec("en", "mul", words, words, is_shared=True)
    return random_model(codec.with_directions(["en-de", "en-nl"], has_source_symbols=True), {})


def answers(loaded: LoadedModel, *requests: Request, target_lang: str = "") -> list[Answer]:
    translation = TranslationConfig(target_lang=target_lang)
    recipe = TranslateRecipe(translation=translation, output=OutputConfig(alignments=True))
    translator = Translator([loaded.model], loaded.codec, recipe, lambda _: None)
    return [one for result in translator.answer_all([(1, requests)]) for one in result.answers]


def test_translations_are_those_of_lines_with_the_symbols(loaded: LoadedModel) -> None:
    by_hand = answers(loaded, *(Request(f"<2nl> <from-en> {one}") for one in LINES))
    by_option = answers(loaded, *map(Request, LINES), target_lang="nl")
    by_line = answers(loaded, *(Request(one, target_lang="nl") for one in LINES), target_lang="de")
    for hand, *others in zip(by_hand, by_option, by_line, strict=True):
        shifted = tuple((s - 2, t) for s, t in hand.translation.alignment if s >= 2)
        for one in others:
            assert one.translation.text == hand.translation.text
            assert one.translation.log_prob == pytest.approx(hand.translation.log_prob, abs=1e-4)
            assert one.translation.alignment == shifted


def test_each_part_of_a_long_line_begins_with_the_symbols(loaded: LoadedModel) -> None:
    codec = loaded.codec
    config = TranslationConfig(target_lang="nl", max_source_length=12)
    parts = LineSplitter(codec, config, 1000, 0, "").encode(Request(LONG), 1)
    assert len(parts) > 2
    words: list[str] = []
    for part in parts:
        symbols, text = codec.split_symbol(part.text)
        assert symbols == "<2nl> <from-en>"
        assert part.ids == codec.encode_source(part.text)
        assert [part.word_in_line(2 + n) for n in range(len(text.split()))] == [
            *range(len(words), len(words) + len(text.split()))
        ]
        assert LONG[part.start + len(symbols) + 1 :].startswith(text.strip())
        words += text.split()
    assert words == LONG.split()


def test_blank_lines_need_no_language(loaded: LoadedModel) -> None:
    assert [one.translation.text for one in answers(loaded, Request(""), Request(" "))] == ["", ""]


def test_a_line_without_a_language_is_refused(loaded: LoadedModel) -> None:
    with refuses(DataError, "line 1 target; --target-lang de nl"):
        answers(loaded, Request("the cat"))
    with refuses(DataError, "line 1 target_lang sv; de nl"):
        answers(loaded, Request("the cat", target_lang="sv"))
    with refuses(ConfigError, "target_lang sv; de nl"):
        answers(loaded, target_lang="sv")


def test_an_untrained_direction_is_said(loaded: LoadedModel) -> None:
    codec = loaded.codec.with_directions(["nl-de"], has_source_symbols=True)
    translation = TranslationConfig(source_lang="nl", target_lang="nl")
    said: list[str] = []
    Translator([loaded.model], codec, TranslateRecipe(translation=translation), said.append)
    assert said == ["nl-nl is not among the directions of the model's training"]


def test_scores_are_those_of_lines_with_the_symbols(loaded: LoadedModel) -> None:
    pairs = [(one, two) for one in (*LINES, "") for two in ("the mat", "")]
    hand = [(f"<2nl> <from-en> {one}" if one else "", two) for one, two in pairs]
    found = [
        Scorer([loaded.model], loaded.codec, ScoringConfig(target_lang=lang)).score(
            lines, line_names(1)
        )
        for lang, lines in (("nl", pairs), ("", hand))
    ]
    of_lines = Scorer([loaded.model], loaded.codec, ScoringConfig(target_lang="de"))
    found.append(of_lines.score(pairs, line_names(1), target_langs=["nl"] * len(pairs)))
    for other in found[1:]:
        assert [one.token_log_probs for one in found[0]] == [
            pytest.approx(one.token_log_probs, abs=1e-4) for one in other
        ]
    with refuses(DataError, "line 1 target_lang sv; de nl"):
        of_lines.score(pairs[:1], line_names(1), target_langs=["sv"])


def test_links_are_between_the_words_of_the_lines(loaded: LoadedModel) -> None:
    def links_of(source: str, target_lang: str) -> set[tuple[int, int]]:
        config = AligningConfig(target_lang=target_lang, source_lang="en" if target_lang else "")
        model = AligningModel(loaded.model, loaded.codec)
        aligner = Aligner([model], LinksConfig(min_weight=0), config, never_warn)
        other = AligningConfig(target_lang="de" if target_lang else "")
        of_lines = Aligner([model], LinksConfig(min_weight=0), other, never_warn)
        named = Pair(source, "the dog sat", {"target_lang": target_lang})
        (*_, result) = aligner.answer_chunk([Pair(source, "the dog sat"), Pair("", "x")], 1)
        assert result.answers[1].links == ()
        *_, again = of_lines.answer_chunk([named], 1)
        assert again.answers[0].links == result.answers[0].links
        return {*result.answers[0].links}

    found = links_of(LINES[0], "nl")
    by_hand = links_of(f"<2nl> <from-en> {LINES[0]}", "")
    assert {t for _, t in found} == {0, 1, 2}
    assert {(s - 2, t) for s, t in by_hand if s >= 2} <= found
