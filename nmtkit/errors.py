"""The errors that a user can meet, each kind with the exit code of the command that ends with it.

A message says what is wrong, where (file, line, option), and how to mend it, in one line.
"""


class NmtkitError(Exception):
    """Base of every error that is reported as one line instead of a traceback."""

    exit_code = 1


class ConfigError(NmtkitError):
    """Wrong usage: an option, a configuration value, or a path that cannot be used as asked."""

    exit_code = 2


class DataError(NmtkitError):
    """Input text that cannot be used: not UTF-8, empty, sides of different length."""

    exit_code = 3


class DamagedError(NmtkitError):
    """A dataset, checkpoint or model that is damaged, incomplete or does not fit."""

    exit_code = 4


class ResourceError(NmtkitError):
    """Out of disk or memory, or a place that cannot be written to."""

    exit_code = 5


class DivergedError(NmtkitError):
    """Training that produces no finite gradients any more."""

    exit_code = 6


class LostRankError(NmtkitError):
    """One of several processes at work together died, does not answer, or has strayed."""

    exit_code = 7


class ToldElsewhereError(NmtkitError):
    """Another rank has ended with an error, and has told it; this one ends with the same code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"another rank ended with exit code {exit_code}")
        self.exit_code = exit_code


class StoppedError(NmtkitError):
    """Training stopped by SIGTERM, SIGUSR1 or SIGHUP, and saved; the same command continues it."""

    exit_code = 75


class InterruptedByUserError(NmtkitError):
    """Training stopped by SIGINT after its state was saved; the same command continues it."""

    exit_code = 130


def is_out_of_memory(error: BaseException) -> bool:
    """Recognise Python's and torch's errors, the latter without importing torch."""
    is_torch_error = isinstance(error, RuntimeError) and (
        type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    )
    return isinstance(error, MemoryError) or is_torch_error
