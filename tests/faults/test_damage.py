"""Whatever happens to a byte of a model on disk, loading says that it is damaged."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmtkit.errors import DamagedError
from nmtkit.storage.checkpoint import newest_resumable
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.manifest import verify_files
from nmtkit.storage.model_folder import load_model
from tests.messages import refuses
from tests.snapshots import tiny_run
from tests.tiny import write_tiny_model

CPU = torch.device("cpu")
NUM_POSITIONS = 64
TENSORS = ("model.safetensors", "state.safetensors")
FILES = (
    "model.safetensors",
    "manifest.json",
    "config.toml",
    "codec/codec.json",
    "codec/shared.txt",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("damage") / "model")


def positions(content: bytes, name: str) -> list[int]:
    """Return the ends, the borders of the header of tensors, and a sample of the rest."""
    num_bytes = len(content)
    between = random.Random(1).sample(range(num_bytes), min(NUM_POSITIONS, num_bytes))
    borders = {7, 8, 8 + int.from_bytes(content[:8], "little")} if name in TENSORS else set()
    return sorted({0, *borders, *between, num_bytes - 1})


def truncated(content: bytes, position: int) -> bytes:
    return content[:position]


def zeroed(content: bytes, position: int) -> bytes:
    """A file whose end was never written, though its length was."""
    return content[:position] + bytes(len(content) - position)


def flipped(content: bytes, position: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 1 << position % 8
    return bytes(changed)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", [truncated, zeroed, flipped])
def test_a_damaged_file_is_named_and_nothing_is_loaded(
    harm: Callable[[bytes, int], bytes], name: str, folder: Path
) -> None:
    path = folder / name
    whole = path.read_bytes()
    try:
        # Without the line end after it, a manifest says the same.
        for position in positions(whole.rstrip(b"\n"), name):
            path.write_bytes(harm(whole, position))
            with refuses(DamagedError, folder, recorded=False):
                load_model(folder, CPU)
    finally:
        path.write_bytes(whole)
    load_model(folder, CPU)


@pytest.mark.parametrize("name", ["state.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("harm", [truncated, flipped])
def test_a_damaged_training_state_is_skipped_with_a_warning(
    harm: Callable[[bytes, int], bytes], name: str, tmp_path: Path
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    path = tmp_path / "run" / "checkpoints" / "00000002.state" / name
    whole = path.read_bytes()
    for position in positions(whole.rstrip(b"\n"), name)[::16]:
        path.write_bytes(harm(whole, position))
        warnings: list[str] = []
        resumable = newest_resumable(run, warnings.append)
        assert resumable is not None
        assert resumable.update == 1
        assert len(warnings) == 1
        assert str(path) in warnings[0] or name == "manifest.json"


def test_every_file_of_a_model_is_covered_by_these_tests(folder: Path) -> None:
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == set(FILES)
    manifest = read_manifest(folder, "nmtkit-model", 1)
    verify_files(folder, manifest)
    assert set(manifest["files"]) == files - {"manifest.json"}
