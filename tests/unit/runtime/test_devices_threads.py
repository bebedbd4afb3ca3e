import subprocess
import sys

COUNTS_ITS_THREADS = """
import os
import torch
from nmtkit.runtime.devices import background_thread

def count_of_threads():
    return len(os.listdir("/proc/self/task"))

def compute():
    return torch.ones(1 << 20).add(1).isfinite().all()

torch.set_num_threads(4)
compute()
before = count_of_threads()
background = background_thread("test")
background.submit(compute).result()
print(count_of_threads() - before, torch.get_num_threads())
"""


def test_torch_in_the_background_starts_no_team_of_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTS_ITS_THREADS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "4"], "only the background thread is new"
