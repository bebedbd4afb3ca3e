"""The cache of compiled steps: whose it is, what it is found by, what becomes of failures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.decoding import compiled_steps
from nmtkit.decoding.compiled_steps import MAX_FILES, cache_folder, compiled_step, step_key
from nmtkit.errors import ConfigError
from nmtkit.model.transformer import Transformer
from nmtkit.storage.model_folder import write_model
from tests.tiny import tiny_codec, tiny_model

FLOAT = torch.float32


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/nmtkit/compiled"


class FakeStep:
    """In place of loaded code; a file with the content "damaged" cannot be loaded."""

    def __init__(self, path: Path, num_tokens: int) -> None:
        self.content, self.num_tokens = path.read_text(encoding="utf-8"), num_tokens
        if self.content == "damaged":
            raise RuntimeError("cannot be loaded")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Replace the compiling process; return the command lines that it is started by."""
    started: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        started.append(command)
        Path(command[-1]).write_text("code", encoding="utf-8")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(compiled_steps, "CompiledStep", FakeStep)
    return started


def load(model: Transformer, said: list[str] | None = None) -> FakeStep | None:
    found = compiled_step(Path("model"), model, FLOAT, 4, (said if said is not None else []).append)
    assert found is None or isinstance(found, FakeStep)
    return found


def test_code_is_compiled_once(compilations: list[list[str]], cache: Path) -> None:
    model, said = tiny_model(tiny_codec()), list[str]()
    for _ in range(2):
        found = load(model, said)
        assert found is not None
        assert (found.content, found.num_tokens) == ("code", 4)
    assert len(compilations) == 1
    assert said == ["model: compiling the decoder, once for these weights; takes about a minute"]
    assert [path.stem for path in cache.iterdir()] == [step_key(model, FLOAT, 4)]


def test_damaged_code_is_replaced(compilations: list[list[str]], cache: Path) -> None:
    model = tiny_model(tiny_codec())
    load(model)
    (file,) = cache.iterdir()
    file.write_text("damaged", encoding="utf-8")
    found = load(model)
    assert found is not None
    assert found.content == "code"
    assert len(compilations) == 2


@pytest.mark.usefixtures("compilations")
def test_what_was_not_used_for_longest_is_deleted(cache: Path) -> None:
    first = tiny_model(tiny_codec())
    load(first)
    names = [f"{number:02}.pt2" for number in range(MAX_FILES)]
    for age, name in enumerate(names):
        (cache / name).write_text("code", encoding="utf-8")
        os.utime(cache / name, (1000.0 - age, 1000.0 - age))
    load(first)
    load(tiny_model(tiny_codec(), seed=2))
    left = {path.name for path in cache.iterdir()}
    assert len(left) == MAX_FILES
    assert left > {f"{step_key(first, FLOAT, 4)}.pt2", *names[: MAX_FILES - 2]}


def test_the_key_names_all_that_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = tiny_codec()
    model = tiny_model(codec)
    keys = [
        step_key(model, FLOAT, 4),
        step_key(model, torch.bfloat16, 4),
        step_key(model, FLOAT, 1),
        step_key(tiny_model(codec, seed=2), FLOAT, 4),
        step_key(tiny_model(codec, norm="pre"), FLOAT, 4),
    ]
    for name, value in (
        ("processor_instructions", lambda: "fpu"),
        ("processor_name", lambda: "other"),
        ("__version__", "0"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(compiled_steps, name, value)
            keys.append(step_key(model, FLOAT, 4))
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    keys.append(step_key(model, FLOAT, 4))
    torch.set_num_threads(threads)
    assert len(set(keys)) == len(keys)
    assert step_key(model, FLOAT, 4) == keys[0]


def test_the_cache_belongs_to_the_user_alone(cache: Path) -> None:
    before = os.umask(0)
    try:
        assert cache_folder() == cache
    finally:
        os.umask(before)
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_cache_that_others_can_write_to_is_not_used(cache: Path) -> None:
    cache_folder().chmod(0o770)
    with pytest.raises(ConfigError, match="others have access to this folder; delete it, or set"):
        cache_folder()
    said = list[str]()
    assert load(tiny_model(tiny_codec()), said) is None
    assert said[0].startswith(f"not compiled: {cache}: ")
    assert said[0].endswith("; translation continues without --compile")


def test_a_relative_cache_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache/nmtkit/compiled"


def test_a_model_that_changes_meanwhile_is_not_compiled(tmp_path: Path) -> None:
    codec = tiny_codec()
    model = tiny_model(codec)
    recipe = TrainRecipe(model=model.config)
    write_model(tmp_path / "model", model.state_dict(), recipe, codec, {}, overwrite=False)
    said = list[str]()
    other = tiny_model(codec, seed=2)
    assert compiled_step(tmp_path / "model", other, FLOAT, 1, said.append) is None
    assert said[-1] == (
        f"not compiled: {tmp_path / 'model'}: it has changed since it was loaded; start again; "
        "translation continues without --compile"
    )


def test_a_compiling_process_that_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, -9, b"")

    monkeypatch.setattr(subprocess, "run", die)
    said = list[str]()
    assert load(tiny_model(tiny_codec()), said) is None
    assert said[-1] == (
        "not compiled: the compiling process ended (-9); translation continues without --compile"
    )


def test_torch_s_compiler_is_not_imported() -> None:
    """It takes a second; only the compiling process needs it."""
    code = "import sys, nmtkit.decoding.loading; print('torch._inductor.compile_fx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"False\n"
