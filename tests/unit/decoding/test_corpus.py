"""Chunks and shards of a corpus, and what counts as the same translation."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from nmtkit.config.fields import recipe_of
from nmtkit.config.schema import RuntimeConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding import workers
from nmtkit.decoding.answers import BLANK, Answer
from nmtkit.decoding.corpus import FORMAT, VERSION, CorpusTranslation, translate_file
from nmtkit.decoding.corpus_plan import (
    CorpusFiles,
    Plan,
    open_input,
    plan_of,
    read_input,
    shortlist_hash,
)
from nmtkit.decoding.input_formats import Request
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import SILENT
from nmtkit.runtime import devices
from nmtkit.storage.durable import new_folder
from nmtkit.storage.growing_file import GrowingFile, growing_file
from nmtkit.storage.model_description import hashes_of
from tests.folders import names_in
from tests.messages import refuses
from tests.tiny import never_warn, write_lines

CHUNK_LINES = 4
RECIPE = TranslateRecipe(translation=TranslationConfig(chunk_lines=CHUNK_LINES))


def write_model(folder: Path, weights: bytes = b"1", codec: str = "x") -> Path:
    """Write a model of which only the hashes can be used."""
    with new_folder(folder, "nmtkit-model", 1, overwrite=False) as staged:
        (staged.path / "model.safetensors").write_bytes(weights)
        staged.fields["codec"] = codec
    return folder


def answer(text: str, is_repaired: bool | None = None) -> Answer:
    return Answer(Request(text), [replace(BLANK, text=text, is_repaired=is_repaired)])


def capitals(answer: Answer, number: int) -> list[str]:
    """Return the line of an answer: its number from 1, and its text in capitals."""
    return [f"{number + 1} {answer.translations[0].text.upper()}"]


class Corpus:
    """A text of numbered lines in a folder, with a model."""

    def __init__(self, folder: Path, num_lines: int) -> None:
        self.input, self.output = folder / "in", folder / "out"
        self.models = [write_model(folder / "model")]
        self.recipe = RECIPE
        self.shard = (1, 1)
        write_lines(self.input, [f"line {number}" for number in range(1, num_lines + 1)])

    def plan(self) -> Plan:
        files = CorpusFiles(self.input, self.output, self.shard)
        with open_input(files) as text:
            facts = read_input(text, files, self.recipe, SILENT)
        return plan_of(
            [hashes_of(model) for model in self.models],
            shortlist_hash(self.recipe.translation.shortlist),
            self.recipe,
            files,
            facts,
        )

    @contextmanager
    def opened(self) -> Iterator[tuple[CorpusTranslation, GrowingFile]]:
        with growing_file(self.output, FORMAT, VERSION, overwrite=False) as file:
            yield CorpusTranslation(self.plan(), file), file

    def translate(self, num_batches: int | None = None, batch_size: int = 3) -> bytes:
        """Write each line's number and its text in capitals, in batches; return the output."""
        with self.opened() as (corpus, _):
            corpus.begin()
            lines = self.input.read_text(encoding="utf-8").split("\n")[corpus.next_line - 1 : -1]
            batches = (
                [(first + place, text) for place, text in enumerate(chunk)][begin : begin + size]
                for first, chunk in corpus.chunks(lines)
                for size in [batch_size]
                for begin in range(0, len(chunk), size)
            )
            for batch in islice(batches, num_batches):
                corpus.add([answer(text) for _, text in batch], capitals)
                assert all(f" {number} " in f" {text} " for number, text in batch)
            if num_batches is not None:
                return b""
            corpus.finish()
        return self.output.read_bytes()


def rewrite(corpus: Corpus, text: str) -> None:
    corpus.input.write_text(text, encoding="utf-8")


def changed(corpus: Corpus, name: str, value: object) -> None:
    corpus.recipe = recipe_of(TranslateRecipe, {"chunk_lines": CHUNK_LINES, name: value})  # type: ignore[dict-item]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path, 10)


def expected(num_lines: int) -> bytes:
    return b"".join(b"%d LINE %d\n" % (number, number) for number in range(1, num_lines + 1))


@pytest.mark.parametrize("num_lines", [0, 1, 4, 5, 8, 10])
def test_a_translation_is_continued_after_its_last_complete_chunk(
    num_lines: int, tmp_path: Path
) -> None:
    for num_batches in range(num_lines + 1):
        (tmp_path / str(num_batches)).mkdir()
        corpus = Corpus(tmp_path / str(num_batches), num_lines)
        corpus.translate(num_batches, batch_size=2)
        with corpus.opened() as (continued, _):
            num_done = min(2 * num_batches, num_lines)
            if num_done < num_lines:
                num_done -= num_done % CHUNK_LINES
            assert (continued.num_lines_done, continued.next_line) == (num_done, num_done + 1)
        assert corpus.translate() == expected(num_lines)
        assert names_in(corpus.output.parent) == ["in", "model", "out"]


def test_batches_without_an_answer_write_no_chunk(corpus: Corpus) -> None:
    with corpus.opened() as (translation, file):
        translation.begin()
        for _ in range(2):
            translation.add([], capitals)
            translation.add([*map(answer, "abcd")], capitals)
        translation.add([], capitals)
        translation.add([*map(answer, "ij")], capitals)
        translation.add([], capitals)
        assert file.fields is not None
        assert file.fields["done"]["chunks"] == 3
        translation.finish()
    assert corpus.output.read_bytes() == b"1 A\n2 B\n3 C\n4 D\n5 A\n6 B\n7 C\n8 D\n9 I\n10 J\n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("num_lines", [0, 3, 4, 10, 21])
def test_the_outputs_of_the_shards_are_that_of_the_whole(
    num_lines: int, suffix: str, tmp_path: Path
) -> None:
    corpus = Corpus(tmp_path, num_lines)
    corpus.output = tmp_path / f"whole{suffix}"
    whole = corpus.translate()
    assert (gzip.decompress(whole) if suffix else whole) == expected(num_lines)
    num_chunks = max(1, -(-num_lines // CHUNK_LINES))
    for count in range(1, num_chunks + 1):
        outputs = []
        for number in range(1, count + 1):
            corpus.shard = (number, count)
            corpus.output = tmp_path / f"{number}-{count}{suffix}"
            outputs.append(corpus.translate())
        assert b"".join(outputs) == whole
        assert all(outputs) or not whole
    corpus.shard, corpus.output = (1, num_chunks + 1), tmp_path / "out"
    with refuses(
        ConfigError, f"--shard 1/{num_chunks + 1} {num_chunks} 4; {num_chunks} --chunk-lines"
    ):
        corpus.plan()


def test_an_empty_text_is_finished_without_being_begun(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path, 0)
    with corpus.opened() as (translation, _):
        translation.finish()
    assert corpus.output.read_bytes() == b""


def test_each_chunk_is_a_member_of_a_compressed_output_without_a_time(corpus: Corpus) -> None:
    corpus.output = corpus.output.with_suffix(".gz")
    members = corpus.translate().split(b"\x1f\x8b\x08\x00\x00\x00\x00\x00")
    assert len(members) == 1 + 3


def test_an_input_that_has_lost_lines_is_an_error(corpus: Corpus) -> None:
    with corpus.opened() as (translation, _):
        translation.begin()
        chunks = translation.chunks(["a"] * 9)
        assert [len(next(chunks)[1]) for _ in range(3)] == [4, 4, 1]
        with refuses(DataError, "in 10"):
            next(chunks)


def test_lines_that_were_appended_meanwhile_are_not_translated(corpus: Corpus) -> None:
    with corpus.opened() as (translation, _):
        assert [chunk for _, chunk in translation.chunks("abcdefghijkl")][-1] == ["i", "j"]


def test_repaired_outputs_are_counted_over_all_sessions(corpus: Corpus) -> None:
    with corpus.opened() as (translation, _):
        translation.begin()
        translation.add([answer("a", one) for one in (True, False, None, True)], capitals)
        translation.add([answer("a", True)] * 2, capitals)  # of a chunk that is not completed
    with corpus.opened() as (translation, _):
        translation.add([answer("a", False)] * 4, capitals)
        assert (translation.repair_counts[True], translation.repair_counts[False]) == (2, 5)


# ------------------------------------------------------- precision


class Opened(Exception):  # noqa: N818
    """A translator would have been opened with a precision."""


@pytest.fixture
def opened_precision(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Return a function that begins to translate, and returns the precision of the translator."""

    def open_translator(_models: object, recipe: TranslateRecipe, *_: object, **__: object) -> None:
        raise Opened(recipe.translation.precision)

    monkeypatch.setattr(workers, "open_translator", open_translator)

    def run() -> str:
        files = CorpusFiles(corpus.input, corpus.output)
        with pytest.raises(Opened) as stop:
            translate_file(corpus.models, corpus.recipe, files, SILENT, never_warn)
        return str(stop.value)

    return run


def test_automatic_precision_is_decided_by_the_device_of_the_beginning(
    corpus: Corpus, opened_precision: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bfloat16", "float32"):
        monkeypatch.setattr(devices, "precision_of_inference", lambda _, name=name: name)
        assert opened_precision() == name
    changed(corpus, "precision", "bfloat16")
    corpus.translate(2)
    changed(corpus, "precision", "auto")
    assert opened_precision() == "bfloat16"


def test_automatic_precision_on_this_machine() -> None:
    expected = "float32" if not torch.cuda.is_available() else "bfloat16"
    assert devices.precision_of_inference(RuntimeConfig()) == expected
    assert devices.precision_of_inference(RuntimeConfig(device="cpu")) == "float32"
