import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.moses import Moses
from nmtkit.text.subword import Subword
from nmtkit.text.tokenized import Tokenized, tokenize
from nmtkit.text.words import Words

LINES = ["the cat's mat, a dog (and a cat).", "it isn't a dog's mat: 5,000 cats!"]


def subwords(lang: str = "en") -> Tokenized:
    tokens = [tokenize(Moses(lang), line) for line in LINES]
    return Tokenized(Subword.train(tokens, "bpe", 320, "x"), lang)


SUBWORDS = subwords()


@pytest.mark.parametrize("line", LINES)
def test_plain_text_comes_back(line: str) -> None:
    assert SUBWORDS.decode(SUBWORDS.encode(line)) == line


SPICE = ["\u2581", "</s>", "<s>", "<unk>", "<0x41>", "@@", "&#124;", "&amp;", "|", "\uff3f", " "]
TEXT = st.lists(st.sampled_from(SPICE) | st.text()).map("".join)


@given(TEXT)
def test_decoding_gives_the_line_that_normalize_returns(line: str) -> None:
    assert SUBWORDS.decode(SUBWORDS.encode(line)) == SUBWORDS.normalize(line)


@given(TEXT)
def test_text_never_becomes_a_special_id(line: str) -> None:
    assert not {UNK_ID, BOS_ID, EOS_ID}.intersection(SUBWORDS.encode(line))


@pytest.mark.parametrize(
    "line", ["\u2581a\u2581 \u2581", "a &amp; &#124; | b", "</s> a <unk>", "a@@ b"]
)
def test_characters_with_a_meaning_elsewhere_lose_no_more_than_spaces(line: str) -> None:
    assert SUBWORDS.decode(SUBWORDS.encode(line)).replace(" ", "") == line.replace(" ", "")


def test_the_name_that_the_rules_use_for_dots_becomes_dots() -> None:
    assert tokenize(Moses("en"), "DOTMULTI a") == ". a"


def test_the_vocabulary_gets_tokenized_text() -> None:
    words = Tokenized(Words(["He", "said", ":", '"', "&", "."]), "en")
    ids = words.encode("He said: \u201e&\u201c")  # quotation marks become plain ones
    assert [words.piece(index) for index in ids] == ["He", "said", ":", '"', "&", '"']
    assert words.decode(ids) == 'He said: "&"'


def test_nothing_is_escaped_nor_unescaped() -> None:
    assert tokenize(Moses("en"), "a & b | [c]") == "a & b | [ c ]"
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
    assert tokenize(Moses("en"), line) == expected


@pytest.mark.parametrize("line", [*LINES, '"a" - "b"', "", "x", "(a) [b] {c}"])
def test_word_indices_follow_the_words_of_plain_text(line: str) -> None:
    ids = SUBWORDS.encode(line)
    words = SUBWORDS.decode(ids).split(" ")
    spelled = [""] * len(words)
    for index, number in zip(ids, SUBWORDS.word_indices(ids), strict=True):
        spelled[number] += SUBWORDS.vocabulary.decode([index])
    assert [text.replace(" ", "") for text in spelled] == words


def test_a_tokenized_vocabulary_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(SUBWORDS))
    assert copy.encode(LINES[0]) == SUBWORDS.encode(LINES[0])


def test_czech_suffixes_are_joined() -> None:
    assert Moses("cs").detokenize("Ne l' - li to") == "Ne l'-li to"
