"""Every reader takes files by anybody: it returns what can be read, or one of the toolkit's errors.

Folders are sealed by hashes, which test_damage.py breaks; here the hashes fit, or there are none.
"""

import hashlib
import json
import pickle
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from nmtkit.averaging import average
from nmtkit.config.schema import TrainRecipe, fields_of
from nmtkit.config.toml import dumps, loads
from nmtkit.data.binary import FORMAT, VERSION, Dataset
from nmtkit.errors import ConfigError, DamagedError, NmtkitError
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.storage.checkpoint import newest_resumable
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.manifest import describe, verify_files
from nmtkit.storage.model_folder import load_model, load_tensors
from nmtkit.storage.run_folder import RunFolder
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from nmtkit.training.micro_batches import MicroBatchSchedule, read_increases
from tests.faults.harness import Fault, run_in_child
from tests.snapshots import tiny_tensors
from tests.tiny import tiny_codec, tiny_dataset

NUM_CHANGED = 60

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def objects(**usual: object) -> st.SearchStrategy[dict[str, Any]]:
    """Draw objects with some of these keys, whose values are as usual or anything."""
    return st.fixed_dictionaries(
        {}, optional={name: st.just(value) | JSON for name, value in usual.items()}
    )


@st.composite
def mutations(draw: st.DrawFn, whole: bytes) -> bytes:
    """Draw a file with a few other bytes, cut or not."""
    data = bytearray(whole)
    for place in draw(st.lists(st.integers(0, len(data) - 1), max_size=6)):
        data[place] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


# --------------------------------------------------------------------------------------- tensors

WEIGHTS = save({"weight": tiny_tensors(1)["weight"], "bias": tiny_tensors(1)["bias"]})


def header(tensors: object) -> bytes:
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text + bytes(16)


TENSORS = st.dictionaries(
    st.text(max_size=3),
    objects(dtype="F32", shape=[4], data_offsets=[0, 16])
    | st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F64", "F32", "F16", "BF16", "F8_E4M3", "U16", "BOOL", "F4"]),
            "shape": st.lists(st.integers(0, 16), max_size=3),
            "data_offsets": st.sampled_from([[0, 16], [0, 8], [16, 0], [8, 16]]),
        }
    ),
    max_size=2,
)


@given(content=mutations(WEIGHTS) | st.binary(max_size=40) | TENSORS.map(header))
def test_a_file_of_weights_is_tensors_or_damaged(content: bytes, place: Path) -> None:
    (place / "weights").write_bytes(content)
    with suppress(DamagedError):
        assert all(
            isinstance(one, torch.Tensor) for one in load_tensors(place / "weights").values()
        )


# -------------------------------------------------------------------------------------- manifests


@given(content=objects(format="x", version=1, files={"file": {"bytes": 0, "sha256": "0" * 64}}))
def test_a_manifest_that_is_sealed_names_files_or_is_damaged(
    content: dict[str, Any], place: Path
) -> None:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    folder = place / "manifest"
    folder.mkdir(exist_ok=True)
    (folder / "file").touch()
    (folder / "manifest.json").write_text(json.dumps(content))
    with suppress(NmtkitError):
        verify_files(folder, read_manifest(folder, "x", 1))


# ------------------------------------------------------------------------------------------ codecs


def write_codec(folder: Path, description: bytes, words: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "codec.json").write_bytes(description)
    (folder / "shared.txt").write_bytes(words)


GOOD_WORDS = tiny_codec().source.data
DESCRIPTION = objects(**tiny_codec().description)


@given(
    description=DESCRIPTION.map(lambda content: json.dumps(content).encode())
    | st.binary(max_size=9)
    | st.just(b"[" * 10**5),
    words=mutations(GOOD_WORDS),
)
def test_a_codec_encodes_or_is_damaged(description: bytes, words: bytes, place: Path) -> None:
    write_codec(place / "codec", description, words)
    with suppress(DamagedError):
        codec = TextCodec.load(place / "codec")
        decoded = codec.decode_target(codec.encode_target("a b"))
        assert set(decoded.split()) <= {"a", "b", "<unk>"}


@given(content=mutations(GOOD_WORDS) | st.binary(max_size=40))
def test_a_list_of_words_is_read_back_or_refused(content: bytes, place: Path) -> None:
    (place / "words.txt").write_bytes(content)
    with suppress(NmtkitError):
        words = Words.load(place / "words.txt")
        words.save(place / "again.txt")
        assert Words.load(place / "again.txt").data == words.data


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_subword_model_with_other_bytes_encodes_or_is_refused(seed: int) -> None:
    model = Subword.train(["the cat sat on the mat"], "bpe", 275, "x").data

    def load_many() -> None:
        random = np.random.default_rng(seed)
        for _ in range(NUM_CHANGED):
            changed = bytearray(model)
            for place in random.integers(0, len(changed), 3):
                changed[place] = random.integers(256)
            with suppress(NmtkitError):
                subword = Subword(bytes(changed), "changed")
                subword.decode(subword.encode("the cat"))

    outcome = run_in_child(load_many, Fault("count", 0))  # which it may end
    assert not outcome.exception, outcome


# ----------------------------------------------------------------------------------------- recipes

NAMES = [*fields_of(TrainRecipe), "wings"]
SECTIONS = ["model", "training", "search", "wings"]
VALUES = st.one_of(
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        ["true", "nan", "inf", "-1", "0", "[]", "{}", "1979-05-27", "'post'", '"\\u0000"']
    ),
)


@st.composite
def recipes(draw: st.DrawFn) -> str:
    lines = draw(
        st.lists(
            st.sampled_from(SECTIONS).map(lambda name: f"[{name}]")
            | st.tuples(st.sampled_from(NAMES), VALUES).map(" = ".join),
            max_size=8,
        )
    )
    return "\n".join(lines)


@given(text=recipes() | st.text(max_size=30))
def test_a_recipe_is_read_and_written_back_or_refused_in_one_line(text: str) -> None:
    told = "file: "
    try:
        recipe = loads(text, TrainRecipe, "file")
    except ConfigError as error:
        told = str(error)
    else:
        assert loads(dumps(recipe), TrainRecipe, "again") == recipe
    assert told.startswith("file: ")
    assert "\n" not in told


# -------------------------------------------------------------------------- logs and micro-batches

RECORDS = objects(event="training", update=1) | objects(
    event="validation",
    update=1,
    nll=1.5,
    perplexity=4.5,
    scores={"bleu": 20.5},
    signatures={"bleu": "tok:13a"},
    is_best=True,
    took_s=0.5,
)
RECORDS |= objects(  # as earlier versions wrote them
    event="validation",
    update=1,
    loss=1.5,
    perplexity=4.5,
    bleu=None,
    signature=None,
    is_best=True,
    took_s=0.5,
)


@given(lines=st.lists(RECORDS.map(json.dumps) | JSON.map(json.dumps), max_size=4), rest=st.binary())
def test_a_log_is_records_or_damaged_with_the_number_of_the_line(
    lines: Sequence[str], rest: bytes, place: Path
) -> None:
    log = MetricsLog(place / "metrics.jsonl")
    log.path.write_bytes("".join(f"{line}\n" for line in lines).encode() + rest)
    try:
        log.drop_after(1)
        records = log.validations()
    except DamagedError as error:
        number = int(str(error).removeprefix(f"{log.path}:").partition(":")[0])
        assert 1 <= number <= len(lines) + rest.count(b"\n")
    else:
        assert all(record.update <= 1 for record in records)


@given(
    content=st.binary(max_size=20)
    | st.lists(objects(from_update=3, micro_batches=2) | JSON, max_size=3).map(
        lambda increases: json.dumps(increases).encode()
    )
    | st.just(b"[" * 10**5)
)
def test_increases_of_micro_batches_are_whole_numbers_or_damaged(
    content: bytes, place: Path
) -> None:
    run = RunFolder(place)
    run.micro_batches_path.write_bytes(content)
    with suppress(DamagedError):
        schedule = MicroBatchSchedule(run, 1, read_increases(run))
        assert all(isinstance(schedule.at(update), int) for update in (1, 3, 10**6))
        assert schedule.at(1) >= 1


# ---------------------------------------------------------------------------------------- datasets


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_dataset(tmp_path_factory.mktemp("corpus"))


def seal(folder: Path) -> None:
    """Make the manifest fit the files, as one who means to deceive."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    own = ("format", "version", "nmtkit", "files", "sha256")
    (folder / "manifest.json").unlink()
    fields = {name: value for name, value in manifest.items() if name not in own}
    (folder / "manifest.json").write_bytes(describe(folder, FORMAT, VERSION, fields))


def is_possible(offsets: Sequence[int], num_ids: int) -> bool:
    rises = all(before < after for before, after in pairwise(offsets))
    return rises and offsets[0] == 0 and offsets[-1] == num_ids


@given(data=st.data())
def test_offsets_are_those_of_sequences_or_damaged(data: st.DataObject, dataset: Path) -> None:
    path = dataset / "train.00000.source.offsets"
    whole = path.read_bytes()
    good = np.frombuffer(whole, "<u4")
    inner = sorted(data.draw(st.sets(st.integers(1, int(good[-1]) - 1), min_size=9, max_size=9)))
    offsets = [0, *inner, int(good[-1])]
    if data.draw(st.booleans()):
        offsets[data.draw(st.integers(0, 10))] = data.draw(st.integers(0, 2**32 - 1))
    path.write_bytes(np.array(offsets, "<u4").tobytes())
    seal(dataset)
    try:
        side = Dataset.open(dataset).train[0].source
    except DamagedError:
        assert not is_possible(offsets, int(good[-1]))
    else:
        assert is_possible(offsets, int(good[-1]))
        assert [len(side[index]) for index in range(len(side))] == np.diff(offsets).tolist()
    finally:
        path.write_bytes(whole)
        seal(dataset)


@given(data=st.data())
def test_ids_are_in_the_vocabulary_or_damaged(data: st.DataObject, dataset: Path) -> None:
    path = dataset / "train.00000.target.ids"
    whole = path.read_bytes()
    largest = data.draw(st.sampled_from([tiny_codec().target.size - 1, 2**16 - 1]))
    num_ids = len(whole) // 2
    ids = data.draw(st.lists(st.integers(0, largest), min_size=num_ids, max_size=num_ids))
    path.write_bytes(np.array(ids, "<u2").tobytes())
    seal(dataset)
    opened = Dataset.open(dataset)
    try:
        assert opened.train[0].target.ids.tolist() == ids
    except DamagedError:
        assert max(ids) >= opened.codec.target.size
    else:
        assert max(ids) < opened.codec.target.size
    finally:
        path.write_bytes(whole)
        seal(dataset)


# ----------------------------------------------------------------------------- files that would run


class Planted:
    """What a pickle can hold: a call that is made when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.marker,)


READERS: dict[str, Callable[[Path], object]] = {
    "a model": lambda folder: load_model(folder, torch.device("cpu")),
    "an average": lambda folder: average([folder], folder / "out", False, False),
    "a dataset": Dataset.open,
    "a codec": TextCodec.load,
    "weights": lambda folder: load_tensors(folder / "model.safetensors"),
    "subwords": lambda folder: Subword.load(folder / "shared.model"),
    "words": lambda folder: Words.load(folder / "shared.txt"),
    "a run": lambda folder: newest_resumable(RunFolder(folder), lambda _: None),
}
FILES = (
    "manifest.json",
    "config.toml",
    "codec.json",
    "model.safetensors",
    "pytorch_model.bin",
    "shared.model",
    "shared.txt",
    "checkpoints/00000001/manifest.json",
)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_pickle_is_refused_by_every_reader_and_runs_nothing(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    planted = pickle.dumps(Planted(tmp_path / "marker"))
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(planted)
    with pytest.raises(NmtkitError):
        read(tmp_path)
    assert not (tmp_path / "marker").exists()
    pickle.loads(planted)
    assert (tmp_path / "marker").exists()
