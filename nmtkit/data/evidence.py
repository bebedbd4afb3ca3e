"""Evidence about parallel text: what its sample shows, for the checks of `findings.py`."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.filters import main_script, mostly_in_other_script
from nmtkit.data.languages import Trigrams, log_model
from nmtkit.data.text_sample import TextSample
from nmtkit.text.corpus import Corpus

_MIN_LETTERS_OF_PAIR = 10
_SWAPPED_NATS = 0.2
"""Nats per letter by which both sides of a swapped pair fit the other language better."""
_DISTINCT_NATS = 0.6
"""Nats per letter that distinguish two languages in the median pair."""


@dataclass(frozen=True)
class Evidence:
    """The facts about a text that findings need.

    Attributes:
        corpus: its files.
        sample: pairs of it.
        filters: the filters of the training text.
        valid: the same of the validation text; None if this is the validation text.
        are_unescaped: whether the vocabulary of each side turns HTML entities into characters.
        can_be_unescaped: --unescape is possible.
        has_other_tag: its tag is not that of the validation text, so it may be of other languages.
    """

    corpus: Corpus
    sample: TextSample
    filters: FilterConfig
    valid: "Evidence | None" = None
    are_unescaped: tuple[bool, bool] = (False, False)
    can_be_unescaped: bool = True
    has_other_tag: bool = False

    @property
    def model(self) -> "Evidence | None":
        """The validation text if both texts have the same tag, so the same languages."""
        return None if self.has_other_tag else self.valid

    @property
    def paths(self) -> tuple[str, str]:
        """The source and the target file."""
        return str(self.corpus.source), str(self.corpus.target)

    @cached_property
    def sides(self) -> tuple[list[str], list[str]]:
        """The source and the target lines of the sample."""
        pairs = self.sample.pairs
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    @cached_property
    def trigrams(self) -> tuple[Trigrams, Trigrams]:
        """The trigrams of both sides."""
        return Trigrams.of(self.sides[0]), Trigrams.of(self.sides[1])

    @cached_property
    def counts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How often each trigram occurs, on both sides."""
        source, target = (one.counts(np.ones(len(one.letters), bool)) for one in self.trigrams)
        return source, target

    @cached_property
    def are_copies(self) -> NDArray[np.bool_]:
        """Whether the target of each pair equals its source, and has letters."""
        pairs = zip(*self.sides, strict=True)
        equal = np.array([source.split() == target.split() for source, target in pairs], bool)
        return equal & (self.trigrams[0].letters > 0)

    @cached_property
    def nats_of_swap(self) -> NDArray[np.float64]:
        """(N,) nats per letter by which both sides of each pair fit the other language better.

        0 for pairs that are too short or copies, and for all pairs if the languages are not
        distinct.
        """
        if self.model is None:
            return np.zeros(len(self.sides[0]))
        source, target = self.trigrams
        models = [log_model(counts) for counts in self.model.counts]
        gains = models[1] - models[0]
        nats = np.minimum(source.means(gains), -target.means(gains))
        shorter = np.minimum(source.letters, target.letters)
        is_judged = (shorter >= _MIN_LETTERS_OF_PAIR) & ~self.are_copies
        if not is_judged.any() or np.median(np.abs(nats[is_judged])) < _DISTINCT_NATS:
            return np.zeros(len(nats))
        return np.where(is_judged, nats, 0.0)

    @property
    def are_swapped(self) -> NDArray[np.bool_]:
        """Whether source and target of each pair are exchanged."""
        return self.nats_of_swap > _SWAPPED_NATS

    @cached_property
    def scripts(self) -> tuple[str | None, str | None]:
        """The script of each side, by the validation text."""
        source, target = (self.model or self).sides
        return main_script(source), main_script(target)

    @cached_property
    def in_other_script(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether each line is mostly in another script than its side."""
        source, target = (
            np.array(mostly_in_other_script(lines, script), bool)
            if script
            else np.zeros(len(lines), bool)
            for lines, script in zip(self.sides, self.scripts, strict=True)
        )
        return source, target

    def remedy(self, option: str) -> str:
        """Return what helps against pairs that an option drops from training texts only."""
        return f"{option} drops them" if self.valid else "remove them"
