import pickle
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.characters import unescape
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from nmtkit.text.moses import Moses
from nmtkit.text.subword import Subword
from nmtkit.text.vocabulary import Steps
from nmtkit.text.words import words_of
from tests.golden.freeze import CODEC_LINES as LINES
from tests.messages import refuses

BOTH = Steps(unescape=True, normalize="nfc")
SUBWORDS = Subword.train(LINES, "bpe", 320, "x")
MOSES = Steps(moses_lang="en")
WORDS = Words(["the", "cat", "a", "&", "\u00e9"])
TOKENS = Subword.train(map(MOSES.prepare, LINES), "bpe", 320, "x")
SPICE = ["&amp;", "&#39;", "&lt;bt&gt;", "e\u0301", "\ufb01", "<bt>", "the cat", " "]
TEXT = st.lists(st.sampled_from(SPICE) | st.text()).map("".join)


@pytest.mark.parametrize(
    ("segmenting", "moses_lang"), [(SUBWORDS, ""), (WORDS, ""), (TOKENS, "en")]
)
@given(line=TEXT)
def test_a_line_is_encoded_as_the_cleaned_line(
    segmenting: Subword | Words, moses_lang: str, line: str
) -> None:
    wrapped = segmenting.with_steps(replace(BOTH, moses_lang=moses_lang))
    vocabulary = segmenting.with_steps(Steps(moses_lang=moses_lang))
    expected = unicodedata.normalize("NFC", unescape(line))
    assert wrapped.encode(line) == vocabulary.encode(expected)
    assert wrapped.normalize(line) == vocabulary.normalize(expected)
    assert wrapped.decode(wrapped.encode(line)) == vocabulary.decode(vocabulary.encode(expected))


@pytest.mark.parametrize(
    ("cleaning", "names", "expected"),
    [
        (Steps(False, "none"), [], "&eacute; e\u0301 \ufb01"),
        (Steps(True, "none"), ["unescape"], "\u00e9 e\u0301 \ufb01"),
        (Steps(False, "nfc"), ["nfc"], "&eacute; \u00e9 \ufb01"),
        (Steps(True, "nfkc"), ["unescape", "nfkc"], "\u00e9 \u00e9 fi"),
    ],
)
def test_each_step_is_a_choice(cleaning: Steps, names: list[str], expected: str) -> None:
    assert cleaning.names == names
    assert cleaning.prepare("&eacute; e\u0301 \ufb01") == expected
    assert (SUBWORDS.with_steps(cleaning) is SUBWORDS) == (not names)


def codec_with(cleaning: Steps) -> TextCodec:
    source = TOKENS.with_steps(replace(cleaning, moses_lang="en"))
    target = WORDS.with_steps(cleaning)
    return TextCodec("en", "de", source, target, is_shared=False)


@pytest.mark.parametrize("cleaning", [BOTH, Steps(True, "none"), Steps(False, "nfkc")])
def test_a_saved_codec_cleans(cleaning: Steps, tmp_path: Path) -> None:
    codec = codec_with(cleaning)
    codec.save(tmp_path)
    loaded = TextCodec.load(tmp_path)
    assert loaded.description == codec.description
    assert loaded.fingerprint == codec.fingerprint
    assert loaded.segmentation == ", ".join([*cleaning.names, "moses", "bpe and words"])
    for line in ("&eacute; e\u0301 \ufb01", *LINES):
        assert loaded.encode_source(line) == codec.encode_source(line)
        assert loaded.encode_target(line) == codec.encode_target(line)


def test_the_fingerprint_depends_on_the_cleaning() -> None:
    cleanings = [Steps(False, "none"), BOTH, Steps(True, "none"), Steps(True, "nfkc")]
    assert len({codec_with(one).fingerprint for one in cleanings}) == len(cleanings)


def test_tokens_that_cleaning_changes_are_refused() -> None:
    wrapped = WORDS.with_steps(BOTH)
    assert wrapped.with_tokens(["<bt>"]).size == wrapped.size + 1
    with refuses(DataError, "<bt> unescape nfc"):
        wrapped.with_tokens(["&lt;bt&gt;"])


TOKENISED_LINES = ["the cat's mat, a dog (and a cat).", "it isn't a dog's mat: 5,000 cats!"]


PLAIN_SUBWORDS = Subword.train(map(MOSES.prepare, TOKENISED_LINES), "bpe", 320, "x")
MOSES_SUBWORDS = PLAIN_SUBWORDS.with_steps(MOSES)


@pytest.mark.parametrize("line", TOKENISED_LINES)
def test_plain_text_comes_back(line: str) -> None:
    assert MOSES_SUBWORDS.decode(MOSES_SUBWORDS.encode(line)) == line


MARKS = ["\u2581", "</s>", "<s>", "<unk>", "<0x41>", "@@", "&#124;", "&amp;", "|", "\uff3f", " "]
MARKED_TEXT = st.lists(st.sampled_from(MARKS) | st.text()).map("".join)


@given(MARKED_TEXT)
def test_decoding_gives_the_line_that_normalize_returns(line: str) -> None:
    assert MOSES_SUBWORDS.decode(MOSES_SUBWORDS.encode(line)) == MOSES_SUBWORDS.normalize(line)


@given(MARKED_TEXT)
def test_text_never_becomes_a_special_id(line: str) -> None:
    assert not {UNK_ID, BOS_ID, EOS_ID}.intersection(MOSES_SUBWORDS.encode(line))


@pytest.mark.parametrize(
    "line", ["\u2581a\u2581 \u2581", "a &amp; &#124; | b", "</s> a <unk>", "a@@ b"]
)
def test_characters_with_a_meaning_elsewhere_lose_no_more_than_spaces(line: str) -> None:
    decoded = MOSES_SUBWORDS.decode(MOSES_SUBWORDS.encode(line))
    assert decoded.replace(" ", "") == line.replace(" ", "")


def test_the_name_that_the_rules_use_for_dots_becomes_dots() -> None:
    assert MOSES.prepare("DOTMULTI a") == ". a"


def test_the_vocabulary_gets_tokenized_text() -> None:
    words = Words(["He", "said", ":", '"', "&", "."]).with_steps(Steps(moses_lang="en"))
    ids = words.encode("He said: \u201e&\u201c")  # quotation marks become plain ones
    assert [words.piece(index) for index in ids] == ["He", "said", ":", '"', "&", '"']
    assert words.decode(ids) == 'He said: "&"'


def test_nothing_is_escaped_nor_unescaped() -> None:
    assert MOSES.prepare("a & b | [c]") == "a & b | [ c ]"
    assert Moses("en").detokenize("&amp; &lt;", unescapes=False) == "&amp; &lt;"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("<bt> a, b", "<bt> a , b"),
        ("<bt>", "<bt>"),
        ("<bt> <2de> a.", "<bt> <2de> a ."),
        ("<b>a</b>, b", "< b > a < / b > , b"),
        ("a <bt>", "a < bt >"),
        (" \u00a0<bt> a.", "<bt> a ."),
        ("<bt>a", "< bt > a"),
        ("<a> " * 10_000 + "x.", "<a> " * 10_000 + "x ."),
    ],
)
def test_tags_at_the_beginning_stay_whole(line: str, expected: str) -> None:
    assert MOSES.prepare(line) == expected


@pytest.mark.parametrize("line", [*TOKENISED_LINES, '"a" - "b"', "", "x", "(a) [b] {c}"])
def test_words_of_tokens_follow_the_words_of_plain_text(line: str) -> None:
    ids = MOSES_SUBWORDS.encode(line)
    words = words_of(MOSES_SUBWORDS.decode(ids))
    spelled = [""] * max(1, len(words))
    for index, own in zip(ids, MOSES_SUBWORDS.word_ranges(ids), strict=True):
        assert len(own) == 1
        spelled[own.start] += PLAIN_SUBWORDS.decode([index]).replace(" ", "")
    assert spelled == (words or [""])


def test_words_of_tokens_follow_chinese_text_in_which_moses_has_no_words() -> None:
    vocabulary = Words(["\u6211", "\u559c\u6b22", "NASA", "\u3002"]).with_steps(
        Steps(moses_lang="zh")
    )
    ids = vocabulary.encode("\u6211 \u559c\u6b22 NASA\u3002")
    assert vocabulary.word_ranges(ids)[:2] == [range(1), range(1, 3)]
    assert vocabulary.word_ranges(ids)[-1].stop == len(words_of(vocabulary.decode(ids)))


def test_a_tokenized_vocabulary_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(MOSES_SUBWORDS))
    assert copy.encode(TOKENISED_LINES[0]) == MOSES_SUBWORDS.encode(TOKENISED_LINES[0])


def test_czech_suffixes_are_joined() -> None:
    assert Moses("cs").detokenize("Ne l' - li to") == "Ne l'-li to"


def test_joiners_within_words_stay_there() -> None:
    vocabulary = Subword.train(["x"] * 50, "bpe", 262, "x").with_steps(Steps(moses_lang="fa"))
    for word in ("\u0645\u06cc\u200c\u062f\u0627\u0646\u0645", "\u0915\u094d\u200d\u0937"):
        line = f"{word}, ({word})."
        assert vocabulary.decode(vocabulary.encode(line)) == vocabulary.normalize(line) == line
