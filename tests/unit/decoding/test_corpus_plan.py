"""What counts as the same translation of a corpus, and what its input may be."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.fields import fields_of
from nmtkit.config.schema import TranslateRecipe
from nmtkit.decoding.corpus import FORMAT, VERSION
from nmtkit.decoding.corpus_plan import FREE_SETTINGS, CorpusFiles, open_input, read_input
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage.durable import new_folder
from nmtkit.storage.growing_file import growing_file
from tests.messages import refuses
from tests.unit.decoding.test_corpus import (
    CHUNK_LINES,
    Corpus,
    changed,
    expected,
    rewrite,
    write_model,
)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path, 10)


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


@pytest.mark.parametrize(("name", "value"), other_settings())
def test_every_setting_that_determines_translations_is_refused_by_name(
    name: str, value: object, corpus: Corpus
) -> None:
    # Lines of every format.
    rewrite(corpus, "".join(f'{{"source": " {number} "}}\n' for number in range(1, 11)))
    corpus.translate(2)
    changed(corpus, name, value)
    flag = f"--{name.replace('_', '-')}"
    with (
        refuses(ConfigError, f"out.partial {flag}; out.partial.json"),
        corpus.opened(),
    ):
        pytest.fail("it was continued")


@pytest.mark.parametrize(
    ("name", "value"),
    [("device", "cuda"), ("threads", 3), ("devices", 4), ("stream", True)],
)
def test_a_translation_continues_on_other_devices(name: str, value: object, corpus: Corpus) -> None:
    corpus.translate(2)
    changed(corpus, name, value)
    assert corpus.translate() == expected(10)


def write_shortlist(folder: Path, content: bytes) -> Path:
    with new_folder(folder, "nmtkit-shortlist", 1, overwrite=False) as staged:
        (staged.path / "candidates.ids").write_bytes(content)
    return folder


def use_shortlist(corpus: Corpus) -> None:
    folder = write_shortlist(corpus.input.parent / "shortlist", b"1")
    changed(corpus, "shortlist", str(folder))


def use_model(corpus: Corpus, *contents: tuple[bytes, str]) -> None:
    folders = [corpus.input.parent / f"model{number}" for number in range(len(contents))]
    corpus.models = [
        write_model(*one) for one in zip(folders, *zip(*contents, strict=True), strict=True)
    ]


def use_shard(corpus: Corpus) -> None:
    corpus.shard = (1, 2)


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (lambda one: rewrite(one, "a\n" * 11), "input 11 10"),
        (lambda one: rewrite(one, "a\n" * 10), "input"),
        (use_shard, "--shard 1/1 1/2"),
        (use_shortlist, "--shortlist"),
        (lambda one: use_model(one, (b"2", "x")), "model 6b86b273 d4735e3a"),
        (lambda one: use_model(one, (b"1", "y")), "model 6b86b273"),
        (lambda one: use_model(one, (b"1", "x"), (b"1", "x")), "model 6b86b273"),
    ],
)
def test_other_work_is_refused_by_what_differs(
    change: Callable[[Corpus], None], keys: str, corpus: Corpus
) -> None:
    corpus.translate(2)
    change(corpus)
    with (
        refuses(ConfigError, f"out.partial {keys}; out.partial out.partial.json"),
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
    with refuses(ConfigError, "out.partial --seed 1 5; out.partial.json"), corpus.opened():
        pytest.fail("it was continued")


# ------------------------------------------------------- input


def test_an_input_that_is_no_file_is_refused_unread(tmp_path: Path) -> None:
    with refuses(ConfigError, "/dev/null"):
        open_input(CorpusFiles(Path("/dev/null"), tmp_path / "out"))
    with refuses(ConfigError, tmp_path):
        open_input(CorpusFiles(tmp_path, tmp_path / "out"))
    with refuses(ConfigError, "none"):
        open_input(CorpusFiles(tmp_path / "none", tmp_path / "out"))


def test_an_input_that_is_the_output_is_refused(corpus: Corpus) -> None:
    corpus.output.symlink_to(corpus.input)
    for output in (corpus.output, corpus.input):
        with refuses(ConfigError, "in; --output"):
            open_input(CorpusFiles(corpus.input, output))


def test_a_compressed_input_is_the_same_text(corpus: Corpus) -> None:
    plain = corpus.plan()
    corpus.input.write_bytes(gzip.compress(corpus.input.read_bytes()))
    assert corpus.plan() == plain


def test_a_malformed_line_is_an_error_before_any_translation(corpus: Corpus) -> None:
    changed(corpus, "input_format", "json")
    rewrite(corpus, '{"source": "a"}\n{"source": "b", "source": "c"}\n')
    with refuses(DataError, "in:2 JSON source"):
        corpus.plan()
    rewrite(corpus, '{"source": "a"}\n{"source": "\\ud83d\\ude00"}\n')
    assert corpus.plan().num_lines == 2


def test_reading_the_input_is_counted(corpus: Corpus) -> None:
    seconds, messages = iter(range(0, 10000, 2)), list[str]()
    reporter = WorkReporter(messages.append, clock=lambda: float(next(seconds)))
    rewrite(corpus, "a\n" * 2001)
    files = CorpusFiles(corpus.input, corpus.output)
    with open_input(files) as text:
        read_input(text, files, corpus.recipe, reporter)
    assert messages == ["read 1,000 lines, 500 lines/s", "read 2,001 lines, 334 lines/s"]


def test_a_line_that_is_too_long_is_an_error_before_any_translation(corpus: Corpus) -> None:
    rewrite(corpus, "a\n" + "b" * 2**20 + "c\n")
    with refuses(DataError, "in:2 1MiB"):
        corpus.plan()
