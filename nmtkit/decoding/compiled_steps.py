"""Compiled decoder steps in the user's cache; `nmtkit.model.compiled_step` makes and runs them.

A process of its own compiles the code of a model: torch's compiler needs memory, and writes to the
standard streams. The code is for these weights, and for this torch, processor and number of
threads. To load it is to execute it. So it is kept in a folder that belongs to the user alone, and
never read from a model's folder.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.export import Dim, export

from nmtkit.errors import ConfigError, NmtkitError, ResourceError
from nmtkit.model.compiled_step import CompiledStep, StepFunction
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.runtime.parent_process import end_with_parent
from nmtkit.runtime.processor import processor_instructions, processor_name
from nmtkit.storage.durable import make_folder, remove, replace_file
from nmtkit.storage.model_folder import load_model
from nmtkit.symbols import EOS_ID
from nmtkit.version import __version__

MAX_FILES = 16
"""Files in the cache; each is as large as the weights of a decoder."""

SUFFIX = ".pt2"

OPTIONS = {
    "freezing": True,  # weights are constants, in the layout of their product
    # Products of few rows by torch's own templates, where these are faster than libraries.
    "max_autotune": True,
    "max_autotune_gemm_backends": "CPP,ATEN",
}
"""Settings of torch's compiler."""

EXAMPLE_LENGTH = 20
"""Source tokens of the step with which the code is made."""


def compiled_step(
    path: Path,
    model: Transformer,
    dtype: torch.dtype,
    num_tokens: int,
    warn: Callable[[str], None],
) -> CompiledStep | None:
    """Return the code of a model's steps, from the cache or compiled now.

    Args:
        path: of the model.
        model: its weights, on a CPU.
        dtype: of matrix products.
        num_tokens: tokens of a step; see `CompiledStep`.
        warn: takes a line before the code is compiled, and the reason if that fails.

    Returns:
        The code; None if it cannot be compiled or loaded.
    """
    try:
        file = cache_folder() / f"{step_key(model, dtype, num_tokens)}{SUFFIX}"
        if file.exists():
            file.touch()  # it is used: others are deleted first
            with suppress(RuntimeError):  # damaged: it is replaced
                return CompiledStep(file, num_tokens)
        warn(f"{path}: compiling the decoder, once for these weights; takes about a minute")
        _compile(path, dtype, num_tokens, file)
        return CompiledStep(file, num_tokens)
    except (NmtkitError, RuntimeError, OSError) as error:
        warn(f"not compiled: {_one_line(error)}; translation continues without --compile")
        return None


def cache_folder() -> Path:
    """Return the folder of compiled code, in $XDG_CACHE_HOME or ~/.cache; make it if missing.

    Raises:
        ConfigError: it belongs to another user, or others may write to it.
        ResourceError: it cannot be made.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = (base if base.is_absolute() else Path.home() / ".cache") / "nmtkit" / "compiled"
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ConfigError(
            f"{folder}: compiled code is kept where only you can write, and others have access to "
            "this folder; delete it, or set XDG_CACHE_HOME to a folder of your own"
        )
    return folder


def step_key(model: Transformer, dtype: torch.dtype, num_tokens: int) -> str:
    """Return the hash of all that the code depends on."""
    processor = processor_name(), processor_instructions()
    versions = __version__, torch.__version__, sys.version
    code = hashlib.sha256()
    code.update(repr((versions, processor, torch.get_num_threads())).encode())
    code.update(repr((dtype, num_tokens, model.config)).encode())
    for name, parameter in model.named_parameters():
        if name.startswith("decoder"):
            code.update(name.encode())
            code.update(parameter.detach().contiguous().numpy().data)
    return code.hexdigest()


def compile_step(model: Transformer, dtype: torch.dtype, num_tokens: int, path: Path) -> None:
    """Compile the decoder's layers for steps of one sentence; takes about a minute.

    Args:
        model: on a CPU, in evaluation mode; it cannot be used for anything else afterwards.
        dtype: of matrix products.
        num_tokens: T.
        path: file to write, with the suffix .pt2.

    Raises:
        RuntimeError, OSError, SubprocessError: there is no C++ compiler, or torch cannot compile
            the code.
    """
    example_source = pack_sequences([[EOS_ID] * EXAMPLE_LENGTH], torch.device("cpu"))
    with torch.no_grad():
        state = model.start(model.encode(example_source))
        state.expand(num_tokens)
        state.begin_step(num_tokens)
        x = torch.zeros(1, num_tokens, model.config.model_size)
        entries, positions = Dim("entries", min=2), Dim("positions", min=2)
        layers = len(model.decoder)
        of_entries, of_positions = {2: entries}, {2: positions}
        sizes = (
            *(None, of_entries, of_positions),
            *([of_entries] * layers, [of_entries] * layers),
            *([of_positions] * layers, [{1: positions}] * layers),
        )
        function = StepFunction(model.decoder, model.decoder_norm, dtype)
        arguments = (x, state.step_tensors())
        exported = export(function, arguments, dynamic_shapes=(None, sizes), strict=False)
        torch._inductor.aoti_compile_and_package(
            exported, package_path=str(path), inductor_configs=OPTIONS
        )


def _compile(path: Path, dtype: torch.dtype, num_tokens: int, file: Path) -> None:
    """Compile the code in another process, and store it in a file of the cache.

    Raises:
        ResourceError: it cannot be compiled, or the cache cannot be written to.
    """
    with TemporaryDirectory() as scratch:
        package = Path(scratch) / file.name
        threads = torch.get_num_threads()
        arguments = path, str(dtype).removeprefix("torch."), num_tokens, threads, package
        # Not a `Worker`: that would run the script of a user of the Python API again.
        command = [sys.executable, "-m", __name__, str(os.getpid()), *map(str, arguments)]
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": scratch,  # by default, others may read it
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            reason = done.stdout.decode(errors="replace").strip()
            raise ResourceError(reason or f"the compiling process ended ({done.returncode})")
        replace_file(file, package.read_bytes())
    others = [one for one in file.parent.glob(f"*{SUFFIX}") if one != file]
    for one in sorted(others, key=lambda one: -one.stat().st_mtime)[MAX_FILES - 1 :]:
        remove(one)


def _main(parent: str, path: str, dtype: str, num_tokens: str, threads: str, package: str) -> int:
    """Compile the code of a model in this process; return its exit code, print why it fails."""
    end_with_parent(int(parent))
    answer = os.dup(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)  # torch's compiler writes to them
    torch.set_num_threads(int(threads))
    steps = getattr(torch, dtype), int(num_tokens)
    try:
        model = load_model(Path(path), torch.device("cpu")).model
        if step_key(model, *steps) != Path(package).stem:
            raise ConfigError(f"{path}: it has changed since it was loaded; start again")
        compile_step(model, *steps, Path(package))
    except (NmtkitError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        os.write(answer, _one_line(error).encode())
        return 1
    return 0


def _one_line(error: BaseException) -> str:
    """Return the first line of an error that says anything."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
