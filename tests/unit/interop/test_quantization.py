"""A quantised export is compared with its float32 weights; CTranslate2 is a fake here."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import SearchConfig
from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.interop import ctranslate2
from nmtkit.interop.conversion import Quantization, export
from nmtkit.interop.parity import Pair, Peer, draw_pairs, own_scores
from nmtkit.interop.quantization import QUANTIZATIONS, read_trial
from nmtkit.storage.model_folder import LoadedModel, read_model
from nmtkit.text.codec import TextCodec
from nmtkit_cli.command_line import run
from nmtkit_cli.export import command as export_command
from tests.conversions import LINES, shared_codec, write_random_model
from tests.folders import names_in
from tests.messages import check_errors, refuses

COSTS = {"int8": 0.5, "float16": -0.25}
"""What the fake adds to the score of a pair; what it translates is a copy, in int8 reversed."""


def use_fake(monkeypatch: pytest.MonkeyPatch, difference: float = 0.0) -> list[SearchConfig]:
    """Replace the library; returns the searches that it is asked for."""
    searches: list[SearchConfig] = []

    def write(loaded: LoadedModel, folder: Path, quantization: str | None = None) -> None:
        (folder / "model.bin").write_bytes(b"x" * (500_000 if quantization else 2_000_000))
        (folder / "type").write_text(quantization or "float32", encoding="utf-8")
        own[folder] = loaded

    def open_peer(folder: Path, _codec: TextCodec) -> Peer:
        name = (folder / "type").read_text(encoding="utf-8")
        added = difference if name == "float32" else COSTS[name]

        def score(pairs: Sequence[Pair]) -> list[float]:
            return [score + added for score in own_scores(own[folder].model, pairs)]

        def translate(lines: Sequence[str], search: SearchConfig) -> list[str]:
            searches.append(search)
            return [" ".join(line.split()[::-1]) if name == "int8" else line for line in lines]

        return Peer("library 1.2", 2048, score, translate)

    own: dict[Path, LoadedModel] = {}
    monkeypatch.setattr(ctranslate2, "write", write)
    monkeypatch.setattr(ctranslate2, "open_peer", open_peer)
    return searches


def export_refused(model: Path, quantization: Quantization) -> None:
    """Export a model next to it; nothing may be reported."""
    export(model, "ctranslate2", model.parent / "out", False, pytest.fail, quantization)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_random_model(tmp_path / "own", shared_codec(), {})
    return tmp_path / "own"


@pytest.fixture
def test_set(tmp_path: Path) -> tuple[Path, Path]:
    """Return a text that is its own reference."""
    for name in ("test.en", "test.de"):
        text = "".join(f"{line}\n" for line in LINES)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / "test.en", tmp_path / "test.de"


def test_drawn_pairs_are_compared_per_token(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake(monkeypatch)
    lines: list[str] = []
    export(model, "ctranslate2", tmp_path / "out", False, lines.append, Quantization("int8"))
    parity, cost, exported = lines
    assert parity.startswith("library 1.2 scores 64 drawn pairs")
    found = re.fullmatch(
        r"int8: 0\.5 MB, in float32 2\.0 MB; log-probabilities per token of 64 drawn pairs differ "
        r"by (\S+) on average, (\S+) at most",
        cost,
    )
    assert found
    average, largest = map(float, found.groups())
    costs = [0.5 / len(pair.target_ids) for pair in draw_pairs(shared_codec(), 2048)]
    assert (average, largest) == pytest.approx((sum(costs) / len(costs), max(costs)), rel=0.05)
    assert exported.startswith("exported ")
    assert (tmp_path / "out" / "type").read_text(encoding="utf-8") == "int8"


@pytest.mark.parametrize(
    ("name", "bleu"), [("int8", r"BLEU \d+\.\d\d, in float32 100\.00 \(-\d+\.\d\d\)"),
                       ("float16", r"BLEU 100\.00, in float32 100\.00 \(\+0\.00\)")]
)  # fmt: skip
def test_a_test_set_is_scored_and_translated_with_the_search_of_the_recipe(
    name: str, bleu: str, model: Path, test_set: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = use_fake(monkeypatch)
    lines: list[str] = []
    out = model.parent / "out"
    export(model, "ctranslate2", out, False, lines.append, Quantization(name, test_set))
    assert f"per token of {len(LINES)} pairs of {test_set[0]} differ by" in lines[1]
    assert re.fullmatch(rf"{name}: {bleu}, {len(LINES)} lines with beam 4", lines[2])
    recipe = read_model(model, torch.device("cpu")).recipe
    assert searches == [recipe.search, recipe.search]


def test_a_conversion_that_is_wrong_in_float32_is_refused(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake(monkeypatch, difference=0.002)
    with refuses(DamagedError, "out", recorded=False):
        export_refused(model, Quantization("int8"))
    assert names_in(model.parent) == ["own"]


def test_pairs_that_cannot_be_scored_are_translated_only(tmp_path: Path) -> None:
    texts = {"a": ["a cat", "", "a dog", "the " * 40], "b": ["a cat", "a cat", "", "the " * 40]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    trial = read_trial((tmp_path / "a", tmp_path / "b"), shared_codec(), 30, SearchConfig())
    assert [pair.source for pair in trial.pairs] == ["a cat"]
    assert (len(trial.sources), len(trial.references)) == (4, 4)
    assert trial.text == f"1 pair of {tmp_path / 'a'}"


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (b"\n\n", "test.en 2,048"),
        (b"", "test.en test.de"),
        (b"a cat\n", "test.en test.de"),
        (b"\xff\n\n", "test.de:1; iconv"),
    ],
)
def test_a_bad_test_set_is_refused_and_nothing_is_written(
    lines: bytes, keys: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake(monkeypatch)
    source, reference = model.parent / "test.en", model.parent / "test.de"
    source.write_bytes(b"" if not lines else b"\n\n")
    reference.write_bytes(lines)
    with refuses(DataError, keys):
        export_refused(model, Quantization("int8", (source, reference)))
    assert names_in(model.parent) == ["own", "test.de", "test.en"]


def test_a_missing_test_set_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake(monkeypatch)
    files = (model.parent / "nothing", model.parent / "nothing")
    with refuses(ConfigError, "nothing"):
        export_refused(model, Quantization("int8", files))


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ("marian out --quantization int8", "--quantization"),
        ("ctranslate2 out --source a", "--source --reference"),
        ("ctranslate2 out --quantization int8 --reference a", "--source --reference"),
        ("ctranslate2 out --source a --reference a", "--source --reference"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: str, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "model", *arguments.split()]) == 2
    check_errors(capsys.readouterr().err, 2, keys)


def test_the_command_offers_every_quantization() -> None:
    (option,) = (one for one in export_command.params if one.name == "quantization")
    assert [*vars(option.type)["choices"]] == [*QUANTIZATIONS]
