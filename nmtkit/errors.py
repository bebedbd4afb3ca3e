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


class StoppedError(NmtkitError):
    """Training stopped by SIGTERM after its state was saved; the same command continues it."""

    exit_code = 75


class InterruptedByUserError(NmtkitError):
    """Training stopped by SIGINT after its state was saved; the same command continues it."""

    exit_code = 130
