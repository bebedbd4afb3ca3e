"""The flow of `nmtkit preprocess`: text files to a dataset folder.

The text is read several times, so that memory does not grow with it: to check and count the lines,
to learn the vocabularies, to find duplicates if requested, and to encode.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from nmtkit.config.preprocessing import (
    FilterConfig,
    TextEntry,
    directions_of,
    has_alignments,
    split_direction,
    training_texts,
    valid_texts,
    vocabulary_kinds,
)
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import Audit, CountedText, PairCounts, unknown_name
from nmtkit.data.binary import (
    FORMAT,
    TRAIN,
    VALID,
    VERSION,
    Contents,
    ValidText,
    id_type_for,
)
from nmtkit.data.encode import Encoder, check_marks, encode_in_order, plain_pair
from nmtkit.data.filters import HeldOutText, PairFlags, Reason, find_duplicates, find_low_scores
from nmtkit.data.findings import Evidence, Finding, find_all
from nmtkit.data.inherited import fit_warnings, inherited_codec
from nmtkit.data.languages import language_identifier
from nmtkit.data.text_sample import TextSample
from nmtkit.data.vocabulary import check_files, make_codec, rare_entries
from nmtkit.data.writer import DatasetWriter
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import QUICK_ITEMS, WorkReporter
from nmtkit.storage.durable import StagedFolder, new_folder
from nmtkit.storage.json_data import encode
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import KINDS, TextCodec, symbols_of
from nmtkit.text.corpus import CHUNK_PAIRS, Corpus, Pair, chunks
from nmtkit.text.lines import TOO_LONG
from nmtkit.text.links import with_words_before
from nmtkit.text.words import words_of


@dataclass(frozen=True)
class Sizes:
    """Numbers of pairs that are not settings.

    Attributes:
        shard: training pairs per shard, on average.
        chunk: maximum number of pairs that are encoded together.
    """

    shard: int = 262_144
    chunk: int = CHUNK_PAIRS


SIZES = Sizes()


def prepare(
    recipe: PreprocessRecipe,
    out: Path,
    workers: int,
    overwrite: bool,
    reporter: WorkReporter,
    sizes: Sizes = SIZES,
) -> dict[str, Any]:
    """Make a dataset from parallel text.

    Args:
        recipe: settings of `nmtkit preprocess`.
        out: folder of the dataset; it appears whole or not at all.
        workers: number of encoding processes; the dataset does not depend on it.
        overwrite: replace an existing dataset.
        reporter: receives lines about stages, their progress, and the table of counts.
        sizes: of shards and chunks.

    Returns:
        The counts, as in the manifest.

    Raises:
        ConfigError: a file cannot be read, `out` exists, or the text does not allow the settings.
        DataError: text that cannot be used, or no training or validation pairs are left.
        DamagedError: a given SentencePiece model is damaged.
        ResourceError: the disk is full, or a worker was killed.
    """
    with new_folder(out, FORMAT, VERSION, overwrite=overwrite) as staged:
        audit = _Preparation(staged, recipe, workers, reporter, sizes).run()
    for line in audit.table():
        reporter.message(line)
    return audit.to_manifest()


@dataclass(frozen=True)
class _DatasetText:
    """All text of a dataset, after a first reading.

    Attributes:
        corpora, valid: files of the training and of the validation texts.
        held_out: held-out text.
        low_scores: flags of pairs with a low score, if there are scores.
    """

    corpora: Sequence[Corpus]
    valid: Sequence[Corpus]
    held_out: HeldOutText
    low_scores: Mapping[Reason, PairFlags]

    @property
    def num_pairs(self) -> int:
        """Number of training pairs."""
        return sum(corpus.num_pairs for corpus in self.corpora)


class _Preparation:
    """The stages of a preparation; the arguments are those of `prepare`."""

    def __init__(
        self,
        staged: StagedFolder,
        recipe: PreprocessRecipe,
        workers: int,
        reporter: WorkReporter,
        sizes: Sizes,
    ) -> None:
        self._staged, self._recipe = staged, recipe
        self._workers, self._reporter, self._sizes = workers, reporter, sizes
        self._texts, self._valid_texts = training_texts(recipe.corpus), valid_texts(recipe.corpus)
        self._findings: list[Finding] = []

    def run(self) -> Audit:
        """Write the files of the dataset, and set the fields of its manifest."""
        recipe, folder = self._recipe, self._staged.path
        check_files(recipe.vocabulary)
        inherited = inherited_codec(recipe, self._reporter.message)
        _check_alignments(recipe, inherited)
        text = self._read(inherited)
        if inherited:
            inherited.target.check([*text.valid, *text.corpora])
        codec = inherited or make_codec(recipe, text.corpora, text.valid, self._reporter)
        check_marks(recipe.corpus.markup, codec)
        codec_folder = folder / "codec"
        codec_folder.mkdir()
        codec.save(codec_folder)
        encoder = self._make_encoder(text, codec)
        weights = [one.weight for one in self._texts]
        alignments = {TRAIN: recipe.corpus.alignments, VALID: recipe.corpus.valid_alignments}
        linked = [name for name, given in alignments.items() if given]
        writer = DatasetWriter(folder, encoder.id_type, encoder.num_shards, weights, linked=linked)
        train = self._write_train(text, encoder, writer)
        valid, valid_parts = list[CountedText](), list[ValidText]()
        for one, corpus in zip(self._valid_texts, text.valid, strict=True):
            num_lines, counts = self._write_valid(one, corpus, encoder, writer)
            valid.append(CountedText(one, counts))
            if one.direction:
                valid_parts.append(ValidText(one.direction, num_lines, counts.kept))
        audit = Audit(train, valid, unknown_name(codec.segmentation))
        contents = replace(
            writer.finish(codec),
            directions=tuple(one.direction for one in self._texts if one.direction),
            valid_texts=tuple(valid_parts),
        )
        if inherited:
            for line in fit_warnings(codec, audit.train):
                self._reporter.message(line)
        self._report(rare_entries(recipe.vocabulary, codec, folder, contents))
        self._staged.fields.update(_describe_dataset(recipe, codec, audit, contents))
        self._staged.fields["findings"] = encode(self._findings)
        return audit

    def _read(self, inherited: TextCodec | None) -> _DatasetText:
        """Read all text once: check, count and examine it."""
        config, filters = self._recipe.corpus, self._recipe.filters
        held_out = [
            self._find(TextEntry(prefix, 1.0, "", direction))
            for prefix, direction in map(split_direction, filters.held_out)
        ]
        if not language_identifier():
            self._reporter.message(
                "the languages of lines are not measured; `pip install 'nmtkit[audit]'` adds that"
            )
        known = {one.direction: self._examine(one, inherited) for one in self._valid_texts}
        valid = [known[one.direction].corpus for one in self._valid_texts]
        if config.valid_alignments:
            valid = [valid[0].with_links(Path(config.valid_alignments), None)]
        tags, corpora = {one.direction: one.tag for one in self._valid_texts}, list[Corpus]()
        for number, (entry, one) in enumerate(zip(config.train, self._texts, strict=True)):
            _check_is_weight(entry, one, one.languages(config)[0])
            of_direction = known.get(one.direction, known[self._valid_texts[0].direction])
            has_other_tag = one.tag != tags.get(one.direction)
            corpus = self._examine(one, inherited, of_direction, has_other_tag).corpus
            if config.alignments:
                texts = config.alignment_text
                tokens = self._find(replace(one, prefix=texts[number])) if texts else None
                corpus = corpus.with_links(Path(config.alignments[number]), tokens)
            corpora.append(corpus)
        pairs = chain.from_iterable(corpus.pairs() for corpus in held_out)
        total = sum(corpus.num_pairs for corpus in held_out)
        with self._reporter.track(pairs, "noted", "held-out pairs", total, QUICK_ITEMS) as noted:
            lines = HeldOutText.of(noted)
        return _DatasetText(
            corpora=corpora,
            valid=valid,
            held_out=lines.on_either_side() if directions_of(config) else lines,
            low_scores=find_low_scores(filters, corpora, self._reporter),
        )

    def _examine(
        self,
        text: TextEntry,
        inherited: TextCodec | None,
        valid: Evidence | None = None,
        has_other_tag: bool = False,
    ) -> Evidence:
        """Read a text and report findings; the last two are of training text, see `Evidence`."""
        config, vocabulary = self._recipe.corpus, self._recipe.vocabulary
        sample = TextSample(valid.sample.pairs if valid else ())
        symbols = symbols_of(directions_of(config), config.source_symbols)
        symbols += inherited.symbols if inherited else ()
        languages = text.languages(config)
        paths = f"{text.prefix}.{languages[0]}", f"{text.prefix}.{languages[1]}"

        def watch(pairs: Iterable[Pair]) -> Iterable[Pair]:
            return sample.watch(_without_symbols(pairs, paths, symbols) if symbols else pairs)

        if inherited:
            are_unescaped = inherited.source.steps.unescape, inherited.target.steps.unescape
            kinds = inherited.source.kind, inherited.target.kind
        else:
            are_unescaped = (vocabulary.unescape,) * 2
            kinds = vocabulary_kinds(vocabulary)
        is_text = KINDS[kinds[1]].target_type == "text"  # otherwise, the source has separate words
        is_source_raw, is_target_raw = (is_text and kind != Words.kind for kind in kinds)
        evidence = Evidence(
            self._find(text, watch),
            sample,
            self._recipe.filters,
            valid,
            are_unescaped,
            can_be_unescaped=is_text and not inherited,
            are_segmented=(not is_source_raw, not is_target_raw),
            has_other_tag=has_other_tag,
            rank=language_identifier(),
            languages=languages if text.direction else (),
        )
        self._report(find_all(evidence))
        return evidence

    def _report(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._reporter.message(f"warning: {finding}")
            self._findings.append(finding)

    def _find(
        self, text: TextEntry, observe: Callable[[Iterable[Pair]], Iterable[Pair]] = iter
    ) -> Corpus:
        def watch(names: str, pairs: Iterable[Pair]) -> AbstractContextManager[Iterable[Pair]]:
            self._reporter.message(f"reading {names}")
            return self._reporter.track(observe(pairs), "read", "pairs", every=QUICK_ITEMS)

        return Corpus.find(text.prefix, *text.languages(self._recipe.corpus), watch)

    def _make_encoder(self, text: _DatasetText, codec: TextCodec) -> Encoder:
        recipe, flags = self._recipe, {**text.low_scores}
        if recipe.filters.drop_duplicates:
            self._reporter.message(f"finding duplicates among {text.num_pairs} pairs")
            flags["duplicate"] = find_duplicates(text.corpora, self._staged.path, self._reporter)
        return Encoder(
            codec=codec,
            filters=recipe.filters,
            held_out=text.held_out,
            flags=flags,
            first_ids=tuple(self._first_ids(codec, one) for one in self._texts),
            id_type=id_type_for(max(codec.source.size, codec.target.size)),
            seed=recipe.seed.seed,
            num_shards=-(-text.num_pairs // self._sizes.shard),
            markup=recipe.corpus.markup,
        )

    def _first_ids(self, codec: TextCodec, text: TextEntry) -> tuple[int, ...]:
        """Return the ids of the language symbols and tag that a text's source lines begin with."""
        return tuple(codec.source.encode(" ".join(text.first_words(self._recipe.corpus))))

    def _write_train(
        self, text: _DatasetText, encoder: Encoder, writer: DatasetWriter
    ) -> list[CountedText]:
        """Write the shards; returns the counts of each training text."""
        counts = [PairCounts.none() for _ in text.corpora]
        num_unmarked = 0
        self._reporter.message(f"encoding {text.num_pairs} pairs")
        read = chunks(text.corpora, self._sizes.chunk)
        with (
            closing(encode_in_order(encoder, read, self._workers)) as encoded_chunks,
            self._reporter.counting("encoded", "pairs", text.num_pairs) as counting,
        ):
            for encoded in encoded_chunks:
                for shard, pairs in encoded.shards.items():
                    writer.add(shard, encoded.corpus, pairs)
                counts[encoded.corpus] += encoded.counts
                num_unmarked += encoded.num_unmarked
                counting.add(encoded.counts.read)
        if num_unmarked:
            self._reporter.message(
                f"warning: {num_unmarked} pairs have no marks: their tags differ, or are too many"
            )
        for one, of_text in zip(self._texts, counts, strict=True):
            if one.direction and not of_text.kept:
                raise DataError(
                    f"{one.name}: all {of_text.read} pairs were dropped "
                    f"({_list_dropped(of_text)}); check the files, or leave the text out [filters]"
                )
        total = sum(counts, PairCounts.none())
        if not total.kept:
            raise DataError(
                f"all {total.read} training pairs were dropped ({_list_dropped(total)}); check "
                "the files, or relax the filters [filters]"
            )
        return [*map(CountedText, self._texts, counts)]

    def _write_valid(
        self, text: TextEntry, valid: Corpus, encoder: Encoder, writer: DatasetWriter
    ) -> tuple[int, PairCounts]:
        """Write a validation text, and the ids of its pairs that are not empty or too long.

        Returns:
            The number of its lines, and counts.
        """
        config = self._recipe.corpus
        tag = " ".join(text.first_words(config))
        num_lines = writer.write_valid_text(
            _tagged(tag, plain_pair(pair, config.markup))
            for pair in valid.pairs()
            if TOO_LONG not in pair
        )
        if valid.links_path:
            lines = zip(valid.pairs(), valid.links(), strict=True)
            num_words = len(words_of(tag))
            writer.write_valid_links(
                with_words_before(line.text, num_words) if tag else line.text
                for pair, line in lines
                if TOO_LONG not in pair
            )
        encoder = replace(
            encoder,
            filters=FilterConfig(max_length=encoder.filters.max_length),
            held_out=HeldOutText.of(()),
            flags={},
            first_ids=(self._first_ids(encoder.codec, text),),
            num_shards=1,
        )
        counts = PairCounts.none()
        for chunk in chunks([valid], self._sizes.chunk):
            encoded = encoder.encode(chunk)
            for pairs in encoded.shards.values():
                writer.add_valid(pairs)
            counts += encoded.counts
        if not counts.kept:
            raise DataError(
                f"none of the {counts.read} pairs of {text.name} can be used for validation "
                f"({_list_dropped(counts)}); check the files, or raise --max-length"
            )
        return num_lines, counts


def _check_is_weight(entry: str, text: TextEntry, lang: str) -> None:
    """Raise ConfigError if what looks like the weight of a text is the end of its path."""
    if entry != text.name and any(Path(f"{entry}.{lang}{end}").exists() for end in ("", ".gz")):
        raise ConfigError(
            f"train ({entry}): there are such files, and {text.name} with a weight may be meant; "
            f"give {entry}=1 for the files, or rename them [corpus.train]"
        )


def _check_alignments(recipe: PreprocessRecipe, inherited: TextCodec | None) -> None:
    """Raise ConfigError if there are alignments, and the target is no text."""
    kind = inherited.target.kind if inherited else vocabulary_kinds(recipe.vocabulary)[1]
    target_type = KINDS[kind].target_type
    if has_alignments(recipe.corpus) and target_type != "text":
        raise ConfigError(
            f"alignments link words, and the target side is {target_type}; leave out --alignments "
            "and --valid-alignments [corpus.alignments]"
        )


def _without_symbols(
    pairs: Iterable[Pair], paths: tuple[str, str], symbols: Sequence[str]
) -> Iterator[Pair]:
    """Yield pairs; DataError if a line has a language symbol, which the model would obey."""
    for number, pair in enumerate(pairs, 1):
        for path, line in zip(paths, pair, strict=True):
            if "<" in line and (found := next((one for one in symbols if one in line), "")):
                raise DataError(
                    f"{path}:{number}: has {found}, the symbol of a language; delete it, or leave "
                    "the pair out"
                )
        yield pair


def _tagged(tag: str, pair: Pair) -> Pair:
    """Return a pair whose source begins with a tag, if there is one; a blank line has none."""
    source, target = pair
    return (f"{tag} {source}", target) if tag and TOO_LONG not in pair and source.strip() else pair


def _list_dropped(counts: PairCounts) -> str:
    return ", ".join(f"{reason}: {number}" for reason, number in counts.dropped.items() if number)


def _describe_dataset(
    recipe: PreprocessRecipe, codec: TextCodec, audit: Audit, contents: Contents
) -> dict[str, Any]:
    return {
        **encode(contents),
        "source_lang": codec.source_lang,
        "target_lang": codec.target_lang,
        "segmentation": codec.segmentation,
        "vocabulary_sizes": {"source": codec.source.size, "target": codec.target.size},
        "is_shared": codec.is_shared,
        **({"marks": codec.num_marks} if codec.num_marks else {}),
        "recipe": asdict(recipe),
        "counts": audit.to_manifest(),
    }
