"""The text hook: training pairs as ids, those that are drawn with another text or segmentation.

A drawn pair passes these steps in `TrainingText.read`: stored ids; text; joined to the text of a
second pair; changed by modifiers; ids; segmented at random; annotated with marks. A step that makes
it too long, or that its vocabulary does not allow, is left out. All other pairs keep their stored
ids and cost nothing. Links of the stored pieces become links of the pieces at the same places of
the new text.

The draws of an update follow from (seed, update) for all of its pairs, before they are split into
micro-batches; the segmentation of a pair follows from (seed, update, pair, side). So ranks,
micro-batches and resuming do not change them. Validation and translation have neither.
nmtkit/text/noise.py has the modifiers, nmtkit/text/subword_sampler.py the segmentations, and
nmtkit/spans/annotate.py the annotations. This module does not import torch: the loader's worker
processes start without it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from random import Random

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training_rules import (
    JOIN_LINES,
    PLACEHOLDERS,
    annotation_probabilities,
    noise_probabilities,
)
from nmtkit.data.binary import SIDES, Dataset, Indices, PairIds, Pairs, Sequences
from nmtkit.errors import ConfigError
from nmtkit.spans.annotate import Annotator, LinkedPair
from nmtkit.text.codec import TextCodec, languages_of
from nmtkit.text.links import Link, links_of_pieces, words_of_pieces
from nmtkit.text.noise import MODIFIERS, SOURCE_MODIFIERS, EditableText, Texts, join
from nmtkit.text.subword import Subword
from nmtkit.text.subword_sampler import SAMPLED, SubwordSampler
from nmtkit.text.vocabulary import Vocabulary
from nmtkit.training.micro_batches import noise_seed, subword_seed

_CLOSED = ("words", "word")
"""Segmentations whose vocabularies are closed lists of words."""

_NO_PAIR = -1

Draws = NDArray[np.uint64]
"""Random numbers; 0 = not drawn."""

BothIds = list[list[int]]
"""Ids of source and target of a pair."""


@dataclass(frozen=True)
class Lines:
    """The lines of an update, shortest first: its pairs, some of them to be joined.

    Attributes:
        first: (B,) index of the pair of each line.
        second: (B,) index of the pair to join to it; -1 = none.
        draws: (M, B) random number of each modifier of single pairs, and of each annotation.
    """

    first: Indices
    second: Indices
    draws: Draws

    def __len__(self) -> int:
        return len(self.first)

    def at(self, places: Indices) -> "Lines":
        """Return the lines at some places, in that order."""
        return Lines(self.first[places], self.second[places], self.draws[:, places])


@dataclass(frozen=True)
class _Pair:
    """A decoded pair.

    Attributes:
        ids: of source and target.
        symbols: ids of the tags and language symbols with which they begin.
        texts: the rest; without the target if only the source will change.
    """

    ids: BothIds
    symbols: BothIds
    texts: Texts


@dataclass(frozen=True)
class _ReadPair:
    """A pair of an update, with its noise and annotations.

    Attributes:
        ids: of source and target, with end symbols.
        links: source piece and target piece of each link; empty if links are not read.
    """

    ids: BothIds
    links: list[int]


@dataclass(frozen=True)
class TrainingText:
    """Reads training pairs with noise, subword sampling and annotations.

    Attributes:
        probabilities: of each modifier that is used, in the order in which they are applied.
        source_langs: language of the source of each training text.
        annotations: probability of each kind that is used.
        sides: the text of source and target; nothing without noise and annotations.
        samplers: of source and target; None = the side is not sampled.
        annotator: makes the annotations; None = there are none.
        vocabularies: of source and target, for links; None = links are not read.
        keeps_links: links are part of the pairs that are read.
        seed: seed of the run.
        longest: largest number of tokens per sequence, end symbol included.
    """

    probabilities: Mapping[str, float]
    annotations: Mapping[str, float]
    source_langs: Sequence[str]
    sides: Sequence[EditableText]
    samplers: Sequence[SubwordSampler | None]
    annotator: Annotator | None
    vocabularies: tuple[Vocabulary, Vocabulary] | None
    keeps_links: bool
    seed: int
    longest: int

    @staticmethod
    def of(recipe: TrainRecipe, dataset: Dataset) -> "TrainingText":
        """Return the reader of a recipe's noise, subword sampling and annotations.

        Raises:
            ConfigError: a modifier or annotation does not fit the dataset, or a vocabulary to
                sample has only one segmentation of a text.
        """
        codec, probabilities = dataset.codec, noise_probabilities(recipe.training.noise)
        annotations = annotation_probabilities(recipe.training.annotate)
        _check_noise(probabilities, codec)
        _check_annotations(annotations, dataset)
        vocabularies = codec.source, codec.target
        keeps_links = recipe.training.guided_alignment_weight > 0
        has_text = bool(probabilities or annotations)
        return TrainingText(
            probabilities,
            annotations,
            source_langs=[languages_of(one)[0] for one in dataset.directions]
            or [codec.source_lang] * len(dataset.weights),
            sides=[EditableText(one) for one in vocabularies] if has_text else [],
            samplers=_make_samplers(recipe, codec),
            annotator=Annotator(*vocabularies) if annotations else None,
            vocabularies=vocabularies if keeps_links or annotations else None,
            keeps_links=keeps_links,
            seed=recipe.seed.seed,
            longest=min(recipe.training.update_tokens, recipe.model.longest_sequence),
        )

    @property
    def is_active(self) -> bool:
        """Some pairs are changed, which takes longer than reading ids."""
        return bool(self.probabilities or self.annotations) or any(self.samplers)

    def draw(self, shard: Pairs, indices: Indices, update: int) -> Lines:
        """Draw the lines of an update, their noise and annotations.

        Args:
            shard: the shard of its pairs.
            indices: (B,) indices of these, shortest first.
            update: its number, from 1.

        Returns:
            Its lines, each pair once; a line of two pairs has at most `longest` tokens as stored.
        """
        names = *self._modifiers, *self.annotations
        draws = np.zeros((len(names), len(indices)), np.uint64)
        for row, name in enumerate(names):
            draws[row] = self._draw(update, name, len(indices))
        lines = Lines(indices, np.full(len(indices), _NO_PAIR), draws)
        if JOIN_LINES not in self.probabilities:
            return lines
        return self._in_pairs(shard, lines, self._draw(update, JOIN_LINES, len(indices)))

    def read(self, shard: Pairs, lines: Lines, update: int) -> PairIds:
        """Read lines of an update.

        Args:
            shard: the shard of its pairs.
            lines: some of those that `draw` returned.
            update: its number.

        Returns:
            The pairs; two that cannot be joined are two.
        """
        stored = (shard if self.keeps_links else replace(shard, links=None)).take(lines.first)
        is_changed = (lines.second != _NO_PAIR) | lines.draws.any(axis=0)
        places = np.flatnonzero(is_changed | any(self.samplers))
        if not len(places):
            return stored
        drawn = lines.at(places)
        members = zip(drawn.first.tolist(), drawn.second.tolist(), strict=True)
        new = [
            self._read_line(shard, indices, draws, update)
            for indices, draws in zip(members, drawn.draws.T.tolist(), strict=True)
        ]
        source, target = (
            _replaced(side, places, [[pair.ids[n] for pair in line] for line in new])
            for n, side in enumerate((stored.source, stored.target))
        )
        links = stored.links and _replaced(
            stored.links, places, [[pair.links for pair in line] for line in new]
        )
        return PairIds(source, target, links)

    def _read_line(
        self, shard: Pairs, indices: tuple[int, int], draws: Sequence[int], update: int
    ) -> list[_ReadPair]:
        """Return the pair of a line; or two, if they cannot be joined."""
        members = [index for index in indices if index != _NO_PAIR]
        stored = [[side[i].tolist() for side in (shard.source, shard.target)] for i in members]
        names = *self._modifiers, *self.annotations
        numbers = {name: n for name, n in zip(names, draws, strict=True) if n}
        drawn, kinds = (
            {name: numbers[name] for name in own if name in numbers}
            for own in (self._modifiers, self.annotations)
        )
        noised = stored
        if drawn or len(stored) > 1:
            langs = [self._source_lang(shard, index) for index in members]
            noised = self._noised(stored, langs, drawn)
        # Of two joined pairs, the first one seeds the segmentation.
        sampled = [self._sampled(i, ids, update) for i, ids in zip(members, noised, strict=False)]
        sources = [members] if len(noised) < len(members) else [[index] for index in members]
        first, *others = (
            _ReadPair(ids, self._links_of(shard, own, ids))
            for ids, own in zip(sampled, sources, strict=True)
        )
        return [self._annotated(first, kinds) if kinds else first, *others]

    def _annotated(self, pair: _ReadPair, draws: Mapping[str, int]) -> _ReadPair:
        """Return a pair with annotations, unless it is too long."""
        assert self.annotator is not None
        source, target = pair.ids
        links = [*zip(pair.links[::2], pair.links[1::2], strict=True)]
        num_symbols = [
            side.num_symbols(own) for side, own in zip(self.sides, pair.ids, strict=True)
        ]
        found = self.annotator.annotate(LinkedPair(source, target, links), num_symbols, draws)
        if max(len(found.source), len(found.target)) > self.longest:
            return pair
        return _ReadPair([found.source, found.target], [*chain.from_iterable(found.links)])

    def _links_of(self, shard: Pairs, members: Sequence[int], ids: BothIds) -> list[int]:
        """Return the links of a line.

        Args:
            shard: the shard of its pairs.
            members: the pair of which it is made, or the two that were joined.
            ids: its ids, with end symbols.
        """
        if self.vocabularies is None or shard.links is None:
            return []
        first = members[0]
        if ids == [side[first].tolist() for side in (shard.source, shard.target)]:
            found: list[int] = shard.links[first].tolist()
            return found
        texts: list[list[str]] = [[], []]
        links: list[Link] = []
        for index in members:
            offsets = []
            for n, side in enumerate((shard.source, shard.target)):
                own = side[index].tolist()
                num_left_out = self.sides[n].num_symbols(own) if texts[n] else 0
                offsets.append(len(texts[n]) - num_left_out)
                texts[n] += self.vocabularies[n].texts(own[num_left_out:-1])
            stored = shard.links[index].reshape(-1, 2).tolist()
            links += [(source + offsets[0], target + offsets[1]) for source, target in stored]
        stored_pieces = (
            words_of_pieces(vocabulary, own[:-1], stored_texts)
            for vocabulary, own, stored_texts in zip(self.vocabularies, ids, texts, strict=True)
        )
        return [*chain.from_iterable(links_of_pieces(links, *stored_pieces))]

    def _source_lang(self, shard: Pairs, index: int) -> str:
        """Return the language of the source of a pair."""
        ends = [*accumulate(num_pairs for num_pairs, _ in shard.weight_runs)]
        return self.source_langs[bisect_right(ends, index)]

    def _noised(
        self, stored: list[BothIds], source_langs: Sequence[str], draws: Mapping[str, int]
    ) -> list[BothIds]:
        """Return one pair or two with their noise, joined if they are two of the same languages.

        Args:
            stored: the stored ids of each.
            source_langs: the language of the source of each.
            draws: the random number of each modifier to apply to the first, or the joined one.
        """
        has_target = len(stored) > 1 or not draws.keys() <= SOURCE_MODIFIERS.keys()
        decoded = [
            pair
            for ids, lang in zip(stored, source_langs, strict=True)
            if (pair := self._decoded(ids, lang, has_target))
        ]
        if len(decoded) < len(stored):
            return stored
        first, second = decoded[0], decoded[-1]
        is_same = first.symbols == second.symbols and len({*source_langs}) == 1
        can_join = len(stored) > 1 and is_same
        joined = self._encoded(first, join(first.texts, second.texts)) if can_join else None
        clean = joined or first
        texts = clean.texts
        for name, draw in draws.items():
            texts = MODIFIERS[name](texts, Random(draw))
        noised = self._encoded(clean, texts) or clean
        return [noised.ids] if joined else [noised.ids, *stored[1:]]

    def _decoded(self, ids: BothIds, source_lang: str, has_target: bool) -> _Pair | None:
        """Return a pair as text; None if it has none that would be encoded as these ids."""
        source = self.sides[0].decode(ids[0])
        target = self.sides[1].decode(ids[1]) if has_target else ([], "")
        if source is None or target is None:
            return None
        return _Pair(ids, [source[0], target[0]], Texts(source[1], target[1], source_lang))

    def _encoded(self, pair: _Pair, texts: Texts) -> _Pair | None:
        """Return a pair with another text; None if it cannot be encoded, or is too long."""
        old, new = ((one.source, one.target) for one in (pair.texts, texts))
        ids = [
            side.encode(pair.symbols[n], new[n]) if new[n] != old[n] else pair.ids[n]
            for n, side in enumerate(self.sides)
        ]
        fitting = [one for one in ids if one and len(one) <= self.longest]
        return replace(pair, ids=fitting, texts=texts) if len(fitting) == len(ids) else None

    def _sampled(self, index: int, ids: BothIds, update: int) -> BothIds:
        """Return a pair with another segmentation of each sampled side, unless it is too long."""
        sampled = [*ids]
        for n, sampler in enumerate(self.samplers):
            if sampler is not None:
                seed = subword_seed(self.seed, update, index, SIDES[n])
                drawn = sampler.sample(ids[n], seed)  # keeps the end symbol
                sampled[n] = drawn if len(drawn) <= self.longest else ids[n]
        return sampled

    @property
    def _modifiers(self) -> list[str]:
        """Names of the used modifiers of single pairs, in order."""
        return [name for name in self.probabilities if name != JOIN_LINES]

    def _draw(self, update: int, name: str, size: int) -> Draws:
        """Draw a modifier or an annotation for the pairs of an update."""
        probability = self.probabilities.get(name) or self.annotations[name]
        random = np.random.Philox(noise_seed(self.seed, update, name)).random_raw(size)
        # The upper 53 bits are a float from 0 to 1, 1 excluded.
        is_drawn = (random >> np.uint64(11)) * 2.0**-53 < probability
        return (random | np.uint64(1)) * is_drawn

    def _in_pairs(self, shard: Pairs, lines: Lines, draws: Draws) -> Lines:
        """Put the drawn lines together, two by two at random; an odd one stays alone."""
        drawn = np.flatnonzero(draws)
        drawn = drawn[np.argsort(draws[drawn], kind="stable")]
        first, second = drawn[0 : len(drawn) - 1 : 2], drawn[1::2]
        offsets = shard.source.offsets, shard.target.offsets
        lengths = np.stack([side[lines.first + 1] - side[lines.first] for side in offsets])
        lengths = lengths.astype(np.int64)
        joined = lengths[:, first] + lengths[:, second] - 1  # one end symbol
        fits = (joined <= self.longest).all(axis=0)
        first, second = first[fits], second[fits]
        lengths[:, first] = joined[:, fits]
        partners = lines.second.copy()
        partners[first] = lines.first[second]
        kept = np.delete(np.arange(len(lines)), second)
        by_length = kept[np.lexsort(tuple(lengths[:, kept]))]
        return replace(lines, second=partners).at(by_length)


def _replaced(
    stored: Sequences, places: Indices, new: Sequence[Sequence[Sequence[int]]]
) -> Sequences:
    """Replace the sequences at some places by others, one or two each."""
    starts = np.concatenate([[0], np.cumsum(stored.lengths, dtype=np.int64)])
    # Odd parts are those of the places.
    ids = np.split(stored.ids, np.column_stack([starts[places], starts[places + 1]]).ravel())
    ids[1::2] = [np.array([*chain(*line)], stored.ids.dtype) for line in new]
    lengths = np.split(stored.lengths, np.column_stack([places, places + 1]).ravel())
    lengths[1::2] = [np.array([*map(len, line)], stored.lengths.dtype) for line in new]
    return Sequences(np.concatenate(ids), np.concatenate(lengths))


def _check_noise(probabilities: Mapping[str, float], codec: TextCodec) -> None:
    """Raise ConfigError for a modifier that does not fit the text of a dataset."""
    for name in probabilities:
        sides = {"source": codec.source}
        if name not in SOURCE_MODIFIERS:
            sides["target"] = codec.target
            if codec.target_type != "text":
                raise ConfigError(
                    f"noise: {name} changes the target, and the target side of this dataset is "
                    f"{codec.target_type}; leave it out [training.noise]"
                )
        closed = [side for side, one in sides.items() if one.segmentation in _CLOSED]
        if closed:
            raise ConfigError(
                f"noise: {name} changes words, and the {' and '.join(closed)} vocabulary is a "
                "closed list of the words of segmented text; leave it out, or preprocess plain "
                "text with --segmentation bpe or unigram [training.noise]"
            )


def _check_annotations(names: Iterable[str], dataset: Dataset) -> None:
    """Raise ConfigError for annotations of a dataset without marks, or without links for them."""
    for name in names:
        if not dataset.codec.num_marks:
            raise ConfigError(
                f"annotate: {name} are written with marks, and {dataset.folder} has none; make it "
                "with `nmtkit preprocess --marks 20`, or leave them out [training.annotate]"
            )
        if name != PLACEHOLDERS and not dataset.has_links:
            raise ConfigError(
                f"annotate: {name} need word alignments, and {dataset.folder} has none; make it "
                "with `nmtkit preprocess --alignments`, or leave them out [training.annotate]"
            )


def _make_samplers(recipe: TrainRecipe, codec: TextCodec) -> list[SubwordSampler | None]:
    """Return the samplers of source and target; None for a side that is not sampled."""
    chosen, alpha = recipe.training.subword_sampling, recipe.training.subword_alpha
    vocabularies = {"source": codec.source, "target": codec.target}
    sampled = {"none": (), "both": SIDES}.get(chosen, (chosen,))
    models = {side: _model_to_sample(vocabularies[side]) for side in sampled}
    for side, model in models.items():
        if model is None:
            other = next((one for one in sampled if models[one]), None)
            instead = f"use --subword-sampling {other}" if other else "leave it out"
            raise ConfigError(
                f"subword_sampling ({chosen!r}) has no effect: the {side} vocabulary has only "
                f"one segmentation of a text; {instead}, or preprocess with --segmentation bpe or "
                "unigram [training.subword_sampling]"
            )
    return [SubwordSampler(model, alpha) if (model := models.get(side)) else None for side in SIDES]


def _model_to_sample(vocabulary: Vocabulary) -> bytes | None:
    """Return the model of a vocabulary, or None if it has only one segmentation of a text."""
    if isinstance(vocabulary, Subword) and vocabulary.segmentation in SAMPLED:
        return vocabulary.model
    return None
