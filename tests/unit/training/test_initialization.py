"""A model that begins with another's weights computes the same, also with more entries."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.storage.checkpoint import Resumable, write_checkpoint
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.model_folder import write_model
from nmtkit.storage.run_folder import RunFolder
from nmtkit.symbols import EOS_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword
from nmtkit.training.initialization import Origin, Parent, no_weights
from tests.messages import refuses
from tests.snapshots import tiny_snapshot
from tests.tiny import TRAIN_LINES, WORDS, tiny_codec

CPU = torch.device("cpu")
CONFIG = ModelConfig(
    encoder_layers=1,
    decoder_layers=1,
    model_size=16,
    feed_forward_size=32,
    heads=2,
    output_bias=True,
)
TOKENS = ("source_embedding.tokens.weight", "target_embedding.tokens.weight")
OF_SIDE = {"source": TOKENS[:1], "target": (*TOKENS[1:], "projection.weight", "output_bias")}


def shared(vocabulary: Words | Subword) -> TextCodec:
    return TextCodec("en", "de", vocabulary, vocabulary, is_shared=True)


def separate(source: Sequence[str], target: Sequence[str]) -> TextCodec:
    return TextCodec("en", "de", Words(source), Words(target), is_shared=False)


def model_of(codec: TextCodec, seed: int, config: ModelConfig = CONFIG) -> Transformer:
    """Return a model in which every parameter differs from its initial value."""
    torch.manual_seed(seed)
    model = Transformer(config, codec.source.size, codec.target.size, codec.is_shared).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def write_parent(
    folder: Path, codec: TextCodec, config: ModelConfig = CONFIG, **fields: Json
) -> Transformer:
    model = model_of(codec, 1, config)
    recipe = TrainRecipe(model=config)
    known: dict[str, Json] = {"update": 7, "provenance": {"dataset": "0123"}, **fields}
    write_model(folder, model.state_dict(), recipe, codec, known, overwrite=False)
    return model


def begin(
    parent: Path, codec: TextCodec, dataset: Dataset, config: ModelConfig = CONFIG
) -> tuple[Transformer, Transformer, list[str]]:
    """Return a new model that began with a parent, the same model as it was, and the report."""
    before, model = model_of(codec, 2, config), model_of(codec, 2, config)
    with_codec = replace(dataset, codec=codec)
    is_equal = describe_model(parent).codec.fingerprint == codec.fingerprint
    own = Parent(parent, updates_vocabulary=not is_equal)
    origin = Origin.find(own, parent / "run", config, with_codec, None)
    return model, before, [*origin.copy_to(model)]


def logits(model: Transformer, source: Sequence[int], target: Sequence[int]) -> Tensor:
    memory = model.encode(pack_sequences([[*source, EOS_ID]], CPU))
    return model.logits(model.decode(pack_sequences([[1, *target]], CPU), memory))


def resumable_with(provenance: dict[str, Json]) -> Resumable:
    snapshot = tiny_snapshot(3, is_scheduled=True)
    return Resumable(
        path=Path("run"),
        fingerprint="",
        update=3,
        model={**snapshot.model},
        recipe=snapshot.recipe,
        provenance=provenance,
        state_tensors={},
        state_values={},
    )


# ------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("ties", [True, False])
def test_all_weights_of_an_equal_vocabulary_are_copied(
    ties: bool, dataset: Dataset, tmp_path: Path
) -> None:
    config = replace(CONFIG, tie_embeddings=ties)
    parent = write_parent(tmp_path / "parent", tiny_codec(), config)
    model, _, report = begin(tmp_path / "parent", tiny_codec(), dataset, config)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, parent.state_dict()[name]), name
    assert report == [f"weights from {tmp_path / 'parent'}"]


@pytest.mark.parametrize("ties", [True, False])
def test_rows_of_equal_words_are_copied_and_other_rows_stay_new(
    ties: bool, dataset: Dataset, tmp_path: Path
) -> None:
    config = replace(CONFIG, tie_embeddings=ties)
    old = separate(["a", "b", "c", "d"], ["x", "y", "z"])
    new = separate(["d", "e", "a"], ["y", "v", "w", "x"])
    parent = write_parent(tmp_path / "parent", old, config).state_dict()
    model, before, report = begin(tmp_path / "parent", new, dataset, config)
    expected = {"source": [0, 1, 2, 6, None, 3], "target": [0, 1, 2, 4, None, None, 3]}
    for side, names in OF_SIDE.items():
        for name in names:
            rows = model.state_dict()[name]
            for row, old_row in enumerate(expected[side]):
                if old_row is None:
                    assert torch.equal(rows[row], before.state_dict()[name][row]), (name, row)
                else:
                    assert torch.equal(rows[row], parent[name][old_row]), (name, row)
    others = parent.keys() - {name for names in OF_SIDE.values() for name in names}
    assert others
    assert all(torch.equal(model.state_dict()[name], parent[name]) for name in others)
    assert report[1:] == [
        "source entries: 5 of 6 are copied, 0 are means of subwords, 1 are new",
        "target entries: 5 of 7 are copied, 0 are means of subwords, 2 are new",
    ]


def test_a_shared_vocabulary_has_the_rows_of_both_sides(dataset: Dataset, tmp_path: Path) -> None:
    parent = write_parent(tmp_path / "parent", separate(["a", "b"], ["b", "c"])).state_dict()
    model, before, _ = begin(tmp_path / "parent", shared(Words(["a", "b", "c", "d"])), dataset)
    rows = model.source_embedding.tokens.weight
    assert rows is model.target_embedding.tokens.weight is model.output_weight
    assert torch.equal(rows[3], parent[TOKENS[0]][3])  # a is an entry of the source only
    assert torch.equal(rows[4:6], parent[TOKENS[1]][3:5])  # b has two rows: the target's is used
    assert torch.equal(rows[6], before.output_weight[6])


def test_separate_vocabularies_have_the_rows_of_a_shared_one(
    dataset: Dataset, tmp_path: Path
) -> None:
    parent = write_parent(tmp_path / "parent", shared(Words(["a", "b", "c"])))
    model, _, _ = begin(tmp_path / "parent", separate(["c", "a"], ["b"]), dataset)
    rows = parent.output_weight
    assert torch.equal(model.source_embedding.tokens.weight, rows[[0, 1, 2, 5, 3]])
    assert torch.equal(model.output_weight, rows[[0, 1, 2, 4]])


def test_a_subword_that_the_parent_splits_has_the_mean_of_the_parts(
    dataset: Dataset, tmp_path: Path
) -> None:
    text = [line.replace(" ", "") for line in TRAIN_LINES] * 3
    old = Subword.train(text, "bpe", 276, "text")
    new = Subword.train([f"{line} dach ahad" for line in text], "bpe", 300, "text")
    parent = write_parent(tmp_path / "parent", shared(old)).output_weight
    model, _, (_, line) = begin(tmp_path / "parent", shared(new), dataset)
    known = {old.piece(index): index for index in range(old.size)}
    num_means = 0
    for index in range(new.size):
        piece = new.piece(index)
        if piece in known:
            expected = parent[known[piece]]
        else:
            # The characters of this text are entries, so no part is unknown.
            parts = old.encode(piece.replace("\u2581", " "))
            pieces = [old.piece(part) for part in parts]
            if not piece.startswith("\u2581") and pieces[0] == "\u2581":
                parts = parts[1:]
            expected, num_means = parent[parts].mean(0), num_means + 1
        assert torch.equal(model.output_weight[index], expected), piece
    assert num_means > 5
    assert f" {num_means} are means of subwords, 0 are new" in line


def test_entries_of_words_and_of_subwords_are_not_compared(
    dataset: Dataset, tmp_path: Path
) -> None:
    write_parent(tmp_path / "parent", shared(Words(["a", "b", "c"])))
    subwords = shared(Subword.train([*WORDS], "bpe", 269, "text"))
    model, before, (_, line) = begin(tmp_path / "parent", subwords, dataset)
    assert line == "shared entries: 3 of 269 are copied, 0 are means of subwords, 266 are new"
    assert torch.equal(model.output_weight[3:], before.output_weight[3:])


def test_appended_entries_change_scores_only_by_their_share(
    dataset: Dataset, tmp_path: Path
) -> None:
    words = tuple("abcdefgh")
    parent = write_parent(tmp_path / "parent", shared(Words(words)))
    model, _, _ = begin(tmp_path / "parent", shared(Words([*words, "i", "j"])), dataset)
    old, new = (logits(one, [3, 7, 5], [4, 9, 6]).double() for one in (parent, model))
    torch.testing.assert_close(new[:, : old.shape[1]], old, rtol=0, atol=1e-6)
    share = new.softmax(-1)[:, old.shape[1] :].sum(-1, keepdim=True)
    assert (share > 0.01).all()
    known = new.log_softmax(-1)[:, : old.shape[1]]
    expected = old.log_softmax(-1) + torch.log1p(-share)
    torch.testing.assert_close(known, expected, rtol=0, atol=1e-6)


# ------------------------------------------------------------------------------------- descent


def test_the_line_of_descent_begins_with_the_parent(dataset: Dataset, tmp_path: Path) -> None:
    ancestor: Json = {"name": "grandparent", "sha256": "ab", "update": 3, "languages": "fr-de"}
    write_parent(tmp_path / "parent", dataset.codec, provenance={"parents": [ancestor]})
    origin = Origin.find(Parent(tmp_path / "parent"), tmp_path, CONFIG, dataset, None)
    manifest = json.loads((tmp_path / "parent" / "manifest.json").read_bytes())
    sha256 = manifest["files"]["model.safetensors"]["sha256"]
    own = {"name": "parent", "sha256": sha256, "update": 7, "languages": "en-de"}
    assert origin.parents == [own, ancestor]


def test_a_checkpoint_has_the_name_of_its_run(dataset: Dataset, tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "night")
    model = model_of(dataset.codec, 1)
    snapshot = tiny_snapshot(5, is_scheduled=True)
    recipe = TrainRecipe(model=CONFIG)
    write_checkpoint(
        run, replace(snapshot, model=model.state_dict(), recipe=recipe, codec=dataset.codec)
    )
    for path in (run.path, run.path / "last", run.model_dir(5)):
        (own,) = Origin.find(Parent(path), tmp_path, CONFIG, dataset, None).parents
        assert isinstance(own, dict)
        assert (own["name"], own["update"]) == ("night", 5)


def test_without_a_parent_the_weights_are_random(dataset: Dataset, tmp_path: Path) -> None:
    assert Origin.find(None, tmp_path, CONFIG, dataset, None) == Origin([], no_weights)


def test_a_run_that_continues_needs_no_intact_parent(dataset: Dataset, tmp_path: Path) -> None:
    parents: list[Json] = [{"name": "parent", "sha256": "ab", "update": 7, "languages": "en-de"}]
    resumable = resumable_with({"parents": parents})
    (tmp_path / "empty").mkdir()
    write_parent(tmp_path / "damaged", dataset.codec)
    (tmp_path / "damaged" / "config.toml").write_text("", encoding="utf-8")
    for name in ("gone", "empty", "damaged"):
        origin = Origin.find(Parent(tmp_path / name), tmp_path, CONFIG, dataset, resumable)
        assert origin == Origin(parents, no_weights)
    assert Origin.find(None, tmp_path, CONFIG, dataset, resumable) == Origin(parents, no_weights)
    assert Origin.find(None, tmp_path, CONFIG, dataset, resumable_with({})).parents == []


# -------------------------------------------------------------------------------------- refusals


def test_another_parent_is_refused_for_a_run_that_exists(dataset: Dataset, tmp_path: Path) -> None:
    write_parent(tmp_path / "other", dataset.codec)
    other = Parent(tmp_path / "other")
    resumable = resumable_with({"parents": [{"name": "first", "sha256": "ab"}]})
    with refuses(ConfigError, "other run; --from --out"):
        Origin.find(other, tmp_path / "run", CONFIG, dataset, resumable)
    with refuses(ConfigError, "run; --from --out"):
        Origin.find(other, tmp_path / "run", CONFIG, dataset, resumable_with({}))


def changed(name: str, value: Any) -> ModelConfig:
    return ModelConfig(**{**vars(CONFIG), name: value})


def test_another_shape_is_refused_and_another_dropout_is_not(
    dataset: Dataset, tmp_path: Path
) -> None:
    write_parent(tmp_path / "parent", dataset.codec)
    parent = Parent(tmp_path / "parent")
    may_differ = {
        **{"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.2},
        **{"alignment_layer": 1, "alignment_head": 2, "full_context_alignment": True},
    }
    config = replace(CONFIG, **may_differ)  # type: ignore[arg-type]
    Origin.find(parent, tmp_path, config, dataset, None)
    for name in vars(CONFIG).keys() - may_differ:
        old = getattr(CONFIG, name)
        texts = {"norm": "pre", "activation": "silu", "positions": "learned"}
        new: Any = texts.get(name, not old if isinstance(old, bool) else old * 2 or 2)
        with refuses(ConfigError, f"parent {name} {new} {old}"):
            Origin.find(parent, tmp_path, changed(name, new), dataset, None)


def test_another_vocabulary_needs_the_option(dataset: Dataset, tmp_path: Path) -> None:
    write_parent(tmp_path / "parent", shared(Words(["a"])))
    with refuses(ConfigError, "parent data; --vocabulary-of parent --update-vocabulary"):
        Origin.find(Parent(tmp_path / "parent"), tmp_path, CONFIG, dataset, None)


def test_other_languages_need_the_option(dataset: Dataset, tmp_path: Path) -> None:
    codec = replace(dataset.codec, source_lang="fr")
    write_parent(tmp_path / "parent", codec)
    with refuses(ConfigError, "data; --update-vocabulary"):
        Origin.find(Parent(tmp_path / "parent"), tmp_path, CONFIG, dataset, None)
    parent = Parent(tmp_path / "parent", updates_vocabulary=True)
    assert Origin.find(parent, tmp_path, CONFIG, dataset, None).parents


def test_an_imported_model_without_languages_is_of_any(dataset: Dataset, tmp_path: Path) -> None:
    subwords = Subword.train([*WORDS], "bpe", 269, "text")
    pieces = ["<unk>", "<pad>", "</s>", *map(subwords.piece, range(3, 269))]
    vocabulary = MarianVocabulary(subwords.data, pieces, "model")
    codec = TextCodec("source", "target", vocabulary, vocabulary, is_shared=True)
    write_parent(tmp_path / "parent", codec)
    named = replace(dataset, codec=replace(codec, source_lang="en", target_lang="de"))
    assert Origin.find(Parent(tmp_path / "parent"), tmp_path, CONFIG, named, None).parents


def test_an_update_of_an_equal_vocabulary_has_no_effect(dataset: Dataset, tmp_path: Path) -> None:
    write_parent(tmp_path / "parent", dataset.codec)
    parent = Parent(tmp_path / "parent", updates_vocabulary=True)
    with refuses(ConfigError, "--update-vocabulary"):
        Origin.find(parent, tmp_path, CONFIG, dataset, None)


def test_a_parent_run_may_have_trained_on(dataset: Dataset, tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "night")
    recipe, snapshot = TrainRecipe(model=CONFIG), tiny_snapshot(5, is_scheduled=True)
    own = replace(snapshot, recipe=recipe, codec=dataset.codec)
    weights = model_of(dataset.codec, 1).state_dict()
    write_checkpoint(run, replace(own, model=weights))
    parents = Origin.find(Parent(run.path), tmp_path, CONFIG, dataset, None).parents
    resumable = resumable_with({"parents": parents})
    weights = model_of(dataset.codec, 2).state_dict()
    write_checkpoint(run, replace(own, update=6, model=weights))
    write_checkpoint(run, replace(own, update=4, model=weights))
    (run.model_dir(4) / "manifest.json").write_text("{}", encoding="utf-8")
    assert Origin.find(Parent(run.path), tmp_path, CONFIG, dataset, resumable).parents == parents
    shutil.rmtree(run.model_dir(5))
    with refuses(ConfigError, "night; --config --from --out"):
        Origin.find(Parent(run.path), tmp_path, CONFIG, dataset, resumable)


def test_a_parent_whose_settings_are_of_a_huge_model_is_refused(
    dataset: Dataset, tmp_path: Path
) -> None:
    """The new model, which has the parent's shape, is not built."""
    config = replace(CONFIG, encoder_layers=1000, feed_forward_size=1_000_000)
    tensors = model_of(dataset.codec, 1, CONFIG).state_dict()
    fields: dict[str, Json] = {"update": 7, "provenance": {"dataset": "0123"}}
    recipe = TrainRecipe(model=config)
    write_model(tmp_path / "parent", tensors, recipe, dataset.codec, fields, overwrite=False)
    with refuses(DamagedError, "model.safetensors config.toml parameters"):
        Origin.find(Parent(tmp_path / "parent"), tmp_path, config, dataset, None)
