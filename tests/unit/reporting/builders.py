"""Runs for reports, in memory and on disk, without training."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from nmtkit.config.schema import TrainRecipe, Value, recipe_of
from nmtkit.config.toml import dumps
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import TrainingRecord, ValidationRecord
from nmtkit.reporting.runs import Run
from tests.records import SESSION

SIGNATURE = "nrefs:1|case:mixed|tok:13a"
HOSTILE = "<script>alert(\"&\")</script> | **b** `c` _d_ [e](http://f) 'g'"


VOID = {"meta", "input"}
"""Elements without an end."""


class Elements(HTMLParser):
    """Reads a page as a browser does.

    Attributes:
        names: of the elements, in order.
        attributes: names of the attributes of all elements.
        open: elements that have not ended.
        texts: of the elements of a name, each without those of elements within it.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.texts: defaultdict[str, list[str]] = defaultdict(list)
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.texts[tag].append("")
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data


def training(update: int, loss: float = 4.0) -> TrainingRecord:
    return TrainingRecord(
        update=update,
        epoch=1,
        loss=loss,
        nll=loss,
        perplexity=math.exp(min(loss, 100)),
        learning_rate=1e-4,
        gradient_norm=1.0,
        tokens_per_second=1000.0,
        updates_per_second=10.0,
        num_source_tokens=40,
        num_target_tokens=60,
        skipped_updates=0,
        eta_s=60.0,
        elapsed_s=float(update),
        fill=0.9,
        peak_memory=2**30,
        ranks=1,
        operations=2e15,
    )


def validation(update: int, nll: float, bleu: float | None = None) -> ValidationRecord:
    return ValidationRecord(
        update=update,
        nll=nll,
        perplexity=math.exp(min(nll, 100)),
        scores={} if bleu is None else {"bleu": bleu},
        signatures={} if bleu is None else {"bleu": SIGNATURE},
        is_best=True,
        took_s=1.0,
        samples=[],
    )


def validated(nlls: Sequence[float], bleus: Sequence[float | None]) -> list[ValidationRecord]:
    """Return validations after every hundredth update; is_best follows nll."""
    records = [
        validation(100 * number, nll, bleu)
        for number, (nll, bleu) in enumerate(zip(nlls, bleus, strict=True), 1)
    ]
    return [
        replace(record, is_best=all(record.nll < other.nll for other in records[:index]))
        for index, record in enumerate(records)
    ]


def run_of(
    name: str = "run",
    validations: Sequence[ValidationRecord] = (),
    settings: Mapping[str, Value] = {},
    num_updates: int = 1000,
) -> Run:
    """Return a run that is finished unless its settings say otherwise."""
    recipe = recipe_of(TrainRecipe, {"max_updates": num_updates, **settings})
    records = [training(update) for update in range(100, num_updates + 1, 100)]
    return Run(
        name,
        recipe,
        records,
        validations,
        sessions=[SESSION],
        lines={},
        num_parameters=1000,
        codec="0123",
        dataset="4567",
        languages="en-de",
        validation_text="89ab",
        validation_pairs=100,
    )


def write_run(path: Path, run: Run) -> Path:
    """Write the folder of a run, without checkpoints."""
    path.mkdir(parents=True)
    (path / "config.toml").write_text(dumps(run.recipe), encoding="utf-8")
    log = MetricsLog(path / "metrics.jsonl")
    for session in run.sessions:
        log.begin(session)
    for training_record in run.training:
        log.append(training_record)
    for validation_record in run.validations:
        log.append(validation_record)
    return path
