"""Scorers and translators that are loaded compute the same, in the given precision."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nmtkit.config.schema import (
    RuntimeConfig,
    ScoringConfig,
    TranslateRecipe,
)
from nmtkit.config.translation import OutputConfig, TranslationConfig
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding import loading
from nmtkit.decoding.answers import Request
from nmtkit.decoding.loading import load_scorer, load_translator
from nmtkit.decoding.scorer import line_names
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model.transformer import Transformer
from tests.integers import needs_integers
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, never_warn, tiny_codec, write_tiny_model
from tests.translating import answers_to

CPU = RuntimeConfig(device="cpu")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "model")


def largest_difference(scores: list[float], others: list[float]) -> float:
    return max(abs(one - other) for one, other in zip(scores, others, strict=True))


def scores_of(path: Path, pairs: list[tuple[str, str]], precision: str) -> list[float]:
    scorer = load_scorer(path, ScoringConfig(precision=precision), CPU, never_warn)
    return [line.log_prob for line in scorer.score(pairs, line_names(1))]


# bfloat16 has 8 bits, and search and scorer add products up in another order.
@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [("float32", 1e-4), ("bfloat16", 0.25), pytest.param("int8", 0.25, marks=needs_integers)],
)
def test_scores_are_those_of_the_search_in_the_same_precision(
    path: Path, precision: str, tolerance: float
) -> None:
    recipe = TranslateRecipe(
        output=OutputConfig(output_format="json"),
        translation=TranslationConfig(precision=precision),
        runtime=CPU,
    )
    translator = load_translator([path], recipe, lambda _: None)
    answers = answers_to(translator, [Request(line) for line in TRAIN_LINES])
    found = [answer.translation for answer in answers]
    pairs = [(line, one.text) for line, one in zip(TRAIN_LINES, found, strict=True)]
    expected = [one.log_prob for one in found]
    assert scores_of(path, pairs, precision) == pytest.approx(expected, abs=tolerance)


def test_scores_are_computed_in_the_given_precision(path: Path) -> None:
    pairs = [(line, line.upper()) for line in TRAIN_LINES]
    exact = scores_of(path, pairs, "float32")
    assert scores_of(path, pairs, "auto") == exact
    assert 1e-4 < largest_difference(exact, scores_of(path, pairs, "bfloat16")) < 0.5


def test_memory_is_kept_once_the_models_are_prepared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(Transformer, "prepare", lambda *_: done.append("prepared"))
    monkeypatch.setattr(loading, "keep_freed_memory", lambda: done.append("kept"))
    load_translator([path, path], TranslateRecipe(runtime=CPU), never_warn)
    load_scorer(path, ScoringConfig(), CPU, never_warn)
    assert done == ["prepared", "prepared", "kept", "prepared", "kept"]


MEMORY = """
import sys
from pathlib import Path
from nmtkit.config.schema import RuntimeConfig, ScoringConfig
from nmtkit.decoding.loading import load_scorer
from nmtkit.model.kernels.inference import weight_levels

def kibibytes(key):
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(key) + 1])

CONFIG = ScoringConfig(precision="int8")
weight_levels()
before = kibibytes("VmRSS:")
scorer = load_scorer(Path(sys.argv[1]), CONFIG, RuntimeConfig(device="cpu"), print)
print(kibibytes("VmHWM:") - before, kibibytes("VmRSS:") - before)
"""


@pytest.mark.thorough
@needs_integers
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_model_of_integers_is_once_in_memory_as_floats_and_only_while_it_loads(
    tmp_path: Path,
) -> None:
    big = write_tiny_model(tmp_path / "big", model_size=512, feed_forward_size=8192)
    size = (big / "model.safetensors").stat().st_size // 2**10
    arguments = [sys.executable, "-c", MEMORY, str(big)]
    done = subprocess.run(arguments, capture_output=True, check=True, text=True)
    most, remaining = map(int, done.stdout.split())
    assert most < 1.4 * size
    assert remaining < size  # 0.4 to 0.8 of it: malloc decides how much returns


@needs_integers
def test_scores_of_integers_are_near_those_of_floats(path: Path) -> None:
    pairs = [(line, line.upper()) for line in TRAIN_LINES]
    exact, coarse = (scores_of(path, pairs, name) for name in ("float32", "int8"))
    assert 1e-4 < largest_difference(exact, coarse) < 2
    assert abs(sum(exact) - sum(coarse)) < 0.02 * abs(sum(exact))


def test_integers_need_a_processor_that_multiplies_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring = ScoringConfig(precision="int8")
    monkeypatch.setattr(loading, "weight_levels", lambda: 0)
    with refuses(ConfigError, "precision int8 this processor; --precision float32"):
        load_scorer(path, scoring, CPU, never_warn)
    monkeypatch.setattr(loading, "set_up", lambda _: torch.device("meta"))
    with refuses(ConfigError, "precision int8 for CPUs; --device cpu"):
        load_scorer(path, scoring, CPU, never_warn)


@pytest.mark.parametrize(("num_rows", "size"), [(19, 10**12), (18, 19)])
def test_a_shortlist_of_another_size_than_its_vocabulary_is_damaged(
    num_rows: int, size: int, path: Path, tmp_path: Path
) -> None:
    assert tiny_codec().source.size == tiny_codec().target.size == 19
    rows, frequent = np.zeros((num_rows, 1), np.int64), np.arange(3)
    shortlist = Shortlist(rows, frequent, size, tiny_codec().fingerprint)
    shortlist.save(tmp_path / "list", overwrite=False)
    recipe = TranslateRecipe(
        translation=TranslationConfig(shortlist=str(tmp_path / "list")), runtime=CPU
    )
    with refuses(DamagedError, f"{tmp_path}/list {num_rows} {size} {path} 19"):
        load_translator([path], recipe, never_warn)
