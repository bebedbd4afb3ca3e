"""Compiled decoder steps in a cache of the user; `nmtkit.model.compiled_step` runs them.

Another process compiles the code of a model: torch's compiler needs memory, and writes to the
standard streams. The code is for these weights, and for this torch, processor and number of
threads. To load code is to execute it. So it is kept in the user's cache, and never read from a
model's folder.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.export import Dim, export

from nmtkit.errors import ConfigError, DamagedError, NmtkitError, ResourceError, first_paragraph
from nmtkit.model.compiled_step import CompiledStep, StepFunction
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.runtime.environment import (
    cache_folder,
    end_with_parent,
    python_command,
    set_environment,
)
from nmtkit.runtime.processor import processor_instructions, processor_name
from nmtkit.storage.durable import new_folder, read_manifest, remove
from nmtkit.storage.model_folder import load_model
from nmtkit.symbols import EOS_ID
from nmtkit.version import __version__

FORMAT, VERSION = "nmtkit-compiled-step", 1
"""Of a folder in the cache; the version is that of the code's arguments, too."""

CODE = "step.pt2"

MAX_FOLDERS = 16
"""Folders in the cache; each is as large as the weights of a decoder."""

OPTIONS = {
    "freezing": True,  # weights are constants, in the layout of their product
    # Products of few rows by torch's own templates, where these are faster than libraries.
    "max_autotune": True,
    "max_autotune_gemm_backends": "CPP,ATEN",
    # Headers that serve once; torch would keep them in a folder that others may write to.
    "aot_inductor.precompile_headers": False,
}
"""Settings of torch's compiler."""

EXAMPLE_LENGTH = 20
"""Source tokens of the step with which the code is made."""

_COMPILER_ERRORS = (
    *(NmtkitError, RuntimeError, OSError, subprocess.SubprocessError),
    *(AttributeError, LookupError, TypeError, ValueError),
)
"""What torch's compiler and loader raise, also where a later torch has changed them."""


def load_or_compile(
    path: Path,
    model: Transformer,
    dtype: torch.dtype,
    width: int,
    report: Callable[[str], None],
    warn: Callable[[str], None],
) -> CompiledStep | None:
    """Return the code of a model's steps, from the cache or compiled now.

    Args:
        path: of the model.
        model: its weights, on a CPU, not prepared.
        dtype: of matrix products.
        width: rows of a step; see `CompiledStep`.
        report: takes a line before the code is compiled.
        warn: takes the reason if there is no code.

    Returns:
        The code; None if it cannot be compiled or loaded.
    """
    try:
        folder = cache_folder("compiled") / step_key(model, dtype, width)
        if not _is_complete(folder):
            check_compiler()
            with new_folder(folder, FORMAT, VERSION, overwrite=True) as staged:
                report(f"{path}: compiling the decoder, once for these weights")
                _compile(path, dtype, width, folder.name, staged.path / CODE)
            _remove_oldest(folder)
        with suppress(OSError):
            folder.touch()  # it was used
        return CompiledStep(folder / CODE, width)
    except _COMPILER_ERRORS as error:
        reason = first_paragraph(error)
        warn(f"{path}: not compiled: {reason}; translation continues without --compile")
        return None


def step_key(model: Transformer, dtype: torch.dtype, width: int) -> str:
    """Return a hash of the weights, and of the settings, versions and processor of the code."""
    versions = VERSION, __version__, torch.__version__, sys.version
    machine = processor_name(), processor_instructions(), torch.get_num_threads()
    code = hashlib.sha256()
    code.update(repr((versions, machine, OPTIONS, dtype, width, model.config)).encode())
    for name, parameter in model.named_parameters():
        if name.startswith("decoder"):
            code.update(name.encode())
            code.update(parameter.detach().contiguous().numpy().data)
    return code.hexdigest()


def check_compiler() -> None:
    """Raise ResourceError where torch's compiler cannot work."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ResourceError(
            f"no C++ compiler ({compiler}) is found; install g++, or name a compiler in CXX"
        )
    if " " in torch.__file__:
        raise ResourceError(
            f"torch's compiler cannot link where its path has a space ({torch.__file__}); install "
            "torch in another folder"
        )


def compile_step(model: Transformer, dtype: torch.dtype, width: int, path: Path) -> None:
    """Compile the decoder's layers for steps of one sentence; takes up to a minute.

    Args:
        model: on a CPU, in evaluation mode; it cannot be used for anything else afterwards.
        dtype: of matrix products.
        width: W.
        path: file to write, with the suffix .pt2.

    Raises:
        RuntimeError, OSError, SubprocessError: torch cannot compile the code.
    """
    example_source = pack_sequences([[EOS_ID] * EXAMPLE_LENGTH], torch.device("cpu"))
    with torch.no_grad():
        state = model.start(model.encode(example_source))
        state.expand(width)
        state.begin_step()
        x = torch.zeros(1, width, model.config.model_size)
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


def _is_complete(folder: Path) -> bool:
    """Return whether a folder of the cache has code."""
    try:
        read_manifest(folder, FORMAT, VERSION)
    except DamagedError:
        return False
    return True


def _compile(path: Path, dtype: torch.dtype, width: int, key: str, code: Path) -> None:
    """Compile the code of a model in another process.

    Raises:
        ResourceError: it cannot be compiled.
    """
    with TemporaryDirectory() as scratch:
        threads = torch.get_num_threads()
        arguments = path, str(dtype).removeprefix("torch."), width, threads, key, code
        # Not a `Worker`: that would run the script of a user of the Python API again.
        command = [*python_command(__name__), str(os.getpid()), *map(str, arguments)]
        environment = {
            **os.environ,
            "TMPDIR": scratch,
            "TORCHINDUCTOR_CACHE_DIR": scratch,
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a terminal's signals reach only this process, which ends it
            check=False,
        )
    if done.returncode:
        reason = done.stdout.decode(errors="replace").strip()
        raise ResourceError(reason or f"the compiling process ended ({done.returncode})")


def _remove_oldest(new: Path) -> None:
    """Remove the folders that were not used for longest; another process may do the same."""
    others = [folder for folder in new.parent.iterdir() if folder.name[0] != "." and folder != new]
    with suppress(NmtkitError, OSError):
        for folder in sorted(others, key=lambda one: -one.stat().st_mtime)[MAX_FOLDERS - 1 :]:
            remove(folder)


def _main(parent: str, path: str, dtype: str, width: str, threads: str, key: str, code: str) -> int:
    """Compile the code of a model in this process; return its exit code, print why it fails."""
    set_environment()
    end_with_parent(int(parent))
    answer = os.dup(1)
    os.dup2(2, 1)  # torch's compiler writes to it
    torch.set_num_threads(int(threads))
    steps = getattr(torch, dtype), int(width)
    try:
        model = load_model(Path(path), torch.device("cpu")).model
        if step_key(model, *steps) != key:
            raise ConfigError("the model has changed since it was loaded; start again")
        compile_step(model, *steps, Path(code))
    except _COMPILER_ERRORS as error:
        os.write(answer, first_paragraph(error).encode(errors="surrogateescape"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
