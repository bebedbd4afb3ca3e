import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DamagedError, DataError
from nmtkit.text.characters import unescape
from nmtkit.text.cleaned import Cleaned, Cleaning, cleaned
from nmtkit.text.codec import TextCodec
from nmtkit.text.moses import Moses
from nmtkit.text.subword import Subword
from nmtkit.text.tokenized import Tokenized, tokenize
from nmtkit.text.words import Words
from tests.golden.freeze_codec import LINES
from tests.messages import refuses

BOTH = Cleaning(unescape=True, normalize="nfc")
SUBWORDS = Subword.train(LINES, "bpe", 320, "x")
VOCABULARIES: list[Subword | Words | Tokenized] = [
    SUBWORDS,
    Words(["the", "cat", "a", "&", "\u00e9"]),
    Tokenized(Subword.train([tokenize(Moses("en"), one) for one in LINES], "bpe", 320, "x"), "en"),
]
SPICE = ["&amp;", "&#39;", "&lt;bt&gt;", "e\u0301", "\ufb01", "<bt>", "the cat", " "]
TEXT = st.lists(st.sampled_from(SPICE) | st.text()).map("".join)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@given(line=TEXT)
def test_a_line_is_encoded_as_the_cleaned_line(
    vocabulary: Subword | Words | Tokenized, line: str
) -> None:
    wrapped = Cleaned(vocabulary, BOTH)
    expected = unicodedata.normalize("NFC", unescape(line))
    assert wrapped.encode(line) == vocabulary.encode(expected)
    assert wrapped.normalize(line) == vocabulary.normalize(expected)
    assert wrapped.decode(wrapped.encode(line)) == vocabulary.decode(vocabulary.encode(expected))


@pytest.mark.parametrize(
    ("cleaning", "names", "expected"),
    [
        (Cleaning(False, "none"), [], "&eacute; e\u0301 \ufb01"),
        (Cleaning(True, "none"), ["unescape"], "\u00e9 e\u0301 \ufb01"),
        (Cleaning(False, "nfc"), ["nfc"], "&eacute; \u00e9 \ufb01"),
        (Cleaning(True, "nfkc"), ["unescape", "nfkc"], "\u00e9 \u00e9 fi"),
    ],
)
def test_each_step_is_a_choice(cleaning: Cleaning, names: list[str], expected: str) -> None:
    assert cleaning.names == names
    assert cleaning.clean("&eacute; e\u0301 \ufb01") == expected
    assert (cleaned(SUBWORDS, cleaning) is SUBWORDS) == (not names)


def codec_with(cleaning: Cleaning) -> TextCodec:
    source, target = (cleaned(one, cleaning) for one in (VOCABULARIES[2], VOCABULARIES[1]))
    return TextCodec("en", "de", source, target, is_shared=False)


@pytest.mark.parametrize("cleaning", [BOTH, Cleaning(True, "none"), Cleaning(False, "nfkc")])
def test_a_saved_codec_cleans(cleaning: Cleaning, tmp_path: Path) -> None:
    codec = codec_with(cleaning)
    codec.save(tmp_path)
    loaded = TextCodec.load(tmp_path)
    assert loaded.to_json() == codec.to_json()
    assert loaded.fingerprint == codec.fingerprint
    assert loaded.segmentation == ", ".join([*cleaning.names, "moses", "bpe and words"])
    for line in ("&eacute; e\u0301 \ufb01", *LINES):
        assert loaded.encode_source(line) == codec.encode_source(line)
        assert loaded.encode_target(line) == codec.encode_target(line)


def test_the_fingerprint_depends_on_the_cleaning() -> None:
    cleanings = [Cleaning(False, "none"), BOTH, Cleaning(True, "none"), Cleaning(True, "nfkc")]
    assert len({codec_with(one).fingerprint for one in cleanings}) == len(cleanings)


@pytest.mark.parametrize(
    "wrong", ['"unescape": 1', '"normalize": "nfd"', '"normalize": null', '"unescape": "yes"']
)
def test_a_damaged_description_is_refused(wrong: str, tmp_path: Path) -> None:
    codec_with(Cleaning(True, "nfc")).save(tmp_path)
    path = tmp_path / "codec.json"
    name = wrong.partition(":")[0]
    right = '"unescape": true' if "unescape" in name else '"normalize": "nfc"'
    path.write_text(path.read_text("utf-8").replace(right, wrong, 1), "utf-8")
    with refuses(DamagedError, "codec.json source"):
        TextCodec.load(tmp_path)


def test_tokens_that_cleaning_changes_are_refused() -> None:
    wrapped = Cleaned(VOCABULARIES[1], BOTH)
    assert wrapped.with_tokens(["<bt>"]).size == wrapped.size + 1
    with refuses(DataError, "<bt> unescape nfc"):
        wrapped.with_tokens(["&lt;bt&gt;"])
