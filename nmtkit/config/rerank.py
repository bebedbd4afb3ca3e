"""Settings of `nmtkit rerank`, and the features that it knows.

`FEATURES` has the facts about each kind of feature; `FEATURES` in nmtkit/rerank/features.py
computes them, under the same names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nmtkit.config.setting import common

UTILITIES = ("chrf", "bleu")
"""Utilities of the feature mbr; `nmtkit/rerank/mbr.py` computes them."""


@dataclass(frozen=True)
class FeatureInfo:
    """Facts about a kind of feature.

    Attributes:
        argument: what is written after the kind and a colon: "PATH", "NAME"; "" = nothing.
        choices: the permitted arguments; () = any.
        settings: settings that have an effect on it.
    """

    argument: str = ""
    choices: Sequence[str] = ()
    settings: Sequence[str] = ()


LANGUAGES = ("source_lang", "target_lang")
MODEL_SETTINGS = (*LANGUAGES, "max_tokens", "max_length", "precision", "device", "threads")

FEATURES: dict[str, FeatureInfo] = {
    "model": FeatureInfo(),
    "length": FeatureInfo(),
    "forced": FeatureInfo("PATH", settings=MODEL_SETTINGS),
    "backward": FeatureInfo("PATH", settings=MODEL_SETTINGS),
    "right-to-left": FeatureInfo("PATH", settings=MODEL_SETTINGS),
    "command": FeatureInfo("NAME", settings=("metric_command",)),
    "mbr": FeatureInfo("UTILITY", UTILITIES, settings=("mbr", *LANGUAGES)),
}


@dataclass(frozen=True)
class FeatureSpec:
    """A feature as it is named: `forced:model/`.

    Attributes:
        name: the whole name, which weights have too.
        kind: what is before the colon.
        argument: what is after it; "" = nothing.
    """

    name: str
    kind: str
    argument: str


def feature_specs(text: str) -> list[FeatureSpec]:
    """Return the features of a comma-separated list."""
    parts = (name.strip().partition(":") for name in text.split(","))
    return [FeatureSpec("".join(part), part[0], part[2]) for part in parts]


@dataclass(frozen=True, kw_only=True)
class RerankConfig:
    """Features."""

    features: str = common(
        "",
        "Comma-separated features. model: the score that is there; length: words; forced:MODEL, "
        "backward:MODEL, right-to-left:MODEL: log-probability by a model; command:NAME: a program "
        "of --metric-command; mbr:chrf, mbr:bleu: expected utility.",
        metavar="LIST",
        required=True,
    )
    weights: str = common(
        "",
        "Weights of the features, a JSON file as --tune prints it; one feature needs none.",
        metavar="FILE",
    )
    mbr: str = common(
        "auto",
        "Computation of mbr. exact: every candidate against every other; aggregate: against their "
        "average; auto: exact up to 64 different candidates per line.",
        choices=("auto", "exact", "aggregate"),
    )
    chunk_lines: int = common(
        1024,
        "Lines that are held in memory and scored together.",
        unit="lines",
        minimum=1,
        maximum=1_000_000,
    )


@dataclass(frozen=True, kw_only=True)
class RerankOutputConfig:
    """Output."""

    output_format: str = common(
        "text",
        "Format of the output. text: the best translation per line; json: an object per line with "
        "all candidates in their new order, their features and scores.",
        choices=("text", "json"),
    )
