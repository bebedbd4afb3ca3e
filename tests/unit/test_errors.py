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
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("can't start new thread"), True),
        (ImportError("libtorch.so: failed to map segment from shared object"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (RuntimeError("CUDA error: out of memory\nSearch for `cudaError"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublas"), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (ImportError("no module"), False),
        (RuntimeError("shapes differ"), False),
        (OSError("no memory of it"), False),
    ],
)
def test_out_of_memory_errors_are_recognized_by_type_or_message(
    error: BaseException, expected: bool
) -> None:
    assert errors.is_out_of_memory(error) == expected


def test_each_error_class_has_its_own_exit_code() -> None:
    # A lost folder is a disk that fails; but while others are retried, it ends training.
    shared = {errors.ReportedElsewhereError, errors.LostFolderError}
    codes = [kind.exit_code for kind in KINDS if kind not in shared]
    assert len(set(codes)) == len(codes)
    assert 0 not in codes


def test_an_error_reported_by_another_rank_keeps_its_exit_code() -> None:
    assert errors.ReportedElsewhereError(6).exit_code == 6
