"""Plain lines: every event is one line of keys and values."""

import dataclasses
import io

from nmtkit.progress.reporter import PlainReporter, make_reporter
from tests.records import TRAINING, VALIDATION


def test_without_a_terminal_every_event_is_a_line_of_keys_and_values() -> None:
    stream = io.StringIO()
    reporter = make_reporter(stream)
    assert isinstance(reporter, PlainReporter)
    reporter.message("parameters=7")
    reporter.start(1000, 0, [])
    reporter.update(TRAINING)
    reporter.validation(VALIDATION)
    reporter.validation(dataclasses.replace(VALIDATION, update=200, scores={}, is_best=False))
    reporter.close()
    assert stream.getvalue().splitlines() == [
        "parameters=7",
        "event=start update=0/1000",
        "event=training update=100/1000 epoch=2 loss=4.2500 nll=3.5000 perplexity=33.12 "
        "lr=1.250e-04 gradient_norm=0.750 source+target_tokens_per_s=12346 updates_per_s=1.50 "
        "fill=0.97 memory=1290MiB skipped_updates=0 eta=2h01m elapsed=1m05s",
        "event=validation update=100/1000 nll=3.2500 perplexity=25.79 bleu=26.33 "
        "took=8s best_update=100",
        "event=validation update=200/1000 nll=3.2500 perplexity=25.79 took=8s best_update=100",
    ]
