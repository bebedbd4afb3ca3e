"""Several directions, from texts to one dataset."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.preprocessing import CorpusConfig, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import Audit, describe
from nmtkit.data.binary import Dataset, ValidText
from nmtkit.data.vocabulary import _LearningText
from nmtkit.errors import ConfigError, DataError
from nmtkit.text.codec import TextCodec
from nmtkit.text.vocabulary import Steps
from tests.messages import refuses
from tests.tiny import (
    VALID_LINES,
    prepared,
    tiny_codec,
    tiny_directions,
    with_settings,
    write_lines,
)
from tests.unit.data.test_inherited import model
from tests.unit.data.test_prepare import stored


def test_each_pair_begins_with_the_symbol_of_its_target(tmp_path: Path) -> None:
    prepared(tiny_directions(tmp_path), tmp_path / "data")
    pairs = stored(tmp_path / "data")
    assert len(pairs) == 23
    for source, target in pairs:
        symbol, text = source.split(" ", 1)
        expected = {"<2de>": text.upper(), "<2nl>": text[::-1], "<2en>": text}
        assert target == expected[symbol] or (symbol == "<2en>" and len(target) <= 3)
    assert Counter(source.split()[0] for source, _ in pairs) == {
        "<2de>": 10,
        "<2nl>": 10,
        "<2en>": 3,
    }


def test_held_out_lines_are_dropped_on_either_side(tmp_path: Path) -> None:
    recipe = tiny_directions(tmp_path)
    for name, *lines in (("few.en", "a", "b", "c"), ("few.nl", "x", "y", "z")):
        write_lines(tmp_path / name, lines)
    write_lines(tmp_path / "test.en", ["a", "nowhere"])
    write_lines(tmp_path / "test.nl", ["neither", "y"])
    held_out = (f"{tmp_path / 'test'}:en-nl",)
    prepared(with_settings(recipe, held_out=held_out), tmp_path / "data")
    assert sum(one.startswith("<2en>") for one, _ in stored(tmp_path / "data")) == 1


def test_validation_texts_follow_each_other_with_their_symbols(tmp_path: Path) -> None:
    prepared(tiny_directions(tmp_path), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    assert dataset.valid_source == [
        f"<2{lang}> {one}" for lang in ("de", "nl") for one in VALID_LINES
    ]
    assert dataset.valid_texts == (ValidText("en-de", 3, 3), ValidText("en-nl", 3, 3))
    assert dataset.directions == ("en-de", "en-nl", "nl-en")
    assert len(dataset.valid) == 6


@pytest.mark.parametrize(
    "vocabulary", [{"segmentation": "bpe", "vocab_size": 290}, {"segmentation": "words"}]
)
def test_a_source_symbol_follows_and_each_symbol_is_an_entry(
    tmp_path: Path, vocabulary: dict[str, Any]
) -> None:
    recipe = tiny_directions(tmp_path)
    tag = (f"{recipe.corpus.train[0]}=<bt>",)
    recipe = with_settings(recipe, source_symbols=True, tag=tag, **vocabulary)
    prepared(recipe, tmp_path / "data")
    codec = TextCodec.load(tmp_path / "data" / "codec")
    assert codec.directions == ("en-de", "en-nl", "nl-en")
    assert (codec.source_lang, codec.target_lang) == ("mul", "mul")
    assert len(codec.source.encode("<2de> <from-en> <bt>")) == 3
    assert {*codec.symbols} == {"<2de>", "<2nl>", "<2en>", "<from-en>", "<from-nl>"}
    assert any(
        source.startswith("<2de> <from-en> <bt> ") for source, _ in stored(tmp_path / "data")
    )


def test_the_audit_has_a_row_for_each_text_of_a_direction(tmp_path: Path) -> None:
    prepared(tiny_directions(tmp_path), tmp_path / "data")
    audit = Audit.from_manifest(Dataset.open(tmp_path / "data").manifest)
    assert [one.text.direction for one in audit.corpora] == ["en-de", "en-nl", "nl-en"]
    assert [one.counts.kept for one in (*audit.corpora, *audit.valid)] == [10, 10, 3, 3, 3]
    lines = [*describe(tmp_path / "data", check=True)]
    assert "directions   en-de, en-nl, nl-en" in lines
    assert any(line.startswith(f"{tmp_path / 'few'}:nl-en") for line in lines)


@pytest.mark.parametrize("side", ["en", "nl"])
def test_a_symbol_in_the_text_is_refused(tmp_path: Path, side: str) -> None:
    recipe = tiny_directions(tmp_path)
    with (tmp_path / f"train.{side}").open("a") as file:
        file.write("x <2de>\n")
    for other in {"en", "nl", "de"} - {side}:
        with (tmp_path / f"train.{other}").open("a") as file:
            file.write("x\n")
    with refuses(DataError, f"train.{side}:11 <2de>; delete"):
        prepared(recipe, tmp_path / "data")


def test_an_empty_direction_is_refused(tmp_path: Path) -> None:
    recipe = tiny_directions(tmp_path)
    for lang in ("nl", "en"):
        write_lines(tmp_path / f"few.{lang}", [])
    with refuses(DataError, "few.nl"):
        prepared(recipe, tmp_path / "data")
    write_lines(tmp_path / "few.nl", ["", ""])
    write_lines(tmp_path / "few.en", ["", "a"])
    with refuses(DataError, "few:nl-en 2 empty"):
        prepared(recipe, tmp_path / "data")


def test_a_direction_is_trained_further_with_the_codec_of_its_model(tmp_path: Path) -> None:
    recipe = tiny_directions(tmp_path)
    prepared(recipe, tmp_path / "data")
    codec = TextCodec.load(tmp_path / "data" / "codec")
    few, (valid, _) = recipe.corpus.train[-1], recipe.corpus.valid
    corpus = CorpusConfig(train=(few,), valid=(valid,))
    given = VocabularyConfig(vocabulary_of=model(tmp_path, codec))
    prepared(PreprocessRecipe(corpus=corpus, vocabulary=given), tmp_path / "more")
    assert Dataset.open(tmp_path / "more").codec.description == codec.description
    new = CorpusConfig(train=(few.replace("nl-en", "en-nl"), f"{few}=2"), valid=(valid,))
    prepared(PreprocessRecipe(corpus=new, vocabulary=given), tmp_path / "new")
    for wrong, keys in (
        (
            CorpusConfig(
                source_lang="en", target_lang="nl", train=(few[:-6],), valid=(valid[:-6],)
            ),
            "parent en-de; --train",
        ),
        (replace(corpus, source_symbols=True), "parent source_symbols; --source-symbols"),
        (replace(corpus, train=(f"{tmp_path / 'few'}:en-xx",)), "<2xx>; --whole-tokens"),
    ):
        with refuses(ConfigError, keys):
            prepared(PreprocessRecipe(corpus=wrong, vocabulary=given), tmp_path / "wrong")


def test_a_parent_of_two_languages_is_refused(tmp_path: Path) -> None:
    parent = model(tmp_path, tiny_codec())
    recipe = replace(tiny_directions(tmp_path), vocabulary=VocabularyConfig(vocabulary_of=parent))
    with refuses(ConfigError, "parent; --vocabulary-of --from --update-vocabulary"):
        prepared(recipe, tmp_path / "data")


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    temperature=st.sampled_from([1.0, 5.0, 100.0]),
    num_lines=st.integers(1, 100),
)
def test_a_sample_has_shares_by_temperature_at_even_distances(
    sizes: list[int], temperature: float, num_lines: int
) -> None:
    corpora = [_Numbered(n, size) for n, size in enumerate(sizes)]
    config = VocabularyConfig(vocabulary_temperature=temperature)
    text = _LearningText(corpora, "none", (0, 1), "text", [Steps()] * 2, (), config)  # type: ignore[arg-type]
    counts = Counter(text.sample(num_lines))
    by_lang: dict[str, list[int]] = {
        "en": [counts[f"en {n} {i}"] for n, size in enumerate(sizes) for i in range(size)]
    }
    by_lang |= {str(n): [counts[f"{n} {i}"] for i in range(size)] for n, size in enumerate(sizes)}
    total = sum(len(found) ** (1 / temperature) for found in by_lang.values())
    for found in by_lang.values():
        share = num_lines * len(found) ** (1 / temperature) / total
        assert abs(sum(found) - share) <= 0.5 + 1e-9
        assert max(found) - min(found) <= 1  # each line as often as any other of its language


class _Numbered:
    """A corpus whose lines name themselves."""

    def __init__(self, number: int, num_pairs: int) -> None:
        self.number, self.num_pairs = number, num_pairs
        self.languages = "en", str(number)

    def pairs(self) -> list[tuple[str, str]]:
        return [(f"en {self.number} {i}", f"{self.number} {i}") for i in range(self.num_pairs)]
