"""Compiled decoder steps in a cache of the user; `nmtkit.model.compiled_step` runs them.

The code is for these weights, and for this torch, processor and number of threads. To load code is
to execute it. So it is kept in the user's cache, never read from a model's folder, and only loaded
if it is what was written.
"""

import copy
import hashlib
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import SubprocessError

import torch
from torch.export import Dim, export

from nmtkit.errors import DamagedError, NmtkitError, first_paragraph
from nmtkit.model.compiled_step import CompiledStep, StepFunction
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.runtime.environment import cache_folder
from nmtkit.runtime.processor import processor_instructions, processor_name
from nmtkit.storage.durable import new_folder, read_manifest, remove
from nmtkit.storage.manifest import verify_files
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
    "max_autotune_report_choices_stats": False,
    # Headers that serve once; torch would keep them in a folder that others may write to.
    "aot_inductor.precompile_headers": False,
    "compile_threads": 1,  # no worker processes, which would outlive the compilation
}
"""Settings of torch's compiler."""

EXAMPLE_LENGTH = 20
"""Source tokens of the step with which the code is made."""

_COMPILER_ERRORS = (
    *(RuntimeError, OSError, SubprocessError, MemoryError, ImportError),
    *(AssertionError, AttributeError, LookupError, TypeError, ValueError),
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
        path: of the model, for messages.
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
        if not _is_whole(folder):
            with new_folder(folder, FORMAT, VERSION, overwrite=True) as staged:
                report(f"{path}: compiling the decoder, once for these weights")
                compile_step(model, dtype, width, staged.path / CODE)
            _remove_oldest(folder)
        with suppress(OSError):
            folder.touch()  # it was used
        return CompiledStep(folder / CODE, width)
    except NmtkitError as error:
        warn(f"{path}: not compiled: {error}; translation continues without --compile")
    except _COMPILER_ERRORS as error:
        warn(
            f"{path}: not compiled: {first_paragraph(error)}; translation continues without "
            "--compile, which needs g++ (or a compiler in CXX), and a path of torch without spaces"
        )
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


def compile_step(model: Transformer, dtype: torch.dtype, width: int, path: Path) -> None:
    """Compile the decoder's layers for steps of one sentence; takes up to a minute.

    Args:
        model: on a CPU, in evaluation mode, not prepared.
        dtype: of matrix products.
        width: W.
        path: file to write, with the suffix .pt2.

    Raises:
        RuntimeError, OSError, SubprocessError: torch cannot compile the code.
    """
    # The compiler, which takes a second to import.
    from torch._inductor import select_algorithm
    from torch._inductor.utils import fresh_cache

    select_algorithm.PRINT_AUTOTUNE = False  # it would say what it tries
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
        function = StepFunction(*copy.deepcopy((model.decoder, model.decoder_norm)), dtype)
        arguments = (x, state.step_tensors())
        # Code of another model has the same names.
        with warnings.catch_warnings(action="ignore"), fresh_cache():
            exported = export(function, arguments, dynamic_shapes=(None, sizes), strict=False)
            torch._inductor.aoti_compile_and_package(
                exported, package_path=str(path), inductor_configs=OPTIONS
            )


def _is_whole(folder: Path) -> bool:
    """Return whether a folder of the cache has the code that was written to it."""
    try:
        verify_files(folder, read_manifest(folder, FORMAT, VERSION))
    except DamagedError:
        return False
    return True


def _remove_oldest(new: Path) -> None:
    """Remove the folders that were not used for longest; another process may do the same."""
    others = [folder for folder in new.parent.iterdir() if folder.name[0] != "." and folder != new]
    with suppress(NmtkitError, OSError):
        for folder in sorted(others, key=lambda one: -one.stat().st_mtime)[MAX_FOLDERS - 1 :]:
            remove(folder)
