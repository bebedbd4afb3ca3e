"""What this version wrote when a format was frozen is still read, and training computes the same.

freeze.py makes the examples. A refactoring leaves these tests unchanged.
"""

import json
import shutil
from pathlib import Path

import pytest

from nmtkit.config.schema import TranslateRecipe
from nmtkit.data.audit import describe
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Sampler
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.corpus import CorpusFiles, translate_file
from nmtkit.decoding.quality import calibration_for
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage.manifest import verify_files
from nmtkit.storage.run_folder import RunFolder, find_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.translations import TRANSLATION_KEYS, read_translations
from nmtkit.training.run import train
from tests.golden.freeze import (
    CODECS,
    CORPUS_RECIPE,
    FROZEN,
    LINES,
    NUM_UPDATES,
    REGRESSION,
    RERANKED,
    encoded,
    losses,
    recipe,
    translations,
)
from tests.tiny import TRAIN_LINES, never_warn

EXPECTED = json.loads((FROZEN / "expected.json").read_text(encoding="utf-8"))


def test_a_frozen_dataset_is_read_to_the_last_token() -> None:
    dataset = Dataset.open(FROZEN / "dataset")
    verify_files(FROZEN / "dataset", dataset.manifest)
    (shard,) = dataset.train
    decoded = [dataset.codec.source.decode(shard.source[i].tolist()) for i in range(len(shard))]
    assert sorted(decoded) == sorted(TRAIN_LINES)
    lines = [line.split() for line in describe(FROZEN / "dataset", check=True)]
    assert ["train", "10", "10", *"00------"] in lines


def test_a_frozen_dataset_with_weights_is_read_and_sampled() -> None:
    folder = FROZEN / "weights" / "dataset"
    dataset = Dataset.open(folder)
    verify_files(folder, dataset.manifest)
    sampler = Sampler(dataset.train, update_tokens=20, seed=1)
    found = []
    for epoch in range(2):
        for number in sampler.shard_order(epoch):
            shard = dataset.train[number]
            for pairs in sampler.plan(epoch, number):
                ids = [shard.source[pair].tolist() for pair in pairs]
                found += [dataset.codec.source.decode(one) for one in ids]
    assert sorted(found) == sorted([*TRAIN_LINES, *TRAIN_LINES, "<bt> h h", "<bt> g"])
    assert "duplicate: more:5: 'g' | 'G'" in describe(folder, check=True)


def test_frozen_links_are_read() -> None:
    dataset = Dataset.open(FROZEN / "weights" / "dataset")
    for pairs in (*dataset.train, dataset.valid):
        assert pairs.links is not None
        for place in range(len(pairs)):
            source, target = pairs.source[place][:-1], pairs.target[place][:-1]
            num_tags = len(source) - len(target)
            found = pairs.links[place].reshape(-1, 2).tolist()
            assert found == [[number + num_tags, number] for number in range(len(target))]
    assert dataset.valid_links[0].split() == ["0-0", "1-1"]


@pytest.mark.parametrize("name", CODECS)
def test_a_frozen_codec_encodes_as_it_did(name: str) -> None:
    expected = json.loads((FROZEN / f"{name}.json").read_text(encoding="utf-8"))
    assert encoded(TextCodec.load(FROZEN / name), CODECS[name]) == expected


def test_a_frozen_shortlist_has_the_candidates_of_its_dataset() -> None:
    dataset = Dataset.open(FROZEN / "dataset")
    found, learnt = Shortlist.load(FROZEN / "shortlist"), Shortlist.learn(dataset, 3, 4, 100)
    assert found.codec == dataset.codec.fingerprint
    assert found.candidates.tolist() == learnt.candidates.tolist()
    assert found.frequent.tolist() == learnt.frequent.tolist()


def test_a_frozen_model_translates_as_it_did() -> None:
    assert translations(FROZEN / "run") == EXPECTED["translations"]


def test_a_frozen_unfinished_translation_is_continued(tmp_path: Path) -> None:
    folder = tmp_path / "frozen"
    shutil.copytree(FROZEN / "translation", folder)
    messages: list[str] = []
    reporter = WorkReporter(messages.append)
    files, model = CorpusFiles((folder / "text",), folder / "out"), [FROZEN / "run" / "last"]
    translate_file(model, CORPUS_RECIPE, files, reporter, never_warn)
    assert (folder / "out").read_bytes() == (folder / "expected").read_bytes()
    assert messages[0] == "continuing after line 8 of 10"
    assert not list(folder.glob("out.*"))


def test_frozen_json_lines_are_read() -> None:
    name = "translations.jsonl"
    with (FROZEN / name).open("rb") as stream:
        first, blank, forced, reranked = read_translations(stream, name)
    assert (first.source, first.best.text, first.others) == ("a b c", "A B C", {"id": 1})
    assert len(first.candidates) == 2
    assert first.best == first.candidates[0]
    assert (blank.source, [one.text for one in blank.candidates]) == ("", [""])
    assert (forced.target_prefix, forced.best.text) == ("D", "D A")
    assert reranked.best.values == reranked.candidates[0].values == RERANKED
    # Of other commands and options.
    others = {"perplexity", "link_probabilities", "placed", "quality", "quality_error"}
    assert {*first.best.values, *RERANKED, *others} == {*TRANSLATION_KEYS}


def test_a_frozen_calibration_is_read() -> None:
    folders = [find_model(FROZEN / "run")]
    assert calibration_for(folders, TranslateRecipe()).regression == REGRESSION


def test_frozen_lines_of_validations_are_read() -> None:
    assert RunFolder(FROZEN).read_validation_lines() == LINES


def test_a_frozen_run_continues_with_its_pairs_and_masks(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FROZEN / "run", run, symlinks=True)
    train(recipe(NUM_UPDATES + 1), FROZEN / "dataset", run)
    # Another processor adds in another order.
    assert losses(run) == pytest.approx([*EXPECTED["losses"], EXPECTED["next"]], rel=1e-4)


def test_twenty_updates_have_the_losses_they_had(tmp_path: Path) -> None:
    train(recipe(20), FROZEN / "dataset", tmp_path / "run")
    # Another processor adds in another order: a change in the seventh digit, which grows with
    # every update.
    assert losses(tmp_path / "run") == pytest.approx(EXPECTED["losses"][:20], rel=1e-4)
