"""Filters, weights and tags from text to dataset, and their reports."""

import gzip
import html
import math
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.binary import Dataset
from nmtkit.data.prepare import Sizes
from nmtkit.data.sampler import Sampler, epoch_pairs, epoch_tokens
from nmtkit.errors import ConfigError, DataError
from nmtkit.text.subword import SPACE_SYMBOL
from tests.messages import refuses
from tests.tiny import (
    TRAIN_LINES,
    VALID_LINES,
    prepared,
    tiny_corpus,
    tiny_recipe,
    with_settings,
    write_lines,
)
from tests.unit.data.test_prepare import nonzero, stored, write_pairs


def with_more(tmp_path: Path, *train: str, tag: tuple[str, ...] = ()) -> PreprocessRecipe:
    """Return a recipe of the tiny corpus and further training texts."""
    first, valid = tiny_corpus(tmp_path)
    return with_settings(tiny_recipe(first, valid), train=(first, *train), tag=tag)


def test_every_filter_drops_counts_and_gives_examples(tmp_path: Path) -> None:
    pairs = [
        ("a b", "A B"),
        ("c c", "c  c"),
        ("t e s t", "D"),
        ("\u03b1", "E"),
        (" a b ", "A B"),
        ("a b", "A B C"),
    ]
    train = write_pairs(tmp_path, "train", pairs)
    test = write_pairs(tmp_path, "test", [("t e s t", "T E S T")])
    recipe = with_settings(
        tiny_recipe(train, test),
        source_script="latin",
        drop_copies=True,
        held_out=(test,),
        drop_duplicates=True,
    )
    counts = prepared(recipe, tmp_path / "data")
    assert stored(tmp_path / "data") == [("a b", "A B"), ("a b", "A B C")]
    dropped = {"script": 1, "copy": 1, "held out": 1, "duplicate": 1}
    assert nonzero(counts["train"]["dropped"]) == dropped
    assert counts["valid"]["kept"] == 1  # what is held out is held out of training
    examples = counts["corpora"][0]["examples"]
    assert {one["reason"]: one["line"] for one in examples} == {
        "copy": 2,
        "held out": 3,
        "script": 4,
        "duplicate": 5,
    }
    assert (examples[1]["source"], examples[1]["target"]) == ("t e s t", "D")


def test_duplicates_are_found_across_corpora(tmp_path: Path) -> None:
    more = write_pairs(tmp_path, "more", [("x", "X"), (TRAIN_LINES[0], TRAIN_LINES[0].upper())])
    recipe = with_settings(with_more(tmp_path, more), drop_duplicates=True)
    counts = prepared(recipe, tmp_path / "data")
    assert [one["dropped"]["duplicate"] for one in counts["corpora"]] == [0, 1]
    assert counts["corpora"][1]["examples"][0]["line"] == 2


def test_pairs_with_a_low_score_are_dropped_and_counted(tmp_path: Path) -> None:
    first = write_pairs(tmp_path, "first", [("a", "A"), ("b", "B"), ("c", "C"), ("a", "A")])
    second = write_pairs(tmp_path, "second", [("d", "D"), ("e", "E")])
    scores = (tmp_path / "first.scores", tmp_path / "second.scores.gz")
    write_lines(scores[0], ["0.69", "0.7", "-1e3", "inf"])
    scores[1].write_bytes(gzip.compress(b"7\r\n0\n"))
    recipe = with_settings(
        tiny_recipe(first, second),
        train=(first, f"{second}=2"),
        scores=tuple(map(str, scores)),
        keep_above=0.7,
        drop_duplicates=True,
        max_ratio=2,
    )
    counts = prepared(recipe, tmp_path / "data")
    assert sorted(stored(tmp_path / "data")) == [("b", "B"), ("d", "D")]
    assert nonzero(counts["train"]["dropped"]) == {"score": 3, "duplicate": 1}


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (["1", "2"], "first.scores 2 first.en 3"),
        (["1", "2", "3", "4"], "first.scores 4 first.en 3"),
        (["1", "0.5\t0.7", "3"], "first.scores:2 0.5\\t0.7"),
        (["1", "2", "nan"], "first.scores:3 nan"),
        (["1", "", "2"], "first.scores:2"),
    ],
)
def test_scores_that_are_not_a_number_per_pair_are_refused(
    lines: list[str], keys: str, tmp_path: Path
) -> None:
    first = write_pairs(tmp_path, "first", [("a", "A"), ("b", "B"), ("c", "C")])
    scores = write_lines(tmp_path / "first.scores", lines)
    recipe = with_settings(tiny_recipe(first, first), scores=(str(scores),))
    with refuses(DataError, keys):
        prepared(recipe, tmp_path / "data")


def test_a_path_that_ends_like_a_weight_is_refused_or_read(tmp_path: Path) -> None:
    more = write_pairs(tmp_path, "more", [("a", "A")])
    write_pairs(tmp_path, "more=2", [("b", "B"), ("c", "C")])
    with refuses(ConfigError, f"train {more}=2; {more}=2=1"):
        prepared(with_more(tmp_path, f"{more}=2"), tmp_path / "data")
    counts = prepared(with_more(tmp_path, f"{more}=2=1"), tmp_path / "data")
    assert counts["train"]["read"] == len(TRAIN_LINES) + 2


def test_weights_reach_the_sampler_and_change_the_fingerprint(tmp_path: Path) -> None:
    more = write_pairs(tmp_path, "more", [("a", "A"), ("b", "B")])
    fingerprints = set()
    for weight in ("", "=1", "=2", "=0.5"):
        out = tmp_path / f"data{weight}"
        prepared(with_more(tmp_path, more + weight), out, sizes=Sizes(shard=5))
        dataset = Dataset.open(out)
        fingerprints.add(dataset.fingerprint)
        weight_runs = [shard.weight_runs for shard in dataset.train]
        expected = float(weight.removeprefix("=") or 1)
        assert {run[1] for shard in weight_runs for run in shard[1:]} == {expected}
        assert sum(shard[0][0] for shard in weight_runs) == len(TRAIN_LINES)
        assert sum(shard[1][0] for shard in weight_runs) == 2
        for shard in dataset.train:  # corpora lie one after the other
            num_last = shard.weight_runs[1][0]
            lines = [
                dataset.codec.decode_target(shard.source[i].tolist()) for i in range(len(shard))
            ]
            assert all(line in ("a", "b") for line in lines[len(shard) - num_last :])
    assert len(fingerprints) == 3


@pytest.mark.parametrize("segmentation", ["words", "bpe"])
def test_a_tagged_line_equals_a_line_with_the_written_tag(
    tmp_path: Path, segmentation: str
) -> None:
    lines = [f"{line} {n}" for line in TRAIN_LINES for n in range(30)]
    write_lines(tmp_path / "more.en", [*lines, ""])
    write_lines(tmp_path / "more.de", [line.upper() for line in [*lines, "x"]])
    more = str(tmp_path / "more")
    recipe = with_more(tmp_path, more, tag=(f"{more}=<bt>",))
    size = {"words": 32_000, "bpe": 300}[segmentation]
    recipe = with_settings(recipe, segmentation=segmentation, vocab_size=size)
    counts = prepared(recipe, tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    (shard,) = dataset.train
    num_plain = shard.weight_runs[0][0]
    assert shard.source[0].tolist() == dataset.codec.encode_source(TRAIN_LINES[0])
    for number, line in enumerate(lines):
        assert shard.source[num_plain + number].tolist() == dataset.codec.encode_source(
            f"<bt> {line}"
        )
    pieces = [dataset.codec.source.piece(i) for i in shard.source[num_plain].tolist()]
    assert pieces[0] == ("<bt>" if segmentation == "words" else f"{SPACE_SYMBOL}<bt>")
    # A tag without a sentence is an empty pair.
    assert nonzero(counts["corpora"][1]["dropped"]) == {"empty": 1}
    longest = counts["corpora"][1]["source"]["longest"]
    assert longest == max(len(dataset.codec.encode_source(f"<bt> {line}")) for line in lines)


def test_the_size_of_an_epoch_is_the_mean_of_epochs_as_they_are_drawn(tmp_path: Path) -> None:
    more = write_pairs(tmp_path, "more", [("a b c d", "A"), ("a", "A B C D E F G"), ("b", "B")])
    last = write_pairs(tmp_path, "last", [("c d", "C"), ("d", "D D")])
    prepared(with_more(tmp_path, f"{more}=2.5", f"{last}=0.5"), tmp_path / "data")
    dataset, num_epochs = Dataset.open(tmp_path / "data"), 2
    sampler = Sampler(dataset.train, 1000, seed=1)
    (shard,) = dataset.train
    drawn = np.concatenate([one for epoch in range(num_epochs) for one in sampler.plan(epoch, 0)])
    source, target = (side.lengths()[drawn].sum() for side in (shard.source, shard.target))
    assert epoch_pairs(dataset) == len(drawn) / num_epochs
    assert epoch_tokens(dataset) == max(source, target) / num_epochs
    for epoch in range(num_epochs):
        (pairs,) = sampler.plan(epoch, 0)
        tokens = max(side.lengths()[pairs].sum() for side in (shard.source, shard.target))
        assert tokens <= epoch_tokens(dataset, math.ceil)


@pytest.mark.parametrize(("segmentation", "tokenizer"), [("words", "none"), ("bpe", "moses")])
def test_cleaned_text_has_the_ids_of_clean_text(
    tmp_path: Path, segmentation: str, tokenizer: str
) -> None:
    lines = ["caf\u00e9 & th\u00e9", "it's <b>", 'a "b"'] * 4
    wrong = [unicodedata.normalize("NFD", html.escape(line)) for line in lines]
    size = {"words": 32_000, "bpe": 285}[segmentation]
    plain = {"segmentation": segmentation, "vocab_size": size, "tokenizer": tokenizer}
    cleaning = {**plain, "unescape": True, "normalize": "nfc"}
    for name, text, settings in (("clean", lines, plain), ("wrong", wrong, cleaning)):
        prefix = write_pairs(tmp_path, name, [(line, line) for line in text])
        prepared(with_settings(tiny_recipe(prefix, prefix), **settings), tmp_path / f"data-{name}")
    clean, cleaned = (Dataset.open(tmp_path / f"data-{name}") for name in ("clean", "wrong"))
    for file in ("train.00000.source.ids", "train.00000.target.ids", "valid.source.ids"):
        assert (tmp_path / "data-clean" / file).read_bytes() == (
            tmp_path / "data-wrong" / file
        ).read_bytes()
    for line, escaped in zip(lines, wrong, strict=True):
        assert cleaned.codec.encode_source(escaped) == clean.codec.encode_source(line)
        assert cleaned.codec.encode_source(line) == clean.codec.encode_source(line)
    names = [finding["check"] for finding in cleaned.manifest["findings"]]
    assert "entities" not in names


@pytest.mark.parametrize(
    ("segmentation", "tokenizer"), [("words", "none"), ("bpe", "moses"), ("unigram", "none")]
)
def test_a_tag_of_the_validation_text_is_learnt_and_stored_with_its_lines(
    tmp_path: Path, segmentation: str, tokenizer: str
) -> None:
    recipe = with_more(tmp_path)
    (valid,) = recipe.corpus.valid
    write_lines(Path(f"{valid}.en"), [*VALID_LINES, "", " a,  b."])
    write_lines(Path(f"{valid}.de"), [*VALID_LINES, "x", "x"])
    size = {"words": 32_000, "bpe": 285, "unigram": 281}[segmentation]
    recipe = with_settings(
        recipe,
        tag=(f"{valid}=<bt>",),
        segmentation=segmentation,
        vocab_size=size,
        tokenizer=tokenizer,
    )
    counts = prepared(recipe, tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    lines = (tmp_path / "data" / "valid.source.txt").read_text("utf-8").split("\n")
    assert lines == [*(f"<bt> {line}" for line in VALID_LINES), "", "<bt>  a,  b.", ""]
    stored = [dataset.valid.source[i].tolist() for i in range(len(dataset.valid))]
    assert stored == [dataset.codec.encode_source(line) for line in lines if line]
    for ids in stored:
        assert dataset.codec.source.piece(ids[0]).lstrip(SPACE_SYMBOL) == "<bt>"
    assert nonzero(counts["valid"]["dropped"]) == {"empty": 1}


def test_a_tag_outside_a_given_vocabulary_is_an_error(tmp_path: Path) -> None:
    words = str(write_lines(tmp_path / "words", ["a", "b"]))
    recipe = with_more(tmp_path, tag=(f"{tmp_path / 'valid'}=<bt>",))
    recipe = with_settings(recipe, source_vocabulary=words, target_vocabulary=words)
    with refuses(ConfigError, "<bt> source; --tag"):
        prepared(recipe, tmp_path / "data")
