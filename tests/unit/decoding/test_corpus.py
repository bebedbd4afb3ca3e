"""Chunks and shards of a corpus, and what counts as the same translation."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.fields import fields_of, recipe_of
from nmtkit.config.schema import TranslateRecipe, TranslationConfig
from nmtkit.data.binary import WHOLE, Part
from nmtkit.decoding.corpus import (
    FORMAT,
    FREE_SETTINGS,
    VERSION,
    CorpusTranslation,
    Work,
    open_input,
    plan,
)
from nmtkit.decoding.requests import BLANK, Answer, Request
from nmtkit.errors import ConfigError, DataError
from nmtkit.storage.durable import new_folder
from nmtkit.storage.growing_file import GrowingFile, growing_file
from tests.folders import names_in
from tests.tiny import write_lines

CHUNK_LINES = 4
RECIPE = TranslateRecipe(translation=TranslationConfig(chunk_lines=CHUNK_LINES))


def write_model(folder: Path, weights: bytes = b"1", codec: str = "x") -> Path:
    """Write a model of which only the hashes can be used."""
    with new_folder(folder, "nmtkit-model", 1, overwrite=False) as staged:
        (staged.path / "model.safetensors").write_bytes(weights)
        staged.fields["codec"] = codec
    return folder


def write_shortlist(folder: Path, content: bytes) -> Path:
    with new_folder(folder, "nmtkit-shortlist", 1, overwrite=False) as staged:
        (staged.path / "candidates.ids").write_bytes(content)
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
        self.part = WHOLE
        write_lines(self.input, [f"line {number}" for number in range(1, num_lines + 1)])

    def work(self) -> Work:
        with open_input(self.input, self.output) as text:
            return plan(self.models, self.recipe, self.input, text, self.part)

    @contextmanager
    def opened(self) -> Iterator[tuple[CorpusTranslation, GrowingFile]]:
        with growing_file(self.output, FORMAT, VERSION, overwrite=False) as file:
            yield CorpusTranslation(self.work(), file), file

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
            corpus.part = Part(number, count)
            corpus.output = tmp_path / f"{number}-{count}{suffix}"
            outputs.append(corpus.translate())
        assert b"".join(outputs) == whole
        assert all(outputs) or not whole
    corpus.part, corpus.output = Part(1, num_chunks + 1), tmp_path / "out"
    message = (
        rf"^--shard 1/{num_chunks + 1}: .*in has {num_chunks} chunks of 4 lines; give at most "
        rf"{num_chunks} shards, or smaller --chunk-lines$"
    )
    with pytest.raises(ConfigError, match=message):
        corpus.work()


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
        message = r"in: has fewer lines than the 10 that it had when this command began; restore it"
        with pytest.raises(DataError, match=message):
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


# ------------------------------------------------------- other translations


def other_settings() -> list[tuple[str, Any]]:
    """Return every setting that determines translations, with another value."""
    others: list[tuple[str, Any]] = []
    for name, field in fields_of(TranslateRecipe).items():
        if field.setting.choices:
            others.append((name, [*field.setting.choices][-1]))
        elif isinstance(field.default, bool):
            others.append((name, not field.default))
        elif isinstance(field.default, int | float):
            others.append((name, field.default + 1))
    return [(name, value) for name, value in others if name not in FREE_SETTINGS]


def changed(corpus: Corpus, name: str, value: object) -> None:
    corpus.recipe = recipe_of(TranslateRecipe, {"chunk_lines": CHUNK_LINES, name: value})  # type: ignore[dict-item]


@pytest.mark.parametrize(("name", "value"), other_settings())
def test_every_setting_that_determines_translations_is_refused_by_name(
    name: str, value: object, corpus: Corpus
) -> None:
    corpus.translate(2)
    changed(corpus, name, value)
    flag = f"--{name.replace('_', '-')}"
    with (
        pytest.raises(ConfigError, match=rf"out\.partial: belongs to .*: {flag} was \S+, now \S+;"),
        corpus.opened(),
    ):
        pytest.fail("it was continued")


@pytest.mark.parametrize(
    ("name", "value"), [("device", "cuda"), ("threads", 3), ("devices", 4), ("stream", True)]
)
def test_a_translation_continues_on_other_devices(name: str, value: object, corpus: Corpus) -> None:
    corpus.translate(2)
    changed(corpus, name, value)
    assert corpus.translate() == expected(10)


def rewrite(corpus: Corpus, text: str) -> None:
    corpus.input.write_text(text, encoding="utf-8")


def use_shortlist(corpus: Corpus) -> None:
    folder = write_shortlist(corpus.input.parent / "shortlist", b"1")
    changed(corpus, "shortlist", str(folder))


def use_model(corpus: Corpus, *contents: tuple[bytes, str]) -> None:
    folders = [corpus.input.parent / f"model{number}" for number in range(len(contents))]
    corpus.models = [
        write_model(*one) for one in zip(folders, *zip(*contents, strict=True), strict=True)
    ]


def use_shard(corpus: Corpus) -> None:
    corpus.part = Part(1, 2)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda one: rewrite(one, "a\n" * 11), "the input has 11 lines, and had 10"),
        (lambda one: rewrite(one, "a\n" * 10), "the input has other lines"),
        (use_shard, "--shard was 1/1, now 1/2"),
        (use_shortlist, "--shortlist is another one"),
        (lambda one: use_model(one, (b"2", "x")), "the model is another one .6b86b273, now d4735"),
        (lambda one: use_model(one, (b"1", "y")), "the model is another one .6b86b273, now 6b86"),
        (
            lambda one: use_model(one, (b"1", "x"), (b"1", "x")),
            "the model is another one .6b86b273, now 6b86b273 and 6b86b273.",
        ),
    ],
)
def test_other_work_is_refused_by_what_differs(
    change: Callable[[Corpus], None], what: str, corpus: Corpus
) -> None:
    corpus.translate(2)
    change(corpus)
    advice = r".*; run the command that began it, or delete out\.partial and out\.partial\.json$"
    with (
        pytest.raises(ConfigError, match=f"another translation: {what}{advice}"),
        corpus.opened(),
    ):
        pytest.fail("it was continued")


def test_a_shortlist_is_recognised_by_its_content(corpus: Corpus) -> None:
    first = write_shortlist(corpus.input.parent / "first", b"1")
    same = write_shortlist(corpus.input.parent / "same", b"1")
    changed(corpus, "shortlist", str(first))
    corpus.translate(2)
    changed(corpus, "shortlist", str(same))
    assert corpus.translate() == expected(10)


def test_paths_are_no_part_of_the_work(corpus: Corpus) -> None:
    corpus.translate(2)
    corpus.input = corpus.input.rename(corpus.input.with_name("moved"))
    use_model(corpus, (b"1", "x"))
    with corpus.input.open("rb") as stream:
        data = stream.read()
    corpus.input.write_bytes(data.replace(b"\n", b"\r\n"))
    with corpus.opened() as (continued, _):
        assert continued.num_lines_done == CHUNK_LINES


def test_a_setting_of_a_later_version_had_its_default(corpus: Corpus) -> None:
    corpus.translate(2)
    with growing_file(corpus.output, FORMAT, VERSION, overwrite=False) as file:
        assert file.fields is not None
        file.resume()
        del file.fields["work"]["settings"]["seed"]
        file.append(b"", file.fields)
    with corpus.opened() as (continued, _):
        assert continued.num_lines_done == CHUNK_LINES
    changed(corpus, "seed", 5)
    with pytest.raises(ConfigError, match="--seed was 1, now 5"), corpus.opened():
        pytest.fail("it was continued")


# ------------------------------------------------------- input


def test_an_input_that_is_no_file_is_refused_unread(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="dev/null: not a file, and only the translation of a fi"):
        open_input(Path("/dev/null"), tmp_path / "out")
    with pytest.raises(ConfigError, match="not a file"):
        open_input(tmp_path, tmp_path / "out")
    with pytest.raises(ConfigError, match="none: No such file or directory; give a text file tha"):
        open_input(tmp_path / "none", tmp_path / "out")


def test_an_input_that_is_the_output_is_refused(corpus: Corpus) -> None:
    corpus.output.symlink_to(corpus.input)
    for output in (corpus.output, corpus.input):
        with pytest.raises(
            ConfigError, match="in: is both input and output; give another --output"
        ):
            open_input(corpus.input, output)


def test_a_compressed_input_is_the_same_text(corpus: Corpus) -> None:
    plain = corpus.work()
    corpus.input.write_bytes(gzip.compress(corpus.input.read_bytes()))
    assert corpus.work() == plain
    corpus.recipe = replace(
        corpus.recipe, output=replace(corpus.recipe.output, input_format="json")
    )
    assert corpus.work() != plain


def test_a_line_that_is_too_long_is_an_error_before_any_translation(corpus: Corpus) -> None:
    rewrite(corpus, "a\n" + "b" * 2**20 + "c\n")
    with pytest.raises(DataError, match="in:2: a line of more than 1MiB; break it into several"):
        corpus.work()
