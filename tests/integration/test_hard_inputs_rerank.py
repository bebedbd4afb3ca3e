"""The lines of every hard file as candidates: one of them is chosen, as one line."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from nmtkit.text.lines import decode_lines, one_line, open_bytes
from nmtkit_cli.command_line import run
from tests.shared_data import HARD, hard_texts, needs_data

pytestmark = needs_data

NUM_CHARACTERS = 200
"""Lines are truncated to this length, because some have millions of n-grams."""
NUM_CANDIDATES = 5


def texts_of(name: str) -> list[str]:
    with open_bytes(HARD / name) as stream:
        lines = decode_lines(stream, name, lambda _: None)
        return [line[:NUM_CHARACTERS] for line in lines]


@pytest.mark.parametrize("described", hard_texts(), ids=lambda described: described["file"])
def test_each_line_has_a_candidate_of_its_own(
    described: dict[str, Any], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    texts = texts_of(described["file"])
    candidates = [texts[place : place + NUM_CANDIDATES] for place in range(len(texts))]
    lines = [
        {
            "source": source,
            "translation": own[0],
            "n_best": [{"translation": text} for text in own],
        }
        for source, own in zip(texts, candidates, strict=True)
    ]
    path = tmp_path / "candidates.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    for feature in ("mbr:chrf", "mbr:bleu", "length"):
        line = ["rerank", "--features", feature, str(path)]
        assert run(line) == 0
        chosen = capfdbinary.readouterr().out.decode().split("\n")[:-1]
        assert len(chosen) == len(texts)
        for text, own in zip(chosen, candidates, strict=True):
            assert text in [one_line(one) for one in own]
        assert run([*line, "--output-format", "json"]) == 0
        answers = capfdbinary.readouterr().out.decode().split("\n")[:-1]
        for answer, text, source in zip(answers, chosen, texts, strict=True):
            values = json.loads(answer)
            assert (values["source"], one_line(values["translation"])) == (source, text)
            scores = [one["rerank_score"] for one in values["n_best"]]
            assert all(math.isfinite(score) for score in scores)
            assert scores == sorted(scores, reverse=True)
