"""Errors reported to users, each class with the exit code of the command.

A message is one line: what is wrong, where (file, line, option), and how to fix it.
"""

RESTORE = "restore the folder from a copy, or make it again"
"""How to fix a damaged folder, in messages of `DamagedError`."""


class NmtkitError(Exception):
    """Base of every error that is reported as one line instead of a traceback.

    Those that callers of the library handle are ValueErrors or OSErrors, too.
    """

    exit_code = 1


class ConfigError(NmtkitError, ValueError):
    """Wrong usage: an option, a configuration value, or a path that cannot be used as asked."""

    exit_code = 2


class DataError(NmtkitError, ValueError):
    """Input text that cannot be used: not UTF-8, empty, or with different numbers of lines."""

    exit_code = 3


class DamagedError(NmtkitError, OSError):
    """A dataset, checkpoint or model that is damaged, incomplete or incompatible."""

    exit_code = 4


class ResourceError(NmtkitError, OSError):
    """Out of disk or memory, or a place that cannot be written to."""

    exit_code = 5


class LostFolderError(NmtkitError, OSError):
    """A folder that was renamed, deleted or replaced while this process wrote there."""

    exit_code = ResourceError.exit_code


class DivergedError(NmtkitError):
    """Training whose gradients are no longer finite."""

    exit_code = 6


class LostRankError(NmtkitError):
    """A rank died, does not answer, or is not at the same point as the others."""

    exit_code = 7


class ProgramError(NmtkitError, RuntimeError):
    """A program of the user, such as that of --metric-command, that fails."""

    exit_code = 8


class ReportedElsewhereError(NmtkitError):
    """Another rank has reported its error and ended; this rank ends with the same exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"another rank ended with exit code {exit_code}")
        self.exit_code = exit_code


class StoppedError(NmtkitError):
    """Training saved and stopped after SIGTERM, SIGUSR1 or SIGHUP; the same command resumes it."""

    exit_code = 75


class InterruptedByUserError(NmtkitError):
    """Training saved and stopped after SIGINT; the same command resumes it."""

    exit_code = 130


_OUT_OF_MEMORY = (
    "can't allocate memory",
    "bad_alloc",
    "can't start new thread",
    "failed to map segment",
    "Cannot allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
"""What torch, CUDA, Python's threads and the dynamic linker report when memory is short."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether Python or a library is out of memory; does not import torch."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    is_of_library = isinstance(error, RuntimeError | ImportError | OSError)
    return is_of_library and any(text in str(error) for text in _OUT_OF_MEMORY)
