"""The entry point of `nmtkit` and `python -m nmtkit_cli`.

It blocks signals before anything else is imported, which takes long.
"""

import os
import signal
import sys


def main() -> None:
    """Run the command line of this process, and exit."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    from nmtkit.runtime.environment import is_launched, set_environment
    from nmtkit.runtime.standard_streams import (
        open_standard_error,
        open_standard_input,
        open_standard_output,
    )
    from nmtkit.signals import STOP_SIGNALS, handled_signals

    for number in handled_signals():
        # Threads that torch starts while a command handles signals do not block them later.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, {*before, *STOP_SIGNALS})
    open_standard_error()
    open_standard_output()
    open_standard_input()
    set_environment()
    from nmtkit_cli.command_line import run

    exit_code = run(sys.argv[1:] or ["--help"])
    if is_launched():
        # Threads of torch.distributed may still run; they abort while the interpreter shuts down.
        os._exit(exit_code)
    sys.exit(exit_code)
