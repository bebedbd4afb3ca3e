"""Every hard file as its own translation: one score per pair, or an error."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.schema import ScoringConfig
from nmtkit.decoding.answers import ScoredLine
from nmtkit.decoding.scorer import Scorer, line_names
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import decode_lines, open_bytes, read_lines
from nmtkit.text.subword import Subword
from nmtkit.text.words import words_and_punctuation
from nmtkit_cli.command_line import run
from tests.messages import check_errors
from tests.shared_data import HARD, hard_files, hard_texts, needs_data
from tests.tiny import TRAIN_LINES, never_warn, tiny_model

pytestmark = needs_data

NUM_CHARACTERS = 60
"""Lines are truncated to this length, because some are too long to score."""


@pytest.fixture(scope="module")
def codec() -> TextCodec:
    vocabulary = Subword.train(TRAIN_LINES * 10, "bpe", 275, "tiny text")
    return TextCodec("en", "de", vocabulary, vocabulary, is_shared=True)


@pytest.mark.parametrize("described", hard_texts(), ids=lambda described: described["file"])
def test_each_line_of_a_hard_file_has_a_score(codec: TextCodec, described: dict[str, Any]) -> None:
    name = described["file"]
    with open_bytes(HARD / name) as stream:
        read = list(decode_lines(stream, name, lambda _: None))
    lines = [line[:NUM_CHARACTERS] for line in read]
    scorer = Scorer([tiny_model(codec)], codec, ScoringConfig(max_tokens=20_000), never_warn)
    scores = scorer.score(list(zip(lines, lines, strict=True)), line_names(1))
    assert len(scores) == len(lines)
    for line, score in zip(lines, scores, strict=True):
        assert math.isfinite(score.log_prob)
        assert (score == ScoredLine((), (), 0)) == (codec.source.encode(line) == [])


@pytest.mark.parametrize("described", hard_files(), ids=lambda described: described["file"])
def test_a_hard_file_is_a_perfect_translation_of_itself_or_refused(
    described: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = str(HARD / described["file"])
    metrics = ["--metric", "bleu,chrf,paper-bleu", "--language-pair", "en-de"]
    code = run(["score", "--reference", path, path, *metrics, "--by-length", "--json"])
    out, errors = capfdbinary.readouterr()
    if code:
        assert code == 3
        check_errors(errors.decode(), 3, path)
        assert not out
        return
    scores = json.loads(out)
    num_words = sum(len(words_and_punctuation(line)) for line in read_lines(Path(path)))
    assert scores["chrF2"]["score"] == pytest.approx(100 if num_words else 0)
    assert sum(one["sentences"] for one in scores["by_length"]) == described.get(
        "sentences", described["lf"]
    )
