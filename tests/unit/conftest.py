from collections.abc import Iterator

import pytest

from tests.processes import workers_as_forks


@pytest.fixture(autouse=True, scope="module")
def _workers_are_forks() -> Iterator[None]:
    with workers_as_forks():
        yield
