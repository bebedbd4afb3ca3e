"""Comparisons of small texts."""

from collections.abc import Sequence

from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.evaluation.evaluate import Comparison, compare
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.texts import Text, Texts

REFERENCE = ["The cat sat on the mat.", "A dog ran to the park.", "so " * 12 + "on.", "Good."]
GOOD = ["The cat sat on a mat.", "A dog ran to the park.", "so " * 12 + "on.", "Bad."]
POOR = ["The cat sits on the mat.", "Dogs run in parks.", "so so on.", "Good."]
MIDDLING = ["The cat sat on a mat.", "Dog ran to park.", "so " * 6 + "on.", "Well."]
SYSTEMS = {"out/good.en": GOOD, "out/poor.en": POOR, "out/middling.en": MIDDLING}


def comparison(
    systems: dict[str, list[str]] | None = None,
    reference: Sequence[str] = REFERENCE,
    *,
    source: Sequence[str] | None = None,
    metric: str = "bleu,ter",
    significance: SignificanceConfig | None = None,
) -> Comparison:
    """Compare systems, by name, with a reference."""
    named = SYSTEMS if systems is None else systems
    texts = [Text(name, lines) for name, lines in named.items()]
    given = None if source is None else Text("data/source.de", source)
    return compare(
        Texts(texts, [Text("data/ref.en", reference)], given),
        make_metrics(MetricsConfig(metric=metric)),
        significance or SignificanceConfig(),
        BreakdownConfig(),
    )
