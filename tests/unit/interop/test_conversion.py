"""What export and import write, report and refuse to write; the library is a fake."""

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.config.model import ModelConfig
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.interop import ctranslate2, marian
from nmtkit.interop.conversion import FORMATS, describe_exports, export, import_marian
from nmtkit.interop.marian_reading import read
from nmtkit.interop.parity import NUM_POSITIONS, Pair, Peer, own_scores
from nmtkit.storage.manifest import load
from nmtkit.storage.model_folder import LoadedModel, read_model
from nmtkit.text.codec import TextCodec
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword
from nmtkit_cli.command_line import run
from nmtkit_cli.export import command as export_command
from tests.conversions import (
    LINES,
    scores,
    shared_codec,
    write_marian,
    write_random_model,
)
from tests.folders import names_in
from tests.messages import check_errors, refuses


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a folder that holds the same model as `own` and as `marian`."""
    loaded = write_random_model(tmp_path / "own", shared_codec(), {"activation": "silu"})
    write_marian(loaded, tmp_path / "marian")
    return tmp_path


@pytest.fixture
def reported() -> list[str]:
    return []


def use_peer(monkeypatch: pytest.MonkeyPatch, difference: float) -> None:
    """Replace the library by our own reader; its scores differ by `difference`."""

    def open_peer(folder: Path, codec: TextCodec) -> Peer:
        peer = read(folder)
        assert peer.codec.source.size == codec.source.size

        def score(pairs: Sequence[Pair]) -> list[float]:
            return [score + difference for score in own_scores(peer.model, pairs)]

        return Peer("library 1.2", NUM_POSITIONS, score)

    monkeypatch.setattr(marian, "open_peer", open_peer)


def test_an_exported_model_appears_whole(
    models: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_peer(monkeypatch, 5e-4)
    export(models / "own", "marian", models / "out", overwrite=False, report=reported.append)
    assert scores(read(models / "out"), shared_codec()) == scores(
        read(models / "marian"), shared_codec()
    )
    assert names_in(models / "out") == sorted([*names_in(models / "marian"), "manifest.json"])
    manifest = load(models / "out")
    assert manifest["format"] == "nmtkit-export-marian"
    weights = hashlib.sha256((models / "own" / "model.safetensors").read_bytes()).hexdigest()
    own = {"name": "own", "update": 0, "sha256": weights, "languages": "en-de"}
    assert manifest["provenance"] == {"parents": [own]}
    first, second = reported
    assert first.startswith("library 1.2 scores 64 drawn pairs of sentences as nmtkit does")
    assert "difference is 5.0e-04" in first
    assert second == f"exported {models / 'own'} to {models / 'out'}"


def test_an_export_says_that_other_libraries_do_not_read_the_whole_target(
    tmp_path: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        **{"alignment_layer": 1, "full_context_alignment": True},
        **{"guided_alignment_weight": 0.05, "activation": "silu"},
    }
    write_random_model(tmp_path / "own", shared_codec(), settings)
    use_peer(monkeypatch, 0.0)
    export(tmp_path / "own", "marian", tmp_path / "out", overwrite=False, report=reported.append)
    assert ["whole target" in line for line in reported] == [False, True, False]


def test_an_export_has_the_language_symbols_and_says_what_they_need(
    tmp_path: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = Subword.train(LINES, "bpe", 290, "x", ("<2de>", "<2nl>"))
    codec = TextCodec("en", "mul", words, words, is_shared=True)
    codec = codec.with_directions(["en-de", "en-nl"], has_source_symbols=False)
    own, out, again = (tmp_path / name for name in ("own", "out", "again"))
    write_random_model(own, codec, {"activation": "silu"})
    use_peer(monkeypatch, 0.0)
    export(own, "marian", out, overwrite=False, report=reported.append)
    assert ["<2de>" in line for line in reported] == [False, True, False]
    source = read(out).codec.source
    for line in ("<2nl> the cat", "<2de> dogs"):
        pieces = [[one.piece(i) for i in one.encode(line)] for one in (source, words)]
        assert pieces[0] == pieces[1]
        assert line.startswith(pieces[0][0].strip("\u2581"))
    entries = [*map(source.piece, range(source.size)), ">>fra<<"]
    imported = MarianVocabulary(words.data, entries, "x")
    codec = TextCodec("en", "fr", imported, imported, is_shared=True)
    write_random_model(again, codec, {"activation": "silu"})
    reported.clear()
    export(again, "marian", tmp_path / "other", overwrite=False, report=reported.append)
    assert [">>fra<<" in line for line in reported] == [False, True, False]


@pytest.mark.parametrize("num_marks", [0, 2])
def test_an_export_says_that_only_nmtkit_guarantees_marks(
    num_marks: int, tmp_path: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = Subword.train(LINES, "bpe", 290, "x")
    codec = TextCodec("en", "de", words, words, is_shared=True)
    codec = codec.with_marks(num_marks) if num_marks else codec
    write_random_model(tmp_path / "own", codec, {"activation": "silu"})
    use_peer(monkeypatch, 0.0)
    export(tmp_path / "own", "marian", tmp_path / "out", overwrite=False, report=reported.append)
    assert any("have marks" in line for line in reported) == bool(num_marks)


@pytest.mark.parametrize("difference", [0.0, 2e-3])
def test_a_model_is_quantised_once_its_scores_in_float32_are_equal(
    difference: float, models: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = read_model(models / "own", torch.device("cpu"))

    def write(_: LoadedModel, folder: Path, quantization: str = "float32") -> None:
        (folder / "type").write_text(quantization, "utf-8")

    def open_peer(folder: Path, _: TextCodec) -> Peer:
        added = {"float32": difference, "int8": 0.5}[(folder / "type").read_text("utf-8")]

        def score(pairs: Sequence[Pair]) -> list[float]:
            return [score + added for score in own_scores(loaded.model, pairs)]

        return Peer("library 1.2", NUM_POSITIONS, score)

    monkeypatch.setattr(ctranslate2, "write", write)
    monkeypatch.setattr(ctranslate2, "open_peer", open_peer)
    out = models / "out"
    if difference:
        with refuses(DamagedError, f"{out} library nmtkit; version library", recorded=False):
            export(models / "own", "ctranslate2", out, False, reported.append, "int8")
        assert (names_in(models), reported) == (["marian", "own"], [])
        return
    export(models / "own", "ctranslate2", out, False, reported.append, "int8")
    assert [line.split()[0] for line in reported] == ["library", "int8:", "exported"]
    assert (out / "type").read_text("utf-8") == "int8"


def test_quantisation_of_another_format_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "model", "marian", "out", "--quantization", "int8"]) == 2
    check_errors(capsys.readouterr().err, 2, "--quantization marian; out")


def test_an_imported_model_is_a_model(
    models: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_peer(monkeypatch, 5e-4)
    import_marian(models / "marian", models / "out", overwrite=False, report=reported.append)
    loaded = read_model(models / "out", torch.device("cpu"))
    assert scores(loaded, shared_codec()) == scores(read(models / "marian"), shared_codec())
    assert loaded.manifest["provenance"]["imported"] == "marian"
    assert loaded.manifest["provenance"]["name"] == "marian"
    assert loaded.manifest["provenance"]["languages"] == "en-de"
    assert "difference is 5.0e-04" in reported[0]
    assert reported[1] == f"imported {models / 'marian'} to {models / 'out'}"


Conversion = Callable[[Path, Path, bool, Callable[[str], None]], None]


def export_own(folder: Path, out: Path, overwrite: bool, report: Callable[[str], None]) -> None:
    export(folder / "own", "marian", out, overwrite, report)


def import_own(folder: Path, out: Path, overwrite: bool, report: Callable[[str], None]) -> None:
    import_marian(folder / "marian", out, overwrite, report)


@pytest.mark.parametrize("convert", [export_own, import_own])
def test_a_mismatch_leaves_nothing_behind(
    convert: Conversion, models: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_peer(monkeypatch, 2e-3)
    with refuses(DamagedError, "out", recorded=False):
        convert(models, models / "out", False, reported.append)
    assert names_in(models) == ["marian", "own"]
    assert reported == []


@pytest.mark.parametrize(
    ("format", "library", "extra"),
    [
        ("marian", "transformers", "huggingface"),
        ("ctranslate2", "ctranslate2", "ctranslate2"),
    ],
)
def test_a_missing_library_leaves_nothing_behind(
    format: str, library: str, extra: str, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with refuses(ConfigError, f"{library}; pip install nmtkit[{extra}]"):
        export(models / "own", format, models / "out", overwrite=False, report=print)
    assert names_in(models) == ["marian", "own"]


@pytest.mark.parametrize("format", ["marian", "ctranslate2"])
def test_all_that_a_format_cannot_hold_is_reported_together(format: str, tmp_path: Path) -> None:
    write_random_model(tmp_path / "own", shared_codec(), {"key_size": 3, "value_size": 5})
    with refuses(ConfigError, f"own {format}; key_size 3 heads 8 model.key_size value_size 5"):
        export(tmp_path / "own", format, tmp_path / "out", overwrite=False, report=print)


def test_a_folder_of_another_format_is_not_replaced(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_peer(monkeypatch, 0.0)
    export(models / "own", "marian", models / "out", overwrite=False, report=print)
    export(models / "own", "marian", models / "out", overwrite=True, report=print)
    with refuses(ConfigError, "out; --overwrite"):
        export(models / "own", "marian", models / "out", overwrite=False, report=print)
    with refuses(ConfigError, "out nmtkit-export-ctranslate2 --overwrite"):
        export(models / "own", "ctranslate2", models / "out", overwrite=True, report=print)
    with refuses(ConfigError, "out nmtkit-model --overwrite"):
        import_marian(models / "marian", models / "out", overwrite=True, report=print)


@pytest.mark.parametrize("convert", [export_own, import_own])
def test_an_existing_output_is_reported_before_anything_is_read(
    convert: Conversion, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    with refuses(ConfigError, "out; --overwrite"):
        convert(tmp_path / "nowhere", tmp_path / "out", False, print)


def test_a_folder_that_does_not_exist_is_not_imported(tmp_path: Path) -> None:
    with refuses(ConfigError, "absent"):
        import_marian(tmp_path / "absent", tmp_path / "out", False, pytest.fail)


def test_the_command_offers_every_format_and_refuses_others(tmp_path: Path) -> None:
    with refuses(ConfigError, f"'onnx'; {' '.join(FORMATS)}"):
        export(tmp_path / "model", "onnx", tmp_path / "out", False, pytest.fail)
    for message in (export_command.help, export_command.epilog):
        assert message
        assert all(re.search(rf"\b{name}\b", message) for name in FORMATS)


def test_an_imported_model_is_exported_unchanged(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_peer(monkeypatch, 0.0)
    import_marian(models / "marian", models / "own2", overwrite=False, report=print)
    export(models / "own2", "marian", models / "again", overwrite=False, report=print)
    for name in names_in(models / "marian"):
        assert (models / "again" / name).read_bytes() == (models / "marian" / name).read_bytes()


@pytest.mark.parametrize(
    ("settings", "codec", "expected"),
    [
        ({}, shared_codec(), "exports to: ctranslate2, marian"),
        (
            {"norm": "pre"},
            shared_codec(),
            "exports to: ctranslate2; not to marian: norm (pre) must be post [model.norm]",
        ),
        (
            {"window": 8},
            shared_codec(),
            "exports to: no other library; not to ctranslate2: window (8) must be 0 "
            "[model.window]; not to marian: window (8) must be 0 [model.window]",
        ),
    ],
)
def test_the_formats_of_a_model_are_those_that_export_accepts(
    settings: dict[str, Any], codec: TextCodec, expected: str
) -> None:
    assert describe_exports(ModelConfig(**settings), codec) == expected
