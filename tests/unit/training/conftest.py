import pytest

from nmtkit.data.binary import Dataset
from tests.doubles import Clock
from tests.tiny import tiny_subword_dataset


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def subword_dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(tiny_subword_dataset(tmp_path_factory.mktemp("subwords")))
