"""`nmtkit preprocess --vocabulary-of` from the command line."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nmtkit.data.binary import Dataset
from nmtkit.text.codec import TextCodec
from tests.commands import nmtkit_in_text
from tests.messages import refused
from tests.tiny import TRAIN_LINES, tiny_corpus, write_lines

RUN = Path("tests/golden/formats/run").absolute()


def preprocess(folder: Path, *flags: object) -> subprocess.CompletedProcess[str]:
    train, valid = tiny_corpus(folder)
    texts = ("-s", "en", "-t", "de", "--train", train, "--valid", valid)
    return nmtkit_in_text("preprocess", *texts, "--out", folder / "data", *flags)


@pytest.mark.parametrize("model", ["", "best", "last", "checkpoints/00000300"])
def test_a_run_and_its_checkpoints_give_their_codec(tmp_path: Path, model: str) -> None:
    done = preprocess(tmp_path, "--vocabulary-of", RUN / model)
    assert done.returncode == 0, done.stderr
    own = TextCodec.load(RUN / "checkpoints" / "00000300" / "codec")
    assert Dataset.open(tmp_path / "data").codec.fingerprint == own.fingerprint


def test_workers_and_overwriting_make_the_same_dataset(tmp_path: Path) -> None:
    flags = ("--vocabulary-of", RUN, "--whole-tokens", write_lines(tmp_path / "tokens", ["<bt>"]))
    manifests = []
    for more in (("--workers", 1), ("--workers", 2, "--overwrite")):
        done = preprocess(tmp_path, *flags, *more)
        assert done.returncode == 0, done.stderr
        assert "added 1 of 1 whole tokens to the shared vocabulary; 0 were entries" in done.stderr
        manifests.append(Dataset.open(tmp_path / "data").manifest)
    assert manifests[0] == manifests[1]
    assert manifests[0]["vocabulary_sizes"]["source"] == 1 + len(
        (RUN / "checkpoints/00000300/codec/shared.txt").read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("flags", "code", "keys"),
    [
        ((), 4, "absent folder; path"),
        (("-t", "fr"), 2, "en de fr; -s en -t de"),
        (("--vocab-size", "99"), 2, "vocab_size 99 --vocabulary-of; out"),
        (("--tag", "bt=<bt>"), 2, "tag 'bt=<bt>' PREFIX=TAG"),
    ],
)
def test_errors_are_one_line_and_leave_no_dataset(
    tmp_path: Path, flags: tuple[str, ...], code: int, keys: str
) -> None:
    model = RUN if flags else tmp_path / "absent"
    done = preprocess(tmp_path, "--vocabulary-of", model, *flags)
    assert done.stderr.count("\n") == 1
    refused(done, code, keys)
    assert not (tmp_path / "data").exists()


def test_a_damaged_model_and_a_dataset_are_not_used(tmp_path: Path) -> None:
    shutil.copytree(RUN / "checkpoints" / "00000300", tmp_path / "model")
    with (tmp_path / "model" / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    done = preprocess(tmp_path, "--vocabulary-of", tmp_path / "model")
    assert done.stderr.count("\n") == 1
    refused(done, 4, f"{tmp_path}/model/model.safetensors")
    assert preprocess(tmp_path, "--vocabulary-of", RUN).returncode == 0
    done = preprocess(tmp_path, "--vocabulary-of", tmp_path / "data", "--overwrite")
    assert done.stderr.count("\n") == 1
    refused(done, 4, f"{tmp_path}/data 'nmtkit-dataset' model; model")
    assert len(Dataset.open(tmp_path / "data").train[0]) == len(TRAIN_LINES)
