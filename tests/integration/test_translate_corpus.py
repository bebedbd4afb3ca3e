"""`nmtkit translate --input FILE --output FILE`: the output of a pipe, continued, in shards."""

import errno
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest

from nmtkit.data.binary import Dataset
from nmtkit.text.lines import count_lines
from tests.commands import nmtkit
from tests.folders import names_in
from tests.messages import refused
from tests.tiny import WORDS, tiny_dataset, write_tiny_model

CHUNK = ("--chunk-lines", "4", "--threads", "1")
SMALL, NUM_SHARDS = "--threads 1 --chunk-lines 1", 3
DEADLINE_S = 300
PAGE = Path("docs/translating.md").read_text("utf-8")
PAGE = PAGE[PAGE.index("## Translate a corpus") : PAGE.index("## Large inputs")]


def random_lines(count: int) -> list[str]:
    draw = random.Random(count)
    return [" ".join(draw.choices(WORDS, k=draw.randint(0, 6))) for _ in range(count)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models, a shortlist and texts, which tests only read."""
    folder = tmp_path_factory.mktemp("inputs")
    data = tiny_dataset(folder)
    codec = Dataset.open(data).codec
    for number in (1, 2):
        write_tiny_model(folder / f"model{number}", codec, number)
    few = ("--candidates", "4", "--frequent", "2")
    assert nmtkit("shortlist", data, "--out", folder / "short", *few).returncode == 0
    lines = random_lines(18)
    (folder / "text").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    objects = [{"source": line, "id": place} for place, line in enumerate(lines)]
    for one in objects[::5]:
        one["target_prefix"] = "a b" if one["source"] else ""
    (folder / "json").write_text("".join(json.dumps(one) + "\n" for one in objects))
    return folder


def translate(*arguments: object, folder: Path, stdin: bytes = b"") -> list[str]:
    """Translate without an error; return the messages."""
    done = nmtkit("translate", *arguments, *CHUNK, folder=folder, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stderr.decode().splitlines()


def refuse(*arguments: object, folder: Path, code: int, keys: str) -> None:
    """Check the exit code and the message, the only one, of a translation that is refused."""
    done = nmtkit("translate", *arguments, *CHUNK, folder=folder)
    refused(done, code, keys)
    assert done.stderr.count(b"\n") == 1


VARIANTS = {
    "an ensemble": "model1 model2 --n-best 3 --output-format moses --alignments",
    "objects with prefixes": "model1 --input-format json --output-format json --sample --n-best 2",
    "lines that are split": "model1 --shortlist short --max-source-length 4 --scores",
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("variant", "suffix"), [*zip(VARIANTS.values(), cycle(["", ".gz"]))], ids=VARIANTS
)
def test_files_and_shards_have_the_lines_of_a_pipe(
    variant: str, suffix: str, inputs: Path, tmp_path: Path
) -> None:
    line = variant.split()
    source = inputs / ("json" if "--input-format" in line else "text")
    piped = nmtkit("translate", *line, *CHUNK, folder=inputs, stdin=source.read_bytes())
    assert piped.returncode == 0, piped.stderr
    whole = tmp_path / "deep" / f"whole{suffix}"
    messages = translate(*line, "--input", source, "--output", whole, folder=inputs)
    assert messages[-1] == f"translated 18 lines into {whole}"
    assert names_in(whole.parent) == [whole.name]
    content = whole.read_bytes()
    # The first chunks of a pipe are smaller: scores are equal up to rounding.
    found = gzip.decompress(content) if suffix else content
    assert re.sub(rb"[\d.e-]+", b"", found) == re.sub(rb"[\d.e-]+", b"", piped.stdout)
    shards = [tmp_path / f"{number}{suffix}" for number in (1, 2, 3)]
    for number, shard in enumerate(shards, 1):
        files = ("--input", source, "--output", shard, "--shard", f"{number}/3")
        translate(*line, *files, folder=inputs)
    joined = b"".join(shard.read_bytes() for shard in shards)
    assert (gzip.decompress(joined) if suffix else joined) == found


def test_two_processes_write_the_file_of_one(inputs: Path, tmp_path: Path) -> None:
    for count in (1, 2):
        files = ("--input", inputs / "text", "--output", tmp_path / str(count))
        translate(inputs / "model1", *files, "--devices", count, folder=inputs)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_messages_have_the_line_numbers_of_the_whole_input(inputs: Path, tmp_path: Path) -> None:
    lines = [b"a"] * 6 + [b"b \xff", b"c"]
    (tmp_path / "text").write_bytes(b"\n".join(lines) + b"\n")
    files = ("--input", tmp_path / "text", "--output", tmp_path / "out", "--shard", "2/2")
    _, warning, _ = translate(inputs / "model1", *files, folder=inputs)
    assert warning.startswith(f"nmtkit: warning: {tmp_path}/text:7: not valid UTF-8 at byte 3 of")
    options: tuple[str, ...] = ("--input-format", "json", "--overwrite")
    (tmp_path / "text").write_bytes(b'{"source": "a"}\n' * 6 + b"[]\n")
    model = inputs / "model1"
    refuse(model, *files, *options, folder=inputs, code=3, keys=f"{tmp_path}/text:7 source")
    (tmp_path / "text").write_bytes(b"a\n" * 6 + b"a a a a\n")
    assert names_in(tmp_path) == ["out", "text"]  # nothing that a repaired input would not fit
    options = ("--max-source-length", "3", "--on-too-long", "error", "--overwrite")
    done = nmtkit("translate", model, *files, *options, *CHUNK, folder=inputs)
    announced, _ = done.stderr.decode().splitlines()
    assert announced.startswith("translating 3 lines of")
    refused(done, 3, "line 7 5 3 --max-source-length")


# ------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ("text", "text model; --input text --output FILE <"),
        ("text --input text --output out", "text model; model first"),
        ("--input text", "--input --output; both `< FILE` `> FILE`"),
        ("--output out", "--input --output; both `< FILE` `> FILE`"),
        ("--shard 1/2", "--shard --input --output; out"),
        ("--overwrite", "--overwrite --input --output; out"),
        ("--input text --output out --shard 0/2", "'0/2' I N; 2/4"),
        ("--as-text", "--as-text --input --output; out"),
        ("--input film.srt --output out", "film.srt .srt; --as-text"),
        ("--input PAGE.HTML.gz --output out", "PAGE.HTML.gz .html; --as-text"),
        ("--input . --output out", ".: file; file standard input output"),
        ("--input text --output /dev/full", "/dev/full; name"),
        ("--input text --output text/out", f"text/out {os.strerror(errno.EEXIST)}"),
    ],
)
def test_wrong_use_is_refused_and_changes_nothing(
    arguments: str, keys: str, inputs: Path, tmp_path: Path
) -> None:
    shutil.copyfile(inputs / "text", tmp_path / "text")
    refuse(inputs / "model1", *arguments.split(), folder=tmp_path, code=2, keys=keys)
    assert names_in(tmp_path) == ["text"]


def test_a_document_is_translated_line_by_line_if_asked(inputs: Path, tmp_path: Path) -> None:
    for name in ("text", "film.srt"):
        shutil.copyfile(inputs / "text", tmp_path / name)
        files = ("--input", tmp_path / name, "--output", tmp_path / f"{name}.out", "--as-text")
        translate(inputs / "model1", *files, folder=tmp_path)
    assert (tmp_path / "text.out").read_bytes() == (tmp_path / "film.srt.out").read_bytes()


def test_files_are_checked_before_torch_is_loaded(inputs: Path, tmp_path: Path) -> None:
    without_torch = (
        "import sys; sys.modules['torch'] = None; from nmtkit_cli.command_line import run; "
        "sys.exit(run(sys.argv[1:]))"
    )
    files = ("--input", inputs / "text", "--output", tmp_path / "out", "--shard", "1/6")
    command: list[str | Path] = [sys.executable, "-c", without_torch, "translate"]
    line = [*command, inputs / "model1", *files, *CHUNK]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    refused(done, 2, "--shard 1/6 5; --chunk-lines")


def test_a_stream_of_files_is_refused(inputs: Path) -> None:
    files = ("--input", "text", "--output", "out")
    done = nmtkit("translate", inputs / "model1", *files, "--stream", folder=inputs)
    refused(done, 2, "--stream --input --output; out")


def test_a_stream_of_a_recipe_is_ignored_for_files(inputs: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[output]\nstream = true\n", "utf-8")
    files = ("--input", "text", "--output", tmp_path / "out", "--config", recipe)
    done = nmtkit("translate", inputs / "model1", *files, folder=inputs)
    assert done.returncode == 0, done.stderr
    warning = b"nmtkit: warning: --stream of --config: no effect with --input and --output\n"
    assert warning in done.stderr
    assert count_lines(tmp_path / "out") == count_lines(inputs / "text")


@pytest.mark.parametrize(
    "files", [("--input", "-", "--output", "x"), ("--input", "text", "--output", "-")]
)
def test_a_dash_is_no_file(files: tuple[str, ...], inputs: Path) -> None:
    done = nmtkit("translate", inputs / "model1", *files, folder=inputs)
    refused(done, 2, "--input --output files; standard input output both")
    assert not (inputs / "-").exists()


def test_what_is_missing_is_found_before_the_input_is_read(inputs: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"\x1f\x8b torn")
    files = ("--input", tmp_path / "damaged", "--output", tmp_path / "new" / "out")
    refuse("none", *files, folder=inputs, code=4, keys="none folder; path")
    shortlist = ("--shortlist", "none")
    refuse("model1", *files, *shortlist, folder=inputs, code=4, keys="none folder; path")
    assert names_in(tmp_path) == ["damaged"]


# ------------------------------------------------------- recipes of the page


def recipe(beginning: str) -> str:
    """Return the block of the page that begins so."""
    (block,) = re.findall(rf"^```sh\n({re.escape(beginning)}.*?)^```", PAGE, re.M | re.S)
    return str(block)


def run_script(script: str, folder: Path, variables: dict[str, str]) -> None:
    """Run a script in a folder with an `nmtkit` in its path that has a tiny model."""
    shim = folder / "bin" / "nmtkit"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nmtkit_cli "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(Path.cwd()), **variables}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        capture_output=True,
        check=False,
        env=environment,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def job(inputs: Path, tmp_path: Path) -> Path:
    """Return a folder with the model and the corpus of the page, and its translation."""
    shutil.copytree(inputs / "model1", tmp_path / "model")
    lines = random_lines(NUM_SHARDS * 2)
    (tmp_path / "big.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    line = ("model", "--input", "big.en", "--output", "whole", *SMALL.split())
    assert nmtkit("translate", *line, folder=tmp_path).returncode == 0
    return tmp_path


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_the_recipe_for_gnu_parallel_translates_the_whole(job: Path) -> None:
    script = recipe("parallel").replace("--threads 4", SMALL)
    for number in ("{}/12", "seq -w 12"):
        assert number in script
        script = script.replace(number, number.replace("12", str(NUM_SHARDS)))
    for _ in range(2):  # what is done is not done again
        run_script(script + recipe("cat"), job, {})
        assert len(names_in(job / "out")) == NUM_SHARDS
        assert (job / "big.de").read_bytes() == (job / "whole").read_bytes()


@pytest.mark.thorough
def test_the_recipe_for_slurm_translates_a_shard_per_task(job: Path) -> None:
    script = recipe("#!/bin/bash").replace("model/", f"model/ {SMALL}")
    (count,) = re.findall(r"^#SBATCH --array=1-(\d+)$", script, re.M)
    assert f'"$task/{count}"' in script
    script = script.replace(f"$task/{count}", f"$task/{NUM_SHARDS}")
    for task in range(1, NUM_SHARDS + 1):
        run_script(script, job, {"SLURM_ARRAY_TASK_ID": str(task)})
    run_script(recipe("cat"), job, {})
    assert (job / "big.de").read_bytes() == (job / "whole").read_bytes()
