"""The flow of `nmtkit preprocess`: text files to a dataset folder.

The text is read at least three times, so that memory does not grow with it: counted and checked,
sampled for the vocabulary, encoded.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from nmtkit.config.corpora import TrainingText, training_texts
from nmtkit.config.preprocessing import (
    CorpusConfig,
    FilterConfig,
    VocabularyConfig,
    segmentations,
)
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import Audit, CorpusAudit, Example, PairCounts, first_of_each, unknown_name
from nmtkit.data.binary import FORMAT, PART_FORMAT, VERSION, WHOLE, Contents, Part, id_type_for
from nmtkit.data.encode import Encoder, encode_in_order
from nmtkit.data.filters import HeldOut
from nmtkit.data.repeats import find_repeats
from nmtkit.data.vocabulary import check_text, make_codec
from nmtkit.data.writer import DatasetWriter
from nmtkit.errors import ConfigError, DataError
from nmtkit.storage.durable import StagedFolder, new_folder
from nmtkit.text.codec import TextCodec
from nmtkit.text.corpus import Corpus, chunks

Report = Callable[[str], None]

_SHARD_PAIRS = 262_144
_REPORT_PAIRS = 1_000_000


def prepare(
    recipe: PreprocessRecipe, out: Path, workers: int, overwrite: bool, report: Report
) -> dict[str, Any]:
    """Make a dataset of parallel text.

    Args:
        recipe: what is read, learnt and kept.
        out: the dataset's folder; it appears whole or not at all.
        workers: processes that encode; the dataset does not depend on it.
        overwrite: replace a dataset that stands there.
        report: takes a few lines on what was read, learnt and kept.

    Returns:
        The counts, as the manifest has them.

    Raises:
        ConfigError: a file that cannot be read, an `out` that exists, or settings that the text
            does not allow.
        DataError: text that cannot be used, or no pair left to train with or validate on.
        DamagedError: an existing SentencePiece model that is none.
        ResourceError: no room on disk, or a worker was killed.
    """
    with new_folder(out, FORMAT, VERSION, overwrite=overwrite) as staged:
        audit = _fill(staged, recipe, WHOLE, workers, report)
    for line in audit.table():
        report(line)
    return audit.to_manifest()


def prepare_part(
    recipe: PreprocessRecipe, part: Part, out: Path, workers: int, overwrite: bool, report: Report
) -> None:
    """Make one of several parts of a dataset, which `nmtkit.data.joining.join` makes one.

    All parts are made with the same recipe of the same text, in any order and on any machines.

    Args and Raises as `prepare`, and:
        ConfigError: there are more parts than shards.
    """
    with new_folder(out, PART_FORMAT, VERSION, overwrite=overwrite) as staged:
        staged.fields["part"] = asdict(part)
        audit = _fill(staged, recipe, part, workers, report)
    for line in audit.table():
        report(line)


@dataclass(frozen=True)
class _Text:
    """All text of a dataset, read through once.

    Attributes:
        texts, corpora: the training texts and their files.
        valid: the validation text.
        held_out: text that is kept out of training.
    """

    texts: Sequence[TrainingText]
    corpora: Sequence[Corpus]
    valid: Corpus
    held_out: HeldOut

    @staticmethod
    def find(recipe: PreprocessRecipe, report: Report) -> "_Text":
        texts = training_texts(recipe.corpus)
        held_out = [_find(prefix, recipe.corpus, report) for prefix in recipe.filters.held_out]
        return _Text(
            texts=texts,
            corpora=[_find(text.prefix, recipe.corpus, report) for text in texts],
            valid=_find(recipe.corpus.valid, recipe.corpus, report),
            held_out=HeldOut.of(chain.from_iterable(corpus.pairs() for corpus in held_out)),
        )


def _find(prefix: str, config: CorpusConfig, report: Report) -> Corpus:
    corpus = Corpus.find(prefix, config.source_lang, config.target_lang)
    report(f"read {corpus.source} and {corpus.target}: {corpus.num_pairs} pairs")
    return corpus


def _fill(
    staged: StagedFolder, recipe: PreprocessRecipe, part: Part, workers: int, report: Report
) -> Audit:
    """Write a part of a dataset into its folder, and what the manifest is to say."""
    text = _Text.find(recipe, report)
    check_text(recipe.vocabulary, [text.valid])
    tags = [tag for tag in dict.fromkeys(one.tag for one in text.texts) if tag]
    codec = make_codec(recipe, text.corpora, tags, report)
    codec_folder = staged.path / "codec"
    codec_folder.mkdir()
    codec.save(codec_folder)
    encoder = _make_encoder(staged, recipe, text, codec, part, report)
    shards = range(part.number - 1, encoder.num_shards, part.count)
    if not shards:
        raise ConfigError(
            f"--shard {part.number}/{part.count}: this text makes {encoder.num_shards} shards; "
            f"make at most so many parts"
        )
    weights = [one.weight for one in text.texts]
    writer = DatasetWriter(staged.path, encoder.id_type, shards, weights)
    corpora = _write_train(text, encoder, workers, writer, report)
    valid = _write_valid(text.valid, encoder, writer)
    name = unknown_name(_segmentation(recipe.vocabulary))
    audit = Audit(corpora, text.valid.prefix, valid, name)
    staged.fields.update(_describe_dataset(recipe, codec, audit, writer.finish(codec)))
    return audit


def _make_encoder(
    staged: StagedFolder,
    recipe: PreprocessRecipe,
    text: _Text,
    codec: TextCodec,
    part: Part,
    report: Report,
) -> Encoder:
    num_pairs = sum(corpus.num_pairs for corpus in text.corpora)
    repeats = None
    if recipe.filters.drop_duplicates:
        report(f"looking for duplicates among {num_pairs} pairs")
        repeats = find_repeats(text.corpora, staged.path)
    return Encoder(
        codec=codec,
        filters=recipe.filters,
        held_out=text.held_out,
        repeats=repeats,
        tags=tuple(_tag_ids(one.tag, codec) for one in text.texts),
        id_type=id_type_for(max(codec.source.size, codec.target.size)),
        seed=recipe.seed.seed,
        num_shards=-(-num_pairs // _SHARD_PAIRS),
        part=part,
    )


def _tag_ids(tag: str, codec: TextCodec) -> tuple[int, ...]:
    ids = codec.source.encode(tag)
    if not codec.source.unknown_ids.isdisjoint(ids):
        raise ConfigError(
            f"tag {tag!r}: the source vocabulary lacks it; take one that has it as an entry, or "
            "another --tag"
        )
    return tuple(ids)


def _write_train(
    text: _Text, encoder: Encoder, workers: int, writer: DatasetWriter, report: Report
) -> list[CorpusAudit]:
    """Write the shards; returns what became of each training text."""
    sizes = [corpus.num_pairs for corpus in text.corpora]
    firsts = [0, *accumulate(sizes)]
    num_pairs = firsts.pop()
    counts = [PairCounts.none() for _ in sizes]
    examples: list[list[Example]] = [[] for _ in sizes]
    num_done = 0
    report(f"encoding {num_pairs} pairs")
    with closing(encode_in_order(encoder, chunks(text.corpora), workers)) as encoded_chunks:
        for encoded in encoded_chunks:
            number = encoded.corpus
            for shard, (source, target) in encoded.shards.items():
                writer.add(shard, number, source, target)
            counts[number] += encoded.counts
            numbered = [
                replace(one, line=one.line - firsts[number] + 1) for one in encoded.examples
            ]
            examples[number] = first_of_each([*examples[number], *numbered])
            before, num_done = num_done, num_done + encoded.num_pairs
            if num_done // _REPORT_PAIRS > before // _REPORT_PAIRS:
                report(f"encoded {num_done} of {num_pairs} pairs")
    if encoder.part == WHOLE:
        _check_some_kept(sum(counts, PairCounts.none()))
    return [CorpusAudit(*one) for one in zip(text.texts, counts, examples, strict=True)]


def _check_some_kept(total: PairCounts) -> None:
    if not total.kept:
        raise DataError(
            f"all {total.read} training pairs were dropped ({_list_dropped(total)}); check the "
            "files, or drop fewer [filters]"
        )


def _write_valid(valid: Corpus, encoder: Encoder, writer: DatasetWriter) -> PairCounts:
    """Write all of the text, and the ids of pairs that are neither empty nor too long."""
    writer.write_valid_text(valid.pairs())
    encoder = replace(
        encoder,
        filters=FilterConfig(max_length=encoder.filters.max_length),
        held_out=HeldOut.of(()),
        repeats=None,
        tags=((),),
        num_shards=1,
        part=WHOLE,
    )
    counts = PairCounts.none()
    for encoded in map(encoder.encode, chunks([valid])):
        for source, target in encoded.shards.values():
            writer.add_valid(source, target)
        counts += encoded.counts
    if not counts.kept:
        raise DataError(
            f"none of the {counts.read} pairs of {valid.prefix} can be used for validation "
            f"({_list_dropped(counts)}); check the files, or raise --max-length"
        )
    return counts


def _list_dropped(counts: PairCounts) -> str:
    return ", ".join(f"{reason}: {number}" for reason, number in counts.dropped.items() if number)


def _describe_dataset(
    recipe: PreprocessRecipe, codec: TextCodec, audit: Audit, contents: Contents
) -> dict[str, Any]:
    return {
        **contents.to_manifest(),
        "source_lang": codec.source_lang,
        "target_lang": codec.target_lang,
        "segmentation": _segmentation(recipe.vocabulary),
        "vocabulary_sizes": {"source": codec.source.size, "target": codec.target.size},
        "is_shared": codec.is_shared,
        "recipe": asdict(recipe),
        "counts": audit.to_manifest(),
    }


def _segmentation(config: VocabularyConfig) -> str:
    """Describe how both sides are cut, such as `moses, bpe and words`."""
    cut = " and ".join(dict.fromkeys(segmentations(config)))
    return cut if config.tokenizer == "none" else f"{config.tokenizer}, {cut}"
