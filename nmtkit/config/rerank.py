"""Settings of `nmtkit rerank`, and the features that it knows.

`FEATURES` has the facts about each kind of feature; `FEATURES` in nmtkit/rerank/features.py
computes them, under the same names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nmtkit.config.setting import setting

UTILITIES = ("chrf", "bleu")
"""Utilities of the feature mbr; `nmtkit/rerank/mbr.py` computes them."""


@dataclass(frozen=True)
class FeatureInfo:
    """Facts about a kind of feature.

    Attributes:
        argument: what is written after the kind and a colon: "PATH", "NAME"; "" = nothing.
        choices: the permitted arguments; () = any.
        settings: settings that have an effect on it.
        has_slow_start: it starts something for each chunk, so all chunks are large.
    """

    argument: str = ""
    choices: Sequence[str] = ()
    settings: Sequence[str] = ()
    has_slow_start: bool = False


MODEL_SETTINGS = ("max_tokens", "max_length", "precision", "device", "threads")

FEATURES: dict[str, FeatureInfo] = {
    "model": FeatureInfo(),
    "length": FeatureInfo(),
    "forced": FeatureInfo("PATH", settings=MODEL_SETTINGS),
    "backward": FeatureInfo("PATH", settings=MODEL_SETTINGS),
    "right-to-left": FeatureInfo("PATH", settings=MODEL_SETTINGS),
    "command": FeatureInfo("NAME", settings=("metric_command",), has_slow_start=True),
    "mbr": FeatureInfo("UTILITY", UTILITIES, settings=("mbr", "samples")),
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

    features: str = setting(
        "",
        "Comma-separated features. model: the score that is there; length: words; forced:MODEL, "
        "backward:MODEL, right-to-left:MODEL: log-probability by a model; command:NAME: a program "
        "of --metric-command; mbr:chrf, mbr:bleu: expected utility.",
        metavar="LIST",
        required=True,
    )
    weights: str = setting(
        "",
        "Weights of the features, a TOML file as --tune writes it; one feature needs none.",
        metavar="FILE",
    )
    samples: str = setting(
        "",
        "Candidates of these JSON lines are the references of mbr, instead of those of the line.",
        metavar="FILE",
    )
    mbr: str = setting(
        "auto",
        "Computation of mbr. exact: every candidate against every reference; aggregate: against "
        "their average; auto: exact up to 4,096 pairs per line.",
        choices=("auto", "exact", "aggregate"),
    )
    chunk_lines: int = setting(
        1024,
        "Lines that are held in memory and scored together.",
        unit="lines",
        minimum=1,
        maximum=1_000_000,
    )


@dataclass(frozen=True, kw_only=True)
class RerankOutputConfig:
    """Output."""

    output_format: str = setting(
        "text",
        "Format of the output. text: the best translation per line; json: an object per line with "
        "the candidates in their new order, their features and scores.",
        choices=("text", "json"),
    )
    n_best: int = setting(
        0, "In json, candidates per line, best first; 0 = all.", minimum=0, maximum=10_000
    )


@dataclass(frozen=True, kw_only=True)
class TuningConfig:
    """Tuning, with --tune."""

    restarts: int = setting(
        20, "Searches that begin with random weights.", minimum=0, maximum=100_000
    )
