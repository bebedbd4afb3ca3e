"""What earlier versions wrote is still read, and a training run still computes the same.

The frozen examples are made by freeze.py. A refactoring leaves these tests as they are.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import CheckpointConfig
from nmtkit.data.audit import describe
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Sampler
from nmtkit.decoding.corpus import CorpusFiles, translate_file
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage.manifest import verify_files
from nmtkit.text.codec import TextCodec
from nmtkit.text.translations import TRANSLATION_KEYS, read_translations
from nmtkit.training.run import train
from tests.golden.freeze import FROZEN, NUM_UPDATES, losses, recipe, translations
from tests.golden.freeze_cleaned import FROZEN as FROZEN_CLEANED
from tests.golden.freeze_cleaned import LINES as CLEANED_LINES
from tests.golden.freeze_codec import FROZEN as FROZEN_CODEC
from tests.golden.freeze_codec import LINES
from tests.golden.freeze_dataset import FROZEN as FROZEN_WITH_WEIGHTS
from tests.golden.freeze_subwords import FROZEN as FROZEN_SUBWORDS
from tests.golden.freeze_subwords import LINES as SUBWORD_LINES
from tests.golden.freeze_translation import FROZEN as FROZEN_TRANSLATION
from tests.golden.freeze_translation import MODEL, RECIPE
from tests.golden.freeze_translations import FROZEN as FROZEN_JSON_LINES
from tests.golden.freeze_translations import RERANKED
from tests.tiny import TRAIN_LINES, never_warn, tiny_train_recipe

FROZEN_SPLIT = Path(__file__).parent / "formats-4"
EXPECTED = json.loads((FROZEN / "expected.json").read_text(encoding="utf-8"))


def split_recipe(max_updates: int) -> TrainRecipe:
    """Return the recipe of the run whose updates were split."""
    tiny = tiny_train_recipe(max_updates, dropout=0.1)
    return replace(
        tiny,
        training=replace(tiny.training, update_tokens=40, max_tokens=20),
        checkpoints=CheckpointConfig(save_every=4, keep=1),
        validation=replace(tiny.validation, best_metric="bleu"),
    )


def test_a_frozen_dataset_is_read_to_the_last_token() -> None:
    dataset = Dataset.open(FROZEN / "dataset")
    verify_files(FROZEN / "dataset", dataset.manifest)
    (shard,) = dataset.train
    decoded = [dataset.codec.source.decode(shard.source[i].tolist()) for i in range(len(shard))]
    assert sorted(decoded) == sorted(TRAIN_LINES)


def test_a_frozen_dataset_with_weights_is_read_and_sampled() -> None:
    folder = FROZEN_WITH_WEIGHTS / "dataset"
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


def test_a_frozen_codec_encodes_as_it_did() -> None:
    codec = TextCodec.load(FROZEN_CODEC / "codec")
    expected = json.loads((FROZEN_CODEC / "expected.json").read_text(encoding="utf-8"))
    assert [codec.encode_source(line) for line in LINES] == expected["source"]
    assert [codec.encode_target(line) for line in LINES] == expected["target"]
    assert [codec.decode_target(ids) for ids in expected["target"]] == expected["decoded"]


def test_a_frozen_codec_cleans_as_it_did() -> None:
    codec = TextCodec.load(FROZEN_CLEANED / "codec")
    expected = json.loads((FROZEN_CLEANED / "expected.json").read_text(encoding="utf-8"))
    assert [codec.encode_source(line) for line in CLEANED_LINES] == expected["source"]
    assert [codec.encode_target(line) for line in CLEANED_LINES] == expected["target"]
    assert codec.segmentation == "unescape, nfkc, moses, words and bpe"


def test_frozen_subwords_without_the_rule_read_the_symbol_for_a_space_as_a_space() -> None:
    codec = TextCodec.load(FROZEN_CODEC / "codec")
    assert codec.encode_source("the\u2581cat") == codec.encode_source("the cat")


def test_frozen_subwords_with_the_symbol_for_a_space_encode_as_they_did() -> None:
    codec = TextCodec.load(FROZEN_SUBWORDS / "codec")
    expected = json.loads((FROZEN_SUBWORDS / "expected.json").read_text(encoding="utf-8"))
    assert [codec.encode_source(line) for line in SUBWORD_LINES] == expected["ids"]
    assert [codec.decode_target(ids) for ids in expected["ids"]] == expected["decoded"]
    assert expected["decoded"][:2] == [*SUBWORD_LINES[:2]]


def test_the_counts_of_a_frozen_dataset_are_reported() -> None:
    lines = [line.split() for line in describe(FROZEN / "dataset", check=True)]
    assert ["train", "10", "10", *"00-----"] in lines


def test_a_frozen_model_translates_as_it_did() -> None:
    assert translations(FROZEN / "run") == EXPECTED["translations"]


def test_a_frozen_unfinished_translation_is_continued(tmp_path: Path) -> None:
    folder = tmp_path / "frozen"
    shutil.copytree(FROZEN_TRANSLATION, folder)
    messages: list[str] = []
    reporter = WorkReporter(messages.append)
    files = CorpusFiles(folder / "text", folder / "out")
    translate_file([MODEL], RECIPE, files, reporter, never_warn)
    assert (folder / "out").read_bytes() == (folder / "expected").read_bytes()
    assert messages[0] == "continuing after line 8 of 10"
    assert not list(folder.glob("out.*"))


@pytest.mark.parametrize("name", ["before.jsonl", "translations.jsonl"])
def test_frozen_json_lines_are_read(name: str) -> None:
    with (FROZEN_JSON_LINES / name).open("rb") as stream:
        first, blank, forced, *others = read_translations(stream, name)
    assert (first.source, first.best.text, first.others) == ("a b c", "A B C", {"id": 1})
    assert [one.text for one in first.candidates] == ["A B C", "A C"]
    assert first.best == first.candidates[0]
    assert (blank.source, [one.text for one in blank.candidates]) == ("", [""])
    assert (forced.target_prefix, forced.best.text) == ("D", "D A")
    if name == "before.jsonl":
        (alone,) = others
        assert [one.text for one in alone.candidates] == ["A B C"]
    else:
        (reranked,) = others
        assert reranked.best.values == reranked.candidates[0].values == RERANKED
        assert {*first.best.values, *RERANKED, "perplexity"} == {*TRANSLATION_KEYS}


def test_frozen_scores_of_a_model_are_read() -> None:
    with FROZEN_JSON_LINES.joinpath("scored.jsonl").open("rb") as stream:
        scored, blank, forced, _ = read_translations(stream, "scored")
    assert (scored.source, scored.best.text, scored.others) == ("a b c", "A B C", {"id": 1})
    assert scored.best.values["perplexity"] == 1.4392818729648709
    assert (blank.best.text, blank.best.values["tokens"]) == ("", [])
    assert forced.target_prefix == "D"


def test_a_frozen_run_is_continued(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FROZEN / "run", run)
    train(recipe(NUM_UPDATES + 1), FROZEN / "dataset", run)
    assert len(losses(run)) == NUM_UPDATES + 1


def test_twenty_updates_have_the_losses_they_had(tmp_path: Path) -> None:
    train(recipe(20), FROZEN / "dataset", tmp_path / "run")
    # Another processor adds in another order: a change in the seventh digit, which grows with
    # every update.
    assert losses(tmp_path / "run") == pytest.approx(EXPECTED["losses"][:20], rel=1e-4)


def test_a_frozen_run_whose_updates_were_split_continues_with_their_pairs_and_masks(
    tmp_path: Path,
) -> None:
    """Of version 0.1, which wrote pieces.json and num_slots; it continued with these losses."""
    shutil.copytree(FROZEN_SPLIT, tmp_path / "frozen")
    run = tmp_path / "frozen" / "run"
    assert (run / "pieces.json").exists()
    train(split_recipe(8), tmp_path / "frozen" / "dataset", run)
    expected = json.loads((FROZEN_SPLIT / "expected.json").read_text(encoding="utf-8"))
    # Micro-batches are summed in another order than slots and their pieces were.
    assert losses(run) == pytest.approx(expected["loss"], rel=1e-5)
