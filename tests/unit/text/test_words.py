# ruff: noqa: RUF001
"""Words by script: expectations by hand, and by `regex`, which implements UAX #29."""

import time
import unicodedata
from typing import Literal

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.text.words import (
    halves,
    is_spaceless,
    joined,
    word_spans,
    words_and_punctuation,
    words_of,
    words_of_parts,
)

SAMPLES = {
    "我用 iPhone\uff0c很好。": ["我", "用", "iPhone", "\uff0c", "很", "好", "。"],
    "NHKは\u200b１0個": ["NHK", "は", "１0", "個"],
    "मैं हिन्दी किताब पढ़ती हूँ": ["मैं", "हिन्दी", "किताब", "पढ़ती", "हूँ"],
    "น้ำใจดี มาก": ["น้ำ", "ใ", "จ", "ดี", "ม", "า", "ก"],
    "مُحَمَّدٌ می\u200cخواهم": ["مُحَمَّدٌ", "می\u200cخواهم"],
    "தமிழ் மொழி": ["தமிழ்", "மொழி"],
    "Gru\u0308\u00dfe 3\ufe0f\u20e3": ["Gru\u0308\u00dfe", "3\ufe0f\u20e3"],
    "한국어 문장": ["한국어", "문장"],
    "ក្រុម မြန်မာ": ["ក្រុ", "ម", "မြ", "န်", "မာ"],
}  # fmt: skip

FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
EMOJI = ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd",
         "\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7", "\u2764\ufe0f"]  # fmt: skip

LETTERS = "ab1.!\u3002\uff0c\u6211\u3044\u0e19\u0e49\u0e33\u0939\u093f\u094d\u0301\u1780\u17d2"
TEXTS = st.text(
    LETTERS + "\u200c\u200d\u200b\U0001f1e9\U0001f468\u201d'_ \u00a0\u3000", max_size=40
)
CLUSTERS = ["1", "a", "e\u0301", *"我。.", "น้ำ", "ที่", "हि", "\uff0c", "\uff1f", "\u201d", " "]
SPACES = " \u00a0\u3000\u200b"


@pytest.mark.parametrize("text", SAMPLES)
def test_a_word_is_between_spaces_or_a_cluster(text: str) -> None:
    assert words_of(text) == words_and_punctuation(text) == SAMPLES[text]


def test_punctuation_is_part_of_the_word_next_to_it_or_apart() -> None:
    text = "\u200fقال\u200f: (don't) हूँ। M-1!! x_y"
    assert words_of(text) == ["\u200fقال\u200f:", "(don't)", "हूँ।", "M-1!!", "x_y"]
    assert words_and_punctuation(text) == [
        "قال", ":", "(", "don", "'", "t", ")", "हूँ", "।", "M", "-", "1", "!", "!", "x_y",
    ]  # fmt: skip


@given(TEXTS)
def test_words_concatenated_are_the_text_without_spaces(text: str) -> None:
    assert "".join(words_of(text)) == "".join(c for c in text if c not in SPACES)
    assert words_of(text) == [text[start:end] for start, end in word_spans(text)]


@given(st.text(st.characters(min_codepoint=0x2E80, max_codepoint=0x9FFF)).map("\u6211".__add__))
def test_clusters_are_those_of_unicode(text: str) -> None:
    own = [one for one in regex.findall(r"\X", text) if one.strip()]
    assert "".join(words_of(text)) == "".join(own).replace("\u3000", "")
    assert {*words_of(text)} <= {*own} | {"".join(own)}


@pytest.mark.parametrize(
    "text", ["น้ำใจดีที่สุด", "ພາສາລາວ", "ភាសាខ្មែរ", "\u304c\u304b\u3099\uff76\uff9e"]
)
def test_clusters_of_syllables_are_those_of_unicode(text: str) -> None:
    assert words_of(text) == regex.findall(r"\X", text)


@pytest.mark.parametrize("text", ["น้ำใจดี", "ນ້ຳໃຈ", "ຂໍດີ", "한국어 문장", "\u30ac\uff76\uff9e"])
def test_normal_forms_have_the_same_words(text: str) -> None:
    for form in FORMS:
        assert len(words_of(unicodedata.normalize(form, text))) == len(words_of(text))


def test_emoji_are_single_signs() -> None:
    assert words_and_punctuation("".join(EMOJI)) == regex.findall(r"\X", "".join(EMOJI)) == EMOJI


@given(st.lists(TEXTS))
def test_a_part_has_the_words_of_its_characters(parts: list[str]) -> None:
    spans, begin = word_spans("".join(parts)), 0
    for part, words in zip(parts, words_of_parts(parts, spans), strict=True):
        end = begin + len(part)
        own = [i for i, (start, stop) in enumerate(spans) if start < end and stop > begin]
        after = [i for i, (start, stop) in enumerate(spans) if stop > begin] or [len(spans) - 1]
        assert [*words] == (own or [max(0, after[0])])
        begin = end


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["我喜欢 iPhone"], True),
        (["สวัสดี Tom"], True),
        (["I like 我"], False),
        (["안녕하세요"], False),
        (["", "?!"], False),
        (["Yes", "Yes", "Yes", "\u306f\u3044"], False),
        (["Yes", "\u306f\u3044\u306f\u3044"], True),
    ],
)
def test_a_text_is_spaceless_if_most_of_its_words_are(texts: list[str], expected: bool) -> None:
    assert is_spaceless(texts) is expected


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("我喜欢苹果。今天天气很好\uff0c我们去北京吃饭。", "我喜欢苹果。"),
        ("你好吗\uff1f」他说\uff0c我很好谢谢", "你好吗\uff1f」"),
        ("你好!我是汤姆", "你好!"),
        ("aa bb. Cc dd ee", "aa bb."),
        ("aa bb.cc dd ee ff", "aa bb.cc"),  # no sentence ends
        ("a. bb cc dd ee ff", "a. bb cc"),  # too near to the beginning
        ("हिन्दी है। किताब है", "हिन्दी है।"),
        ("สวัสดีครับ ผมชื่อทอม", "สวัสดีครับ"),
        ("苹果\uff0c今天吃", "苹果\uff0c"),
        ("NHK은xxxxxxxx 방송", "NHK은xxxxxxxx"),
        ("น้ำน้ำน้ำ", "น้ำ"),
        ("e\u0301e\u0301e\u0301e\u0301", "e\u0301e\u0301"),
    ],
)
def test_a_text_is_split_at_the_best_place_near_its_middle(text: str, left: str) -> None:
    split = halves(text)
    assert split
    assert split[0] == left


@given(TEXTS)
def test_halves_are_shorter_and_keep_letters_with_their_marks(text: str) -> None:
    split = halves(text)
    if split is None:
        assert len(regex.findall(r"\X", text)) < 3
        return
    left, right = split
    gap = text[len(left) : len(text) - len(right)]
    assert left + gap + right == text
    assert gap in {"", *SPACES}
    assert max(len(left), len(right)) < len(text)
    if not gap:
        assert regex.match(r"[\p{M}\u0e33\u200c\u200d]", right) is None


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["我喜欢苹果。", "今天"], "我喜欢苹果。今天"),
        (["私は", "", "iPhone"], "私はiPhone"),
        (["สวัสดี", "ครับ"], "สวัสดีครับ"),
        (["मैं", "हूँ"], "मैं हूँ"),
        (["안녕", "하세요"], "안녕 하세요"),
        (["", "a.", "B", ""], "a. B"),
        ([], ""),
    ],
)
def test_parts_are_joined_as_their_script_writes(parts: list[str], expected: str) -> None:
    assert joined(parts, are_sentences=False) == expected


def test_only_some_scripts_have_spaces_between_sentences() -> None:
    assert joined(["สวัสดี", "ลาก่อน"], are_sentences=True) == "สวัสดี ลาก่อน"
    assert joined(["你好。", "再见。"], are_sentences=True) == "你好。再见。"


@given(st.lists(st.lists(st.sampled_from(CLUSTERS)).map("".join).map(str.strip)))
def test_joining_keeps_the_words_of_the_parts(parts: list[str]) -> None:
    assert words_of(joined(parts, are_sentences=False)) == [
        word for part in parts for word in words_of(part)
    ]


@pytest.mark.parametrize("mark", [".", "!", "\u2026", ".)", "?\u300d"])
def test_a_long_run_of_marks_takes_linear_time(mark: str) -> None:
    """Quadratic time would be hours for the longest line."""
    start = time.process_time()
    assert halves(mark * 50_000 + "a")
    assert time.process_time() - start < 10


def test_a_wide_point_between_digits_ends_no_sentence() -> None:
    text = "\u4e00\u5171\uff11\uff12\uff13\uff0e\uff14\uff15\u516c\u65a4\u7684\u6c34\u679c"
    both = halves(text)
    assert both is not None
    assert "".join(both) == text
    assert not both[0].endswith("\uff0e")
    assert "\uff13\uff0e\uff14\uff15" in "".join(words_of(text))
