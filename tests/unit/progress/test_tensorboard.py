"""TensorBoard shows what metrics.jsonl holds; without the package an error says so."""

import json
import os
import resource
import socket
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ConfigError, ResourceError
from nmtkit.progress.records import Sample
from nmtkit.progress.tensorboard import TensorboardLog
from nmtkit.training.run import train
from tests.faults.harness import Fault, run_in_child
from tests.messages import refuses
from tests.records import TRAINING, VALIDATION
from tests.tiny import tiny_train_recipe

PART_BYTES = 20
"""Part of a record that still fits into a file that may not grow further."""


def recipe_of(max_updates: int) -> TrainRecipe:
    return tiny_train_recipe(max_updates=max_updates, dropout=0.1, tensorboard=True)


def test_without_the_package_the_extra_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with refuses(ConfigError, "tensorboard logging.tensorboard; nmtkit[tensorboard] --tensorboard"):
        train(recipe_of(1), data, tmp_path)


def test_every_number_of_the_log_is_there_once_even_after_a_resume(
    data: Path, tmp_path: Path
) -> None:
    pytest.importorskip("tensorboard", reason="the extra is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for updates in (3, 6):
        train(recipe_of(updates), data, tmp_path)
    shown = EventAccumulator(str(tmp_path / "tensorboard"))
    shown.Reload()
    lines = map(json.loads, (tmp_path / "metrics.jsonl").read_text("utf-8").splitlines())
    records = [line for line in lines if line["event"] == "training"]
    points = shown.Scalars("training/loss")
    assert [point.step for point in points] == [record["update"] for record in records]
    for point, record in zip(points, records, strict=True):
        assert point.value == pytest.approx(record["loss"], rel=1e-6)
    assert {"training/nll", "validation/nll", "validation/bleu"} <= set(shown.Tags()["scalars"])


def test_a_failure_of_the_disk_loses_one_record(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def write() -> None:
        log = TensorboardLog(tmp_path, 0)
        log.append(replace(TRAINING, update=1))
        (file,) = tmp_path.iterdir()
        _, before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + PART_BYTES, before))
        with refuses(ResourceError, f"{tmp_path}; ulimit"):
            log.append(replace(TRAINING, update=2))
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, before))
        log.append(replace(TRAINING, update=3))
        log.append(replace(TRAINING, update=4))

    assert run_in_child(write, Fault("count", 0)).exception == ""
    shown = EventAccumulator(str(tmp_path))
    shown.Reload()
    assert [point.step for point in shown.Scalars("training/loss")] == [1, 3, 4]


def test_a_link_at_a_name_that_can_be_foreseen_is_not_followed(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra is not installed")
    theirs = tmp_path / "theirs"
    for second, number in product(range(30), range(50)):
        name = f"{int(time.time()) + second:010}.{socket.gethostname()}.{os.getpid()}.{number}"
        (tmp_path / f"events.out.tfevents.{name}").symlink_to(theirs)
    TensorboardLog(tmp_path, 0).append(TRAINING)
    assert not theirs.exists()
    assert [path for path in tmp_path.iterdir() if not path.is_symlink()]


def test_samples_are_shown_as_text_of_their_validation(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = TensorboardLog(tmp_path, 0)
    samples = [Sample(3, "le *chat*", "the cat", "a cat"), Sample(9, "un", "one", "")]
    log.append(replace(VALIDATION, samples=samples))
    log.append(replace(VALIDATION, update=200))
    shown = EventAccumulator(str(tmp_path))
    shown.Reload()
    (text,) = shown.Tensors("validation/samples/text_summary")
    assert text.step == VALIDATION.update
    assert text.tensor_proto.string_val[0].decode() == (
        "line 3\n\n    source: le *chat*\n    reference: the cat\n    hypothesis: a cat\n\n"
        "line 9\n\n    source: un\n    reference: one\n    hypothesis: \n"
    )
