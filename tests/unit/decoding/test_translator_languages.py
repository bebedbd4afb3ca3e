"""A target language gives what a line with its symbol gives, in the words of the line."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from nmtkit.config.attention import ViewConfig
from nmtkit.config.schema import AttentionRecipe, ScoringConfig, TranslateRecipe
from nmtkit.config.translation import (
    AligningConfig,
    ConstraintsConfig,
    LinksConfig,
    OutputConfig,
    TranslationConfig,
)
from nmtkit.decoding.aligner import Aligner, AligningModel
from nmtkit.decoding.answers import Answer, Pair, Request
from nmtkit.decoding.long_lines import LineSplitter
from nmtkit.decoding.scorer import Scorer, line_names
from nmtkit.decoding.translator import Translator
from nmtkit.errors import ConfigError, DataError
from nmtkit.reporting.attention.sentences import AttentionExtractor
from nmtkit.reporting.attention.sentences import Pair as ViewedPair
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from tests.conversions import LINES, random_model
from tests.messages import refuses
from tests.tiny import never_warn

LONG = " ".join(LINES)
TO_NL = TranslationConfig(target_lang="nl")


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return random_model(multilingual(LINES), {})


def multilingual(lines: Sequence[str]) -> TextCodec:
    symbols = ("<2de>", "<2nl>", "<from-en>", "<from-nl>")
    words = Subword.train(lines, "bpe", 290, "x", symbols)
    codec = TextCodec("en", "mul", words, words, is_shared=True)
    return codec.with_directions(["en-de", "en-nl"], has_source_symbols=True)


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
    parts = LineSplitter(codec, config, 1000, 0, "", never_warn).encode(Request(LONG), 1)
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


def test_each_untrained_direction_is_said_once_whoever_reads_lines(loaded: LoadedModel) -> None:
    codec = loaded.codec.with_directions(["nl-de"], has_source_symbols=True)
    of_nl = replace(loaded, codec=codec)
    models, one = [loaded.model], AligningModel(loaded.model, codec)
    own: dict[str, Any] = {"target_lang": "nl"}
    languages: dict[str, Any] = {"source_lang": "nl", "target_lang": "de"}
    said: list[str] = []
    recipe = TranslateRecipe(translation=TranslationConfig(**languages))
    translator = Translator(models, codec, recipe, said.append)
    scorer = Scorer(models, codec, ScoringConfig(**languages), said.append)
    aligner = Aligner([one], LinksConfig(), AligningConfig(**languages), said.append)
    view = AttentionRecipe(view=ViewConfig(**languages))
    extractor = AttentionExtractor(of_nl, view, said.append)
    assert not said
    for read in (
        lambda: [*translator.answer_chunk([Request("the cat", **own)] * 2, 1)],
        lambda: scorer.score([("the cat", "a dog")] * 2, line_names(1), target_langs=["nl"] * 2),
        lambda: [*aligner.answer_chunk([Pair("the cat", "a dog", own)] * 2, 1)],
        lambda: [extractor.extract(ViewedPair("the cat", None, "x:1", "nl")) for _ in range(2)],
    ):
        read()
        read()
        assert said == ["nl-nl is not among the directions of the model's training"]
        said.clear()
    Scorer(models, codec, ScoringConfig(source_lang="nl", target_lang="nl"), said.append)
    assert len(said) == 1


def test_a_marked_line_is_at_most_as_long_as_the_model_reads() -> None:
    codec = multilingual(LINES).with_marks(8)
    constraints = ConstraintsConfig(markup="xml")
    recipe = TranslateRecipe(constraints=constraints, translation=TO_NL)
    line = Request("<b>the <i>cat</i></b> sat")
    length = len(codec.encode_source("<2nl> <from-en> the cat sat")) + 4
    for longest in (length - 1, length):
        said: list[str] = []
        settings = {"positions": "learned", "max_positions": longest}
        model = random_model(codec, settings).model
        translator = Translator([model], codec, recipe, said.append, learnt=["tags"])
        assert [one for found in translator.answer_chunk([line], 1) for one in found.answers]
        assert bool(said) == (longest < length)


def test_models_of_several_and_of_two_languages_align_together(loaded: LoadedModel) -> None:
    both = replace(loaded.codec, source_lang="nl", target_lang="en", directions=())
    models = [AligningModel(loaded.model, codec) for codec in (loaded.codec, both)]
    pair = Pair("the cat", "a dog")

    def ids_of(models: list[AligningModel], pair: Pair, **languages: Any) -> list[list[int]]:
        config = AligningConfig(**languages)
        aligner = Aligner(models, LinksConfig(), config, never_warn)
        assert len([*aligner.answer_chunk([pair], 1)][-1].answers) == 1
        return [one.ids[0] for one in aligner._encode(pair, 1)]

    own = [loaded.codec.encode_source(f"<2nl> <from-en> {pair.source}")]
    own.append(both.encode_source(pair.target))
    assert ids_of(models, pair, target_lang="nl") == own
    named = replace(pair, others={"target_lang": "nl"})
    assert ids_of(models, named, source_lang="en") == own
    swapped = Pair(pair.target, pair.source)
    languages: dict[str, Any] = {"source_lang": "nl", "target_lang": "en"}
    assert ids_of(models[::-1], swapped, **languages) == own[::-1]
    with refuses(ConfigError, "nl-en de-en; model"):
        ids_of(models, pair, source_lang="en", target_lang="de")
    with refuses(DataError, "line 1 nl-en de-en; model"):
        ids_of(models, replace(pair, others={"target_lang": "de"}), target_lang="nl")


def test_scores_are_those_of_lines_with_the_symbols(loaded: LoadedModel) -> None:
    pairs = [(one, two) for one in (*LINES, "") for two in ("the mat", "")]
    hand = [(f"<2nl> <from-en> {one}" if one else "", two) for one, two in pairs]
    found = [
        Scorer([loaded.model], loaded.codec, ScoringConfig(target_lang=lang), never_warn).score(
            lines, line_names(1)
        )
        for lang, lines in (("nl", pairs), ("", hand))
    ]
    of_lines = Scorer([loaded.model], loaded.codec, ScoringConfig(target_lang="de"), never_warn)
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
