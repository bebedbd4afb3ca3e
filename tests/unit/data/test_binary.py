import json
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmtkit.data.binary import FORMAT, VERSION, Dataset
from nmtkit.data.prepare import Sizes
from nmtkit.errors import DamagedError
from nmtkit.storage.manifest import describe
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, VALID_LINES, tiny_dataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_dataset(tmp_path)


def change_bytes(path: Path, change: Callable[[bytearray], None]) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_dataset_holds_the_text_as_ids(folder: Path) -> None:
    dataset = Dataset.open(folder)
    (shard,) = dataset.train
    assert len(shard) == len(shard.source) == len(TRAIN_LINES)
    for number, line in enumerate(TRAIN_LINES):
        assert shard.source[number].tolist() == dataset.codec.encode_source(line)
        assert shard.target[number].tolist() == dataset.codec.encode_target(line.upper())
    for number, line in enumerate(VALID_LINES):
        assert dataset.valid.target[number].tolist() == dataset.codec.encode_target(line.upper())
    assert dataset.valid_source == list(VALID_LINES)
    assert dataset.valid_target == [line.upper() for line in VALID_LINES]


def test_ids_are_mapped_and_cannot_be_changed(folder: Path) -> None:
    side = Dataset.open(folder).train[0].source
    assert not side.ids.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        side.ids[0] = 1


def seal_again(folder: Path) -> None:
    """Write a manifest that matches a changed folder, as in a deliberate manipulation."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    own = ("format", "version", "nmtkit", "files", "sha256")
    path.unlink()
    fields = {name: value for name, value in manifest.items() if name not in own}
    path.write_bytes(describe(folder, FORMAT, VERSION, fields))


def read_everything(folder: Path) -> None:
    dataset = Dataset.open(folder)
    for pairs in dataset.train:
        assert len(pairs.source.ids) + len(pairs.target.ids) > 0


def test_every_flipped_bit_is_found_before_it_is_used(folder: Path) -> None:
    for path in files(folder):
        whole = path.read_bytes()
        change_bytes(path, lambda data: data.__setitem__(len(data) // 2, data[len(data) // 2] ^ 16))
        with refuses(DamagedError, path):
            read_everything(folder)
        path.write_bytes(whole)
    read_everything(folder)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("train.00000.target", 0, 1),
        ("train.00000.target", 5, 120),
        ("train.00000.target", -1, 120),
        ("valid.source", 1, 0),
    ],
)
def test_invalid_offsets_are_found_at_opening(
    folder: Path, name: str, place: int, value: int
) -> None:
    path = folder / f"{name}.offsets"
    offsets = np.fromfile(path, np.uint32)
    offsets[place] = value
    path.write_bytes(offsets.tobytes())
    seal_again(folder)
    with refuses(DamagedError, f"{path}; nmtkit preprocess"):
        Dataset.open(folder)


def test_an_id_outside_the_vocabulary_is_found_at_first_use(folder: Path) -> None:
    path = folder / "train.00000.source.ids"
    change_bytes(path, lambda data: data.__setitem__(slice(4, 6), b"\xff\xff"))
    seal_again(folder)
    dataset = Dataset.open(folder)
    with refuses(DamagedError, f"{path} 65535 {dataset.codec.source.size}; nmtkit preprocess"):
        dataset.train[0].source[0]
    assert dataset.train[0].target[0].tolist()


def test_a_codec_of_another_dataset_is_found_at_opening(folder: Path) -> None:
    path = folder / "codec" / "shared.txt"
    words = path.read_text().split("\n")
    words[3], words[4] = words[4], words[3]
    path.write_text("\n".join(words))
    seal_again(folder)
    with refuses(DamagedError, folder / "codec"):
        Dataset.open(folder)


def test_damaged_validation_text_is_found_at_opening(folder: Path) -> None:
    path = folder / "valid.target.txt"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b" ", b"\n"))
    seal_again(folder)
    with refuses(DamagedError, f"{path} 3 lines; nmtkit preprocess"):
        Dataset.open(folder)
    path.write_bytes(whole.replace(b"A", b"\xff"))
    seal_again(folder)
    with refuses(DamagedError, f"{path} UTF-8; nmtkit preprocess"):
        Dataset.open(folder)


def test_a_dataset_of_a_later_version_is_refused(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 4}))
    with refuses(DamagedError, "data 4 3"):
        Dataset.open(folder)


def test_only_the_last_used_shard_stays_mapped(tmp_path: Path) -> None:
    train = Dataset.open(tiny_dataset(tmp_path, sizes=Sizes(shard=4))).train
    assert len(train) == 3
    first = weakref.ref(train[0])
    assert train[0] is first()
    assert train[1] is train[1]
    assert first() is None


def test_shards_are_indexed_like_a_list(tmp_path: Path) -> None:
    train = Dataset.open(tiny_dataset(tmp_path, sizes=Sizes(shard=4))).train
    sizes = [len(shard) for shard in train]
    assert sum(sizes) == len(TRAIN_LINES)
    assert [len(shard) for shard in train[1:]] == sizes[1:]
    assert len(train[-1]) == sizes[-1]
    with pytest.raises(IndexError):
        train[3]
