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
    CorpusConfig,
    TextEntry,
    directions_of,
    first_words_of,
    has_alignments,
    split_direction,
    training_texts,
    valid_texts,
    vocabulary_kinds,
)
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import Audit, PairCounts, unknown_name, valid_filters
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
from nmtkit.data.vocabulary import check_files, check_text, is_entry, make_codec, rare_entries
from nmtkit.data.writer import DatasetWriter
from nmtkit.errors import ConfigError, DataError
from nmtkit.progress.counting import QUICK_ITEMS, WorkReporter
from nmtkit.storage.durable import StagedFolder, new_folder
from nmtkit.storage.json_data import encode
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import KINDS, TextCodec, symbols_of
from nmtkit.text.corpus import CHUNK_PAIRS, Alignment, Corpus, Pair, chunks
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
        audit = _fill(staged, recipe, workers, reporter, sizes)
    for line in audit.table():
        reporter.message(line)
    return audit.to_manifest()


@dataclass(frozen=True)
class _DatasetText:
    """All text of a dataset, after a first reading.

    Attributes:
        texts: settings of the training texts.
        corpora: files of the training texts.
        valid_texts: settings of the validation texts.
        valid: files of the validation texts.
        held_out: held-out text.
        low_scores: flags of pairs with a low score, if there are scores.
        findings: about the validation text and the training texts.
    """

    texts: Sequence[TextEntry]
    corpora: Sequence[Corpus]
    valid_texts: Sequence[TextEntry]
    valid: Sequence[Corpus]
    held_out: HeldOutText
    low_scores: Mapping[Reason, PairFlags]
    findings: Sequence[Finding]

    @staticmethod
    def find(
        recipe: PreprocessRecipe, inherited: TextCodec | None, reporter: WorkReporter
    ) -> "_DatasetText":
        config = recipe.corpus
        held_out = [
            _find(TextEntry(prefix, 1.0, "", direction), config, reporter)
            for prefix, direction in map(split_direction, recipe.filters.held_out)
        ]
        if not language_identifier():
            reporter.message(
                "the languages of lines are not measured; `pip install 'nmtkit[audit]'` adds that"
            )
        texts, valid, findings = training_texts(config), valid_texts(config), list[Finding]()
        known: dict[str, Evidence] = {}
        for text in valid:
            known[text.direction] = _examine(text, recipe, inherited, reporter)
            findings += _reported(find_all(known[text.direction]), reporter)
        valid_corpora = [known[text.direction].corpus for text in valid]
        if config.valid_alignments:
            alignment = Alignment.of(valid_corpora[0], config.valid_alignments, None)
            valid_corpora = [replace(valid_corpora[0], alignment=alignment)]
        tags, corpora = {text.direction: text.tag for text in valid}, list[Corpus]()
        for number, (entry, text) in enumerate(zip(config.train, texts, strict=True)):
            _check_is_weight(entry, text, text.languages(config)[0])
            of_direction = known.get(text.direction, known[valid[0].direction])
            examined = _examine(text, recipe, inherited, reporter, of_direction)
            examined = replace(examined, has_other_tag=text.tag != tags.get(text.direction))
            findings += _reported(find_all(examined), reporter)
            corpora.append(_aligned(examined.corpus, number, text, config, reporter))
        lines = _held_out(held_out, reporter)
        return _DatasetText(
            texts=texts,
            corpora=corpora,
            valid_texts=valid,
            valid=valid_corpora,
            held_out=lines.on_either_side() if directions_of(config) else lines,
            low_scores=find_low_scores(recipe.filters, corpora, reporter),
            findings=findings,
        )


def _aligned(
    corpus: Corpus, number: int, text: TextEntry, config: CorpusConfig, reporter: WorkReporter
) -> Corpus:
    """Return a training text, given its number, with its word alignment, if it has one."""
    if not config.alignments:
        return corpus
    texts = config.alignment_text
    tokens = _find(replace(text, prefix=texts[number]), config, reporter) if texts else None
    return replace(corpus, alignment=Alignment.of(corpus, config.alignments[number], tokens))


def _check_is_weight(entry: str, text: TextEntry, lang: str) -> None:
    """Raise ConfigError if what looks like the weight of a text is the end of its path."""
    if entry != text.name and any(Path(f"{entry}.{lang}{end}").exists() for end in ("", ".gz")):
        raise ConfigError(
            f"train ({entry}): there are such files, and {text.name} with a weight may be meant; "
            f"give {entry}=1 for the files, or rename them [corpus.train]"
        )


def _examine(
    text: TextEntry,
    recipe: PreprocessRecipe,
    inherited: TextCodec | None,
    reporter: WorkReporter,
    valid: Evidence | None = None,
) -> Evidence:
    """Read a text and sample it; `valid` is that of the validation text, for training text."""
    sample = TextSample(valid.sample.pairs if valid else ())
    symbols = symbols_of(directions_of(recipe.corpus), recipe.corpus.source_symbols)
    symbols += inherited.symbols if inherited else ()
    languages = text.languages(recipe.corpus)
    paths = f"{text.prefix}.{languages[0]}", f"{text.prefix}.{languages[1]}"

    def watch(pairs: Iterable[Pair]) -> Iterable[Pair]:
        return sample.watch(_without_symbols(pairs, paths, symbols) if symbols else pairs)

    corpus = _find(text, recipe.corpus, reporter, watch)
    if inherited:
        are_unescaped = inherited.source.steps.unescape, inherited.target.steps.unescape
        kinds = inherited.source.kind, inherited.target.kind
    else:
        are_unescaped = (recipe.vocabulary.unescape,) * 2
        kinds = vocabulary_kinds(recipe.vocabulary)
    is_text = KINDS[kinds[1]].target_type == "text"  # otherwise, the source has separate words
    is_source_raw, is_target_raw = (is_text and kind != Words.kind for kind in kinds)
    return Evidence(
        corpus,
        sample,
        recipe.filters,
        valid,
        are_unescaped,
        can_be_unescaped=is_text and not inherited,
        are_segmented=(not is_source_raw, not is_target_raw),
        rank=language_identifier(),
        languages=languages if text.direction else (),
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


def _reported(findings: Iterable[Finding], reporter: WorkReporter) -> list[Finding]:
    """Report findings, and return them."""
    reported = list(findings)
    for finding in reported:
        reporter.message(f"warning: {finding}")
    return reported


def _find(
    text: TextEntry,
    config: CorpusConfig,
    reporter: WorkReporter,
    observe: Callable[[Iterable[Pair]], Iterable[Pair]] = iter,
) -> Corpus:
    def watch(names: str, pairs: Iterable[Pair]) -> AbstractContextManager[Iterable[Pair]]:
        reporter.message(f"reading {names}")
        return reporter.track(observe(pairs), "read", "pairs", every=QUICK_ITEMS)

    return Corpus.find(text.prefix, *text.languages(config), watch)


def _held_out(corpora: Sequence[Corpus], reporter: WorkReporter) -> HeldOutText:
    total = sum(corpus.num_pairs for corpus in corpora)
    pairs = chain.from_iterable(corpus.pairs() for corpus in corpora)
    with reporter.track(pairs, "noted", "held-out pairs", total, QUICK_ITEMS) as noted:
        return HeldOutText.of(noted)


def _fill(
    staged: StagedFolder,
    recipe: PreprocessRecipe,
    workers: int,
    reporter: WorkReporter,
    sizes: Sizes,
) -> Audit:
    """Write the files of a dataset, and set the fields of its manifest."""
    check_files(recipe.vocabulary)
    inherited = inherited_codec(recipe, reporter.message)
    _check_alignments(recipe, inherited)
    text = _DatasetText.find(recipe, inherited, reporter)
    if inherited:
        KINDS[inherited.target.kind].check([*text.valid, *text.corpora])
    codec = inherited or _make_codec(recipe, text, reporter)
    check_marks(recipe.corpus.markup, codec)
    codec_folder = staged.path / "codec"
    codec_folder.mkdir()
    codec.save(codec_folder)
    encoder = _make_encoder(staged, recipe, text, codec, reporter, sizes)
    weights = [one.weight for one in text.texts]
    alignments = {TRAIN: recipe.corpus.alignments, VALID: recipe.corpus.valid_alignments}
    linked = [name for name, given in alignments.items() if given]
    writer = DatasetWriter(staged.path, encoder.id_type, encoder.num_shards, weights, linked=linked)
    corpora = _write_train(text, encoder, workers, writer, reporter, sizes)
    valid = [
        _write_valid(*one, recipe.corpus, encoder, writer, sizes)
        for one in zip(text.valid_texts, text.valid, strict=True)
    ]
    audit = Audit(
        text.texts,
        corpora,
        text.valid_texts,
        [counts for _, counts in valid],
        unknown_name(codec.segmentation),
    )
    contents = replace(
        writer.finish(codec),
        directions=tuple(one.direction for one in text.texts if one.direction),
        valid_texts=tuple(
            ValidText(one.direction, num_lines, counts.kept)
            for one, (num_lines, counts) in zip(text.valid_texts, valid, strict=True)
            if one.direction
        ),
    )
    if inherited:
        for line in fit_warnings(codec, audit.train):
            reporter.message(line)
    rare = rare_entries(recipe.vocabulary, codec, staged.path, contents)
    findings = [*text.findings, *_reported(rare, reporter)]
    staged.fields.update(_describe_dataset(recipe, codec, audit, contents))
    staged.fields["findings"] = encode(findings)
    return audit


def _check_alignments(recipe: PreprocessRecipe, inherited: TextCodec | None) -> None:
    """Raise ConfigError if there are alignments, and the target is no text."""
    kind = inherited.target.kind if inherited else vocabulary_kinds(recipe.vocabulary)[1]
    target_type = KINDS[kind].target_type
    if has_alignments(recipe.corpus) and target_type != "text":
        raise ConfigError(
            f"alignments link words, and the target side is {target_type}; leave out --alignments "
            "and --valid-alignments [corpus.alignments]"
        )


def _make_codec(recipe: PreprocessRecipe, text: _DatasetText, reporter: WorkReporter) -> TextCodec:
    """Read or learn a codec; tags and language symbols are entries of its source vocabulary."""
    check_text(recipe.vocabulary, text.valid)
    words = first_words_of(recipe.corpus)
    codec = make_codec(recipe, text.corpora, words, reporter)
    for word in words:
        if not is_entry(word, codec.source):
            raise ConfigError(
                f"{word!r}, a tag or language symbol, is not in the source vocabulary; use a "
                "vocabulary with this entry, or another --tag"
            )
    return codec


def _make_encoder(
    staged: StagedFolder,
    recipe: PreprocessRecipe,
    text: _DatasetText,
    codec: TextCodec,
    reporter: WorkReporter,
    sizes: Sizes,
) -> Encoder:
    num_pairs = sum(corpus.num_pairs for corpus in text.corpora)
    flags = {**text.low_scores}
    if recipe.filters.drop_duplicates:
        reporter.message(f"finding duplicates among {num_pairs} pairs")
        flags["duplicate"] = find_duplicates(text.corpora, staged.path, reporter)
    return Encoder(
        codec=codec,
        filters=recipe.filters,
        held_out=text.held_out,
        flags=flags,
        first_ids=tuple(first_ids(codec, one, recipe.corpus) for one in text.texts),
        id_type=id_type_for(max(codec.source.size, codec.target.size)),
        seed=recipe.seed.seed,
        num_shards=-(-num_pairs // sizes.shard),
        markup=recipe.corpus.markup,
    )


def _write_train(
    text: _DatasetText,
    encoder: Encoder,
    workers: int,
    writer: DatasetWriter,
    reporter: WorkReporter,
    sizes: Sizes,
) -> list[PairCounts]:
    """Write the shards; returns the counts of each training text."""
    num_pairs = sum(corpus.num_pairs for corpus in text.corpora)
    counts = [PairCounts.none() for _ in text.corpora]
    num_unmarked = 0
    reporter.message(f"encoding {num_pairs} pairs")
    read = chunks(text.corpora, sizes.chunk)
    with (
        closing(encode_in_order(encoder, read, workers)) as encoded_chunks,
        reporter.counting("encoded", "pairs", num_pairs) as counting,
    ):
        for encoded in encoded_chunks:
            for shard, pairs in encoded.shards.items():
                writer.add(shard, encoded.corpus, pairs)
            counts[encoded.corpus] += encoded.counts
            num_unmarked += encoded.num_unmarked
            counting.add(encoded.counts.read)
    if num_unmarked:
        reporter.message(
            f"warning: {num_unmarked} pairs have no marks: their tags differ, or are too many"
        )
    total = sum(counts, PairCounts.none())
    for one, of_text in zip(text.texts, counts, strict=True):
        if one.direction and not of_text.kept:
            raise DataError(
                f"{one.name}: all {of_text.read} pairs were dropped ({_list_dropped(of_text)}); "
                "check the files, or leave the text out [filters]"
            )
    if not total.kept:
        raise DataError(
            f"all {total.read} training pairs were dropped ({_list_dropped(total)}); check the "
            "files, or relax the filters [filters]"
        )
    return counts


def _write_valid(
    text: TextEntry,
    valid: Corpus,
    config: CorpusConfig,
    encoder: Encoder,
    writer: DatasetWriter,
    sizes: Sizes,
) -> tuple[int, PairCounts]:
    """Write a validation text, and the ids of its pairs that are not empty or too long.

    Returns:
        The number of its lines, and counts.
    """
    tag = " ".join(text.first_words(config))
    num_lines = writer.write_valid_text(
        _tagged(tag, plain_pair(pair, config.markup))
        for pair in valid.pairs()
        if TOO_LONG not in pair
    )
    if valid.alignment:
        lines, num_words = (
            zip(valid.pairs(), valid.alignment.lines(), strict=True),
            len(words_of(tag)),
        )
        links = (line.text for pair, line in lines if TOO_LONG not in pair)
        writer.write_valid_links(with_words_before(one, num_words) if tag else one for one in links)
    encoder = replace(
        encoder,
        filters=valid_filters(encoder.filters),
        held_out=HeldOutText.of(()),
        flags={},
        first_ids=(first_ids(encoder.codec, text, config),),
        num_shards=1,
    )
    counts = PairCounts.none()
    for chunk in chunks([valid], sizes.chunk):
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


def first_ids(codec: TextCodec, text: TextEntry, config: CorpusConfig) -> tuple[int, ...]:
    """Return the ids that the source lines of a text begin with: language symbols, and the tag."""
    return tuple(codec.source.encode(" ".join(text.first_words(config))))


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
