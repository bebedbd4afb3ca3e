"""Records as training makes them."""

import math

from nmtkit.progress.records import SessionRecord, TrainingRecord, ValidationRecord

SESSION = SessionRecord(
    update=50,
    started="2026-01-31T12:30:05+00:00",
    data="data/en-de",
    device="cpu",
    processor="Some CPU 9000",
    threads=4,
    ranks=2,
    nmtkit="0.1.0",
    torch="2.11.0",
    python="3.12.1",
)
TRAINING = TrainingRecord(
    update=100,
    epoch=2,
    loss=4.25,
    nll=3.5,
    perplexity=math.exp(3.5),
    learning_rate=1.25e-4,
    gradient_norm=0.75,
    tokens_per_second=12345.6,
    updates_per_second=1.5,
    num_source_tokens=2000,
    num_target_tokens=2100,
    fill=0.97,
    peak_memory=1290 * 2**20,
    skipped_updates=0,
    eta_s=7265.0,
    elapsed_s=65.0,
    ranks=2,
    operations=3.5e12,
)
VALIDATION = ValidationRecord(
    update=100,
    nll=3.25,
    perplexity=math.exp(3.25),
    scores={"bleu": 26.331},
    signatures={"bleu": "tok:13a"},
    is_best=True,
    took_s=8.0,
    samples=[],
)
