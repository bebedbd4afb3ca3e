"""`nmtkit translate --compile on` with torch's compiler."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import nmtkit
from nmtkit.config.schema import TrainRecipe
from nmtkit.decoding import code_cache
from nmtkit.decoding.code_cache import compile_step
from nmtkit.model.compiled_step import CompiledStep
from nmtkit.model.state import ENTRY_BLOCK
from nmtkit.storage.model_folder import write_model
from tests import commands
from tests.commands import nmtkit_in_text
from tests.compilers import needs_compiler
from tests.launching import children
from tests.messages import refused
from tests.tiny import TRAIN_LINES, tiny_codec, tiny_model
from tests.unit.model.test_compiled_step import NUM_TOKENS, assert_rows_are_equal
from tests.unit.model.test_transformer import SHAPES, make

COMPILING_S = 800
FLOAT = torch.float32
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


def command_of(model: Path, *options: object) -> tuple[object, ...]:
    settings = ("--stream", "--beam", 3, "--threads", 1, "--device", "cpu")
    return ("translate", model, *settings, *options)


@pytest.mark.thorough
@needs_compiler
def test_lines_are_translated_by_compiled_code(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    before = sorted(model.rglob("*"))
    expected = nmtkit_in_text(*command_of(model), stdin=TEXT)
    for talk in (f"{model}: compiling the decoder, once for these weights\n", ""):
        done = nmtkit_in_text(*command_of(model, "--compile", "on"), stdin=TEXT)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, talk)
    assert sorted(model.rglob("*")) == before
    assert len([*(tmp_path / "cache/nmtkit/compiled").iterdir()]) == 1
    assert not [*temporary.iterdir()]


# torch's compiler makes use of what torch itself warns of.
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@needs_compiler
def test_compiled_code_computes_the_steps_of_the_model(tmp_path: Path) -> None:
    config = replace(SHAPES["unequal sizes"], norm="pre", decoder_layers=1)
    file = tmp_path / "step.pt2"
    compile_step(make(config, FLOAT), FLOAT, NUM_TOKENS, file)
    plain, other = (make(config, FLOAT) for _ in range(2))
    for one in (plain, other):
        one.prepare(FLOAT)
    other.compiled_step = CompiledStep(file, NUM_TOKENS)
    assert_rows_are_equal(plain, other, ENTRY_BLOCK)


def test_without_a_compiler_translation_goes_on(model: Path) -> None:
    expected = nmtkit_in_text(*command_of(model), stdin=TEXT)
    with torch._inductor.config.patch({"cpp.cxx": (None, "/nonexistent")}):
        done = nmtkit_in_text(*command_of(model, "--compile", "on"), stdin=TEXT)
    assert (done.returncode, done.stdout) == (0, expected.stdout)
    *_, said = done.stderr.splitlines()
    assert said.startswith(f"nmtkit: warning: {model}: not compiled: ")
    assert "/nonexistent" in said
    assert "continues without --compile" in said


def test_the_python_api_warns_where_it_cannot_compile(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(code_cache, "compile_step", fail)
    with pytest.warns(UserWarning, match="not compiled: no compiler; .*without --compile"):
        translator = nmtkit.load(
            model,
            translation=nmtkit.TranslationConfig(compile="on"),
            runtime=nmtkit.RuntimeConfig(device="cpu"),
        )
    assert len(translator.translate(TRAIN_LINES)) == len(TRAIN_LINES)


def test_several_processes_do_not_compile(model: Path) -> None:
    done = nmtkit_in_text("translate", model, "--compile", "on", "--devices", 2, stdin=TEXT)
    refused(done, 2, "compile on; --compile --devices translation.compile")


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("delay_s", [0.5, 8])
def test_an_interrupt_ends_the_compiler(delay_s: float, model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nmtkit_cli", *map(str, command_of(model, "--compile", "on"))]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    assert b"compiling the decoder" in process.stderr.readline()
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=COMPILING_S)
    assert process.returncode == 130
    assert talk.decode().splitlines() == ["nmtkit: interrupted"]
    assert not any(children(process.pid))
    left = [path.name for path in (tmp_path / "cache/nmtkit/compiled").iterdir()]
    assert not left, left
