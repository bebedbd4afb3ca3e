"""Chunks and shards of a corpus, how it continues, and what counts as the same translation.

A translator of the tests' own writes capitals, so a model here has only hashes.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.config.model import AligningAttention
from nmtkit.config.schema import RuntimeConfig, TranslateRecipe, fields_of, recipe_of
from nmtkit.decoding import workers
from nmtkit.decoding.answers import Answer, BatchResult, Chunk, Request, Translation
from nmtkit.decoding.corpus import FREE_SETTINGS, CorpusFiles, translate_file
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import WorkReporter
from nmtkit.runtime import devices
from nmtkit.storage.durable import new_folder
from nmtkit.storage.growing_file import FORMAT, VERSION
from nmtkit.storage.manifest import seal
from nmtkit.storage.model_description import store_aligning_attention
from tests.folders import names_in
from tests.messages import refuses
from tests.thoroughness import sample
from tests.tiny import never_warn, write_lines

CHUNK_LINES = 4
MOSES = {"output_format": "moses", "n_best": 3}


def write_folder(folder: Path, format: str, content: bytes, **fields: str) -> Path:
    with new_folder(folder, format, 1, overwrite=True) as staged:
        (staged.path / "model.safetensors").write_bytes(content)
        staged.fields.update(fields)
    return folder


def write_model(folder: Path, weights: bytes = b"1", codec: str = "x") -> Path:
    return write_folder(folder, "nmtkit-model", weights, codec=codec)


class Killed(Exception):  # noqa: N818
    """The command is killed here."""


class Capitals:
    """A translator that ends after a number of batches of three lines."""

    target_kind = "trees"

    def __init__(self, num_batches: int | None) -> None:
        self._num_batches = num_batches

    def answer_all(self, chunks: Iterable[Chunk]) -> Iterator[BatchResult]:
        for first, chunk in chunks:
            assert [re.sub(r"\D", "", one.source) for one in chunk[:1]] in ([""], [str(first)])
            for begin in range(0, len(chunk), 3):
                if self._num_batches == 0:
                    raise Killed
                self._num_batches = self._num_batches and self._num_batches - 1
                yield BatchResult([], 0, 0)
                batch = [*map(self._answer, chunk[begin : begin + 3])]
                yield BatchResult(batch, len(batch), 0)

    def _answer(self, request: Request) -> Answer:
        """Return 0 to 3 further candidates; a line with an r is repaired, one with an n is not."""
        text = request.source.upper()
        is_repaired = {"r": True, "n": False}.get(text[:1].lower())
        other = Translation(text, 0.0, 0.0, (), is_repaired)
        others = (other,) * (len(text) % 3)
        return Answer(request, replace(other, alternatives=others))


class Corpus:
    """A text of numbered lines in a folder, with a model."""

    def __init__(self, folder: Path, num_lines: int, **settings: Any) -> None:
        self.input, self.output = folder / "in", folder / "out"
        self.models = [write_model(folder / "model")]
        self.shard = (1, 1)
        self.messages: list[str] = []
        self.is_opened: Callable[[TranslateRecipe], object] = lambda _: None
        self.change(**settings)
        write_lines(self.input, ["x" * (n % 5) + f"line {n}" for n in range(1, num_lines + 1)])

    def change(self, **settings: Any) -> None:
        self.recipe = recipe_of(TranslateRecipe, {"chunk_lines": CHUNK_LINES, **settings})

    def translate(self, num_batches: int | None = None) -> bytes:
        """Translate, and return the output; or until a number of batches, and return none."""

        def open_translator(_: object, recipe: TranslateRecipe, *__: Any, **___: Any) -> Capitals:
            self.is_opened(recipe)
            return Capitals(num_batches)

        self.messages.clear()
        files = CorpusFiles((self.input,), self.output, self.shard)
        reporter = WorkReporter(self.messages.append)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(workers, "open_translator", open_translator)
            try:
                translate_file(self.models, self.recipe, files, reporter, never_warn)
            except Killed:
                return b""
        return self.output.read_bytes()


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path, 10)


@pytest.mark.parametrize("settings", [{}, MOSES], ids=str)
@pytest.mark.parametrize("num_lines", [0, 1, 8, 10])
def test_a_translation_is_continued_after_its_last_complete_chunk(
    num_lines: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    expected = Corpus(tmp_path, num_lines, **settings).translate()
    for num_batches in range(num_lines // 2 + 1):
        (tmp_path / str(num_batches)).mkdir()
        corpus = Corpus(tmp_path / str(num_batches), num_lines, **settings)
        corpus.translate(num_batches)
        if not corpus.output.exists():
            num_done = min(num_batches // 2 * CHUNK_LINES, num_lines)
            assert corpus.translate() == expected
            begun = corpus.messages[0]
            if num_done == 0:
                assert begun.startswith(f"translating {num_lines} line")
            elif settings != MOSES:
                assert begun == f"continuing after line {num_done} of {num_lines}"
        assert corpus.output.read_bytes() == expected
        assert names_in(corpus.output.parent) == ["in", "model", "out"]


@pytest.mark.sampled
@pytest.mark.parametrize("settings", [{}, MOSES], ids=str)
def test_whole_chunks_are_kept_of_any_beginning_of_the_output(
    settings: dict[str, Any], corpus: Corpus
) -> None:
    corpus.change(**settings)
    expected = corpus.translate()
    lines = expected.splitlines(keepends=True)
    for num_bytes in sample(range(len(expected) + 1), 5):
        corpus.output.unlink()
        corpus.translate(0)
        corpus.output.with_name("out.partial").write_bytes(expected[:num_bytes])
        assert corpus.translate() == expected
        done = re.match(r"continuing after line (\d+) of 10", corpus.messages[0])
        num_done = int(done[1]) if done else 0
        assert num_done in (0, 4, 8, 10)
        if not settings:
            whole = sum(map(len, lines[:num_done]))
            assert whole <= num_bytes < whole + sum(map(len, lines[num_done : num_done + 4])) + 1


@pytest.mark.parametrize("settings", [{}, MOSES], ids=str)
@pytest.mark.parametrize("num_lines", [0, 4, 21])
def test_the_outputs_of_the_shards_are_that_of_the_whole(
    num_lines: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    corpus = Corpus(tmp_path, num_lines, **settings)
    whole = corpus.translate()
    num_chunks = max(1, -(-num_lines // CHUNK_LINES))
    for count in range(1, num_chunks + 1):
        outputs = []
        for number in range(1, count + 1):
            corpus.shard = (number, count)
            corpus.output = tmp_path / f"{number}-{count}.gz"
            assert not corpus.translate(1) or corpus.output.exists()
            corpus.output.unlink(missing_ok=True)
            outputs.append(gzip.decompress(corpus.translate()))
        assert b"".join(outputs) == whole
        assert all(outputs) or not whole
    corpus.shard, corpus.output = (1, num_chunks + 1), tmp_path / "refused"
    keys = f"--shard 1/{num_chunks + 1} {corpus.input} {num_chunks} 4; {num_chunks} --chunk-lines"
    with refuses(ConfigError, keys):
        corpus.translate()


def test_an_input_that_has_lost_lines_is_an_error(corpus: Corpus) -> None:
    whole = corpus.input.read_bytes()
    corpus.is_opened = lambda _: corpus.input.write_bytes(whole[: whole.index(b"line 10")])
    with refuses(DataError, "line 10; restore"):
        corpus.translate()
    corpus.input.write_bytes(whole)
    corpus.is_opened = lambda _: corpus.input.write_bytes(whole + b"more\n")
    assert corpus.translate().count(b"\n") == 10
    assert corpus.messages[0] == "continuing after line 8 of 10"


def test_repaired_outputs_are_counted(corpus: Corpus) -> None:
    corpus.input.write_text("r\nn\nx\nr\nr\nn\n", "utf-8")
    corpus.translate(2)
    corpus.translate()
    assert "trees: 2, repaired: 1" in corpus.messages


# ------------------------------------------------------- precision


def test_automatic_precision_is_decided_by_the_device_of_the_beginning(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    corpus.is_opened = lambda recipe: opened.append(recipe.translation.precision)
    for name in ("bfloat16", "float32"):
        monkeypatch.setattr(devices, "precision_of_inference", lambda _, name=name: name)
        corpus.translate(2)
    assert opened == ["bfloat16", "bfloat16"]


def test_automatic_precision_on_this_machine() -> None:
    expected = "float32" if not torch.cuda.is_available() else "bfloat16"
    assert devices.precision_of_inference(RuntimeConfig()) == expected
    assert devices.precision_of_inference(RuntimeConfig(device="cpu")) == "float32"


# ------------------------------------------------------- other translations


def other_settings() -> Iterator[tuple[str, Any]]:
    """Yield every setting that determines translations, with another value."""
    for name, field in fields_of(TranslateRecipe).items():
        if name in FREE_SETTINGS:
            continue
        if field.choices:
            yield name, [one for one in field.choices if one != field.default][-1]
        elif isinstance(field.default, bool):
            yield name, not field.default
        elif isinstance(field.default, int | float):
            yield name, field.default + 1


def test_every_setting_that_determines_translations_is_refused_by_name(corpus: Corpus) -> None:
    lines = "".join(f'{{"source": "{number}"}}\n' for number in range(1, 11))
    corpus.input.write_text(lines, "utf-8")  # lines of every format
    corpus.translate(2)
    for name, value in other_settings():
        corpus.change(**{name: value})
        flag = f"--{name.replace('_', '-')}"
        keys = f"out.partial {flag} {str(value).lower()}; out.partial out.partial.json"
        with refuses(ConfigError, keys, recorded=False):
            corpus.translate()
    assert len([*other_settings()]) > 20


def test_a_file_begun_before_a_setting_existed_is_continued_with_its_default(
    corpus: Corpus, tmp_path: Path
) -> None:
    whole = Corpus(tmp_path, 10).translate()
    corpus.output.unlink()
    corpus.translate(4)
    path = corpus.output.with_name("out.partial.json")
    content = json.loads(path.read_bytes())
    for field in ("sha256", "format", "version", "nmtkit"):
        content.pop(field)
    del content["work"]["--no-repeat-ngram"]
    path.write_bytes(seal(FORMAT, VERSION, content))
    corpus.change(no_repeat_ngram=2)
    with refuses(ConfigError, "out.partial --no-repeat-ngram 2; out.partial out.partial.json"):
        corpus.translate()
    corpus.change(no_repeat_ngram=0)
    assert corpus.translate() == whole


def use_shortlist(corpus: Corpus, name: str = "shortlist") -> None:
    folder = write_folder(corpus.input.parent / name, "nmtkit-shortlist", b"1")
    corpus.change(shortlist=str(folder))


def use_models(corpus: Corpus, *contents: tuple[bytes, str]) -> None:
    corpus.models = [
        write_model(corpus.input.parent / f"model{number}", *content)
        for number, content in enumerate(contents)
    ]


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (lambda one: one.input.write_text("a\n" * 11), "input 10 11"),
        (lambda one: one.input.write_text("a\n" * 10), "input 10"),
        (lambda one: setattr(one, "shard", (1, 2)), "--shard 1/1 1/2"),
        (use_shortlist, "--shortlist ''"),
        (lambda one: use_models(one, (b"2", "x")), "model"),
        (lambda one: use_models(one, (b"1", "y")), "model"),
        (lambda one: use_models(one, (b"1", "x"), (b"1", "x")), "model and"),
    ],
)
def test_other_work_is_refused_by_what_differs(
    change: Callable[[Corpus], None], keys: str, corpus: Corpus
) -> None:
    corpus.translate(2)
    change(corpus)
    with refuses(ConfigError, f"out.partial {keys}; command out.partial out.partial.json"):
        corpus.translate()


def test_a_layer_that_is_chosen_meanwhile_is_refused_if_it_matters(corpus: Corpus) -> None:
    layer = AligningAttention(0, None, is_shifted=False)
    corpus.translate(2)
    store_aligning_attention(corpus.models[0], layer)
    assert corpus.translate().count(b"\n") == 10
    corpus.output.unlink()
    corpus.change(alignments=True)
    corpus.translate(2)
    store_aligning_attention(corpus.models[0], replace(layer, is_shifted=True))
    with refuses(ConfigError, "out.partial predicted read; command out.partial out.partial.json"):
        corpus.translate()


def test_devices_and_paths_are_no_part_of_the_work(corpus: Corpus) -> None:
    use_shortlist(corpus, "first")
    corpus.translate(2)
    use_shortlist(corpus, "second")
    shortlist = corpus.recipe.translation.shortlist
    corpus.change(shortlist=shortlist, device="cuda", threads=3, devices=4, stream=True)
    use_models(corpus, (b"1", "x"))
    content = corpus.input.read_bytes()
    corpus.input.unlink()
    corpus.input = corpus.input.with_name("moved")
    corpus.input.write_bytes(gzip.compress(content.replace(b"\n", b"\r\n")))
    assert corpus.translate().count(b"\n") == 10
    assert corpus.messages[0] == "continuing after line 4 of 10"


def test_a_line_that_was_too_long_may_be_split_afterwards(corpus: Corpus) -> None:
    for num_batches, value in ((2, "error"), (2, "split")):
        corpus.change(on_too_long=value)
        corpus.translate(num_batches)
    for value in ("error", "truncate"):
        corpus.change(on_too_long=value)
        with refuses(ConfigError, f"--on-too-long split {value}"):
            corpus.translate()


# ------------------------------------------------------- input


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/dev/null", "/dev/null; file standard input output"),
        (".", "file; file standard input output"),
        ("none", "none; text file"),
        ("out", "out; --output"),
    ],
)
def test_an_input_that_is_no_file_or_the_output_is_refused(
    path: str, keys: str, corpus: Corpus
) -> None:
    corpus.output.symlink_to(corpus.input)
    corpus.input = corpus.input.parent / path
    with refuses(ConfigError, keys):
        corpus.translate()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('{"source": "b", "source": "c"}', "in:2 source"),
        ("b" * 2**20 + "c", "in:2 1MiB; break"),
    ],
)
def test_a_line_that_cannot_be_translated_is_an_error_before_any_translation(
    text: str, keys: str, corpus: Corpus
) -> None:
    if text.startswith("{"):
        corpus.change(input_format="json")
    corpus.input.write_text(f'{{"source": "\\ud83d\\ude00"}}\n{text}\n', "utf-8")
    corpus.is_opened = lambda _: pytest.fail("a translation began")
    with refuses(DataError, keys):
        corpus.translate()
    assert names_in(corpus.output.parent) == ["in", "model"]
