"""Builders of the tests of reranking."""

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from nmtkit.config.schema import RerankRecipe
from nmtkit.config.toml import build
from nmtkit.rerank.features import Feature, make_features
from nmtkit.text.translations import Candidate, TranslatedLine
from tests.tiny import never_warn


def line_of(source: str, *texts: str, scores: Sequence[float] | None = None) -> TranslatedLine:
    """Return a line with these candidates; without scores, they lack the key."""
    candidates = [
        Candidate(
            text,
            {"translation": text} | ({} if scores is None else {"score": scores[place]}),
            "x:1",
            f"n_best[{place}].",
        )
        for place, text in enumerate(texts)
    ]
    return TranslatedLine("x:1", source, "", candidates[0], candidates, {})


def features_of(names: str, **values: Any) -> dict[str, Feature]:
    return make_features(build(RerankRecipe, {"features": names} | values), never_warn)


def program(expression: str) -> str:
    """Return a command that prints, per line of tab-separated texts, the value of an expression.

    The expression has the texts as `texts`.
    """
    code = (
        "import sys\n"
        "for line in sys.stdin:\n"
        "    texts = line[:-1].split('\\t')\n"
        f"    print({expression})\n"
    )
    return shlex.join([sys.executable, "-c", code])
