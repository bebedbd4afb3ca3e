"""A model folder gives back what was written, or says what is wrong with it."""

import errno
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ConfigError, DamagedError, DivergedError, ResourceError
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.storage import model_folder
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.model_folder import (
    load_tensors,
    read_model,
    read_parameters,
    save_tensors,
    write_model,
)
from tests.messages import refuses
from tests.snapshots import tiny_model_folder, tiny_tensors
from tests.tiny import tiny_codec, tiny_model

CPU = torch.device("cpu")


def write(folder: Path, model: Transformer, tensors: dict[str, Tensor]) -> Path:
    fields: dict[str, Json] = {"update": 7, "provenance": {"dataset": "0123"}}
    recipe = TrainRecipe(model=model.config)
    write_model(folder, tensors, recipe, tiny_codec(), fields, overwrite=False)
    return folder


def encoded(model: Transformer) -> Tensor:
    """Return the logits of two short pairs of sentences."""
    memory = model.encode(pack_sequences([[3, 4, 5, 2], [6, 2]], CPU))
    return model.logits(model.decode(pack_sequences([[1, 7, 6], [1]], CPU), memory))


# ---------------------------------------------------------------------------------- round trip


@pytest.mark.parametrize(
    "shape", [{"positions": "sinusoidal", "tie_embeddings": True}, {"positions": "learned"}]
)
def test_a_model_read_back_computes_the_same(tmp_path: Path, shape: dict[str, Any]) -> None:
    model = tiny_model(tiny_codec(), **shape)
    write(tmp_path / "model", model, model.state_dict())
    loaded = read_model(tmp_path / "model", CPU)
    assert not loaded.model.training
    assert torch.equal(encoded(loaded.model), encoded(model))
    assert loaded.recipe == TrainRecipe(model=model.config)
    assert loaded.codec.fingerprint == tiny_codec().fingerprint
    assert loaded.manifest["update"] == 7


def test_only_a_new_model_draws_weights(tmp_path: Path) -> None:
    model = tiny_model(tiny_codec())
    write(tmp_path / "model", model, model.state_dict())
    before = torch.get_rng_state()
    read_model(tmp_path / "model", CPU)
    assert torch.equal(torch.get_rng_state(), before)
    Transformer(model.config, 5, 5, is_shared=True)
    assert not torch.equal(torch.get_rng_state(), before)


def test_a_folder_holds_what_its_format_says(tmp_path: Path) -> None:
    model = tiny_model(tiny_codec(), tie_embeddings=True)
    write(tmp_path / "model", model, model.state_dict())
    files = {
        p.relative_to(tmp_path / "model").as_posix() for p in (tmp_path / "model").rglob("*.*")
    }
    expected = {"manifest.json", "model.safetensors", "config.toml", "codec/codec.json"}
    assert expected < files
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_bytes())
    assert manifest["format"] == "nmtkit-model"
    assert manifest["version"] == 1
    assert manifest["parameters"] == sum(p.numel() for p in model.parameters())
    assert manifest["source_size"] == manifest["target_size"] == tiny_codec().source.size
    assert manifest["codec"] == tiny_codec().fingerprint
    assert manifest["torch"] == torch.__version__
    assert manifest["provenance"] == {"dataset": "0123"}


def test_a_tied_parameter_is_stored_once_and_read_under_all_its_names(tmp_path: Path) -> None:
    folder = tiny_model_folder(tmp_path / "model", 1, tiny_tensors(1))
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    assert set(stored) == {"weight", "bias"}
    tensors = read_parameters(folder, describe_model(folder))
    assert tensors.keys() == tiny_tensors(1).keys()
    for name, tensor in tiny_tensors(1).items():
        assert torch.equal(tensors[name], tensor), name


def test_tensors_of_equal_values_that_are_not_one_are_both_stored(tmp_path: Path) -> None:
    tensors = {"one": torch.ones(3), "two": torch.ones(3)}
    folder = tiny_model_folder(tmp_path / "model", 1, tensors)
    assert set(load_tensors(folder / "model.safetensors")) == {"one", "two"}


def test_a_transposed_tensor_is_written_as_it_reads(tmp_path: Path) -> None:
    transposed = torch.arange(12.0).view(3, 4).t()
    save_tensors({"transposed": transposed}, tmp_path / "file")
    assert torch.equal(load_tensors(tmp_path / "file")["transposed"], transposed)


# ------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_parameters_that_are_not_finite_are_not_written(value: float, tmp_path: Path) -> None:
    tensors = {**tiny_tensors(1), "bad": torch.tensor([1.0, value])}
    with refuses(DivergedError, "model bad; --out --learning-rate-scale --clip-norm"):
        tiny_model_folder(tmp_path / "model", 1, tensors)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_replaced_only_when_asked(tmp_path: Path) -> None:
    tiny_model_folder(tmp_path / "model", 1, tiny_tensors(1))
    with refuses(ConfigError, "model; --overwrite"):
        tiny_model_folder(tmp_path / "model", 2, tiny_tensors(2))
    write_model(tmp_path / "model", tiny_tensors(2), TrainRecipe(), tiny_codec(), {}, True)
    stored = load_tensors(tmp_path / "model" / "model.safetensors")
    assert torch.equal(stored["weight"], tiny_tensors(2)["weight"])


def test_a_full_disk_under_safetensors_is_a_resource_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left (os error 28)")

    monkeypatch.setattr(model_folder, "save_file", refuse)
    with refuses(ResourceError, "model"):
        tiny_model_folder(tmp_path / "model", 1, tiny_tensors(1))
    assert list(tmp_path.iterdir()) == []


def test_what_safetensors_itself_says_of_an_unwritable_place_is_understood(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory") as raised:
        save_tensors({"one": torch.ones(1)}, tmp_path / "missing" / "file")
    assert raised.value.errno == errno.ENOENT


def test_other_errors_of_safetensors_pass_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SafetensorError("something else")

    monkeypatch.setattr(model_folder, "save_file", refuse)
    with pytest.raises(SafetensorError, match="something else"):
        save_tensors({}, tmp_path / "file")


# ----------------------------------------------------------------- whole folders that do not fit


def drop(tensors: dict[str, Tensor]) -> None:
    del tensors["decoder.1.self_attention.output.bias"]


def add(tensors: dict[str, Tensor]) -> None:
    tensors["decoder.2.weight"] = torch.ones(2, 3)


def to_integers(tensors: dict[str, Tensor]) -> None:
    name = "decoder.1.self_attention.output.bias"
    tensors[name] = tensors[name].to(torch.int8)


def reshape(tensors: dict[str, Tensor]) -> None:
    tensors["decoder.1.self_attention.output.bias"] = torch.ones(4)


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (drop, "config.toml decoder.1.self_attention.output.bias 16"),
        (add, "config.toml decoder.2.weight 2 3"),
        (reshape, "config.toml output.bias 4 16"),
        (to_integers, "output.bias I8 float"),
    ],
)
def test_parameters_that_do_not_fit_are_named(
    change: Callable[[dict[str, Tensor]], None], keys: str, tmp_path: Path
) -> None:
    model = tiny_model(tiny_codec())
    tensors = dict(model.state_dict())
    change(tensors)
    write(tmp_path / "model", model, tensors)
    with refuses(DamagedError, f"model.safetensors {keys}"):
        read_model(tmp_path / "model", CPU)


def test_a_configuration_of_another_shape_does_not_fit(tmp_path: Path) -> None:
    model = tiny_model(tiny_codec())
    model.config = replace(model.config, model_size=32)
    write(tmp_path / "model", model, dict(model.state_dict()))
    with refuses(DamagedError, "config.toml source_embedding.tokens.weight 19 16 32"):
        read_model(tmp_path / "model", CPU)


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder_layers": 1000, "decoder_layers": 1000, "model_size": 65_536},
        {"positions": "learned", "max_positions": 1_000_000},
        {"feed_forward_size": 1_000_000},
    ],
)
def test_a_configuration_of_a_huge_model_is_refused_before_it_is_built(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    model = tiny_model(tiny_codec())
    model.config = replace(model.config, **changes)
    write(tmp_path / "model", model, dict(model.state_dict()))
    begin = time.process_time()
    with refuses(DamagedError, "model.safetensors config.toml"):
        read_model(tmp_path / "model", CPU)
    assert time.process_time() - begin < 1


def test_a_tensor_with_many_names_counts_once_for_the_size_of_a_model(tmp_path: Path) -> None:
    """The names of a manifest cost little, and each would be memory of its own."""
    model = tiny_model(tiny_codec())
    model.config = replace(model.config, encoder_layers=1000)
    (name, tensor), *_ = model.state_dict().items()
    tensors = {name: tensor, **{f"{name}.{number}": tensor for number in range(1000)}}
    write(tmp_path / "model", model, tensors)
    with refuses(DamagedError, f"model.safetensors config.toml {tensor.numel():,}"):
        read_model(tmp_path / "model", CPU)


def test_a_file_that_is_not_of_safetensors_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x80\x02cos\nsystem\n")
    with refuses(DamagedError, "file"):
        load_tensors(tmp_path / "file")
