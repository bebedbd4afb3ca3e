"""Records are read back as they were written, or refused with the number of their line."""

import dataclasses
import json
import math
import re
import resource
from functools import partial
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError, ResourceError
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import Record, Sample, TrainingRecord
from tests.faults.harness import Fault, run_in_child
from tests.folders import PLANTED, planted
from tests.messages import refuses
from tests.records import SESSION, TRAINING, VALIDATION


def later(update: int) -> TrainingRecord:
    return dataclasses.replace(TRAINING, update=update)


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_record_is_one_line_of_json_with_its_kind(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append(TRAINING)
    log.append(VALIDATION)
    assert records(log.path) == [
        {"event": "training", **dataclasses.asdict(TRAINING)},
        {"event": "validation", **dataclasses.asdict(VALIDATION)},
    ]


def test_a_session_is_written_with_its_first_record_and_once(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.begin(SESSION)
    assert not log.path.exists()
    log.append(TRAINING)
    log.append(VALIDATION)
    assert list(log.records()) == [SESSION, TRAINING, VALIDATION]


def test_a_session_that_could_not_be_written_is_written_with_the_next_record(
    tmp_path: Path,
) -> None:
    log = MetricsLog(tmp_path / "folder" / "metrics.jsonl")
    (tmp_path / "folder").touch()
    log.begin(SESSION)
    for record in (TRAINING, VALIDATION):
        with refuses(ConfigError, "metrics.jsonl"):
            log.append(record)
    (tmp_path / "folder").unlink()
    (tmp_path / "folder").mkdir()
    log.append(later(200))
    assert list(log.records()) == [SESSION, VALIDATION, later(200)]


@pytest.mark.parametrize("kind", PLANTED)
def test_a_log_that_is_not_a_plain_file_is_found_at_the_start(kind: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    log = MetricsLog(tmp_path / "run" / "metrics.jsonl")
    with planted(kind, log.path):
        for write in (partial(log.drop_after, 100), partial(log.append, TRAINING)):
            with refuses(ResourceError, "metrics.jsonl; cp mv"):
                write()


@pytest.mark.parametrize("kind", ["link to a device", "pipe", "folder"])
def test_a_log_that_is_not_a_file_is_not_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    log = MetricsLog(tmp_path / "run" / "metrics.jsonl")
    with (
        planted(kind, log.path),
        refuses(DamagedError, "metrics.jsonl"),
    ):
        list(log.records())


def test_drop_after_deletes_later_records_and_an_incomplete_line(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for update in (100, 200, 300):
        log.append(later(update))
    with log.path.open("a", encoding="utf-8") as stream:
        stream.write('{"event": "training", "upd')
    log.drop_after(200)
    assert [record["update"] for record in records(log.path)] == [100, 200]
    log.append(later(300))
    assert [record["update"] for record in records(log.path)] == [100, 200, 300]


def test_drop_after_deletes_a_session_without_records(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    first, second, third = (dataclasses.replace(SESSION, update=n) for n in (0, 40, 40))
    for session, update in ((first, 40), (second, 42), (third, 50)):
        log.drop_after(session.update)
        log.begin(session)
        log.append(later(update))
    assert list(log.records()) == [first, later(40), third, later(50)]


def test_validations_are_read_back_unchanged(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    assert log.validations() == []
    log.append(TRAINING)
    log.append(VALIDATION)
    other = dataclasses.replace(VALIDATION, update=900, scores={}, signatures={}, samples=SAMPLES)
    log.append(other)
    assert log.validations() == [VALIDATION, other]


def test_all_complete_records_are_read_back_in_order(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    assert list(log.records()) == []
    written: list[Record] = [TRAINING, VALIDATION, later(200)]
    for record in written:
        log.append(record)
    with log.path.open("a", encoding="utf-8") as stream:
        stream.write('{"event": "training", "upd')
    assert list(log.records()) == written


def test_values_that_are_not_finite_are_null_in_the_log_and_read_as_infinite(
    tmp_path: Path,
) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append(dataclasses.replace(TRAINING, loss=math.nan, gradient_norm=-math.inf))
    scores = {"ter": math.inf, "bleu": 0.0}
    log.append(dataclasses.replace(VALIDATION, nll=math.nan, scores=scores))
    assert [records(log.path)[0][name] for name in ("loss", "gradient_norm")] == [None, None]
    assert not re.search(b"NaN|Infinity", log.path.read_bytes())
    training, validation = log.records()
    assert training == dataclasses.replace(TRAINING, loss=math.inf, gradient_norm=math.inf)
    assert validation == dataclasses.replace(VALIDATION, nll=math.inf, scores=scores)


FIELDS = dataclasses.asdict(TRAINING)


@pytest.mark.parametrize(
    "values",
    [
        FIELDS,
        {**FIELDS, "event": "else"},
        {**FIELDS, "event": ["training"]},
        {**FIELDS, "event": "validation"},
        {**FIELDS, "event": "training", "loss": "high"},
        {**FIELDS, "event": "training", "epoch": None},
        {**FIELDS, "event": "training", "epoch": 1.5},
        {"event": "training", "update": 200},
    ],
)
def test_a_line_that_lacks_something_is_refused_with_its_number(
    tmp_path: Path, values: dict[str, object]
) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append(TRAINING)
    with log.path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(values) + "\n")
    keys = "metrics.jsonl:2"
    with refuses(DamagedError, keys):
        list(log.records())
    with refuses(DamagedError, keys):
        log.validations()


def test_dropping_no_record_does_not_touch_the_file(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.drop_after(100)
    assert not log.path.exists()
    log.append(TRAINING)
    before = log.path.stat()
    log.drop_after(100)
    after = log.path.stat()  # reading may change the time of the last access
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        pytest.param("[" * 100_000, id="deep"),
        '{"event": "training"}',
        '{"update": 1}',
        '{"event": "validation", "update": 1}',
        "17",
        "",
    ],
)
def test_a_damaged_line_in_the_middle_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append(TRAINING)
    with log.path.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    log.append(later(200))
    with refuses(DamagedError, "metrics.jsonl:2"):
        log.drop_after(200)


def test_a_partly_written_record_is_removed_when_the_disk_is_full(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append(TRAINING)
    whole = log.path.read_bytes()

    def append_within_a_limit() -> None:
        limit = len(whole) + 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        log.append(later(200))

    outcome = run_in_child(append_within_a_limit, Fault("count", 0))
    assert "metrics.jsonl: File too large" in outcome.exception
    assert log.path.read_bytes() == whole


SAMPLES = [Sample(1, "a\x1b\u2028b", "", "\u732b"), Sample(7, "", "x", "y")]


SAMPLE = dataclasses.asdict(SAMPLES[0])
REFUSED: dict[str, list[object]] = {
    "scores": [None, "high", ["bleu"], {"bleu": "high"}, {"bleu": [1.0]}],
    "samples": [
        *(None, "text", ["text"], [SAMPLE, {}]),
        *([{**SAMPLE, "line": "1"}], [{**SAMPLE, "source": None}]),
    ],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values]
)
def test_values_of_a_wrong_type_are_refused(name: str, value: object, tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    values = {"event": "validation", **dataclasses.asdict(VALIDATION), name: value}
    log.path.write_text(json.dumps(values) + "\n", encoding="utf-8")
    with refuses(DamagedError, "metrics.jsonl:1"):
        log.validations()
