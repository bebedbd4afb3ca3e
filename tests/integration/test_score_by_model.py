"""`nmtkit score --model` on real lines and a model that was never trained."""

import gzip
import json
import math
import re
import subprocess
from pathlib import Path

import pytest

from nmtkit.config.schema import ScoringConfig, TrainRecipe
from nmtkit.decoding.scorer import Scorer
from nmtkit.storage.model_folder import write_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import decode_lines, open_bytes
from nmtkit.text.subword import Subword
from tests.commands import as_text, nmtkit
from tests.shared_data import DATA, needs_data
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model

SOURCE, TARGET = (DATA / "parallel" / "tatoeba.en-de" / f"valid.{lang}" for lang in ("en", "de"))
NUM_LINES = 60
SUMMARY = (
    r"lines=(\d+) tokens=(\d+) words=(\d+) log_prob=(-?[\d.]+) perplexity=([\d.]+) "
    r"word_perplexity=([\d.]+)\n"
)


def write_tiny_model(folder: Path, codec: TextCodec) -> Path:
    made = tiny_model(codec)
    recipe = TrainRecipe(model=made.config)
    write_model(folder, made.state_dict(), recipe, codec, {}, overwrite=False)
    return folder


def score(folder: Path, translations: bytes, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line = ("score", "--model", "model", *arguments)
    return as_text(nmtkit(*line, stdin=translations, folder=folder))


def first_lines(path: Path) -> list[str]:
    with open_bytes(path) as stream:
        return list(decode_lines(stream, str(path), "error", print))[:NUM_LINES]


def text_of(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@needs_data
def test_real_lines_have_the_scores_of_the_library_and_sums_of_them(tmp_path: Path) -> None:
    sources, targets = first_lines(SOURCE), first_lines(TARGET)
    sources[7] = targets[7] = ""
    vocabulary = Subword.train([*sources, *targets], "unigram", 400, "tatoeba")
    codec = TextCodec("en", "de", vocabulary, vocabulary, is_shared=True)
    write_tiny_model(tmp_path / "model", codec)
    (tmp_path / "source.gz").write_bytes(gzip.compress(text_of(sources)))
    expected = Scorer(tiny_model(codec), codec, ScoringConfig()).score_chunk(
        list(zip(sources, targets, strict=True)), 1
    )

    done = score(tmp_path, text_of(targets), "--source", "source.gz", "--threads", "1")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    log_probs = [float(log_prob) for log_prob, _ in rows]
    assert log_probs == pytest.approx([line.log_prob for line in expected], abs=1e-4)
    assert [int(tokens) for _, tokens in rows] == [len(line.tokens) for line in expected]
    assert rows[7] == ["0.000000", "0"]

    told = re.fullmatch(SUMMARY, done.stderr)
    assert told, done.stderr
    num_lines, num_tokens, num_words = map(int, told.groups()[:3])
    assert num_lines == NUM_LINES
    assert num_tokens == sum(int(tokens) for _, tokens in rows)
    assert num_words == sum(len(line.split()) + 1 for line in targets if line)
    assert float(told[4]) == pytest.approx(sum(log_probs), abs=1e-3)
    assert float(told[5]) == pytest.approx(math.exp(-sum(log_probs) / num_tokens), rel=1e-4)
    assert float(told[6]) == pytest.approx(math.exp(-sum(log_probs) / num_words), rel=1e-4)

    done = score(
        tmp_path, text_of(targets), "--source", "source.gz", "--json", "--max-tokens", "99"
    )
    assert done.returncode == 0, done.stderr
    objects = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    for own, line, target in zip(objects, expected, targets, strict=True):
        assert own["log_prob"] == pytest.approx(line.log_prob, abs=1e-4)
        assert own["perplexity"] == pytest.approx(line.perplexity, rel=1e-4)
        assert own["token_log_probs"] == pytest.approx(line.token_log_probs, abs=1e-4)
        spelled = "".join(own["tokens"]).removesuffix("</s>").replace("\u2581", " ").strip()
        assert "<0x" in spelled or spelled == vocabulary.normalise(target)


def test_translations_have_the_log_probability_that_their_search_reported(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model", tiny_codec())
    # Among words that are spaced apart, a text has but one sequence of tokens.
    (tmp_path / "source").write_bytes(text_of([line for line in TRAIN_LINES for _ in range(2)]))
    translate = ["translate", "model", "--n-best", "2", "--output-format", "json", "--threads", "1"]
    done = nmtkit(*translate, stdin=text_of([*TRAIN_LINES]), folder=tmp_path)
    found = [one for line in done.stdout.split(b"\n")[:-1] for one in json.loads(line)["n_best"]]
    scored = score(
        tmp_path, text_of([one["translation"] for one in found]), "--source", "source", "--json"
    )
    scores = [json.loads(line)["log_prob"] for line in scored.stdout.split("\n")[:-1]]
    assert len(scores) == 2 * len(TRAIN_LINES)
    assert scores == pytest.approx([one["log_prob"] for one in found], abs=1e-4)


@pytest.mark.parametrize(
    ("source", "translations", "arguments", "told"),
    [
        (b"a\nb\n", b"A\n", "", "standard input has 1 lines, and source has more; line n of"),
        (b"a\n", b"A\nB\n", "", "source has 1 lines, and standard input has more; line n of"),
        (b"a\n", b"\xff\n", "", "standard input:1: not valid UTF-8 at byte 1"),
        (b"\xff\n", b"A\n", "", "source:1: not valid UTF-8 at byte 1"),
        (
            b"a\nb c\n",
            b"A\nB\n",
            "--max-length 2",
            "line 2: 3 tokens in the source, more than 2; leave the pair out, or raise",
        ),
    ],
)
def test_bad_input_is_one_line_that_names_the_place(
    tmp_path: Path, source: bytes, translations: bytes, arguments: str, told: str
) -> None:
    write_tiny_model(tmp_path / "model", tiny_codec())
    (tmp_path / "source").write_bytes(source)
    done = score(tmp_path, translations, "--source", "source", *arguments.split())
    assert done.stderr.startswith(f"nmtkit: error: {told}")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 3


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"a\n")
    (tmp_path / "model").mkdir()
    done = score(tmp_path, b"A\n", "--source", "source")
    assert done.stderr.startswith("nmtkit: error: model: is not an nmtkit model, for it has no")
    assert done.returncode == 4


def test_no_lines_have_no_scores(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model", tiny_codec())
    (tmp_path / "source").write_bytes(b"")
    done = score(tmp_path, b"", "--source", "source")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("lines=0 tokens=0 words=0 log_prob=0.0000 perplexity=1.0000 ")
