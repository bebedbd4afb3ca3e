"""Settings of `nmtkit score` that contradict each other, and settings that agree."""

from collections.abc import Mapping

import pytest

from nmtkit.config.schema import ScoreRecipe, Value
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError
from tests.messages import refuses


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"metric": "bleu,chfr"}, "chfr; chrf metrics.metric"),
        ({"metric": ""}, "''; bleu brackets metrics.metric"),
        ({"metric": "BLEU"}, "BLEU; 'bleu'"),
        ({"metric": "chrf", "tokenize": "intl"}, "tokenize intl chrf; metrics.tokenize"),
        ({"metric": "ter", "lowercase": True}, "lowercase True ter; metrics.lowercase"),
        ({"metric": "paper-bleu"}, "paper-bleu; --language-pair en-de metrics.language_pair"),
        ({"test_set": "wmt17"}, "test_set; --language-pair"),
        ({"language_pair": "de"}, "language_pair de; en-zh metrics.language_pair"),
        ({"language_pair": "en-zh-CN"}, "language_pair en-zh-CN; codes country script en-zh"),
        ({"metric": "brackets,bleu"}, "metric brackets,bleu; metrics.metric"),
        *(
            (
                {"metric": "brackets", **values},
                f"{next(iter(values))} {text} brackets",
            )
            for values, text in (
                ({"lowercase": True}, "True"),
                ({"language_pair": "en-de", "test_set": "wmt17"}, "en-de"),
                ({"language_pair": "en-de"}, "en-de"),
                ({"by_frequency": "train.de"}, "train.de"),
            )
        ),
        ({"prm": "new.prm"}, "prm new.prm; metrics.prm"),
        ({"paired_bs": True, "paired_ar": True}, "paired_bs --paired-ar; significance.paired_bs"),
        ({"paired_bs": True, "confidence": True}, "confidence True --paired-bs"),
        ({"trials": 5}, "trials 5 --paired-ar"),
        ({"resamples": 5, "paired_ar": True}, "resamples 5 --confidence --paired-bs"),
        *(
            (
                {"sentence_level": True, **values},
                f"{next(iter(values))} {text} --sentence-level",
            )
            for values, text in (
                ({"confidence": True}, "True"),
                ({"paired_bs": True}, "True"),
                ({"paired_ar": True}, "True"),
                ({"by_length": True}, "True"),
                ({"by_frequency": "train.de"}, "train.de"),
            )
        ),
    ],
)
def test_contradictory_settings_of_scoring_are_refused(
    values: Mapping[str, Value], keys: str
) -> None:
    with refuses(ConfigError, keys):
        build(ScoreRecipe, values)


@pytest.mark.parametrize(
    "values",
    [
        {"metric": "bleu, ter", "lowercase": True, "tokenize": "char"},
        {"metric": "moses-bleu,paper-bleu", "language_pair": "en-de"},
        {"test_set": "wmt17", "language_pair": "en-de", "sentence_level": True},
        {"metric": "brackets", "prm": "new.prm", "sentence_level": True},
        {"metric": "brackets", "paired_ar": True, "by_length": True},
        {"paired_bs": True, "resamples": 5},
        {"paired_ar": True, "trials": 5, "confidence": True, "resamples": 5, "by_length": True},
    ],
)
def test_consistent_settings_of_scoring_are_accepted(values: Mapping[str, Value]) -> None:
    build(ScoreRecipe, values)
