from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmtkit.data import writer as writer_module
from nmtkit.data.binary import VALID, PairIds, Sequences, Side, id_type_for, shard_name
from nmtkit.data.writer import DatasetWriter
from nmtkit.errors import DataError
from tests.messages import refuses
from tests.tiny import tiny_codec

SEQUENCES = st.lists(st.lists(st.integers(0, 65535), min_size=1, max_size=5), max_size=5)


def pack(sequences: list[list[int]]) -> Sequences:
    return Sequences.pack(sequences, "uint16")


def read(folder: Path, stem: str, num_sequences: int, id_type: str) -> list[list[int]]:
    side = Side(folder / stem, num_sequences, id_type, 2**32, lambda _: None)
    sequences = [side[i].tolist() for i in range(len(side))]
    assert side.lengths().tolist() == [len(sequence) for sequence in sequences]
    return sequences


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), SEQUENCES), max_size=8), st.integers(0, 60))
def test_added_ids_can_be_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    added: list[tuple[int, list[list[int]]]],
    max_buffered: int,
) -> None:
    monkeypatch.setattr(writer_module, "MAX_BUFFERED_BYTES", max_buffered)
    for path in tmp_path.iterdir():
        path.unlink()
    names = [shard_name(0), shard_name(1), VALID]
    writer = DatasetWriter(tmp_path, "uint16", 2, [1.0])
    for part, sequences in added:
        sides = pack(sequences), pack([sequence[::-1] for sequence in sequences])
        if names[part] == VALID:
            writer.add_valid(PairIds(*sides))
        else:
            writer.add(part, 0, PairIds(*sides))
    contents = writer.finish(tiny_codec())
    counts = [*map(sum, contents.shards), contents.valid_pairs]
    for part, name in enumerate(names):
        expected = [one for number, new in added if number == part for one in new]
        assert counts[part] == len(expected)
        assert read(tmp_path, f"{name}.source", counts[part], "uint16") == expected
        found = read(tmp_path, f"{name}.target", counts[part], "uint16")
        assert found == [sequence[::-1] for sequence in expected]


@pytest.mark.parametrize(
    ("vocabulary_size", "id_type", "num_bytes"),
    [(65_536, "uint16", 2), (65_537, "uint32", 4)],
)
def test_ids_take_the_smallest_type_that_holds_the_largest(
    tmp_path: Path, vocabulary_size: int, id_type: str, num_bytes: int
) -> None:
    assert id_type_for(vocabulary_size) == id_type
    writer = DatasetWriter(tmp_path, id_type, 1, [1.0])
    ids = [[vocabulary_size - 1, 2]]
    writer.add(0, 0, PairIds(Sequences.pack(ids, id_type), Sequences.pack(ids, id_type)))
    writer.finish(tiny_codec())
    assert (tmp_path / "train.00000.source.ids").stat().st_size == 2 * num_bytes
    assert read(tmp_path, "train.00000.source", 1, id_type) == ids


def test_files_are_little_endian_and_offsets_begin_at_zero(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path, "uint16", 1, [1.0])
    writer.add_valid(PairIds(pack([[258, 2], [3]]), pack([[1], [2]])))
    writer.finish(tiny_codec())
    assert (tmp_path / "valid.source.ids").read_bytes() == b"\x02\x01\x02\x00\x03\x00"
    assert (tmp_path / "valid.source.offsets").read_bytes() == b"\0\0\0\0\x02\0\0\0\x03\0\0\0"


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_BUFFERED_BYTES", 1000)
    writer = DatasetWriter(tmp_path, "uint16", 10, [1.0])
    num_added = 0
    for number in range(60):
        writer.add(number % 10, 0, PairIds(pack([[5] * 10]), pack([[6] * 10])))
        num_added += 48
        on_disk = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert num_added - on_disk <= 1000


def test_the_fingerprint_depends_only_on_training_ids_and_codec(tmp_path: Path) -> None:
    def fingerprint(name: str, train: list[list[int]], valid: list[list[int]]) -> str:
        folder = tmp_path / name
        folder.mkdir()
        writer = DatasetWriter(folder, "uint16", 1, [1.0])
        writer.add(0, 0, PairIds(pack(train), pack(train)))
        writer.add_valid(PairIds(pack(valid), pack(valid)))
        return writer.finish(tiny_codec()).fingerprint

    first = fingerprint("first", [[5, 2], [6, 2]], [[7, 2]])
    assert fingerprint("again", [[5, 2], [6, 2]], [[8, 2]]) == first
    assert fingerprint("order", [[6, 2], [5, 2]], [[7, 2]]) != first
    assert fingerprint("cut", [[5], [2, 6, 2]], [[7, 2]]) != first


def test_more_tokens_than_offsets_can_count_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MAX_TOKENS", 5)
    writer = DatasetWriter(tmp_path, "uint16", 1, [1.0])
    writer.add(0, 0, PairIds(pack([[5, 2]]), pack([[5, 6, 7, 8, 2]])))
    with refuses(DataError, "train.00000.target.ids 5; --max-length"):
        writer.add(0, 0, PairIds(pack([[2]]), pack([[2]])))
