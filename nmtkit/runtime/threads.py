"""Threads in the background."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch


def background_thread(name: str) -> ThreadPoolExecutor:
    """Return an executor of one thread, in which torch computes without further threads.

    A thread that enters a parallel region of OpenMP gets a team of its own. libgomp then counts
    more threads than cores, and for the rest of the process all of them sleep between regions
    instead of spinning: training on a CPU loses a third of its speed. Every thread except the main
    one is therefore made here.

    Args:
        name: prefix of the thread's name.
    """
    return ThreadPoolExecutor(
        max_workers=1, thread_name_prefix=name, initializer=_compute_without_a_team
    )


def _compute_without_a_team() -> None:
    """Set the OpenMP threads of the calling thread alone, which torch.set_num_threads cannot."""
    torch.get_num_threads()  # torch sets up a thread at its first call, which would undo this
    with suppress(AttributeError):  # a build of torch without OpenMP
        ctypes.CDLL(None).omp_set_num_threads(1)
