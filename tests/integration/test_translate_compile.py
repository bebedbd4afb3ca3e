"""`nmtkit translate --compile on` as its users call it, with torch's compiler."""

from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.storage.model_folder import write_model
from tests import commands
from tests.commands import nmtkit_in_text
from tests.compilers import needs_compiler
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model

COMPILING_S = 300
TEXT = "".join(f"{line}\n" for line in TRAIN_LINES)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(commands, "DEADLINE_S", COMPILING_S)
    codec = tiny_codec()
    made = tiny_model(codec, decoder_layers=1)
    recipe = TrainRecipe(model=made.config)
    write_model(tmp_path / "model", made.state_dict(), recipe, codec, {}, overwrite=False)
    return tmp_path / "model"


@needs_compiler
def test_lines_are_translated_by_compiled_code(model: Path, tmp_path: Path) -> None:
    before = sorted(model.rglob("*"))
    command = ("translate", model, "--stream", "--beam", 3, "--threads", 1, "--device", "cpu")
    expected = nmtkit_in_text(*command, stdin=TEXT)
    for is_first in (True, False):
        done = nmtkit_in_text(*command, "--compile", "on", stdin=TEXT)
        assert (done.returncode, done.stdout) == (0, expected.stdout)
        assert ("compiling the decoder, once" in done.stderr) == is_first, done.stderr
        assert len(done.stderr.splitlines()) == is_first, done.stderr
    assert sorted(model.rglob("*")) == before
    assert len([*(tmp_path / "cache/nmtkit/compiled").iterdir()]) == 1


def test_without_a_compiler_translation_says_so_and_goes_on(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nonexistent")
    command = ("translate", model, "--stream", "--beam", 2, "--threads", 1, "--device", "cpu")
    expected = nmtkit_in_text(*command, stdin=TEXT)
    done = nmtkit_in_text(*command, "--compile", "on", stdin=TEXT)
    assert (done.returncode, done.stdout) == (0, expected.stdout)
    first, second = done.stderr.splitlines()
    assert "compiling the decoder" in first
    assert second.startswith("nmtkit: warning: not compiled: ")
    assert second.endswith("; translation continues without --compile")


def test_several_processes_do_not_compile(model: Path) -> None:
    done = nmtkit_in_text("translate", model, "--compile", "on", "--devices", 2, stdin=TEXT)
    assert done.returncode == 2
    assert done.stderr == (
        "nmtkit: error: compile ('on') is for one process, which translates line by line; leave "
        "out --compile or --devices [translation.compile]\n"
    )
