"""How the command line ends when something is wrong."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import commands
from tests.messages import refused
from tests.processes import wait_until_asleep

COMMAND = (sys.executable, "-m", "nmtkit_cli")
TIMEOUT_S = 60
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path.cwd())}
FULL = Path("/dev/full")
RUN = Path("tests/golden/formats/run").absolute()

Process = subprocess.CompletedProcess[bytes]


def nmtkit(
    arguments: list[str],
    folder: Path,
    environment: dict[str, str],
    stdin: bytes = b"",
) -> Process:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=folder,
        env={**ENVIRONMENT, **environment},
    )


@pytest.mark.parametrize(
    ("line", "code", "keys"),
    [
        ("trian", 2, "trian; train nmtkit --help"),
        ("xyzzy", 2, "xyzzy; preprocess info train"),
        ("--debgu train", 2, "--debgu --debug"),
        ("translate m --baem 4", 2, "--baem; --beam nmtkit translate --help"),
        ("train", 2, "DATA nmtkit train --help"),
        ("train data", 2, "--out nmtkit train --help"),
        ("translate", 2, "MODEL nmtkit translate --help"),
        ("score", 2, "--reference --test-set --model --source"),
        ("score a b", 2, "--reference --test-set --model --source"),
        ("preprocess t.en t.fr", 2, "t.en t.fr; -s en -t fr --train t"),
        (
            "train d --out r --ema-decay 0.0001",
            2,
            "ema_decay 0.0001 0.5; 0.9999 training.ema_decay",
        ),
        ("train data more --out run", 2, "more nmtkit train --help"),
        ("train d --out r --preset bg", 2, "--preset bg big"),
        ("info --preset base --vocab-size 0", 2, "--vocab-size 0 8"),
        ("info --preset xyz --vocab-size 9", 2, "--preset xyz base big"),
        ("info data --preset base --vocab-size 37000", 2, "--preset --vocab-size"),
        ("info data --vocab-size 0", 2, "--vocab-size"),
        ("info data --paper", 2, "--paper"),
        ("info data", 4, "data"),
        ("translate model --precision", 2, "--precision"),
        ("translate model --seed 7", 2, "seed 7 --sample"),
        (
            "translate model --max-output-length 2 --min-length-offset 9",
            2,
            "min_length_offset 9 max_output_length 2",
        ),
        ("info --preset base", 2, "--vocab-size; 37000"),
        ("info", 2, "nothing; --preset --config"),
        ("info --preset base --vocab-size 37000 --check", 2, "--check; nmtkit info --help"),
        ("preprocess --workers 0", 2, "--workers 0 1"),
        (
            "train d --out r --dropout 2 --heads x",
            2,
            "heads 'x' 65536 model.heads dropout 2.0 model.dropout",
        ),
        ("preprocess --out data", 2, "source_lang target_lang; --source-lang corpus.source_lang"),
        ("translate m --config none.toml", 2, "none.toml"),
        ("average-checkpoints a b --last 2 --out c", 2, "--last; --last"),
        ("average-checkpoints a b --data d --out c", 2, "--data; --data"),
        ("average-checkpoints a --last 1 --best 2 --out c", 2, "--last --best"),
        ("average-checkpoints a --best 0 --out c", 2, "--best 0"),
        # The place of the result and the dataset are checked before the run, which is missing too.
        ("average-checkpoints none --out .", 2, ".; another name --overwrite"),
        ("average-checkpoints none --data no-data --out c", 4, "no-data"),
        ("join part --out data", 2, "join; preprocess"),
        ("info none", 4, "none"),
        ("preprocess --shard 1/2", 2, "--shard; preprocess"),
        ("translate m --input a --output b --shard 3/2", 2, "--shard 3/2"),
        ("score --reference none", 2, "none"),
        ("score --model m --source none", 2, "none"),
        ("score --reference r --model m --source s", 2, "--reference --model"),
        ("score --model m", 2, "--model --source --input-format json"),
        ("score --model m --source s --metric ter", 2, "--metric --model"),
        ("score --model m --source s a b", 2, "--model 2"),
        ("score --reference r --threads 1", 2, "--threads --model"),
        ("score --reference r --max-length 9 --device cpu", 2, "--max-length --device --model"),
    ],
)
def test_an_error_is_one_line_with_its_exit_code(
    line: str, code: int, keys: str, tmp_path: Path
) -> None:
    process = commands.nmtkit(*line.split(), folder=tmp_path)
    refused(process, code, keys)
    assert process.stderr.count(b"\n") == 1
    assert process.stdout == b""
    assert not list(tmp_path.iterdir())


@pytest.mark.sampled(every=1)
@pytest.mark.parametrize(
    "arguments",
    [("score", "text", "--reference", "text"), ("report", RUN)],
    ids=["score", "report"],
)
def test_a_page_that_exists_is_not_replaced_unasked(
    arguments: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes(b"a b c d\n")
    page = tmp_path / "page.html"
    page.write_bytes(b"mine")
    done = commands.nmtkit(*arguments, "--html", "page.html", folder=tmp_path)
    refused(done, 2, "page.html; --overwrite")
    assert (done.stdout, page.read_bytes()) == (b"", b"mine")


def test_the_configuration_of_another_toolkit_is_no_recipe(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("train_steps: 100000\n")
    process = commands.nmtkit("train", "d", "--out", "r", "--config", "x.yaml", folder=tmp_path)
    refused(process, 2, "x.yaml TOML YAML; nmtkit train --print-config")


def test_without_arguments_the_help_is_printed(tmp_path: Path) -> None:
    process = nmtkit([], tmp_path, {})
    assert process.returncode == 0
    assert process.stdout == nmtkit(["--help"], tmp_path, {}).stdout


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Return a folder with a text, ref, and candidates for reranking, n-best."""
    (tmp_path / "ref").write_bytes(b"a b c d\n")
    (tmp_path / "n-best").write_bytes(b'{"source": "a", "translation": "b"}\n')
    return tmp_path


SCORE, RERANK = "score --reference ref", "rerank --features length n-best"


@pytest.mark.parametrize("line", ["--help", "--version", "train --print-config", SCORE, RERANK])
@pytest.mark.skipif(not FULL.is_char_device(), reason="there is no device /dev/full")
def test_a_full_disk_behind_standard_output_is_exit_5(line: str, texts: Path) -> None:
    with FULL.open("wb") as full:
        process = subprocess.run(
            [*COMMAND, *line.split()],
            input=b"a b c d\n",
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            cwd=texts,
            env=ENVIRONMENT,
        )
    refused(process, 5, f"standard output {os.strerror(errno.ENOSPC)}")
    assert process.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--print-config"]])
def test_a_reader_that_is_gone_ends_the_command_quietly(
    arguments: list[str], tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        process = subprocess.run(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            cwd=tmp_path,
            env=ENVIRONMENT,
        )
    finally:
        os.close(writing)
    assert process.stderr == b""
    assert process.returncode == 141


def test_standard_output_for_reading_only_is_exit_5() -> None:
    process = subprocess.run(
        ["sh", "-c", '"$@" 1< /dev/null', "sh", *COMMAND, "--version"],
        capture_output=True,
        check=False,
        env=ENVIRONMENT,
    )
    refused(process, 5, f"standard output {os.strerror(errno.EBADF)}")


@pytest.mark.parametrize(
    ("line", "stream"),
    [(SCORE, "<&-"), *((line, ">&-") for line in (SCORE, RERANK, "train -h"))],
)
def test_a_closed_standard_stream_is_reported(line: str, stream: str, texts: Path) -> None:
    process = subprocess.run(
        ["sh", "-c", f'"$@" < ref {stream}', "sh", *COMMAND, *line.split()],
        capture_output=True,
        check=False,
        cwd=texts,
        env=ENVIRONMENT,
    )
    code, keys = {"<&-": (2, "standard input"), ">&-": (5, "standard output")}[stream]
    refused(process, code, keys)
    assert process.stderr.count(b"\n") == 1


def test_an_interrupt_ends_the_command_with_130_and_is_no_error(tmp_path: Path) -> None:
    reference = tmp_path / "reference"
    os.mkfifo(reference)
    with (
        subprocess.Popen(
            [*COMMAND, "score", "--reference", str(reference)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
        ) as process,
        reference.open("wb"),
    ):  # waits until the command reads the other end
        wait_until_asleep(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (130, b"", b"nmtkit: interrupted\n")


def test_the_configuration_that_is_printed_reads_back_as_itself(tmp_path: Path) -> None:
    arguments = ["train", "--preset", "big", "--seed", "7", "--validate-metrics", "none"]
    printed = nmtkit([*arguments, "--print-config"], tmp_path, {}).stdout
    (tmp_path / "recipe.toml").write_bytes(printed)
    again = nmtkit(["train", "--config", "recipe.toml", "--print-config"], tmp_path, {}).stdout
    assert b"model_size = 1024\n" in printed
    assert again == printed


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("nmtkit tra", ["plain,train", "plain,translate"]),
        ("nmtkit translate --be", ["plain,--beam"]),
        ("nmtkit train --positions l", ["plain,learned"]),
        ("nmtkit train --preset b", ["plain,base", "plain,big", "plain,big-en-fr"]),
        ("nmtkit preprocess --train co", ["file,co"]),
    ],
)
def test_the_shell_completes_commands_options_choices_and_paths(
    words: str, completed: list[str], tmp_path: Path
) -> None:
    environment = {
        "_NMTKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    process = nmtkit([], tmp_path, environment)
    assert process.stdout.decode().splitlines() == completed
