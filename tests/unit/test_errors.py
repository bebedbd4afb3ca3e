import pytest

from nmtkit import errors

KINDS = errors.NmtkitError.__subclasses__()


class OutOfMemoryError(RuntimeError):
    """Stands for torch's error of the same name."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (OutOfMemoryError("CUDA out of memory. Tried"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("shapes differ"), False),
        (OSError("no memory of it"), False),
    ],
)
def test_errors_of_memory_are_known_by_their_type_or_message(
    error: BaseException, expected: bool
) -> None:
    assert errors.is_out_of_memory(error) == expected


def test_each_kind_of_error_has_an_exit_code_of_its_own() -> None:
    codes = [kind.exit_code for kind in KINDS if kind is not errors.ToldElsewhereError]
    assert len(set(codes)) == len(codes)
    assert 0 not in codes


def test_an_error_that_another_rank_reported_has_the_exit_code_of_that_rank() -> None:
    assert errors.ToldElsewhereError(6).exit_code == 6
