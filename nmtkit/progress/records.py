"""Records of training: their fields, each declared once with its display.

metrics_log.py writes and reads them; reporter.py displays them.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from nmtkit.config.metrics import NLL, base_metric
from nmtkit.units import duration, mebibytes, printable

Template = str | Callable[[Any], str]
"""A format string or a function that turns a value into text; empty text is not displayed."""


@dataclass(frozen=True)
class Display:
    """How the value of a field is displayed.

    Attributes:
        plain: writes key=value for a plain line.
        terminal: writes text for the live display.
        row: row of the live display, from 1.
    """

    plain: Callable[[Any], str]
    terminal: Callable[[Any], str]
    row: int


def shown(
    plain: Template,
    terminal: Template,
    unit: Callable[[Any], str] | None = None,
    *,
    row: int = 1,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Declare a field of a record with its display.

    Args:
        plain, terminal, row: see `Display`; None is not displayed by format strings.
        unit: writes a value for both format strings, such as `duration`.
        default: value in logs that lack the field.
    """

    def writer(template: Template) -> Callable[[Any], str]:
        if not isinstance(template, str):
            return template
        return lambda one: "" if one is None else template.format(unit(one) if unit else one)

    display = Display(writer(plain), writer(terminal), row)
    field: Any = dataclasses.field(default=default, metadata={"display": display})
    return field


def plain_scores(scores: Mapping[str, float], equals: str = "=", space: str = " ") -> str:
    """Write scores as one line."""
    return space.join(f"{name}{equals}{shown_score(name, one)}" for name, one in scores.items())


def shown_score(name: str, score: float) -> str:
    """Write a score: nll, of a direction, with four digits, others with two."""
    return f"{score:.4f}" if base_metric(name) == NLL else f"{score:.2f}"


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The updates since the previous record of the same session.

    Attributes:
        event: the kind of the record, in logs and displays.
        update: the last of them.
        epoch: the pass over the corpus, from 1.
        loss: training objective, which is label-smoothed, in nats per target token.
        nll: negative log-likelihood without smoothing, in nats per target token; perplexity is
            its exp.
        alignment_loss: loss of --guided-alignment-weight, in nats per target token; None = it is 0.
        learning_rate, gradient_norm: of the last update.
        tokens_per_second: source and target tokens, end symbols counted.
        num_source_tokens, num_target_tokens: tokens of the updates.
        fill: used share of the token budget.
        peak_memory: largest number of bytes in use on the device, or by the process on a CPU.
        skipped_updates: updates of the run so far whose gradients were not finite.
        eta_s: seconds until max_updates, max_epochs or max_minutes, whichever is first; early
            stopping is not foreseen.
        elapsed_s: seconds of training in all sessions of the run.
        ranks: processes that trained together, one per device.
        operations: floating-point operations of these updates, computed from the model's shape.
    """

    event: ClassVar[str] = "training"

    update: int
    epoch: int = shown("epoch={}", "epoch {}")
    loss: float = shown("loss={:.4f}", "loss {:.4f}")
    nll: float = shown("nll={:.4f}", "nll {:.4f} nats/token")
    perplexity: float = shown("perplexity={:.2f}", "perplexity {:.2f}")
    alignment_loss: float | None = shown(
        "alignment_loss={:.4f}", "alignment loss {:.4f}", default=None
    )
    learning_rate: float = shown("lr={:.3e}", "lr {:.3e}")
    gradient_norm: float = shown("gradient_norm={:.3f}", "gradient norm {:.3f}")
    tokens_per_second: float = shown(
        "source+target_tokens_per_s={:.0f}", "{:,.0f} source+target tokens/s", row=2
    )
    updates_per_second: float = shown("updates_per_s={:.2f}", "{:.2f} updates/s", row=2)
    num_source_tokens: int
    num_target_tokens: int
    fill: float = shown("fill={:.2f}", "fill {:.0%}", row=2)
    peak_memory: int = shown("memory={}", "memory {}", mebibytes, row=2)
    skipped_updates: int = shown(
        "skipped_updates={}", lambda count: f"{count} updates skipped" if count else ""
    )
    eta_s: float = shown("eta={}", "ETA {}", duration, row=2)
    elapsed_s: float = shown("elapsed={}", "elapsed {}", duration, row=2)
    ranks: int
    operations: float


@dataclass(frozen=True)
class Sample:
    """A line of the validation set with its translation.

    Attributes:
        line: its number in the validation set, from 1.
        source, reference, hypothesis: its texts, unchanged.
    """

    line: int
    source: str
    reference: str
    hypothesis: str

    def shown(self) -> dict[str, str]:
        """Return the texts by name, with escape sequences for what a terminal would act on."""
        texts = {"source": self.source, "reference": self.reference, "hypothesis": self.hypothesis}
        return {name: printable(text) for name, text in texts.items()}


@dataclass(frozen=True, kw_only=True)
class ValidationRecord:
    """One validation.

    Attributes:
        update: the number of updates before it.
        nll: negative log-likelihood without smoothing, in nats per target token; perplexity is
            its exp.
        scores: scores of the translated validation set, by metric; of several directions, also of
            each, such as `bleu:en-sv` and `nll:en-sv`, and `nll` and the metrics are averages.
        signatures: how the scores were computed, by metric; empty if the model cannot translate.
        is_best: whether it is better than all before, by --best-metric.
        took_s: its duration in seconds.
        samples: the lines of --validate-samples; empty if the model cannot translate.
    """

    event: ClassVar[str] = "validation"

    update: int
    nll: float = shown("nll={:.4f}", "nll {:.4f} nats/token")
    perplexity: float = shown("perplexity={:.2f}", "perplexity {:.2f}")
    scores: Mapping[str, float] = shown(
        plain_scores,
        lambda scores: plain_scores(scores, " ", "  "),
    )
    signatures: Mapping[str, str]
    is_best: bool
    took_s: float = shown("took={}", "took {}", duration)
    samples: list[Sample]


@dataclass(frozen=True)
class ValidationProgress:
    """How far a part of a validation is; the display shows it, no log has it.

    Attributes:
        counted: what is counted, such as "translated lines".
        done, total: how many are done, and how many there are.
    """

    counted: str
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class SkippedRecord:
    """An update that was skipped because its gradients were not finite.

    Attributes:
        update: its number.
        shard, pairs: the training shard of its pairs, and their numbers in it.
    """

    event: ClassVar[str] = "skipped"

    update: int
    shard: int
    pairs: list[int]


@dataclass(frozen=True, kw_only=True)
class SessionRecord:
    """A session of training, which begins with the first record after it.

    Attributes:
        update: number of updates of the run before it.
        started: its date and time in UTC, as ISO 8601.
        data: path of the dataset, as given.
        device: name of the first rank's GPU, or "cpu".
        processor: model of the first rank's CPU; empty if unknown.
        threads: CPU threads per rank.
        ranks: processes that train together, one per device.
        nmtkit, torch, python: versions.
        directions: training pairs per epoch of each of several directions, on average.
    """

    event: ClassVar[str] = "session"

    update: int
    started: str
    data: str
    device: str
    processor: str
    threads: int
    ranks: int
    nmtkit: str
    torch: str
    python: str
    directions: Mapping[str, float] = dataclasses.field(default_factory=dict)


Record = TrainingRecord | ValidationRecord | SkippedRecord | SessionRecord


class Log(Protocol):
    """A logger, which gets every record of the first rank; `training/run.py` makes the loggers."""

    def append(self, record: Record) -> None:
        """Add a record; ResourceError if it cannot be written."""


def displays(record: Record) -> list[tuple[Display, Any]]:
    """Return the displayed fields of a record with their values, in the order of declaration."""
    return [
        (field.metadata["display"], vars(record)[field.name])
        for field in dataclasses.fields(record)
        if "display" in field.metadata
    ]
