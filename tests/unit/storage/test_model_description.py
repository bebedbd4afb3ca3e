"""What is no model folder, or not one of this version, is refused before tensors are read."""

from pathlib import Path

import pytest

from nmtkit.config.model import AligningAttention
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps
from nmtkit.errors import DamagedError
from nmtkit.storage.durable import new_folder
from nmtkit.storage.manifest import Json
from nmtkit.storage.model_description import (
    FORMAT,
    VERSION,
    ancestors,
    describe_model,
    hashes_of,
    identify,
    line_of_descent,
    store_aligning_attention,
    stored_aligning_attention,
)
from tests.messages import refuses
from tests.tiny import tiny_codec


def write_config(folder: Path, config: str) -> Path:
    """Write a folder whose hashes are right and whose content is not."""
    with new_folder(folder, FORMAT, VERSION, overwrite=False) as staged:
        (staged.path / "config.toml").write_text(config)
        (staged.path / "model.safetensors").write_bytes(b"")
        (staged.path / "codec").mkdir()
        tiny_codec().save(staged.path / "codec")
    return folder


def test_a_folder_of_other_things_is_no_model_and_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02cos\nsystem\n")
    with refuses(DamagedError, "manifest.json"):
        describe_model(tmp_path)


def test_another_format_is_no_model(tmp_path: Path) -> None:
    with new_folder(tmp_path / "data", "nmtkit-dataset", 1, overwrite=False):
        pass
    with refuses(DamagedError, "data nmtkit-dataset"):
        describe_model(tmp_path / "data")


@pytest.mark.parametrize("name", ["encoder_layers", "model_size", "max_positions"])
def test_a_configuration_beyond_the_bounds_is_damaged(name: str, tmp_path: Path) -> None:
    folder = write_config(tmp_path / "model", f"[model]\n{name} = 1000000000\n")
    with refuses(DamagedError, f"{name} 1000000000"):
        describe_model(folder)


def test_a_configuration_of_a_later_nmtkit_is_an_error(tmp_path: Path) -> None:
    folder = write_config(tmp_path / "model", "[model]\nwings = 2\n")
    with refuses(DamagedError, "config.toml wings"):
        describe_model(folder)


PARENT: dict[str, Json] = {"name": "p", "update": 3, "sha256": "ab", "languages": "en-de"}
MANIFEST = {"update": 9, "files": {"model.safetensors": {"bytes": 1, "sha256": "cd"}}}


def test_a_model_is_identified_by_the_hash_of_its_weights(tmp_path: Path) -> None:
    expected = {"name": "model", "update": 9, "sha256": "cd"}
    assert identify(tmp_path / "model", MANIFEST) == expected


def test_a_manifest_without_weights_is_damaged(tmp_path: Path) -> None:
    with refuses(DamagedError, "model/model.safetensors"):
        identify(tmp_path / "model", {"update": 9, "files": {}})


def test_the_hashes_of_a_model_follow_its_weights_and_its_codec(tmp_path: Path) -> None:
    def write(name: str, weights: bytes, codec: str) -> dict[str, Json]:
        with new_folder(tmp_path / name, FORMAT, VERSION, overwrite=False) as staged:
            (staged.path / "model.safetensors").write_bytes(weights)
            staged.fields["codec"] = codec
        return hashes_of(tmp_path / name)

    first = write("a", b"1", "x")
    assert first == write("b", b"1", "x")
    assert first != write("c", b"2", "x")
    assert first != write("d", b"1", "y")
    with refuses(DamagedError, "missing"):
        hashes_of(tmp_path / "missing")


@pytest.mark.parametrize("provenance", [{}, {"dataset": "0123"}, {"parents": []}])
def test_a_model_of_random_weights_has_no_ancestors(provenance: dict[str, Json]) -> None:
    assert ancestors({**MANIFEST, "provenance": provenance}) == []


def test_a_line_of_descent_is_the_model_and_its_ancestors(tmp_path: Path) -> None:
    manifest = {**MANIFEST, "provenance": {"parents": [PARENT]}}
    own = {"name": "model", "update": 9, "sha256": "cd", "languages": "en-de"}
    assert line_of_descent(tmp_path / "model", manifest, tiny_codec()) == [own, PARENT]
    child = {**MANIFEST, "provenance": {"parents": [own, PARENT]}}
    assert line_of_descent(tmp_path / "x", child, tiny_codec())[1:] == [own, PARENT]


def test_the_original_of_an_imported_model_is_its_ancestor() -> None:
    provenance = {"imported": "marian", "name": "opus", "sha256": "ab"}
    (origin,) = ancestors({**MANIFEST, "provenance": provenance})
    assert origin == {**provenance, "update": None, "languages": None}
    (origin,) = ancestors({**MANIFEST, "provenance": {**provenance, "languages": "en-de"}})
    assert origin["languages"] == "en-de"


def test_a_stored_attention_is_read_again_and_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    model = write_config(tmp_path / "model", dumps(TrainRecipe()))
    hashes = hashes_of(model)
    assert stored_aligning_attention(model, 6) is None
    for attention in (
        AligningAttention(5, None, is_shifted=True),
        AligningAttention(0, None, False),
    ):
        store_aligning_attention(model, attention)
        assert stored_aligning_attention(model, 6) == attention
    describe_model(model)
    assert hashes_of(model) == hashes
