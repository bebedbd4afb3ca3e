import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmtkit.text.moses import Moses, split_compounds
from tests.shared_data import DATA, needs_data

TOK = DATA / "tok"
FLORES = TOK / "flores-moses"

# Lines out of 100 per language for which sacremoses differs from the scripts of Moses.
# docs/scoring.md names them.
DIFFERENT_TOKENS = {
    "ca": 72, "fi": 3, "ga": 11, "hi": 98, "ja": 100, "sv": 6, "ta": 100, "zh": 95,
}  # fmt: skip
DIFFERENT_DETOKENIZED = {"ga": 11}
DIFFERENT_PUNCTUATION = {
    "ar": 4, "ca": 2, "da": 9, "el": 1, "fi": 5, "ga": 9, "he": 25, "hi": 2, "hu": 7, "is": 9,
    "ko": 9, "lt": 3, "lv": 7, "pt": 5, "ro": 7, "ru": 1, "sv": 10, "ta": 6, "tr": 3,
}  # fmt: skip


def read(path: Path) -> list[str]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return text.decode().removesuffix("\n").split("\n")


def languages() -> list[str]:
    return sorted(path.name.split(".")[0] for path in FLORES.glob("*.raw"))


def different(lines: Iterator[str], expected: list[str]) -> int:
    return sum(one != other for one, other in zip(lines, expected, strict=True))


@pytest.mark.sampled(every=3)
@needs_data
@pytest.mark.parametrize("lang", languages())
def test_flores_equals_moses_except_known_differences(lang: str) -> None:
    moses = Moses(lang)
    raw, tokens = read(FLORES / f"{lang}.raw"), read(FLORES / f"{lang}.tok")
    # Moses leaves spaces at the ends of lines.
    punctuation = [line.strip(" ") for line in read(FLORES / f"{lang}.normpunct")]
    assert different(map(moses.tokenize, raw), tokens) == DIFFERENT_TOKENS.get(lang, 0)
    assert different(map(moses.normalize, raw), punctuation) == DIFFERENT_PUNCTUATION.get(lang, 0)
    text = map(moses.detokenize, tokens)
    assert different(text, read(FLORES / f"{lang}.detok")) == DIFFERENT_DETOKENIZED.get(lang, 0)


@pytest.mark.sampled(every=3)
@needs_data
@pytest.mark.parametrize(("pair", "lang"), [("en-de", "de"), ("en-de", "en"), ("en-fr", "fr")])
def test_the_test_sets_of_the_paper_are_tokenized_as_by_moses(pair: str, lang: str) -> None:
    raw = read(DATA / "parallel" / "wmt" / f"newstest2014.{pair}.{lang}")
    moses = Moses(lang)
    tokens = [moses.tokenize(line) for line in raw]
    folder = TOK / "newstest2014"
    assert tokens == read(folder / f"newstest2014.{pair}.{lang}.tok.gz")
    if lang == "de":
        compounds = read(folder / "newstest2014.en-de.de.tok.atat.gz")
        assert [split_compounds(line) for line in tokens] == compounds


@needs_data
@pytest.mark.parametrize("lang", ["cs", "de", "en", "es", "fr", "ru"])
def test_moses_own_regression_tests_pass(lang: str) -> None:
    folder = TOK / "moses-regression"
    raw, tokens = read(folder / f"{lang}.txt"), read(folder / f"{lang}.tok")
    assert [Moses(lang).tokenize(line) for line in raw] == tokens


@needs_data
def test_moses_own_cases_of_detokenization_pass() -> None:
    cases = json.loads((TOK / "moses-detokenizer-cases.json").read_text("utf-8"))["cases"]
    for case in cases:
        moses = Moses(case["lang"] or "en")
        tokens = case["tokenised"].removesuffix("\n").split("\n")
        text = case["detokenised"].removesuffix("\n").split("\n")
        assert [moses.detokenize(line) for line in tokens] == text, case["name"]


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("It's 5 p.m. now, at 5 p.m.", "It &apos;s 5 p.m. now , at 5 p.m ."),
        ("Well...", "Well ..."),
        ("One. Two.", "One . Two ."),
        ("", ""),
        (" \u00a0 ", ""),
        ("a\u00a0b", "a b"),
        ("'Hello.'", "&apos;Hello . &apos; "),
    ],
)
def test_a_full_stop_at_the_end_of_a_line_is_a_token(line: str, tokens: str) -> None:
    assert Moses("en").tokenize(line) == tokens


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("Sejdeme se 3 . 5 . 2020 v Praze .", "Sejdeme se 3.5.2020 v Praze."),
        (
            "Koupil 5 jablek za 1 , 5 koruny v roce 2020 .",
            "Koupil 5 jablek za 1,5 koruny v roce 2020.",
        ),
        ("3 , 5", "3,5"),
        ("B 12 . a 3 x , 5", "B 12. a 3 x, 5"),
    ],
)
def test_czech_numbers_are_joined_at_points_and_commas_and_to_no_word(
    tokens: str, text: str
) -> None:
    """As by detokenizer.perl, whose rule for floats looks at the two words before a number."""
    assert Moses("cs").detokenize(tokens) == text


@pytest.mark.parametrize("line", ["(a) b", "\u2014 a", "a)", "a\u00a0"])
def test_normalizing_removes_spaces_at_both_ends(line: str) -> None:
    """The script keeps them, and adds some around brackets and dashes."""
    assert Moses("es").normalize(line) == Moses("es").normalize(line).strip()


def test_quotation_marks_and_dashes_become_plain() -> None:
    assert Moses("de").normalize("\u201eJa\u201c \u2013 so\u2026") == '"Ja" - so...'
    assert Moses("de").normalize("\u201eGenug.\u201c") == '"Genug".'


@pytest.mark.parametrize(
    ("tokens", "split"),
    [
        ("EU-Land", "EU ##AT##-##AT## Land"),
        ("a - b -c d-", "a - b -c d-"),
        ("a-b-c", "a ##AT##-##AT## b-c"),
        (
            "rot-wei\u00df-rot 1-0",
            "rot ##AT##-##AT## wei\u00df ##AT##-##AT## rot 1 ##AT##-##AT## 0",
        ),
    ],
)
def test_compounds_are_split_at_hyphens_with_letters_around(tokens: str, split: str) -> None:
    assert split_compounds(tokens) == split
