"""Settings of `nmtkit score` that contradict each other, and settings that agree."""

from collections.abc import Mapping

import pytest

from nmtkit.config.fields import Value
from nmtkit.config.schema import ScoreRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"metric": "bleu,chfr"},
            "no metric 'chfr'; did you mean 'chrf'? [metrics.metric]",
        ),
        (
            {"metric": ""},
            "no metric ''; known are: bleu, chrf, chrf++, ter, moses-bleu, paper-bleu, "
            "brackets [metrics.metric]",
        ),
        ({"metric": "BLEU"}, "no metric 'BLEU'; known are: bleu, chrf,"),
        (
            {"metric": "chrf", "tokenize": "intl"},
            "tokenize (intl) has no effect on chrf; leave it out [metrics.tokenize]",
        ),
        (
            {"metric": "ter", "lowercase": True},
            "lowercase (True) has no effect on ter; leave it out [metrics.lowercase]",
        ),
        (
            {"metric": "paper-bleu"},
            "metric paper-bleu needs the languages; give --language-pair, such as en-de "
            "[metrics.language_pair]",
        ),
        ({"test_set": "wmt17"}, "test_set needs the languages; give --language-pair"),
        (
            {"language_pair": "de"},
            "language_pair ('de') must be two languages and a hyphen, such as en-de "
            "[metrics.language_pair]",
        ),
        (
            {"metric": "brackets,bleu"},
            "metric ('brackets,bleu'): some metrics compare trees, others text; score each kind "
            "with a separate command [metrics.metric]",
        ),
        *(
            (
                {"metric": "brackets", **values},
                f"{next(iter(values))} ({text}) has no effect on brackets; leave it out",
            )
            for values, text in (
                ({"lowercase": True}, "True"),
                ({"language_pair": "en-de", "test_set": "wmt17"}, "en-de"),
                ({"language_pair": "en-de"}, "en-de"),
                ({"by_frequency": "train.de"}, "train.de"),
            )
        ),
        (
            {"prm": "new.prm"},
            "prm (new.prm) has no effect on bleu; leave it out [metrics.prm]",
        ),
        (
            {"paired_bs": True, "paired_ar": True},
            "paired_bs and paired_ar exclude each other; give one of them [significance.paired_bs]",
        ),
        (
            {"paired_bs": True, "confidence": True},
            "confidence (True) has no effect with --paired-bs, which prints intervals anyway;",
        ),
        ({"trials": 5}, "trials (5) has no effect without --paired-ar; leave it out"),
        (
            {"resamples": 5, "paired_ar": True},
            "resamples (5) has no effect without --confidence or --paired-bs; leave it out",
        ),
        *(
            (
                {"sentence_level": True, **values},
                f"{next(iter(values))} ({text}) has no effect with --se",
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
    values: Mapping[str, Value], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(ScoreRecipe, values)
    assert str(caught.value).startswith(message)


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
