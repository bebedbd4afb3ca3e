"""Every hard file as its own translation: as many scores come out as pairs go in."""

import math
from typing import Any

import pytest

from nmtkit.config.schema import ScoringConfig
from nmtkit.decoding.scorer import ScoredLine, Scorer
from nmtkit.text.codec import TextCodec
from nmtkit.text.lines import decode_lines, open_bytes
from nmtkit.text.subword import Subword
from tests.shared_data import HARD, hard_files, needs_data
from tests.tiny import TRAIN_LINES, tiny_model

pytestmark = needs_data

NUM_CHARACTERS = 60
"""Lines are cut there, or some would be too long."""


@pytest.fixture(scope="module")
def codec() -> TextCodec:
    vocabulary = Subword.train(TRAIN_LINES * 10, "bpe", 275, "tiny text")
    return TextCodec("en", "de", vocabulary, vocabulary, is_shared=True)


@pytest.mark.parametrize("described", hard_files(), ids=lambda described: described["file"])
def test_a_score_for_each_line_of_a_hard_file(codec: TextCodec, described: dict[str, Any]) -> None:
    name = described["file"]
    with open_bytes(HARD / name) as stream:
        read = list(decode_lines(stream, name, "replace", lambda _: None))
    lines = [line[:NUM_CHARACTERS] for line in read]
    scorer = Scorer(tiny_model(codec), codec, ScoringConfig(max_tokens=20_000))
    scores = scorer.score_chunk(list(zip(lines, lines, strict=True)), 1)
    assert len(scores) == len(lines)
    for line, score in zip(lines, scores, strict=True):
        assert math.isfinite(score.log_prob)
        assert (score == ScoredLine((), (), 0)) == (codec.source.encode(line) == [])
