"""`nmtkit align`: links in the order of the pairs, from streams, files and processes."""

import gzip
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.model import AligningAttention
from nmtkit.config.schema import AlignRecipe, recipe_of
from nmtkit.decoding import loading
from nmtkit.decoding.aligner import Aligner
from nmtkit.decoding.answers import Pair
from nmtkit.decoding.corpus import CorpusFiles, align_files
from nmtkit.errors import ConfigError
from nmtkit.progress.counting import WorkReporter
from nmtkit.storage.growing_file import FORMAT, VERSION
from nmtkit.storage.manifest import seal
from nmtkit.storage.model_description import hashes_of, store_aligning_attention
from nmtkit.text.closed_words import Words
from tests.commands import nmtkit
from tests.folders import names_in
from tests.messages import refused, refuses
from tests.tiny import WORDS, never_warn, tiny_codec, write_lines, write_tiny_model
from tests.trees import parser_codec

USUAL = ("--reverse", "de-en", "--symmetrize", "union", "--min-weight", "0.2", "--threads", "1")
FILES = ("--source", "s.en", "--target", "s.de")
SMALL_CHUNKS = ("--chunk-lines", "4")
NUM_LINES = 18


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model per direction and parallel text, which tests only read."""
    folder, codec = tmp_path_factory.mktemp("inputs"), tiny_codec()
    codecs = {"en-de": codec, "de-en": replace(codec, source_lang="de", target_lang="en")}
    for seed, (name, own) in enumerate(codecs.items()):
        write_tiny_model(folder / name, own, seed)
    draw = random.Random(1)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(0, 6))) for _ in range(NUM_LINES)]
    write_lines(folder / "s.en", lines)
    write_lines(folder / "s.de", [line.upper() for line in lines])
    return folder


def align(*arguments: object, folder: Path, stdin: bytes = b"") -> list[str]:
    """Align without an error; return the lines of standard output."""
    done = nmtkit("align", *arguments, folder=folder, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split("\n")[:-1]


def columns(folder: Path) -> bytes:
    sides = [(folder / name).read_text().split("\n")[:-1] for name in ("s.en", "s.de")]
    return "".join(f"{one}\t{other}\n" for one, other in zip(*sides, strict=True)).encode()


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[str]:
    lines = align("en-de", *USUAL, stdin=columns(folder), folder=folder)
    sizes = [len(line.split()) for line in (folder / "s.en").read_text().split("\n")[:-1]]
    assert len(lines) == NUM_LINES
    assert any(lines)
    assert not any(line for line, size in zip(lines, sizes, strict=True) if size == 0)
    for line, size in zip(lines, sizes, strict=True):
        assert all(int(word) < size for link in line.split() for word in link.split("-"))
    return lines


def test_two_files_are_aligned_as_two_columns(folder: Path, expected: list[str]) -> None:
    assert align("en-de", *USUAL, *FILES, folder=folder) == expected
    assert align("en-de", *USUAL, *FILES, *SMALL_CHUNKS, folder=folder) == expected


def test_two_processes_align_as_one_does(folder: Path, expected: list[str]) -> None:
    assert align("en-de", *USUAL, *FILES, *SMALL_CHUNKS, "--devices", 2, folder=folder) == expected


def test_models_of_several_and_of_two_languages_align_together(folder: Path) -> None:
    codec = replace(tiny_codec(), source=(words := Words([*WORDS, "<2de>", "<2en>"])), target=words)
    codec = codec.with_directions(["en-de", "de-en"], has_source_symbols=False)
    write_tiny_model(folder / "both", codec)
    for models, languages in (
        (("both", "de-en"), ("de",)),
        (("en-de", "both"), ("de", "--source-lang", "en")),
        (("both", "both"), ("de", "--source-lang", "en")),
    ):
        options = (models[0], "--reverse", models[1], "--target-lang", *languages)
        assert len(align(*options, *FILES, folder=folder)) == NUM_LINES
    done = nmtkit(
        "align", "both", "--reverse", "both", "--target-lang", "de", *FILES, folder=folder
    )
    refused(done, 2, "source_lang both; --source-lang de en")


class Killed(Exception):  # noqa: N818
    """The command is killed here."""


@pytest.mark.parametrize("num_chunks", [0, 3])
def test_an_output_that_was_begun_is_continued(
    num_chunks: int, folder: Path, expected: list[str], tmp_path: Path
) -> None:
    inputs = tmp_path / "s.en.gz", tmp_path / "s.de"
    inputs[0].write_bytes(gzip.compress((folder / "s.en").read_bytes()))
    inputs[1].write_bytes((folder / "s.de").read_bytes())
    files = CorpusFiles(inputs, tmp_path / "links.gz")
    recipe = recipe_of(AlignRecipe, {"symmetrize": "union", "min_weight": 0.2, "chunk_lines": 4})
    models, messages = [folder / "en-de", folder / "de-en"], list[str]()

    class Killing(Aligner):
        def answer_chunk(self, requests: Sequence[Pair], first_number: int) -> Iterator[Any]:
            if first_number > 4 * num_chunks:
                raise Killed
            yield from super().answer_chunk(requests, first_number)

    def work() -> None:
        align_files(models, recipe, files, WorkReporter(messages.append), never_warn)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loading, "Aligner", Killing)
        with pytest.raises(Killed):
            work()
    work()
    num_done = f"continuing after line {4 * num_chunks} of {NUM_LINES}"
    assert (num_done in messages) == (num_chunks > 0)
    lines = gzip.decompress(files.output.read_bytes()).decode().split("\n")[:-1]
    assert lines == expected
    assert names_in(tmp_path) == ["links.gz", "s.de", "s.en.gz"]
    with refuses(ConfigError, "links.gz; --overwrite"):
        work()


def test_another_layer_is_other_work(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "in")
    command = ("align", "en-de", *FILES, "--threads", 1, "--output", "out")
    folder = tmp_path / "in"
    begun = {"the model": "x", "--precision": "float32"}
    (folder / "out.partial").touch()
    (folder / "out.partial.json").write_bytes(
        seal(FORMAT, VERSION, {"work": begun, "is_complete": False})
    )
    store_aligning_attention(folder / "en-de", AligningAttention(1, None, is_shifted=True))
    refused(nmtkit(*command, folder=folder), 2, "out.partial model stored layer; delete")


def test_json_lines_keep_their_keys(folder: Path, expected: list[str]) -> None:
    pairs = [line.split("\t") for line in columns(folder).decode().split("\n")[:-1]]
    objects = [
        {"source": source, "translation": target, "score": -1.5, "id": place}
        for place, (source, target) in enumerate(pairs)
    ]
    stdin = "".join(json.dumps(one) + "\n" for one in objects).encode()
    json_formats = ("--input-format", "json", "--output-format", "json", "--probabilities")
    lines = align("en-de", *USUAL, *json_formats, stdin=stdin, folder=folder)
    found = [*map(json.loads, lines)]
    assert [one["alignment"] for one in found] == expected
    for one, given in zip(found, objects, strict=True):
        probabilities = one.pop("link_probabilities")
        assert len(probabilities) == len(one["alignment"].split())
        assert all(0 < probability <= 1 for probability in probabilities)
        assert one == {"schema": "nmtkit-translations/1", **given, "alignment": one["alignment"]}


def test_probabilities_follow_a_tab(folder: Path, expected: list[str]) -> None:
    lines = align("en-de", *USUAL, "--probabilities", *FILES, folder=folder)
    pairs = [line.split("\t") for line in lines]
    assert [links for links, _ in pairs] == expected
    assert all(len(links.split()) == len(numbers.split()) for links, numbers in pairs)


def test_the_chosen_layers_are_stored_and_used(folder: Path, tmp_path: Path) -> None:
    codec = tiny_codec()
    reverse_codec = replace(codec, source_lang="de", target_lang="en")
    for name, own, seed in (("en-de", codec, 3), ("de-en", reverse_codec, 4)):
        write_tiny_model(tmp_path / name, own, seed)
    hashes = hashes_of(tmp_path / "en-de")
    files = ("--source", folder / "s.en", "--target", folder / "s.de")
    default = align("en-de", *USUAL, *files, folder=tmp_path)
    table = align("en-de", *USUAL[:2], "--choose-layer", *files, folder=tmp_path)
    rows = [line.split("\t") for line in table]
    names = [f"{layer} {step}" for layer in (1, 2) for step in ("predicted", "read")]
    assert sorted(row[:2] for row in rows) == [[one, other] for one in names for other in names]
    agreements = [float(row[2]) for row in rows]
    assert agreements == sorted(agreements, reverse=True)
    best = rows[0]
    stored = [
        json.loads((tmp_path / name / "aligning_attention.json").read_text())
        for name in ("en-de", "de-en")
    ]
    for one, place in zip(stored, best, strict=False):
        assert place == f"{one['layer']} {'read' if one['is_shifted'] else 'predicted'}"
    assert hashes_of(tmp_path / "en-de") == hashes
    chosen = align("en-de", *USUAL, *files, folder=tmp_path)
    assert (chosen == default) == (best[:2] == ["1 predicted", "1 predicted"])


@pytest.mark.parametrize("content", [b"{}", b"x", None], ids=str)
def test_a_damaged_choice_of_layers_is_refused(
    content: bytes | None, folder: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(folder / "en-de", tmp_path / "en-de")
    store_aligning_attention(model, AligningAttention(2, None, is_shifted=True))  # of two layers
    if content is not None:
        (model / "aligning_attention.json").write_bytes(content)
    done = nmtkit("align", "en-de", folder=tmp_path)
    refused(
        done,
        4,
        "aligning_attention.json; check"
        if content == b"{}"
        else "aligning_attention.json; delete --choose-layer",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "keys"),
    [
        (("en-de", "--source", "s.en"), 2, "--source --target; both"),
        (("en-de", "--symmetrize", "union"), 2, "--symmetrize --reverse"),
        (("en-de", "--output", "o"), 2, "--output --source --target"),
        (("en-de", *FILES, "--input-format", "json"), 2, "--input-format --source --target"),
        (("en-de", *FILES, "--overwrite"), 2, "--overwrite --output"),
        (("en-de", *FILES, "--choose-layer"), 2, "--choose-layer; --reverse"),
        (
            ("en-de", *USUAL[:2], *FILES, "--choose-layer", "--min-weight", "0.5"),
            2,
            "--min-weight --choose-layer",
        ),
        (("en-de", "--reverse", "en-de", *FILES), 2, "en-de; --reverse"),
        (("en-de", "--source", "s.en", "--target", "/dev/null"), 3, "/dev/null s.en 0"),
        (("en-de", "--source", "s.en", "--target", "s.xx"), 2, "s.xx; text"),
        (("none",), 4, "none"),
    ],
    ids=str,
)
def test_what_cannot_be_aligned_is_refused(
    arguments: tuple[str, ...], code: int, keys: str, folder: Path
) -> None:
    refused(nmtkit("align", *arguments, folder=folder), code, keys)


def test_nothing_is_stored_without_pairs(folder: Path) -> None:
    done = nmtkit("align", "en-de", *USUAL[:2], "--choose-layer", folder=folder, stdin=b"a\t\n")
    refused(done, 3, "en-de de-en; --source")
    assert not (folder / "en-de" / "aligning_attention.json").exists()


def test_a_parser_does_not_align(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "parser", parser_codec())
    refused(nmtkit("align", "parser", folder=tmp_path), 2, "parser trees; translates")


def test_a_line_without_a_tab_is_refused_after_those_before_it(folder: Path) -> None:
    done = nmtkit("align", "en-de", folder=folder, stdin=b"a\tA\n\na b\nc\tC\n")
    refused(done, 3, "input:3; source tab translation")
    assert done.stdout.count(b"\n") == 2
