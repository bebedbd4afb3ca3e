"""The cache of compiled steps: owner, keys, failures; a double compiles."""

import fcntl
import os
from pathlib import Path

import pytest
import torch

from nmtkit.decoding import code_cache
from nmtkit.decoding.code_cache import MAX_FOLDERS, load_or_compile, step_key
from nmtkit.model.transformer import Transformer
from nmtkit.runtime.environment import cache_folder
from tests.tiny import tiny_codec, tiny_model

FLOAT = torch.float32


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/nmtkit/compiled"


class FakeStep:
    """In place of loaded code."""

    def __init__(self, path: Path, width: int) -> None:
        self.content, self.width = path.read_text(encoding="utf-8"), width


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace the compiler; return the files that it was to write."""
    written: list[Path] = []

    def compile_step(_: Transformer, _dtype: torch.dtype, _width: int, path: Path) -> None:
        path.write_text("code", encoding="utf-8")
        written.append(path)

    monkeypatch.setattr(code_cache, "compile_step", compile_step)
    monkeypatch.setattr(code_cache, "CompiledStep", FakeStep)
    return written


def load(model: Transformer, said: list[str]) -> FakeStep | None:
    found = load_or_compile(Path("model"), model, FLOAT, 4, said.append, said.append)
    assert found is None or isinstance(found, FakeStep)
    return found


def test_code_is_compiled_once(compiled: list[Path], cache: Path) -> None:
    model, said = tiny_model(tiny_codec()), list[str]()
    for _ in range(2):
        found = load(model, said)
        assert found is not None
        assert (found.content, found.width) == ("code", 4)
    assert len(compiled) == 1
    assert said == ["model: compiling the decoder, once for these weights"]
    assert [path.name for path in cache.iterdir()] == [step_key(model, FLOAT, 4)]


@pytest.mark.parametrize("damaged", ["cod", "cods"])
def test_damaged_code_is_compiled_again(damaged: str, compiled: list[Path], cache: Path) -> None:
    model = tiny_model(tiny_codec())
    load(model, [])
    code = cache / step_key(model, FLOAT, 4) / code_cache.CODE
    code.write_text(damaged, encoding="utf-8")
    found = load(model, [])
    assert found is not None
    assert found.content == "code"
    assert len(compiled) == 2


@pytest.mark.usefixtures("compiled")
def test_code_that_cannot_be_loaded_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary folder may be full."""

    def fail(*_: object) -> None:
        raise RuntimeError("no space")

    model, said = tiny_model(tiny_codec()), list[str]()
    load(model, [])
    monkeypatch.setattr(code_cache, "CompiledStep", fail)
    assert load(model, said) is None
    assert said[0].startswith("model: not compiled: no space; translation continues without ")
    assert len([*cache.iterdir()]) == 1


@pytest.mark.usefixtures("compiled")
def test_code_that_another_process_compiles_is_not_waited_for(cache: Path) -> None:
    model, said = tiny_model(tiny_codec()), list[str]()
    cache_folder("compiled")
    lock = cache / f".{step_key(model, FLOAT, 4)}.nmtkit-lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert load(model, said) is None
    assert len(said) == 1
    assert "in use by" in said[0]
    assert load(model, said) is not None


@pytest.mark.usefixtures("compiled")
def test_what_was_not_used_for_longest_is_deleted(cache: Path) -> None:
    first = tiny_model(tiny_codec())
    load(first, [])
    names = [f"{number:02}" for number in range(MAX_FOLDERS)]
    for age, name in enumerate(names):
        (cache / name).mkdir()
        os.utime(cache / name, (1000.0 - age, 1000.0 - age))
    load(first, [])
    second = tiny_model(tiny_codec(), seed=2)
    load(second, [])
    left = {path.name for path in cache.iterdir()}
    kept = {step_key(one, FLOAT, 4) for one in (first, second)}
    assert left == {*kept, *names[: MAX_FOLDERS - 2]}


def test_keys_differ_by_weights_settings_versions_and_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
        ("VERSION", 0),
        ("OPTIONS", {}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(code_cache, name, value)
            keys.append(step_key(model, FLOAT, 4))
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        keys.append(step_key(model, FLOAT, 4))
    finally:
        torch.set_num_threads(threads)
    assert len(set(keys)) == len(keys)
    assert step_key(model, FLOAT, 4) == keys[0]


def test_without_a_cache_of_the_user_nothing_is_compiled(cache: Path) -> None:
    cache_folder("compiled").chmod(0o702)
    said = list[str]()
    assert load(tiny_model(tiny_codec()), said) is None
    assert said[0].startswith(f"model: not compiled: {cache}: compiled code is kept where only ")
