"""Scorers and translators that are loaded compute the same, in the given precision."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import (
    RuntimeConfig,
    ScoringConfig,
    SearchConfig,
    TrainRecipe,
    TranslateRecipe,
)
from nmtkit.config.translation import OutputConfig, SamplingConfig, TranslationConfig
from nmtkit.decoding import loading
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.loading import load_scorer, load_translator
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer
from nmtkit.storage.model_folder import write_model
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, never_warn, tiny_codec, tiny_model

CPU = RuntimeConfig(device="cpu")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    codec = tiny_codec()
    made = tiny_model(codec)
    recipe = TrainRecipe(model=made.config)
    write_model(tmp_path / "model", made.state_dict(), recipe, codec, {}, overwrite=False)
    return tmp_path / "model"


def scores_of(path: Path, pairs: list[tuple[str, str]], precision: str) -> list[float]:
    scorer = load_scorer(path, ScoringConfig(precision=precision), CPU)
    return [line.log_prob for line in scorer.score_chunk(pairs, 1)]


# bfloat16 has 8 bits, and search and scorer add products up in another order.
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("bfloat16", 0.25)])
def test_scores_are_those_of_the_search_in_the_same_precision(
    path: Path, precision: str, tolerance: float
) -> None:
    recipe = TranslateRecipe(
        output=OutputConfig(output_format="json"),
        translation=TranslationConfig(precision=precision),
        runtime=CPU,
    )
    translator = load_translator([path], recipe, lambda _: None)
    answers = translator.answer([Request(line) for line in TRAIN_LINES], 1)
    found = [answer.translations[0] for answer in answers]
    pairs = [(line, one.text) for line, one in zip(TRAIN_LINES, found, strict=True)]
    expected = [one.log_prob for one in found]
    assert scores_of(path, pairs, precision) == pytest.approx(expected, abs=tolerance)


def test_scores_are_computed_in_the_given_precision(path: Path) -> None:
    pairs = [(line, line.upper()) for line in TRAIN_LINES]
    exact, coarse = (scores_of(path, pairs, name) for name in ("float32", "bfloat16"))
    assert scores_of(path, pairs, "auto") == exact
    differences = [abs(one - other) for one, other in zip(exact, coarse, strict=True)]
    assert 1e-4 < max(differences) < 0.5


COMPILED = TranslationConfig(compile="on")
DRAFTED = TranslationConfig(compile="on", draft="MODEL", draft_tokens=3)


@pytest.mark.parametrize(
    ("recipe", "num_models", "sizes"),
    [
        (TranslateRecipe(translation=COMPILED, search=SearchConfig(beam=3)), 1, [3]),
        (TranslateRecipe(translation=COMPILED, search=SearchConfig(beam=2)), 2, [2, 2]),
        (TranslateRecipe(translation=DRAFTED, search=SearchConfig(beam=1)), 1, [4, 1]),
        (
            TranslateRecipe(
                translation=COMPILED,
                sampling=SamplingConfig(sample=True),
                output=OutputConfig(n_best=5, output_format="json"),
            ),
            1,
            [5],
        ),
    ],
)
def test_steps_are_compiled_for_the_tokens_that_they_read(
    recipe: TranslateRecipe,
    num_models: int,
    sizes: list[int],
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[int] = []

    def compile_nothing(_: Path, model: Transformer, dtype: torch.dtype, *rest: object) -> None:
        assert model.prepared_output is None
        assert dtype == torch.float32
        assert isinstance(rest[0], int)
        compiled.append(rest[0])

    monkeypatch.setattr(loading, "load_or_compile", compile_nothing)
    config = recipe.translation
    config = replace(config, draft=str(path)) if config.draft else config
    recipe = replace(recipe, translation=config, runtime=CPU)
    load_translator([path] * num_models, recipe, never_warn)
    assert compiled == sizes


def test_compiling_is_refused_on_a_gpu(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "set_up", lambda _: torch.device("cuda"))
    with refuses(ConfigError, "compile on CPUs; --device --compile"):
        load_translator([path], TranslateRecipe(translation=COMPILED), never_warn)
