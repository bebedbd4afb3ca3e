"""Features by models: log-probabilities of translations, or of sources given translations.

The only file of this folder that imports torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmtkit.config.rerank import FeatureSpec
from nmtkit.config.schema import RuntimeConfig, ScoringConfig
from nmtkit.decoding.loading import load_scorer
from nmtkit.decoding.scorer import Scorer
from nmtkit.errors import ConfigError
from nmtkit.rerank.features import Pair, ScorePairs
from nmtkit.text.codec import TextCodec


@dataclass(frozen=True)
class View:
    """The request of a kind of feature to its model.

    Attributes:
        pair: returns source and target of the model.
        is_backward: the model translates in the other direction.
    """

    pair: Callable[[Pair], tuple[str, str]]
    is_backward: bool = False


def reversed_words(text: str) -> str:
    """Return the words of a text, which are between white space, in reverse order."""
    return " ".join(reversed(text.split()))


VIEWS: dict[str, View] = {
    "forced": View(lambda one: (one.source, one.translation)),
    "backward": View(lambda one: (one.translation, one.source), is_backward=True),
    "right-to-left": View(lambda one: (one.source, reversed_words(one.translation))),
}
"""The view of each kind of feature by models."""


class Models:
    """Loads the models of features, each once, and checks that their languages agree."""

    def __init__(self, scoring: ScoringConfig, runtime: RuntimeConfig) -> None:
        """Load nothing yet.

        Args:
            scoring: longest line, size of batches, precision.
            runtime: device and threads.
        """
        self._scoring, self._runtime = scoring, runtime
        self._scorers: dict[str, Scorer] = {}
        self._first: tuple[FeatureSpec, TextCodec] | None = None

    def load(self, spec: FeatureSpec) -> ScorePairs:
        """Return the function that scores pairs for a feature.

        Raises:
            ConfigError: the model does not translate in the direction that other features imply;
                the device is missing.
            DamagedError: the model is missing or damaged.
        """
        name, view = spec.argument, VIEWS[spec.kind]
        if name not in self._scorers:
            self._scorers[name] = load_scorer(Path(name), self._scoring, self._runtime)
        scorer = self._scorers[name]
        self._check_languages(spec, scorer.codec)

        def score(pairs: Sequence[Pair]) -> list[float]:
            names = [f"{one.where}: {spec.name}" for one in pairs]
            return [one.log_prob for one in scorer.score_named([*map(view.pair, pairs)], names)]

        return score

    def _check_languages(self, spec: FeatureSpec, codec: TextCodec) -> None:
        """Raise ConfigError if the direction of a model differs from that of the first one."""
        if self._first is None:
            self._first = spec, codec
            return
        first_spec, first = self._first
        is_turned = VIEWS[spec.kind].is_backward != VIEWS[first_spec.kind].is_backward
        wanted, own = _languages(first, is_turned), _languages(codec, is_turned)
        # An imported model need not name its languages.
        if not (codec.accepts_languages(*wanted) or first.accepts_languages(*own)):
            raise ConfigError(
                f"{spec.name}: the model translates {codec.source_lang} to {codec.target_lang}, "
                f"and that of {first_spec.name} {first.source_lang} to {first.target_lang}; give "
                f"{spec.kind} a model from {wanted[0]} to {wanted[1]}"
            )


def _languages(codec: TextCodec, is_turned: bool) -> tuple[str, str]:
    """Return the languages of source and target, or of target and source."""
    pair = codec.source_lang, codec.target_lang
    return pair[::-1] if is_turned else pair
