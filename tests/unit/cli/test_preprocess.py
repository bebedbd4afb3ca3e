import os
import sys

import pytest

from nmtkit_cli.command import usable_cores


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has sched_getaffinity")
def test_usable_cores_are_those_of_this_process() -> None:
    permitted = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(permitted)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, permitted)
    assert usable_cores() == len(permitted)
