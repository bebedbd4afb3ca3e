from pathlib import Path

import pytest
import torch

from nmtkit.runtime import memory


def test_memory_is_what_the_machine_or_its_control_group_leaves_shared_by_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_resident", lambda: 7)
    cpu = torch.device("cpu")
    machine = memory.memory_limit(cpu)
    assert 7 < machine < 2**50
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("1000\n", encoding="ascii")
    (tmp_path / "memory.stat").write_text("anon 1000\n", encoding="ascii")
    assert memory.memory_limit(cpu) == pytest.approx(machine, rel=0.2)
    (tmp_path / "memory.max").write_text("5000\n", encoding="ascii")
    assert memory.memory_limit(cpu) == 4007
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert memory.memory_limit(cpu) == 1007


@pytest.mark.parametrize("own", ["/", "/job/step", "/seen/from/outside"])
def test_the_limits_of_all_groups_around_count_but_files_that_can_be_forgotten_do_not(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_resident", lambda: 0)
    (tmp_path / "cgroup").write_text(f"1:name=systemd:/other\n0::{own}\n", encoding="ascii")
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
    assert memory.memory_limit(torch.device("cpu")) == expected - 1000 + 600
