import resource
from functools import partial

import pytest

from nmtkit.runtime.address_space import require_address_space
from tests.faults.harness import Fault, run_in_child

GIB = 2**30


def under_limit(num_bytes: int, needed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))
    require_address_space(needed, "a library")


def test_without_a_limit_there_is_room() -> None:
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        pytest.skip("the tests run under a limit")
    require_address_space(2**62, "a library")


@pytest.mark.parametrize(("needed", "is_error"), [(GIB, False), (2**40, True)])
def test_a_limit_that_leaves_too_little_is_an_error(needed: int, is_error: bool) -> None:
    outcome = run_in_child(partial(under_limit, 64 * GIB, needed), Fault("count", 0))
    expected = "ResourceError: out of memory: a library needs 1048576MiB of address space, and the"
    assert outcome.exception.startswith(expected) == is_error, outcome
    assert is_error or not outcome.exception, outcome
