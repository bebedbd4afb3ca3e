import pytest

from tests.downloads import Behaviour


@pytest.fixture
def behaviour() -> Behaviour:
    return Behaviour()
