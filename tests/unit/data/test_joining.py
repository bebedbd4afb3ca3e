import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.config.preprocessing import FilterConfig, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import describe
from nmtkit.data.binary import PART_FORMAT, VERSION, Dataset, Part
from nmtkit.data.findings import Finding
from nmtkit.data.joining import join
from nmtkit.data.prepare import Sizes, prepare, prepare_part
from nmtkit.errors import ConfigError, DamagedError, DataError, ResourceError
from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.manifest import MANIFEST, seal
from tests.folders import contents, refusing
from tests.made_up import made_up_pairs
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, silent, tiny_corpus, tiny_recipe, write_lines
from tests.unit.data.test_prepare import write_pairs

NUM_SHARDS = 4
SIZES = Sizes(shard=4, chunk=3)


@pytest.fixture
def recipe(tmp_path: Path) -> PreprocessRecipe:
    """Return a recipe with weights, tags, drops and duplicates; `SIZES` makes four shards."""
    more = write_pairs(tmp_path, "more", [("a", "A"), ("a", "A"), ("", "x"), ("b", "")])
    recipe = tiny_recipe(*tiny_corpus(tmp_path))
    corpus = replace(
        recipe.corpus, train=(*recipe.corpus.train, f"{more}=2"), tag=(f"{more}=<bt>",)
    )
    return replace(recipe, corpus=corpus, filters=FilterConfig(drop_duplicates=True))


def make_parts(recipe: PreprocessRecipe, folder: Path, count: int) -> list[Path]:
    paths = [folder / f"part-{number}" for number in range(1, count + 1)]
    for number, path in enumerate(paths, start=1):
        prepare_part(recipe, Part(number, count), path, 1, False, SILENT, SIZES)
    return paths


@pytest.mark.parametrize("count", range(1, NUM_SHARDS + 3))
def test_joined_parts_equal_the_dataset_of_a_single_call(
    tmp_path: Path, recipe: PreprocessRecipe, count: int
) -> None:
    prepare(recipe, tmp_path / "whole", 1, False, SILENT, SIZES)
    parts = make_parts(recipe, tmp_path, count)
    join(parts[::-1], tmp_path / "joined", False, silent)
    of_joined, of_whole = contents(tmp_path / "joined"), contents(tmp_path / "whole")
    del of_joined["manifest.json"], of_whole["manifest.json"]
    assert of_joined == of_whole
    joined, whole = Dataset.open(tmp_path / "joined"), Dataset.open(tmp_path / "whole")
    assert joined.manifest == whole.manifest
    assert joined.num_train_pairs == len(TRAIN_LINES) + 1
    assert joined.fingerprint == whole.fingerprint


def test_findings_depend_neither_on_workers_nor_on_parts(tmp_path: Path) -> None:
    pairs = made_up_pairs(400)
    copied = [
        (source, source) if i % 20 == 0 else (source, target)
        for i, (source, target) in enumerate(pairs)
    ]
    train = write_pairs(tmp_path, "train", copied)
    valid = write_pairs(tmp_path, "valid", made_up_pairs(100, seed=2))
    recipe = tiny_recipe(train, valid)
    recipe = replace(recipe, vocabulary=VocabularyConfig(vocab_size=2000))
    lines: list[str] = []
    prepare(recipe, tmp_path / "whole", 1, False, WorkReporter(lines.append), SIZES)
    prepare(recipe, tmp_path / "other", 2, False, SILENT, SIZES)
    of_join: list[str] = []
    join(make_parts(recipe, tmp_path, 2), tmp_path / "joined", False, of_join.append)
    manifests = [Dataset.open(tmp_path / name).manifest for name in ("whole", "other", "joined")]
    assert manifests[0] == manifests[1] == manifests[2]
    copies, rare = map(Finding.from_manifest, manifests[0]["findings"])
    assert (copies.check, copies.share, copies.lines) == ("copies", 0.05, [1, 21, 41])
    assert rare.check == "vocabulary"
    assert {f"warning: {copies}", f"warning: {rare}"} <= {*lines}
    assert f"warning: {rare}" in of_join  # which needs the ids of all parts
    described = list(describe(tmp_path / "joined", check=False))
    assert described[-3:] == ["findings", str(copies), str(rare)]


def test_nothing_is_copied_and_parts_may_be_deleted(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    parts = make_parts(recipe, tmp_path, 2)
    join(parts, tmp_path / "joined", False, silent)
    name = "train.00001.source.ids"
    assert (tmp_path / "joined" / name).samefile(parts[1] / name)
    for part in parts:
        for path in sorted(part.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    assert len(list(Dataset.open(tmp_path / "joined").train)) == NUM_SHARDS


def test_parts_may_consist_of_links(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    parts = make_parts(recipe, tmp_path, 2)
    ids = parts[1] / "train.00001.source.ids"
    ids.rename(tmp_path / "blob")
    ids.symlink_to("../blob")
    join(parts, tmp_path / "joined", False, silent)
    assert (tmp_path / "joined" / ids.name).samefile(tmp_path / "blob")
    assert not (tmp_path / "joined" / ids.name).is_symlink()


def test_a_part_cannot_be_opened_as_a_dataset(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    (part, _) = make_parts(recipe, tmp_path, 2)
    with refuses(DamagedError, "nmtkit-dataset-part"):
        Dataset.open(part)
    assert read_manifest(part, "nmtkit-dataset-part", 2)["part"] == {"number": 1, "count": 2}


def test_missing_and_repeated_parts_are_named(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    parts = make_parts(recipe, tmp_path, 3)
    with refuses(ConfigError, "parts 1 3; --shard 1/3 3/3"):
        join(parts[1:2], tmp_path / "joined", False, silent)
    with refuses(ConfigError, "part 2 3; --shard 2/3"):
        join([parts[0], parts[2]], tmp_path / "joined", False, silent)
    with refuses(ConfigError, f"{parts[0]} {parts[0]} part 1"):
        join([*parts, parts[0]], tmp_path / "joined", False, silent)
    assert not (tmp_path / "joined").exists()


def test_of_many_missing_parts_the_first_are_named(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    prepare_part(recipe, Part(2, 1000), tmp_path / "part", 1, False, SILENT, SIZES)
    with refuses(ConfigError, "parts 1 3 11 989 1000; --shard 1/1000"):
        join([tmp_path / "part"], tmp_path / "joined", False, silent)


def test_a_part_beyond_their_number_is_damaged(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    prepare_part(recipe, Part(3, 2), tmp_path / "part", 1, False, SILENT, SIZES)
    with refuses(DamagedError, "part 3 2"):
        join([tmp_path / "part"], tmp_path / "joined", False, silent)


def test_parts_of_different_recipes_are_refused(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    parts = make_parts(recipe, tmp_path, 2)
    other = replace(recipe, filters=FilterConfig(max_length=9))
    prepare_part(other, Part(2, 2), tmp_path / "other", 1, False, SILENT, SIZES)
    with refuses(ConfigError, "other part-1; --shard --out"):
        join([parts[0], tmp_path / "other"], tmp_path / "joined", False, silent)


@pytest.mark.parametrize("text", ["train", "valid", "held-out"])
def test_parts_of_different_texts_are_refused(
    tmp_path: Path, recipe: PreprocessRecipe, text: str
) -> None:
    """The texts have the same names and numbers of lines, and the vocabulary is given."""
    held_out = str(tmp_path / "held")
    for side in ("en", "de"):
        write_lines(Path(f"{held_out}.{side}"), ["held out"])
    words = str(write_lines(tmp_path / "words", ["<bt>", "a", "b"]))
    vocabulary = VocabularyConfig(
        segmentation="words", source_vocabulary=words, target_vocabulary=words
    )
    recipe = replace(recipe, vocabulary=vocabulary, filters=FilterConfig(held_out=(held_out,)))
    parts = make_parts(recipe, tmp_path, 2)
    changed = {"train": recipe.corpus.train[0], "valid": recipe.corpus.valid, "held-out": held_out}
    path = Path(f"{changed[text]}.en")
    path.write_text(path.read_text("utf-8").swapcase(), "utf-8")
    prepare_part(recipe, Part(2, 2), tmp_path / "other", 1, False, SILENT, SIZES)
    with refuses(ConfigError, "other part-1; --shard --out"):
        join([parts[0], tmp_path / "other"], tmp_path / "joined", False, silent)


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_parts_without_hashes_of_their_text_are_joined(
    numbers: tuple[int, ...], tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    """An earlier version wrote none."""
    parts = make_parts(recipe, tmp_path, 2)
    for number in numbers:
        folder = parts[number - 1]
        fields = read_manifest(folder, PART_FORMAT, VERSION)
        for name in ("texts", "format", "version", "nmtkit"):
            del fields[name]
        (folder / MANIFEST).write_bytes(seal(PART_FORMAT, VERSION, fields))
    join(parts, tmp_path / "joined", False, silent)
    assert Dataset.open(tmp_path / "joined").num_train_pairs == len(TRAIN_LINES) + 1


def test_a_damaged_part_is_refused(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    parts = make_parts(recipe, tmp_path, 2)
    path = parts[1] / "train.00001.source.ids"
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    with refuses(DamagedError, path):
        join(parts, tmp_path / "joined", False, silent)
    assert not (tmp_path / "joined").exists()


def test_parts_of_different_numbers_of_parts_are_refused(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    (first, *_) = make_parts(recipe, tmp_path, 2)
    prepare_part(recipe, Part(1, 3), tmp_path / "third", 1, False, SILENT, SIZES)
    with refuses(ConfigError, f"{first} 2 {tmp_path / 'third'} 3; --shard I/N"):
        join([first, tmp_path / "third"], tmp_path / "joined", False, silent)


def test_a_part_without_a_shard_says_that_it_is_empty(
    tmp_path: Path, recipe: PreprocessRecipe
) -> None:
    reports: list[str] = []
    prepare_part(
        recipe, Part(5, 5), tmp_path / "part", 1, False, WorkReporter(reports.append), SIZES
    )
    assert (
        "part 5 of 5 is empty, because this text needs no more than 4 parts; join it with the "
        "others" in reports
    )


def test_parts_without_training_pairs_are_refused(tmp_path: Path, recipe: PreprocessRecipe) -> None:
    filters = FilterConfig(held_out=recipe.corpus.train[:1])
    corpus = replace(recipe.corpus, train=recipe.corpus.train[:1], tag=())
    recipe = replace(recipe, filters=filters, corpus=corpus)
    parts = make_parts(recipe, tmp_path, 2)
    with refuses(DataError, "parts; filters"):
        join(parts, tmp_path / "joined", False, silent)


def test_a_place_without_hard_links_is_an_error(
    tmp_path: Path, recipe: PreprocessRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = make_parts(recipe, tmp_path, 2)
    monkeypatch.setattr(os, "link", refusing(errno.EXDEV))
    with refuses(ResourceError, "codec.json; --out"):
        join(parts, tmp_path / "joined", False, silent)
    assert not (tmp_path / "joined").exists()
