"""`nmtkit score --model` on real lines and a model that was never trained."""

import gzip
import json
import math
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from nmtkit.config.schema import ScoringConfig
from nmtkit.decoding.answers import ScoredLine
from nmtkit.decoding.scorer import Scorer, line_names
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import decode_lines, open_bytes
from nmtkit.text.subword import Subword
from tests.commands import as_text, nmtkit
from tests.messages import refused
from tests.shared_data import DATA, needs_data
from tests.tiny import TRAIN_LINES, never_warn, tiny_model, write_tiny_model

SOURCE, TARGET = (DATA / "parallel" / "tatoeba.en-de" / f"valid.{lang}" for lang in ("en", "de"))
NUM_LINES = 60
EMPTY = 7
"""The line of real ones that has no words on either side."""

SUMMARY = (
    r"lines=(\d+) tokens=(\d+) words=(\d+) log_prob=(-?[\d.]+) perplexity=([\d.]+) "
    r"word_perplexity=([\d.]+)\n"
)


def score(folder: Path, translations: bytes, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line = ("score", "--model", "model", *arguments)
    return as_text(nmtkit(*line, stdin=translations, folder=folder))


def first_lines(path: Path) -> list[str]:
    with open_bytes(path) as stream:
        return list(decode_lines(stream, str(path)))[:NUM_LINES]


def text_of(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@dataclass(frozen=True)
class Real:
    """Real lines, one of them empty, in a folder with their model.

    Attributes:
        folder: with the model, and the sources in source.gz.
        vocabulary: of both sides.
        targets: the translations.
        expected: their scores by the library.
    """

    folder: Path
    vocabulary: Subword
    targets: list[str]
    expected: list[ScoredLine]

    def score(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        line = ("--source", "source.gz", *arguments)
        done = score(self.folder, text_of(self.targets), *line)
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Real:
    folder = tmp_path_factory.mktemp("real")
    sources, targets = first_lines(SOURCE), first_lines(TARGET)
    sources[EMPTY] = targets[EMPTY] = ""
    vocabulary = Subword.train([*sources, *targets], "unigram", 400, "tatoeba")
    codec = TextCodec("en", "de", vocabulary, vocabulary, is_shared=True)
    write_tiny_model(folder / "model", codec)
    (folder / "source.gz").write_bytes(gzip.compress(text_of(sources)))
    scorer = Scorer([tiny_model(codec)], codec, ScoringConfig(), never_warn)
    expected = scorer.score(list(zip(sources, targets, strict=True)), line_names(1))
    return Real(folder, vocabulary, targets, expected)


@pytest.fixture(scope="module")
def plain(real: Real) -> "subprocess.CompletedProcess[str]":
    """Score the real lines without an option for output."""
    return real.score("--threads", "1")


def rows_of(done: "subprocess.CompletedProcess[str]") -> list[list[str]]:
    return [line.split("\t") for line in done.stdout.split("\n")[:-1]]


@needs_data
def test_real_lines_have_the_scores_of_the_library(
    real: Real, plain: "subprocess.CompletedProcess[str]"
) -> None:
    rows = rows_of(plain)
    assert [float(log_prob) for log_prob, _ in rows] == pytest.approx(
        [line.log_prob for line in real.expected], abs=1e-4
    )
    assert [int(tokens) for _, tokens in rows] == [len(line.tokens) for line in real.expected]
    assert rows[EMPTY] == ["0.000000", "0"]


@needs_data
def test_the_summary_has_the_sums_of_the_lines(
    real: Real, plain: "subprocess.CompletedProcess[str]"
) -> None:
    message = re.fullmatch(SUMMARY, plain.stderr)
    assert message, plain.stderr
    num_lines, num_tokens, num_words = map(int, message.groups()[:3])
    rows = rows_of(plain)
    log_prob = sum(float(own) for own, _ in rows)
    assert num_lines == NUM_LINES
    assert num_tokens == sum(int(tokens) for _, tokens in rows)
    assert num_words == sum(len(line.split()) + 1 for line in real.targets if line)
    assert float(message[4]) == pytest.approx(log_prob, abs=1e-3)
    assert float(message[5]) == pytest.approx(math.exp(-log_prob / num_tokens), rel=1e-4)
    assert float(message[6]) == pytest.approx(math.exp(-log_prob / num_words), rel=1e-4)


@needs_data
def test_json_has_the_score_of_each_token(real: Real) -> None:
    done = real.score("--json", "--max-tokens", "99")
    objects = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    for own, line, target in zip(objects, real.expected, real.targets, strict=True):
        assert own["log_prob"] == pytest.approx(line.log_prob, abs=1e-4)
        assert own["perplexity"] == pytest.approx(line.perplexity, rel=1e-4)
        assert own["token_log_probs"] == pytest.approx(line.token_log_probs, abs=1e-4)
        spelled = "".join(own["tokens"]).removesuffix("</s>").replace("\u2581", " ").strip()
        assert "<0x" in spelled or spelled == real.vocabulary.normalize(target)


@needs_data
def test_translations_of_a_file_have_the_scores_of_standard_input(
    real: Real, tmp_path: Path
) -> None:
    path = tmp_path / "translations.gz"
    path.write_bytes(gzip.compress(text_of(real.targets)))
    line = ("--source", "source.gz", str(path))
    done = score(real.folder, b"not these\n", *line)
    assert done.returncode == 0
    assert done.stdout == real.score().stdout
    path.write_bytes(text_of(real.targets[1:]))
    shorter = score(real.folder, b"", "--source", "source.gz", str(path))
    refused(shorter, 3, f"{path} lines")


def test_translations_have_the_log_probability_of_their_search(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    # A text of known words between spaces has only one sequence of tokens.
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
    ("source", "translations", "arguments", "keys"),
    [
        (b"a\nb\n", b"A\n", "", "input 1 source"),
        (b"a\n", b"A\nB\n", "", "source 1 input"),
        (b"a\n", b"\xff\n", "", "input:1 UTF-8 byte 1"),
        (b"\xff\n", b"A\n", "", "source:1 UTF-8 byte 1"),
        (b"a\nb c\n", b"A\nB\n", "--max-length 2", "line 2 3 2; --max-length"),
    ],
)
def test_bad_input_is_one_line_that_names_the_place(
    tmp_path: Path, source: bytes, translations: bytes, arguments: str, keys: str
) -> None:
    write_tiny_model(tmp_path / "model")
    (tmp_path / "source").write_bytes(source)
    done = score(tmp_path, translations, "--source", "source", *arguments.split())
    refused(done, 3, keys)
    assert done.stderr.count("\n") == 1


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"a\n")
    (tmp_path / "model").mkdir()
    done = score(tmp_path, b"A\n", "--source", "source")
    refused(done, 4, "model manifest.json")


def test_no_lines_have_no_scores(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    (tmp_path / "source").write_bytes(b"")
    done = score(tmp_path, b"", "--source", "source")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("lines=0 tokens=0 words=0 log_prob=0.0000 perplexity=1.0000 ")


@needs_data
def test_json_lines_have_their_sources_and_keep_their_keys(real: Real) -> None:
    line = {"source": "a b", "target_prefix": "b", "translation": "b a", "score": -1.5, "id": 7}
    done = score(real.folder, text_of([json.dumps(line)]), "--input-format", "json", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {key: found[key] for key in line} == line
    assert found["schema"] == "nmtkit-translations/1"
    assert found["perplexity"] == pytest.approx(math.exp(-found["log_prob"] / len(found["tokens"])))
    (real.folder / "one").write_text("a b\n")
    plain = score(real.folder, b"b a\n", "--source", "one")
    assert float(plain.stdout.split("\t")[0]) == pytest.approx(found["log_prob"], abs=1e-6)
