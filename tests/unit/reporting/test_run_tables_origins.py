from dataclasses import replace

from nmtkit.progress.records import SessionRecord
from nmtkit.reporting.run_tables import dates_of, origins
from nmtkit.reporting.runs import Run
from tests.records import SESSION
from tests.unit.reporting.builders import run_of

LATER = replace(SESSION, started="2026-02-02T00:00:00+00:00", device="NVIDIA H200", ranks=1)


def with_sessions(*sessions: SessionRecord) -> Run:
    return replace(run_of(), sessions=sessions)


def rows(*runs: Run) -> dict[str, list[str]]:
    (section,) = origins(runs)
    assert section.table is not None
    return {first.text: [cell.text for cell in rest] for first, *rest in section.table.rows}


def test_a_run_has_its_date_machine_software_and_data() -> None:
    assert rows(run_of()) == {
        "started": ["2026-01-31 12:30 UTC"],
        "device": ["2 x cpu"],
        "CPU": ["Some CPU 9000, 4 threads"],
        "software": ["nmtkit 0.1.0, PyTorch 2.11.0, Python 3.12.1"],
        "dataset": ["data/en-de"],
        "fingerprint of the dataset": ["4567"],
        "languages": ["en-de"],
        "validation pairs": ["100"],
        "parameters": ["1,000"],
    }


def test_the_machines_of_all_sessions_are_listed_each_once() -> None:
    found = rows(with_sessions(SESSION, LATER, LATER), run_of("other"))
    assert found["started"][0] == "2026-01-31 12:30 UTC; 3 sessions, the last one 2026-02-02 00:00"
    assert found["device"] == ["2 x cpu, then NVIDIA H200", "2 x cpu"]
    assert found["software"][0] == found["software"][1]


def test_what_is_not_recorded_is_left_out_or_a_dash() -> None:
    old = replace(
        with_sessions(),
        num_parameters=None,
        dataset=None,
        languages=None,
        validation_pairs=None,
    )
    assert origins([old]) == []
    assert rows(old, run_of())["started"] == ["-", "2026-01-31 12:30 UTC"]
    nameless = replace(SESSION, processor="", data="a\x1bb")
    assert rows(with_sessions(nameless))["CPU"] == ["4 threads"]
    assert rows(with_sessions(nameless))["dataset"] == ["a\\x1bb"]
    assert set(rows(replace(old, dataset="f" * 64))) == {"fingerprint of the dataset"}


def test_data_are_named_by_their_fingerprints() -> None:
    runs = [replace(run_of(name), dataset=digit * 64) for name, digit in (("a", "1"), ("b", "2"))]
    assert rows(*runs)["fingerprint of the dataset"] == [12 * "1", 12 * "2"]


def test_dates_are_those_of_the_first_and_the_last_session() -> None:
    assert dates_of([run_of()]) == "2026-01-31"
    assert dates_of([with_sessions(LATER), run_of(), with_sessions()]) == "2026-01-31 to 2026-02-02"
    assert dates_of([with_sessions()]) == ""
