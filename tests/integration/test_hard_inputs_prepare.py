"""Hard inputs of the test data, from lines to datasets, against the descriptions with them."""

import io
import json
import shutil
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nmtkit.data.binary import Dataset
from nmtkit.errors import DataError
from nmtkit.symbols import EOS_ID
from nmtkit.text.lines import count_lines, decode_lines, open_bytes, read_lines
from nmtkit.text.subword import Subword
from tests.messages import refuses
from tests.shared_data import HARD, NOT_TEXT, hard_files, needs_data
from tests.tiny import prepared, tiny_corpus, tiny_recipe

pytestmark = needs_data

FILES = {entry["file"]: entry for entry in hard_files()}
# Line and byte of invalid UTF-8, from a hex dump of the files.
INVALID = {"nasty-invalid-utf8.bin": (2, 7)}
NO_LINES = {"empty-file.txt", "bom-only.txt"}
BLANK_LINES = {"one-newline.txt", "only-newlines.txt"}
SECONDS_FOR_A_LINE = 2.0


def num_sentences(name: str) -> int:
    number: int = FILES[name].get("sentences", FILES[name]["lf"])
    return number


def expectations(name: str) -> list[dict[str, Any]]:
    with (HARD / f"{name}.expect.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def with_replacement(name: str) -> tuple[list[str], list[str]]:
    warnings: list[str] = []
    with open_bytes(HARD / name) as stream:
        return list(decode_lines(stream, name, warnings.append)), warnings


def as_prefix(folder: Path, source: str, target: str) -> str:
    """Copy two hard files so that one prefix finds them."""
    shutil.copyfile(HARD / source, folder / "hard.en")
    shutil.copyfile(HARD / target, folder / "hard.de")
    return str(folder / "hard")


@cache
def subwords() -> Subword:
    return Subword.train(read_lines(HARD / "nasty-utf8.txt"), "bpe", 600, "the hard lines")


@pytest.mark.parametrize("name", [name for name in FILES if name != NOT_TEXT])
def test_each_sentence_of_a_file_is_one_line(name: str) -> None:
    lines, warnings = with_replacement(name)
    assert len(lines) == count_lines(HARD / name) == num_sentences(name)
    assert bool(warnings) == (name in INVALID)


@pytest.mark.parametrize("name", FILES)
def test_a_file_as_validation_text_is_stored_or_refused(tmp_path: Path, name: str) -> None:
    train, _ = tiny_corpus(tmp_path)
    valid = as_prefix(tmp_path, name, name)
    recipe = tiny_recipe(train, valid)
    if name in INVALID:
        line, byte = INVALID[name]
        keys = f"hard.en:{line} UTF-8 byte {byte}"
    elif name == NOT_TEXT:
        keys = "hard.en UTF-16"
    elif name in NO_LINES:
        keys = "hard.en hard.de"
    elif name in BLANK_LINES:
        keys = f"{num_sentences(name)} hard; --max-length"
    else:
        prepared(recipe, tmp_path / "data")
        dataset = Dataset.open(tmp_path / "data")
        assert len(dataset.valid_source) == num_sentences(name)
        assert dataset.valid_source == dataset.valid_target == with_replacement(name)[0]
        return
    with refuses(DataError, keys):
        prepared(recipe, tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["nasty-utf8.txt", "nasty-invalid-utf8.bin"])
def test_every_hard_line_is_read_unchanged(name: str) -> None:
    lines = with_replacement(name)[0]
    described = expectations(name)
    assert len(lines) == len(described) == FILES[name]["lf"]
    for line, entry in zip(lines, described, strict=True):
        shown = bytes.fromhex(entry["hex"].removesuffix("\u2026"))
        expected = shown.removesuffix(b"\r").decode("utf-8", "replace")
        assert line.startswith(expected.removesuffix("\ufffd")), entry["name"]
        if "\ufffd" not in line:
            is_dropped = entry["name"] == "CR at the end"
            assert len(line.encode()) == entry["bytes"] - is_dropped, entry["name"]
    assert lines[0] == lines[-1]


def test_invalid_lines_are_refused_and_valid_ones_accepted() -> None:
    raw_lines = (HARD / "nasty-invalid-utf8.bin").read_bytes().removesuffix(b"\n").split(b"\n")
    for raw, entry in zip(raw_lines, expectations("nasty-invalid-utf8.bin"), strict=True):
        lines = decode_lines(io.BytesIO(b"\n" + raw), "x", first_line=2)
        if "same rule" in entry["expect"] or "invalid UTF-8" in entry["expect"]:
            with refuses(DataError, "x:2 UTF-8 byte"):
                list(lines)
        else:
            assert list(lines) == [raw.decode()]


def test_every_nasty_line_is_encoded_quickly_and_decodes_to_the_normalized_line() -> None:
    model = subwords()
    for line, entry in zip(
        read_lines(HARD / "nasty-utf8.txt"), expectations("nasty-utf8.txt"), strict=True
    ):
        begin = time.perf_counter()
        ids = model.encode(line)
        assert time.perf_counter() - begin < SECONDS_FOR_A_LINE, entry["name"]
        assert model.decode(ids) == model.normalize(line), entry["name"]
        assert all(i > EOS_ID for i in ids), entry["name"]


def test_nasty_lines_encode_as_described() -> None:
    model = subwords()
    ids = {
        entry["name"]: model.encode(line)
        for line, entry in zip(
            read_lines(HARD / "nasty-utf8.txt"), expectations("nasty-utf8.txt"), strict=True
        )
    }
    for blank in ("empty", "one space", "many spaces", "tab only"):
        assert ids[blank] == [], blank
    for same in ("leading and trailing spaces", "inner runs of spaces", "tab inside",
                 "CR at the end", "plain again"):  # fmt: skip
        assert ids[same] == ids["plain"], same
    assert model.decode(ids["literal </s>"]) == "This is </s> not the end </s>"
    assert model.decode(ids["NUL inside"]) == "A man\0is riding."


def test_sides_of_nasty_lines_stay_together_in_a_dataset(tmp_path: Path) -> None:
    prefix = as_prefix(tmp_path, "nasty-utf8.txt", "nasty-utf8.txt")
    counts = prepared(tiny_recipe(prefix, prefix), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    (shard,) = dataset.train
    expected = [line.split() for line in read_lines(HARD / "nasty-utf8.txt")]
    kept = [tokens for tokens in expected if 0 < len(tokens) < 250]
    dropped = counts["train"]["dropped"]
    assert {reason: number for reason, number in dropped.items() if number} == {
        "empty": sum(not tokens for tokens in expected),
        "too long": sum(len(tokens) >= 250 for tokens in expected),
    }
    assert len(shard) == len(kept)
    for i in range(len(shard)):
        assert shard.source[i].tolist() == shard.target[i].tolist()
        assert len(shard.source[i]) == len(kept[i]) + 1
