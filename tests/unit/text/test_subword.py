import io
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Algorithm, Subword, SubwordRules
from nmtkit.text.vocabulary import Vocabulary
from nmtkit.text.words import words_of
from tests.messages import refuses

SIZE = 320


@cache
def corpus() -> tuple[str, ...]:
    generator = random.Random(1)
    syllables = ["ba", "ti", "no", "gar", "le", "sch", "un", "der"]
    words = ["".join(generator.choices(syllables, k=generator.randint(1, 4))) for _ in range(80)]
    return tuple(" ".join(generator.choices(words, k=6)) + "." for _ in range(200))


@cache
def model(algorithm: Algorithm = "bpe") -> Subword:
    return Subword.train(corpus(), algorithm, SIZE, "xx")


def trained_elsewhere(lines: Iterable[str], vocab_size: int, **options: Any) -> bytes:
    """Return a SentencePiece model as other tools train it, without byte fallback."""
    found = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=found,
        vocab_size=vocab_size,
        minloglevel=2,
        **options,
    )
    return found.getvalue()


def marian_of(subword: Subword) -> MarianVocabulary:
    """Return a vocabulary whose list has all pieces of a model."""
    pieces = [subword.piece(index) for index in range(EOS_ID + 1, subword.size)]
    return MarianVocabulary(subword.data, ["<unk>", "<pad>", "</s>", *pieces], "x")


def check_word_ranges(vocabulary: Vocabulary, ids: Sequence[int]) -> None:
    """Check that the tokens of each word spell it, and that no token has words that it does not."""
    words, ranges = words_of(vocabulary.decode(ids)), vocabulary.word_ranges(ids)
    assert len(ranges) == len(ids)
    assert ranges == sorted(ranges, key=lambda own: (own.start, own.stop))
    assert {word for own in ranges for word in own} == {*range(max(len(words), bool(ids)))}
    for index, word in enumerate(words):
        own = [one for one, of_token in zip(ids, ranges, strict=True) if index in of_token]
        assert word in vocabulary.decode(own)
    for one, own_words in zip(ids, ranges, strict=True):
        assert len(own_words) <= max(1, len(words_of(vocabulary.decode([one]))))


# Text that Hypothesis rarely draws: names of symbols, all kinds of spaces, NFKC's changes.
SPICE = st.sampled_from(["<s>", "</s>", "<unk>", "<0x41>", "\u2581", "\u00a0", "\u200b", "\ufb01"])
TEXT = st.lists(st.one_of(st.text(), SPICE, st.sampled_from(corpus()))).map("".join)


@given(TEXT)
def test_decoding_gives_the_normalized_line(line: str) -> None:
    assert model().decode(model().encode(line)) == model().normalize(line)


SPACE_SYMBOL = "\u2581"
# SentencePiece's symbol for a space, its escaped form, and text that may be taken for either.
LOOK_ALIKES = [
    SPACE_SYMBOL,
    " ",
    "\uff3f",
    "_",
    "\ufe4f",
    "\ue000",
    "\u0301",
    "\x01",
    "ba",
    "\u3000",
]


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@given(st.lists(st.sampled_from(LOOK_ALIKES) | SPICE | st.text()).map("".join))
def test_the_symbol_for_a_space_is_text_like_any_other(algorithm: Algorithm, line: str) -> None:
    other = "\u25a0"  # a symbol that SentencePiece does not use
    line = line.replace(other, "")
    with_other = model(algorithm).normalize(line.replace(SPACE_SYMBOL, other))
    decoded = model(algorithm).decode(model(algorithm).encode(line))
    assert decoded == with_other.replace(other, SPACE_SYMBOL)
    assert model(algorithm).normalize(line) == decoded


def test_a_space_symbol_that_is_frequent_in_text_gets_an_entry() -> None:
    trained = Subword.train([f"a{SPACE_SYMBOL}b {SPACE_SYMBOL}"] * 50, "bpe", 265, "xx")
    ids = trained.encode(f"a{SPACE_SYMBOL}b")
    assert trained.decode(ids) == f"a{SPACE_SYMBOL}b"
    assert not trained.unknown_ids.intersection(ids)


def test_in_a_model_trained_elsewhere_the_space_symbol_stays_a_space() -> None:
    elsewhere = Subword(trained_elsewhere(corpus(), 60), "elsewhere")
    assert elsewhere.encode(f"bati{SPACE_SYMBOL}no") == elsewhere.encode("bati no")
    assert elsewhere.normalize(f"{SPACE_SYMBOL}bati{SPACE_SYMBOL}no \uff3f") == "bati no _"


def test_a_token_is_an_entry_at_the_beginning_of_a_word() -> None:
    trained = Subword.train(corpus(), "bpe", SIZE, "xx", ["(NP", f"<{SPACE_SYMBOL}>"])
    pieces = [trained.piece(index) for index in trained.encode(f"x (NP <{SPACE_SYMBOL}> x(NP")]
    assert pieces.count(f"{SPACE_SYMBOL}(NP") == 1
    assert f"{SPACE_SYMBOL}<\uff3f>" in pieces
    assert trained.decode(trained.encode(f"<{SPACE_SYMBOL}> b")) == f"<{SPACE_SYMBOL}> b"


def test_the_space_symbol_directly_before_a_whole_token_is_a_space() -> None:
    trained = Subword.train(corpus(), "bpe", SIZE, "xx", ["(NP"])
    assert trained.decode(trained.encode(f"ba{SPACE_SYMBOL}(NP")) == "ba (NP"


@given(TEXT)
def test_words_of_tokens_follow_the_decoded_line(line: str) -> None:
    check_word_ranges(model(), model().encode(line))


@given(st.data())
def test_words_of_any_tokens_follow_the_decoded_text(data: st.DataObject) -> None:
    bytes_ = model().unknown_ids - {UNK_ID}  # those drawn at random spell no characters
    pieces = [i for i in range(model().size) if i not in bytes_]
    spice = [UNK_ID, *(i for i in pieces if model().piece(i) == "\u2581")]
    ids = data.draw(st.lists(st.sampled_from(pieces) | st.sampled_from(spice)))
    check_word_ranges(model(), ids)


@pytest.mark.parametrize("line", ["我喜欢 ba", "हिन्दी नो", "น้ำใจ", "مُحَمَّدٌ ba", "\U0001f600 ti"])
def test_bytes_are_of_the_word_of_their_character(line: str) -> None:
    ids = model().encode(line)  # by bytes
    assert len(ids) > len(line)
    check_word_ranges(model(), ids)
    assert model().word_ranges(ids)[-1].stop == len(words_of(line))


def test_a_token_of_several_characters_has_several_words() -> None:
    chinese = Subword.train(["我喜欢苹果"] * 20, "bpe", 270, "zh")
    ids = chinese.encode("我喜欢苹果")
    assert len(ids) < 5
    check_word_ranges(chinese, ids)
    assert [word for own in chinese.word_ranges(ids) for word in own] == [0, 1, 2, 3, 4]


@given(TEXT)
def test_normalizing_is_idempotent(line: str) -> None:
    normalized = model().normalize(line)
    assert model().encode(normalized) == model().encode(line)


@given(TEXT)
def test_text_never_becomes_a_special_id(line: str) -> None:
    assert not {UNK_ID, BOS_ID, EOS_ID}.intersection(model().encode(line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  a \t b\u00a0c\u3000 ", "a b c"),
        ("\ufb01nal \uff21\uff22", "final AB"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("\u2581A \u2581", "\u2581A \u2581"),
        ("\u2581 \uff3f \ufe4f", "\u2581 _ _"),
        ("a\rb\u2028c", "a b c"),
        (
            "\u0645\u06cc\u200c\u062f\u0627\u0646\u0645",
            "\u0645\u06cc\u200c\u062f\u0627\u0646\u0645",
        ),
        (
            "\u0915\u094d\u200d\u0937 \U0001f469\u200d\U0001f52c",
            "\u0915\u094d\u200d\u0937 \U0001f469\u200d\U0001f52c",
        ),
        ("\ufeffa\u200bb \u200fc\u200e\u061c \u2067d\u2069\u2060", "ab c d"),
        ("a\x00b", "a\x00b"),
        ("Stra\u00dfe I\u0131", "Stra\u00dfe I\u0131"),
        ("</s> x", "</s> x"),
    ],
)
def test_normalizing_is_nfkc_with_single_spaces(line: str, expected: str) -> None:
    assert model().normalize(line) == expected
    assert model().decode(model().encode(line)) == expected


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@given(TEXT)
def test_without_normalization_only_spaces_change(algorithm: Algorithm, line: str) -> None:
    text = " ".join(line.replace("\uff3f", "_").split(" ")).strip(" ")
    while "  " in text:
        text = text.replace("  ", " ")
    assert unchanged(algorithm).decode(unchanged(algorithm).encode(line)) == text
    assert unchanged(algorithm).normalize(line) == text


@cache
def unchanged(algorithm: Algorithm) -> Subword:
    return Subword.train(corpus(), algorithm, SIZE, "xx", rules=SubwordRules(normalizes=False))


@pytest.mark.parametrize("unit", ["gnu ", "gnu", "\u6c34\u706b"])
def test_long_lines_are_learnt_from_in_parts(unit: str) -> None:
    text, width = 5000 * unit, len(unit if " " in unit else unit[0])
    size = 4192 // len(text[:width].encode()) * width
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    trained = Subword.train([*corpus(), text], "bpe", SIZE, "xx")
    assert trained.data == Subword.train([*corpus(), *parts], "bpe", SIZE, "xx").data
    assert not trained.unknown_ids.intersection(trained.encode(unit))


def test_a_character_that_sentencepiece_reserves_keeps_no_line_from_being_learnt() -> None:
    trained = Subword.train([*corpus(), *["gnu \u2585 gnu"] * 50], "bpe", SIZE, "xx")
    assert not trained.unknown_ids.intersection(trained.encode("gnu"))
    assert trained.decode(trained.encode("gnu \u2585")) == "gnu \u2585"


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_a_letter_that_occurs_ten_times_is_an_entry_and_a_rarer_one_is_bytes(
    algorithm: Algorithm,
) -> None:
    rare = "".join(map(chr, range(0x4E00, 0x4E0A)))
    lines = [*5 * corpus(), 10 * "e\u0301", rare]  # both are less than 0.05 % of the text
    trained = Subword.train(lines, algorithm, SIZE, "xx")
    assert not trained.unknown_ids.intersection(trained.encode("\u00e9"))
    assert all(trained.unknown_ids.intersection(trained.encode(one)) for one in rare)


def test_digits_are_entries_of_their_own_on_request() -> None:
    lines = [*corpus(), *["in 2024 and 1984, a4"] * 50]
    for splits in (False, True):
        rules = SubwordRules(splits_digits=splits)
        trained = Subword.train(lines, "bpe", SIZE, "xx", rules=rules)
        pieces = [trained.piece(index) for index in trained.encode("in 2024 a4")]
        assert (max(sum(map(str.isdigit, piece)) for piece in pieces) == 1) == splits
        assert trained.decode(trained.encode("in 2024 a4")) == "in 2024 a4"


def test_decoding_skips_begin_and_end_and_shows_unknown_tokens() -> None:
    ids = model().encode("bati no")
    assert model().decode([BOS_ID, *ids, EOS_ID]) == model().decode(ids)
    assert model().decode([]) == model().decode([BOS_ID, EOS_ID]) == ""
    assert "\u2047" in model().decode([*ids, UNK_ID])  # SentencePiece's sign for it


def test_special_symbols_have_the_ids_of_the_toolkit() -> None:
    assert [model().piece(i) for i in (UNK_ID, BOS_ID, EOS_ID)] == ["<unk>", "<s>", "</s>"]
    assert model().size == SIZE


def test_bytes_count_as_unknown_and_entries_do_not() -> None:
    assert len(model().unknown_ids) == 257
    assert not model().unknown_ids.intersection(model().encode("bati no"))
    num_bytes = len("\u4e2d".encode())
    assert sum(i in model().unknown_ids for i in model().encode("bati \u4e2d")) == num_bytes


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_the_same_text_gives_the_same_model(algorithm: Algorithm) -> None:
    again = Subword.train(iter(corpus()), algorithm, SIZE, "xx")
    assert again.data == model(algorithm).data


def test_symbols_that_are_spelled_in_the_training_text_stay_text() -> None:
    spelled = "x<s>y </s> <unk> a<0x41>b <pad>"
    trained = Subword.train([spelled] * 50 + list(corpus()), "bpe", 340, "xx")
    assert trained.decode(trained.encode(spelled)) == spelled
    assert min(trained.encode(spelled)) > EOS_ID


def test_a_token_of_20_000_letters_is_encoded_quickly() -> None:
    begin = time.perf_counter()
    ids = model().encode("ab" * 10_000)
    assert model().decode(ids) == "ab" * 10_000
    assert time.perf_counter() - begin < 5  # measured: 0.01 s; a quadratic way takes minutes


def test_training_and_loading_write_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    Subword(Subword.train(corpus(), "bpe", SIZE, "xx").data, "x").encode("bati")
    with pytest.raises(ConfigError):
        Subword.train(corpus(), "bpe", 9, "xx")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("algorithm", "size", "name"),
    [("bpe", 50_000, "en and de"), ("unigram", 50_000, "en and de"), ("bpe", 100, "en")],
)
def test_a_size_out_of_range_is_an_error_with_the_nearest_possible_one(
    algorithm: Algorithm, size: int, name: str
) -> None:
    with refuses(ConfigError, f"{size} {name}; --vocab-size") as raised:
        Subword.train(corpus(), algorithm, size, name)
    nearest = re.search(r"--vocab-size .*?(\d+)", str(raised.value))
    assert nearest
    assert Subword.train(corpus(), algorithm, int(nearest[1]), "x").size == int(nearest[1])


@pytest.mark.parametrize("lines", [[], [""], [" ", "\t"]])
def test_nothing_to_learn_from_is_an_error(lines: list[str]) -> None:
    with refuses(DataError, "en blank"):
        Subword.train(lines, "bpe", SIZE, "en")


@pytest.mark.parametrize("error", [DataError("x:3: bad"), KeyboardInterrupt()])
def test_an_error_of_the_lines_is_raised_unchanged(error: BaseException) -> None:
    def lines() -> Iterator[str]:
        yield "a"
        raise error

    with pytest.raises(type(error)) as raised:
        Subword.train(lines(), "bpe", SIZE, "xx")
    assert raised.value is error


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_damaged_model_is_an_error_that_names_the_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(model().data[:cut])
    with refuses(DamagedError, f"{path} SentencePiece; .model .vocab"):
        Subword.load(path)


def test_a_model_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with refuses(ConfigError, "missing.model; SentencePiece"):
        Subword.load(tmp_path / "missing.model")


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.model").write_bytes(trained_elsewhere(corpus(), 60, pad_id=0, unk_id=3))
    with refuses(ConfigError, "other.model <unk> <s> </s> ids; SentencePiece's"):
        Subword.load(tmp_path / "other.model")


@given(st.data())
def test_any_ids_decode_to_valid_text(data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, SIZE - 1)))
    assert model().decode(ids).encode().decode() == model().decode(ids)


def test_half_a_character_at_the_end_is_a_word_as_it_is_decoded() -> None:
    vocabulary = Subword.train(["das ist ein Haus"] * 5, "bpe", 290, "x")
    first_bytes = [index for index in range(vocabulary.size) if vocabulary.piece(index) == "<0xE6>"]
    ids = [*vocabulary.encode("das"), *vocabulary.encode(" "), *first_bytes]
    check_word_ranges(vocabulary, ids)
    assert vocabulary.word_ranges(ids)[-1] == range(
        len(words_of(vocabulary.decode(ids))) - 1, len(words_of(vocabulary.decode(ids)))
    )
