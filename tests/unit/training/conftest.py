import pytest

from tests.doubles import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()
