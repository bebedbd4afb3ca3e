"""Background threads that do not slow down torch."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch


def background_thread(name: str) -> ThreadPoolExecutor:
    """Return an executor with one thread, in which torch starts no OpenMP threads.

    Otherwise each Python thread that computes gets its own team of OpenMP threads. libgomp then
    counts more threads than cores, and all of them sleep between parallel regions instead of
    spinning, for the rest of the process: training on a CPU loses a third of its speed. All
    background threads that compute are therefore made here.

    Args:
        name: prefix of the thread's name.
    """
    return ThreadPoolExecutor(
        max_workers=1, thread_name_prefix=name, initializer=_compute_without_a_team
    )


def _compute_without_a_team() -> None:
    """Use one OpenMP thread in the calling thread; torch.set_num_threads would set all threads."""
    torch.get_num_threads()  # torch's first call in a thread would reset the number later
    with suppress(AttributeError):  # a build of torch without OpenMP
        ctypes.CDLL(None).omp_set_num_threads(1)
