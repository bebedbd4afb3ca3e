import resource
from pathlib import Path

import pytest
import torch

from nmtkit.runtime.memory import memory_limit
from tests.ranks import from_launcher


def process_in(folder: Path, group: str, num_pages: int) -> Path:
    """Make a folder like /proc/self of a process in a control group; returns it."""
    process = folder / "process"
    process.mkdir()
    text = f"1:name=systemd:/other\n0::{group}\n"
    (process / "cgroup").write_text(text, encoding="ascii")
    (process / "statm").write_text(f"900 {num_pages} 3 1 0 2 0\n", encoding="ascii")
    return process


def test_memory_is_what_the_machine_or_its_control_group_leaves_shared_by_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = process_in(tmp_path, "/", num_pages=7)
    resident = 7 * resource.getpagesize()

    def limit() -> int:
        return memory_limit(torch.device("cpu"), tmp_path, process)

    machine = limit()
    assert resident < machine < 2**50
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("1000\n", encoding="ascii")
    (tmp_path / "memory.stat").write_text("anon 1000\n", encoding="ascii")
    assert limit() == pytest.approx(machine, rel=0.2)
    (tmp_path / "memory.max").write_text("5000\n", encoding="ascii")
    assert limit() == 4000 + resident
    for name, value in from_launcher(LOCAL_WORLD_SIZE="4").items():
        monkeypatch.setenv(name, value)
    assert limit() == 1000 + resident


@pytest.mark.parametrize("own", ["/", "/job/step", "/seen/from/outside"])
def test_the_limits_of_all_groups_around_count_but_files_that_can_be_forgotten_do_not(
    own: str, tmp_path: Path
) -> None:
    process = process_in(tmp_path, own, num_pages=0)
    limits = {".": 9000, "job": 5000, "job/step": 7000, "other": 2000}
    for group, limit in limits.items():
        (tmp_path / group).mkdir(exist_ok=True)
        for name, text in (
            ("memory.max", f"{limit}"),
            ("memory.current", "1000"),
            ("memory.stat", "file 700\ninactive_file 600\nactive_file 100"),
        ):
            (tmp_path / group / name).write_text(text + "\n", encoding="ascii")
    expected = 5000 if own == "/job/step" else 9000
    assert memory_limit(torch.device("cpu"), tmp_path, process) == expected - 1000 + 600
