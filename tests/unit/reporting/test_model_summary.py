"""A model in numbers, as lines and as JSON."""

import json

import pytest

from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.model.cost import Workload, training_operations
from nmtkit.reporting.model_summary import ModelSummary, summarize_model, summary_lines
from nmtkit.storage.json_data import encode


def of_preset(name: str, vocab_size: int = 37_000) -> ModelSummary:
    return summarize_model(build(TrainRecipe, PRESETS[name]), vocab_size)


def values_of(found: ModelSummary) -> dict[str, str]:
    return {line[:14].strip(): line[15:] for line in found.lines()}


def test_the_summary_of_base() -> None:
    lines = values_of(of_preset("base"))
    assert lines["shape"] == (
        "6+6 layers, d_model 512, d_ff 2048, 8 heads, d_k 64, d_v 64, post-norm, "
        "sinusoidal positions, relu"
    )
    assert lines["parameters"] == "63,082,496, with 37,000 entries"
    parts = (lines[part].split(",", 3)[:3] for part in ("embeddings", "encoder", "decoder"))
    assert sum(int("".join(part)) for part in parts) == 63_082_496
    assert lines["disk"].startswith("252 MB per checkpoint, 505 MB more for the training state of ")
    assert lines["memory"].startswith("1.01 GB for weights, ")  # 16 bytes each


def test_ema_adds_to_the_training_state() -> None:
    averaged = summarize_model(build(TrainRecipe, {"ema_decay": 0.9}), 37_000)
    assert averaged.state_bytes == 3 * averaged.checkpoint_bytes


def test_json_has_the_figures_of_the_lines_unrounded() -> None:
    found = of_preset("base")
    values = json.loads(json.dumps(encode(found.to_json())))
    assert values["parameters"]["total"] == 63_082_496
    assert values["parameters"]["embeddings"] == 37_000 * 512
    assert values["checkpoint_bytes"] == 4 * 63_082_496
    assert values["state_bytes"] == 2 * values["checkpoint_bytes"]
    a_pair = sum(
        values["operations"][side]["training"] for side in ("source_token", "target_token")
    )
    length = values["sentence_tokens"]
    work = Workload(length, length, length, length)
    whole = training_operations(found.recipe.model, 37_000, work)
    assert a_pair * length == pytest.approx(whole)
    assert values["model"]["heads"] == 8
    per_token = values["bytes_per_token"]
    assert per_token["bfloat16"]["kept"] < per_token["float32"]["kept"]
    assert per_token["float32"]["recomputed"] < per_token["float32"]["kept"]
    largest = values["largest_update_tokens"]["float32"]
    assert 0 < largest["kept"]["24"] < largest["recomputed"]["24"] < largest["recomputed"]["80"]


def test_the_largest_update_is_rounded_to_two_digits() -> None:
    found = of_preset("big")
    tokens = found.memory["float32"]["kept"].largest_update(24e9)
    assert 10_000 < tokens < 100_000
    assert f"; updates of at most {tokens // 1000},000 in 24 GB, " in values_of(found)["float32"]


def test_the_paper_s_parameters_are_printed_on_request() -> None:
    base = build(TrainRecipe, PRESETS["base"])
    alone = list(summary_lines(base, 37_000, with_paper=False, as_json=False))
    *lines, paper = summary_lines(base, 37_000, with_paper=True, as_json=False)
    assert lines == alone == list(of_preset("base").lines())
    assert paper.startswith("the paper      65 million parameters, which needs 40,745 entries; ")
    (of_model,), (of_both,) = (
        summary_lines(base, 37_000, with_paper=with_paper, as_json=True)
        for with_paper in (False, True)
    )
    added = {"paper_millions": 65, "paper_vocab_size": 40_745}
    assert json.loads(of_both) == json.loads(of_model) | added
    assert json.loads(of_model).keys().isdisjoint(added)
