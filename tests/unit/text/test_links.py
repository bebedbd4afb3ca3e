import html
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from random import Random

import pytest
import sentencepiece
from hypothesis import assume, given
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.text.closed_words import Words
from nmtkit.text.links import check_links, links_of_pieces, parse_links, words_of_pieces
from nmtkit.text.subword import Subword
from nmtkit.text.vocabulary import Steps, Vocabulary
from nmtkit.text.words import word_spans, words_of
from tests.messages import refuses

LINKS = st.frozensets(st.tuples(st.integers(0, 999), st.integers(0, 999)))


@given(LINKS, LINKS, st.integers(0, 3), st.randoms())
def test_links_are_read_in_any_order_and_count(
    sure: frozenset[tuple[int, int]],
    possible: frozenset[tuple[int, int]],
    first: int,
    random: Random,
) -> None:
    texts = [f"{source + first}-{target + first}" for source, target in sure]
    texts += [f"{source + first}p{target + first}" for source, target in possible]
    texts += texts[:2]
    random.shuffle(texts)
    found = parse_links(" \t".join(texts) + " ", first)
    assert (found.sure, found.possible) == (sure, sure | possible)


def test_both_marks_of_possible_links_are_read() -> None:
    assert parse_links("1?2 3p4") == parse_links("1p2 3?4")


@pytest.mark.parametrize(
    "link", ["0", "0-", "a-1", "1-2-3", "0:1", "-1-2", "0-1/0.5", "1.0-2", "\u0661-1", 99 * "9"]
)
def test_what_is_no_link_is_refused(link: str) -> None:
    with refuses(DataError, f"{link}; SOURCE-TARGET 0-2 0p2", recorded=link == "0:1"):
        parse_links(f"0-0 {link}")


@pytest.mark.parametrize("link", ["0-1", "1p0"])
def test_a_link_before_the_first_word_is_refused(link: str) -> None:
    with refuses(DataError, f"{link} 1; 0"):
        parse_links(f"1-1 {link}", 1)


def test_a_link_outside_the_line_is_refused() -> None:
    check_links([(1, 0), (0, 2)], (2, 3))
    for link in ((2, 0), (0, 3)):
        with refuses(DataError, f"{link[0]}-{link[1]} 2 3; 0"):
            check_links([link], (2, 3))


SCRIPTS = (
    "The U.S. don't pay 5,000.50 dollars & more .",
    "caf\u00e9 cafe\u0301 \u00bd \ufb01ne \u2026 \u2122 \u2163 \u00df \u0130I",
    "\u5168\u89d2\u3000\uff21\uff22\uff23 \u65e5\u672c\u8a9e\u3067\u3059\u3002\uff76\uff9e\uff78",
    "\ufdfa \u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a \u0e19\u0e49\u0e33",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0958",
    "\U0001d11e \U0001f44d\U0001f3fd \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab",
    "x\u200b y a\u200bb \u00ad- \ufeffz &amp; &#39;q",
)
VOCABULARIES = ("bpe", "unigram", "cleaned", "moses", "words")
CHARACTERS = sorted({*"".join(SCRIPTS)})
LINES = st.lists(st.text(CHARACTERS, min_size=1, max_size=6), min_size=1, max_size=6).map(" ".join)


@cache
def vocabulary(name: str) -> Vocabulary:
    if name == "words":
        return Words([word for line in SCRIPTS for word in line.split()])
    algorithm = "unigram" if name == "unigram" else "bpe"
    subwords = Subword.train(SCRIPTS * 3, algorithm, 365 if name == "unigram" else 480, "x", [])  # type: ignore[arg-type]
    form = Steps(name == "cleaned", "nfkc", "en" if name == "moses" else "")
    return subwords.with_steps(form) if name in ("cleaned", "moses") else subwords


def bare(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", html.unescape(text)).casefold().split())


def is_plain(word: str) -> bool:
    """Whether a word is of letters and digits that no normalisation changes or drops."""
    return word.isalnum() and bare(word) == word.casefold()


@pytest.mark.parametrize("name", VOCABULARIES)
@given(line=st.sampled_from(SCRIPTS) | LINES)
def test_pieces_have_words_in_order_and_each_word_that_stays_has_a_piece(
    name: str, line: str
) -> None:
    own, words = vocabulary(name), words_of(line)
    ids = own.encode(line)
    if not (ids and words):
        return
    found = words_of_pieces(own, ids, words)
    assert len(found) == len(ids)
    assert all(0 <= one.start < one.stop <= len(words) for one in found)
    assert all(one.stop - 1 <= other.start + 1 for one, other in pairwise(found))
    covered = {word for one in found for word in one}
    if name != "words":
        assert covered >= {number for number, word in enumerate(words) if is_plain(word)}


def overlapping(line: str, spans: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the words of a line that each span has a character of."""
    words = word_spans(line)
    return [[n for n, (b, e) in enumerate(words) if b < end and e > begin] for begin, end in spans]


@pytest.mark.parametrize("name", ["bpe", "unigram"])
@given(line=st.sampled_from(SCRIPTS) | LINES)
def test_words_of_pieces_are_those_that_sentencepiece_finds(name: str, line: str) -> None:
    own = vocabulary(name)
    assert isinstance(own, Subword)
    model = sentencepiece.SentencePieceProcessor(model_proto=own.data)
    pieces = model.encode(line, out_type="proto").pieces
    places = {len(line[:n].encode()): n for n in range(len(line) + 1)}
    spans = [(places.get(one.begin, 0), places.get(one.end, 0)) for one in pieces]
    found = words_of_pieces(own, [one.id for one in pieces], words_of(line) or ["."])
    for piece, words, expected in zip(pieces, found, overlapping(line, spans), strict=True):
        # It counts neither the first bytes of a character, nor the inner parts of what NFKC splits.
        if piece.surface.isalnum():
            assert [*words] == expected


@given(st.lists(st.text(CHARACTERS, min_size=1, max_size=4), min_size=1, max_size=8), st.data())
def test_unknown_words_of_a_closed_vocabulary_are_found(
    tokens: list[str], data: st.DataObject
) -> None:
    line = data.draw(st.sampled_from([" ", "\u3000"])).join(tokens)
    assume(line.split() and all(words_of(token) for token in line.split()))
    known = data.draw(st.lists(st.sampled_from(line.split()), min_size=1))
    own = Words([*dict.fromkeys(known)])
    found = words_of_pieces(own, own.encode(line), words_of(line), line)
    spans = [match.span() for match in re.finditer(r"\S+", line)]
    assert [[*words] for words in found] == overlapping(line, spans)


def test_words_of_a_long_line_are_exact_around_a_difference() -> None:
    own = vocabulary("bpe")
    words = ["cafe"] * 5000
    ids = own.encode(" ".join([*words[:700], *words[701:]]))
    given = [*words[:700], "XX", *words[701:]]
    spelled = [""] * len(words)
    for text, places in zip(own.texts(ids), words_of_pieces(own, ids, given), strict=True):
        for place in places:
            spelled[place] += bare(text)
    assert spelled == [*words[:700], "", *words[701:]]


@pytest.mark.parametrize("name", ["cleaned", "moses"])
@pytest.mark.parametrize("line", SCRIPTS)
def test_a_piece_has_characters_of_its_words(name: str, line: str) -> None:
    own, words = vocabulary(name), words_of(line)
    ids = own.encode(line)
    for text, places in zip(own.texts(ids), words_of_pieces(own, ids, words), strict=True):
        if text.isalnum() and bare(text).isascii():
            spelled = "".join(words[place] for place in places)
            assert bare(text) in bare(spelled) or text in spelled


def test_pieces_have_tokens_of_another_tokenization() -> None:
    own = vocabulary("bpe")
    tokenized = "the u.s. do n &apos;t pay 5,000 . 50 dollars &amp; more ."
    tokens = tokenized.split()
    ids = own.encode(SCRIPTS[0])
    found = words_of_pieces(own, ids, tokens)
    spelled = dict.fromkeys(tokens, "")
    for text, places in zip(own.texts(ids), found, strict=True):
        for place in places:
            spelled[tokens[place]] += bare(text)
    assert spelled["dollars"] == "dollars"
    assert spelled["&amp;"] == "&"
    assert spelled["pay"] == "pay"
    assert "'" in spelled["&apos;t"]


@given(st.data(), st.sampled_from(VOCABULARIES), st.sampled_from(VOCABULARIES))
def test_words_are_linked_if_and_only_if_some_of_their_pieces_are(
    data: st.DataObject, source_name: str, target_name: str
) -> None:
    sides = []
    for name in (source_name, target_name):
        own, line = vocabulary(name), data.draw(st.sampled_from(SCRIPTS))
        sides.append(words_of_pieces(own, own.encode(line), words_of(line)))
    source, target = sides
    numbers = (st.integers(0, max(one.stop for one in side) - 1) for side in sides)
    words = data.draw(st.frozensets(st.tuples(*numbers), max_size=8))
    pieces = links_of_pieces(words, source, target)
    expected = [
        (s, t)
        for t, target_words in enumerate(target)
        for s, source_words in enumerate(source)
        if any((one, other) in words for one in source_words for other in target_words)
    ]
    assert pieces == expected
    if all(len(one) == 1 for side in sides for one in side):
        again = {(source[s].start, target[t].start) for s, t in pieces}
        have_pieces = [{one.start for one in side} for side in sides]
        assert again == {(s, t) for s, t in words if s in have_pieces[0] and t in have_pieces[1]}
