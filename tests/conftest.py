"""What all tests share: no time limits for single examples, Ctrl-C, no outer make, no fsync."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("nmtkit", deadline=None)  # machines are shared and noisy
settings.load_profile("nmtkit")

# A shell starts jobs in the background deaf to Ctrl-C, and nohup to hanging up, which the commands
# under test would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A make that a test starts is no part of the make that may have started the tests: it would take
# over flags and variables, and print its folder.
for _name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(_name, None)


@pytest.fixture(autouse=True, scope="module")
def _without_waiting_for_the_disk() -> Iterator[None]:
    """Do no fsync in this process: what tests write need not survive a power cut.

    Tests of when files are synced put their own function in its place.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        yield
