"""Folders of Marian with other numbering of tokens, and folders that are refused by name."""

import json
import time
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.interop.marian_reading import SUPPORTED, read
from nmtkit.model.embedding import sinusoids
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from tests.conversions import (
    random_model,
    refused_on_page,
    scores,
    separate_codec,
    shared_codec,
    write_marian,
)
from tests.messages import refuses

SHARED = "model.shared.weight"
COPIES = (
    "lm_head.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
)
POSITIONS = "model.encoder.embed_positions.weight"

Json = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_marian(random_model(shared_codec(), {"output_bias": True}), tmp_path / "marian")


def edit(path: Path, change: Callable[[Json], object]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_tensors(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    change(tensors)
    safetensors.torch.save_file(tensors, path)


# ------------------------------------------------------------------------------------------- ids


def renumber(folder: Path) -> None:
    """Number the entries as OPUS-MT does: </s>, <unk>, the others, padding last."""
    size = shared_codec().source.size
    order = [EOS_ID, UNK_ID, *reversed(range(EOS_ID + 1, size)), BOS_ID]
    new_ids = {old: new for new, old in enumerate(order)}

    def number(vocabulary: Json) -> None:
        for piece, old in [*vocabulary.items()]:
            vocabulary[piece] = new_ids[old]
        vocabulary["<pad>"] = vocabulary.pop("<s>")

    def sort(tensors: dict[str, Tensor]) -> None:
        tensors[SHARED] = tensors[SHARED][order]
        tensors["final_logits_bias"] = tensors["final_logits_bias"][:, order]

    edit(folder / "vocab.json", number)
    edit_tensors(folder, sort)
    special = dict.fromkeys(("pad_token_id", "decoder_start_token_id"), size - 1)
    edit(folder / "config.json", lambda config: config.update(special, eos_token_id=0))
    (folder / "tokenizer_config.json").unlink()  # it has only defaults


def test_how_entries_are_numbered_does_not_matter(folder: Path) -> None:
    original = read(folder)
    renumber(folder)
    renumbered = read(folder)
    # The sum over the vocabulary has another order.
    expected = pytest.approx(scores(original, shared_codec()), abs=1e-4)
    assert scores(renumbered, shared_codec()) == expected
    assert renumbered.codec.source.piece(BOS_ID) == "<pad>"
    assert renumbered.codec.fingerprint != original.codec.fingerprint


def test_special_symbols_are_those_that_the_tokenizer_names(folder: Path) -> None:
    expected = scores(read(folder), shared_codec())

    def rename(vocabulary: Json) -> None:
        vocabulary["END"] = vocabulary.pop("</s>")

    edit(folder / "vocab.json", rename)
    edit(folder / "tokenizer_config.json", lambda t: t.update(eos_token={"content": "END"}))
    assert scores(read(folder), shared_codec()) == expected


# --------------------------------------------------------------------------------------- tensors


HUGE = {"d_model": 65_536, "encoder_ffn_dim": 10**6, "decoder_ffn_dim": 10**6}
DEEP = {"encoder_layers": 1000, "decoder_layers": 1000}


@pytest.mark.parametrize("sizes", [HUGE, HUGE | DEEP])
def test_a_small_file_of_weights_makes_no_large_model(sizes: Json, folder: Path) -> None:
    edit(folder / "config.json", lambda config: config.update(sizes))
    begin = time.process_time()
    with refuses(DamagedError, "model.safetensors config.json parameters"):
        read(folder)
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("shape", [(0, 2**40), (2**40, 0)])
def test_an_empty_table_of_positions_asks_for_no_memory(
    shape: tuple[int, int], folder: Path
) -> None:
    edit_tensors(folder, lambda tensors: tensors.update({POSITIONS: torch.zeros(shape)}))
    with refuses(ConfigError, f"{POSITIONS} sinusoids; sinusoids"):
        read(folder)


@pytest.mark.parametrize("number", [10**12, 0, "many"])
def test_a_table_of_positions_for_transformers_has_a_limit(number: object, folder: Path) -> None:
    edit(folder / "config.json", lambda config: config.update(max_position_embeddings=number))
    with refuses(ConfigError, f"max_position_embeddings {number} 1 16384"):
        read(folder)


def test_copies_of_the_embedding_and_our_positions_may_be_stored(folder: Path) -> None:
    expected = scores(read(folder), shared_codec())

    def add(tensors: dict[str, Tensor]) -> None:
        tensors.update({name: tensors[SHARED].clone() for name in COPIES})
        tensors[POSITIONS] = sinusoids(30, 16)

    edit_tensors(folder, add)
    assert scores(read(folder), shared_codec()) == expected


@pytest.mark.parametrize("name", COPIES)
def test_the_embedding_may_be_stored_under_any_of_its_names(name: str, folder: Path) -> None:
    expected = scores(read(folder), shared_codec())
    edit_tensors(folder, lambda tensors: tensors.update({name: tensors.pop(SHARED)}))
    assert scores(read(folder), shared_codec()) == expected


def test_half_precision_becomes_single(folder: Path) -> None:
    edit_tensors(folder, lambda ts: ts.update({name: t.half() for name, t in ts.items()}))
    assert {p.dtype for p in read(folder).model.parameters()} == {torch.float32}


def test_a_bias_of_zeros_is_none(folder: Path) -> None:
    edit_tensors(folder, lambda tensors: tensors["final_logits_bias"].zero_())
    without = read(folder)
    assert without.model.output_bias is None
    edit_tensors(folder, lambda tensors: tensors.pop("final_logits_bias"))
    assert scores(read(folder), shared_codec()) == scores(without, shared_codec())


LAYER = "model.encoder.layers.0.fc1.weight"


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (lambda ts: ts.pop(LAYER), LAYER),
        (lambda ts: ts.update({LAYER: torch.zeros(24, 15)}), f"{LAYER} (24, 16) config.json"),
        (lambda ts: ts.update({COPIES[0]: ts[SHARED] + 1}), f"{SHARED} {COPIES[0]} (290, 16)"),
        (
            lambda ts: ts.update({"final_logits_bias": torch.zeros(1, 289)}),
            "final_logits_bias (1, 290)",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(
    change: Callable[[dict[str, Tensor]], object], keys: str, folder: Path
) -> None:
    edit_tensors(folder, change)
    with refuses(DamagedError, f"model.safetensors {keys}"):
        read(folder)


@pytest.mark.parametrize(
    ("name", "tensor", "keys"),
    [
        ("model.encoder.layer_norm.weight", torch.zeros(16), "model.encoder.layer_norm.weight"),
        *(
            (POSITIONS, table, POSITIONS)
            for table in (sinusoids(31, 16)[1:], torch.zeros(4), torch.zeros(3, 15))
        ),
    ],
)
def test_unknown_tensors_are_refused(name: str, tensor: Tensor, keys: str, folder: Path) -> None:
    edit_tensors(folder, lambda tensors: tensors.update({name: tensor.contiguous()}))
    with refuses(ConfigError, keys):
        read(folder)


def test_a_pickle_is_never_read(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with refuses(DamagedError, "model.safetensors"):
        read(folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with refuses(DamagedError, "model.safetensors; pytorch_model.bin") as refused:
        read(folder)
    message = str(refused.value)
    assert (
        f"`python -c 'from transformers import MarianMTModel as M; M.from_pretrained(\"{folder}"
        in message
    )


# ------------------------------------------------------------------------------------- the shape


@pytest.mark.parametrize(
    ("name", "value", "keys"),
    [
        ("model_type", "bart", "model_type bart marian"),
        ("activation_function", "gelu", "activation_function gelu relu silu swish"),
        ("normalize_before", True, "normalize_before true"),
        ("decoder_ffn_dim", 25, "decoder_ffn_dim 25 encoder 24"),
        ("decoder_attention_heads", 4, "decoder_attention_heads 4 encoder"),
        ("decoder_start_token_id", 2, "decoder_start_token_id 2 pad_token_id 1"),
        ("tie_word_embeddings", False, "tie_word_embeddings false"),
        ("tie_word_embeddings", "x", "tie_word_embeddings x"),
        ("share_encoder_decoder_embeddings", 1.5, "share_encoder_decoder_embeddings 1.5"),
        ("d_model", None, "model_size None"),
        ("encoder_layers", "2", "encoder_layers 2"),
    ],
)
def test_an_unsupported_setting_is_refused_by_name(
    name: str, value: object, keys: str, folder: Path
) -> None:
    edit(folder / "config.json", lambda config: config.update({name: value}))
    with refuses(ConfigError, keys):
        read(folder)


def test_the_page_on_other_libraries_names_every_setting_that_is_refused(folder: Path) -> None:
    of_config = [
        *SUPPORTED,
        "decoder_ffn_dim",
        "decoder_attention_heads",
        "decoder_start_token_id",
    ]
    of_tokenizer = ["separate_vocabs", "sp_model_kwargs"]
    for file, names in (("config.json", of_config), ("tokenizer_config.json", of_tokenizer)):
        original = (folder / file).read_bytes()
        for name in names:
            edit(folder / file, methodcaller("update", {name: "x"}))
            with refuses(ConfigError, name):
                read(folder)
            (folder / file).write_bytes(original)
    assert {*of_config, *of_tokenizer} <= refused_on_page("From Hugging Face's Marian")


def test_missing_settings_have_their_defaults(folder: Path) -> None:
    usual = ("share_encoder_decoder_embeddings", "tie_word_embeddings", "normalize_before")
    expected = scores(read(folder), shared_codec())
    edit(folder / "config.json", lambda config: config.update(dict.fromkeys(usual)))
    assert scores(read(folder), shared_codec()) == expected
    edit(folder / "config.json", lambda config: [config.pop(name) for name in usual])
    assert scores(read(folder), shared_codec()) == expected


def test_all_refused_settings_are_reported_together(folder: Path) -> None:
    edit(folder / "config.json", lambda c: c.update(normalize_before=True, decoder_ffn_dim=1))
    with refuses(ConfigError, "marian normalize_before; decoder_ffn_dim"):
        read(folder)


@pytest.mark.parametrize(
    ("name", "value", "keys"),
    [
        ("separate_vocabs", True, "separate_vocabs true false"),
        ("sp_model_kwargs", {"alpha": 1}, 'sp_model_kwargs {"alpha": 1}'),
        ("pad_token", "<PAD>", "<PAD>; tokenizer_config.json"),
        ("eos_token", {}, None),
        ("eos_token", {"x": 1}, "None; tokenizer_config.json"),
    ],
)
def test_unsupported_tokenizer_settings_are_refused_by_name(
    name: str, value: object, keys: str | None, folder: Path
) -> None:
    edit(folder / "tokenizer_config.json", lambda tokenizer: tokenizer.update({name: value}))
    if keys is None:
        read(folder)
    else:
        with refuses(ConfigError, keys):
            read(folder)


# --------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("name", "content", "keys"),
    [
        ("config.json", None, "config.json"),
        ("config.json", "[]", "config.json"),
        ("vocab.json", "{", "vocab.json JSON"),
        ("vocab.json", '{"a": 0, "b": 2}', "vocab.json 0 1"),
        ("vocab.json", '{"a": 0, "b": []}', "vocab.json"),
        ("vocab.json", '{"a": 0, "b": true}', "vocab.json"),
        ("tokenizer_config.json", "1", "tokenizer_config.json"),
        ("source.spm", None, "source.spm"),
        ("target.spm", "x", "target.spm SentencePiece"),
        ("model.safetensors", "x", "model.safetensors"),
    ],
)
def test_a_damaged_file_is_named(name: str, content: str | None, keys: str, folder: Path) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with refuses(DamagedError, keys):
        read(folder)


@pytest.mark.parametrize(
    "name", ["eos_token_id", "pad_token_id", "vocab_size", "decoder_vocab_size"]
)
def test_numbers_that_contradict_the_vocabulary_are_named(name: str, folder: Path) -> None:
    numbers: dict[str, object] = {name: 7}
    if name == "pad_token_id":
        numbers["decoder_start_token_id"] = 7
    edit(folder / "config.json", lambda config: config.update(numbers))
    with refuses(DamagedError, f"config.json {name} 7"):
        read(folder)


def test_a_size_may_be_null(folder: Path) -> None:
    expected = scores(read(folder), shared_codec())
    edit(folder / "config.json", lambda config: config.update(decoder_vocab_size=None))
    assert scores(read(folder), shared_codec()) == expected


def test_two_vocabularies_are_read_from_two_files(tmp_path: Path) -> None:
    folder = write_marian(random_model(separate_codec(), {}), tmp_path / "marian")
    (folder / "target_vocab.json").unlink()
    with refuses(DamagedError, "target_vocab.json"):
        read(folder)
