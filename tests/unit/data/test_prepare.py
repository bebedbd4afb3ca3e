from dataclasses import asdict
from pathlib import Path

import pytest

from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data import vocabulary
from nmtkit.data.binary import Dataset
from nmtkit.data.prepare import Sizes
from nmtkit.errors import ConfigError, DataError
from nmtkit.storage.manifest import verify_files
from nmtkit.text.lines import MAX_LINE_BYTES
from tests.doubles import report_everything
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


def write_pairs(folder: Path, name: str, pairs: list[tuple[str, str]]) -> str:
    write_lines(folder / f"{name}.en", [source for source, _ in pairs])
    write_lines(folder / f"{name}.de", [target for _, target in pairs])
    return str(folder / name)


def nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}


def stored(folder: Path) -> list[tuple[str, str]]:
    """Return the training pairs of all shards as text."""
    dataset = Dataset.open(folder)
    decode = dataset.codec.decode_target  # of a shared vocabulary
    return [
        (decode(shard.source[i].tolist()), decode(shard.target[i].tolist()))
        for shard in dataset.train
        for i in range(len(shard))
    ]


@pytest.fixture
def recipe(tmp_path: Path) -> PreprocessRecipe:
    return tiny_recipe(*tiny_corpus(tmp_path))


def test_every_pair_is_in_one_shard_with_its_sides_together(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    prepared(recipe, tmp_path / "data", sizes=Sizes(shard=3, chunk=4))
    assert sorted(stored(tmp_path / "data")) == sorted((s, s.upper()) for s in TRAIN_LINES)
    assert len(Dataset.open(tmp_path / "data").train) == 4


def test_shards_depend_on_the_seed_and_keep_the_order_of_the_corpus(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    shards = {}
    for seed in (1, 2):
        out = tmp_path / f"data{seed}"
        prepared(with_settings(recipe, seed=seed), out, sizes=Sizes(shard=5))
        shards[seed] = [source for source, _ in stored(out)]
        num_first = len(Dataset.open(out).train[0])
        for part in (shards[seed][:num_first], shards[seed][num_first:]):
            assert part == [line for line in TRAIN_LINES if line in part]
    assert shards[1] != shards[2]


def test_a_dataset_is_a_function_of_text_and_recipe(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    for name in ("one", "two"):
        prepared(recipe, tmp_path / name)
    files = [path for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(files) == 13
    for path in files:
        assert (
            path.read_bytes()
            == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
        )


def test_drops_are_counted_by_reason_and_sides_stay_together(tmp_path: Path) -> None:
    pairs = [("a", "A"), ("", "B"), ("c", " "), ("d d d d", "D"), ("e " * 9, "E " * 9), ("f", "F")]
    train = write_pairs(tmp_path, "train", pairs)
    recipe = with_settings(tiny_recipe(train, train), max_length=9, max_ratio=2.0)
    counts = prepared(recipe, tmp_path / "data")
    assert stored(tmp_path / "data") == [("a", "A"), ("f", "F")]
    assert nonzero(counts["train"]["dropped"]) == {"empty": 2, "too long": 1, "ratio": 1}
    assert (counts["train"]["read"], counts["train"]["kept"]) == (6, 2)
    # Validation has no ratio filter, and the whole text is kept for scoring.
    assert nonzero(counts["valid"]["dropped"]) == {"empty": 2, "too long": 1}
    dataset = Dataset.open(tmp_path / "data")
    assert len(dataset.valid) == 3
    assert list(zip(dataset.valid_source, dataset.valid_target, strict=True)) == pairs


def test_pairs_with_a_line_above_the_limit_are_counted_and_dropped(tmp_path: Path) -> None:
    long = "a " * (MAX_LINE_BYTES // 2) + "a"
    pairs = [("b", "B"), (long, "A"), ("c", "C"), ("", long), (long, long), ("d", "D")]
    train = write_pairs(tmp_path, "train", pairs)
    recipe = with_settings(
        tiny_recipe(train, train), max_length=MAX_LINE_BYTES, drop_duplicates=True
    )
    counts = prepared(recipe, tmp_path / "data")
    kept = [("b", "B"), ("c", "C"), ("d", "D")]
    assert stored(tmp_path / "data") == kept
    for name in ("train", "valid"):
        assert (counts[name]["read"], counts[name]["kept"]) == (6, 3)
        assert nonzero(counts[name]["dropped"]) == {"too long": 3}
    examples = [(one["line"], one["source"]) for one in counts["corpora"][0]["examples"]]
    assert examples == [(2, "..."), (4, ""), (5, "...")]
    dataset = Dataset.open(tmp_path / "data")
    assert list(zip(dataset.valid_source, dataset.valid_target, strict=True)) == kept


def test_validation_text_is_stored_unchanged(tmp_path: Path) -> None:
    train, _ = tiny_corpus(tmp_path)
    lines = ["a\rb", "\u2028x ", "\t", "a\x00b", "\ufeffz"]
    write_lines(tmp_path / "nasty.en", lines)
    write_lines(tmp_path / "nasty.de", list(reversed(lines)))
    prepared(tiny_recipe(train, str(tmp_path / "nasty")), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    assert dataset.valid_source == lines
    assert dataset.valid_target == ["z", *reversed(lines[:-1])]  # a mark at the file's start


def test_the_manifest_describes_the_dataset(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    counts = prepared(recipe, tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    manifest = dataset.manifest
    verify_files(tmp_path / "data", manifest)
    assert manifest["counts"] == counts
    assert manifest["recipe"]["vocabulary"] == asdict(recipe.vocabulary)
    assert manifest["recipe"]["corpus"]["train"] == list(recipe.corpus.train)
    assert (manifest["source_lang"], manifest["target_lang"]) == ("en", "de")
    assert (manifest["segmentation"], manifest["is_shared"]) == ("words", True)
    assert manifest["vocabulary_sizes"] == {"source": 19, "target": 19}
    assert (manifest["shards"], manifest["valid_pairs"], manifest["valid_lines"]) == ([[10]], 3, 3)
    assert dataset.fingerprint == manifest["fingerprint"]
    num_tokens = sum(len(line.split()) + 1 for line in TRAIN_LINES)
    assert counts["train"]["source"] == {"tokens": num_tokens, "unknown": 0, "longest": 6}
    assert counts["valid"]["target"]["tokens"] == sum(len(v.split()) + 1 for v in VALID_LINES)


def test_progress_and_result_are_reported(
    tmp_path: Path, recipe: PreprocessRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_everything(monkeypatch)
    monkeypatch.setattr(vocabulary, "QUICK_ITEMS", 12)
    monkeypatch.setattr("nmtkit.data.prepare.language_identifier", lambda: None)
    lines: list[str] = []
    prepared(recipe, tmp_path / "data", lines.append, Sizes(chunk=4))
    train = recipe.corpus.train[0]
    assert "nmtkit[audit]" in lines.pop(0)
    assert [line.partition(", ")[0] for line in lines[:11]] == [
        f"reading {recipe.corpus.valid[0]}.en and {recipe.corpus.valid[0]}.de",
        "read 3 pairs",
        f"reading {train}.en and {train}.de",
        "read 10 pairs",
        "counting the words of en and de",
        "counted 12 of 20 lines (60%)",
        "counted 20 lines",
        "encoding 10 pairs",
        "encoded 4 of 10 pairs (40%)",
        "encoded 8 of 10 pairs (80%)",
        "encoded 10 pairs",
    ]
    assert len(lines) == 19  # with the table of the audit


def test_no_kept_pair_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    _, valid = tiny_corpus(tmp_path)
    train = write_pairs(tmp_path, "bad", [("a", ""), ("b", " "), ("c " * 300, "d")])
    with refuses(DataError, "training 3 empty: 2 long: 1; filters"):
        prepared(tiny_recipe(train, valid), tmp_path / "data")


def test_no_usable_validation_pair_is_an_error(tmp_path: Path) -> None:
    train, _ = tiny_corpus(tmp_path)
    valid = write_pairs(tmp_path, "bad", [("", "a")])
    with refuses(DataError, f"1 {valid} 1; --max-length"):
        prepared(tiny_recipe(train, valid), tmp_path / "data")


def test_unequal_files_are_refused_before_anything_is_learnt(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    write_lines(tmp_path / "valid.de", ["A"])
    reports: list[str] = []
    with refuses(DataError, "valid.en 3 valid.de 1"):
        prepared(recipe, tmp_path / "data", reports.append)
    assert not any("counting" in line or "learning" in line for line in reports)


def test_an_output_that_exists_is_refused_before_anything_is_read(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    (tmp_path / "data").mkdir()
    reports: list[str] = []
    with refuses(ConfigError, "data; --overwrite"):
        prepared(recipe, tmp_path / "data", reports.append)
    assert reports == []


@pytest.mark.parametrize("moment", [0, 3, 7])
def test_an_interrupt_leaves_nothing_behind(
    tmp_path: Path, recipe: PreprocessRecipe, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_everything(monkeypatch)
    before = sorted(tmp_path.iterdir())
    moments = iter(range(moment + 1))

    def report(_: str) -> None:
        if next(moments) == moment:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared(recipe, tmp_path / "data", report)
    assert sorted(tmp_path.iterdir()) == before
