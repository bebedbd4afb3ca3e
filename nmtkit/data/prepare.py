"""The flow of `nmtkit preprocess`: text files to a dataset folder.

The text is read at least three times, so that memory does not grow with it: counted and checked,
sampled for the vocabulary, encoded.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nmtkit.config.schema import CorpusConfig, PreprocessRecipe
from nmtkit.data.binary import FORMAT, VALID, VERSION, Contents, id_type_for, shard_name
from nmtkit.data.corpus import Corpus, chunks
from nmtkit.data.counts import PairCounts, table
from nmtkit.data.encode import Encoder, encode_in_order
from nmtkit.data.vocabulary import make_codec
from nmtkit.data.writer import DatasetWriter
from nmtkit.durable import new_folder
from nmtkit.errors import DataError
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword

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
        corpora = [_find(prefix, recipe.corpus, report) for prefix in recipe.corpus.train]
        valid = _find(recipe.corpus.valid, recipe.corpus, report)
        codec = make_codec(recipe, corpora, report)
        codec_folder = staged.path / "codec"
        codec_folder.mkdir()
        codec.save(codec_folder)
        num_shards = -(-sum(corpus.num_pairs for corpus in corpora) // _SHARD_PAIRS)
        encoder = Encoder(
            codec=codec,
            filters=recipe.filters,
            id_type=id_type_for(max(codec.source.size, codec.target.size)),
            seed=recipe.seed.seed,
            num_shards=num_shards,
        )
        writer = DatasetWriter(staged.path, encoder.id_type, num_shards)
        train_counts = _write_train(corpora, encoder, workers, writer, report)
        valid_counts = _write_valid(valid, encoder, writer)
        counts = _describe_counts(corpora, train_counts, valid_counts)
        staged.fields.update(_describe_dataset(recipe, codec, counts, writer.finish(codec)))
    named = [*zip(recipe.corpus.train, train_counts, strict=True), (valid.prefix, valid_counts)]
    unknown_name = "bytes" if codec.source.kind == Subword.kind else "unknown"
    for line in table(named, unknown_name):
        report(line)
    return counts


def _find(prefix: str, config: CorpusConfig, report: Report) -> Corpus:
    corpus = Corpus.find(prefix, config.source_lang, config.target_lang)
    report(f"read {corpus.source} and {corpus.target}: {corpus.num_pairs} pairs")
    return corpus


def _write_train(
    corpora: Sequence[Corpus],
    encoder: Encoder,
    workers: int,
    writer: DatasetWriter,
    report: Report,
) -> list[PairCounts]:
    """Write the shards; returns the counts of each corpus."""
    counts = [PairCounts.none() for _ in corpora]
    num_pairs = sum(corpus.num_pairs for corpus in corpora)
    num_read = 0
    report(f"encoding {num_pairs} pairs")
    with closing(encode_in_order(encoder, chunks(corpora), workers)) as encoded_chunks:
        for encoded in encoded_chunks:
            for shard, (source, target) in encoded.shards.items():
                writer.add(shard_name(shard), source, target)
            counts[encoded.corpus] += encoded.counts
            before, num_read = num_read, num_read + encoded.counts.read
            if num_read // _REPORT_PAIRS > before // _REPORT_PAIRS:
                report(f"encoded {num_read} of {num_pairs} pairs")
    total = sum(counts, PairCounts.none())
    if not total.kept:
        raise DataError(
            f"all {num_pairs} training pairs were dropped ({_list_dropped(total)}); check the "
            "files, or raise --max-length or --max-ratio"
        )
    return counts


def _write_valid(valid: Corpus, encoder: Encoder, writer: DatasetWriter) -> PairCounts:
    """Write all of the text, and the ids of pairs that can be trained on, whatever their ratio."""
    writer.write_valid_text(valid.pairs())
    encoder = replace(encoder, filters=replace(encoder.filters, max_ratio=0.0), num_shards=1)
    counts = PairCounts.none()
    for encoded in map(encoder.encode, chunks([valid])):
        for source, target in encoded.shards.values():
            writer.add(VALID, source, target)
        counts += encoded.counts
    if not counts.kept:
        raise DataError(
            f"none of the {counts.read} pairs of {valid.prefix} can be used for validation "
            f"({_list_dropped(counts)}); check the files, or raise --max-length"
        )
    return counts


def _list_dropped(counts: PairCounts) -> str:
    return ", ".join(f"{reason}: {number}" for reason, number in counts.dropped.items() if number)


def _describe_counts(
    corpora: Sequence[Corpus], train: Sequence[PairCounts], valid: PairCounts
) -> dict[str, Any]:
    return {
        "corpora": [
            {"prefix": corpus.prefix, **counts.to_manifest()}
            for corpus, counts in zip(corpora, train, strict=True)
        ],
        "train": sum(train, PairCounts.none()).to_manifest(),
        "valid": valid.to_manifest(),
    }


def _describe_dataset(
    recipe: PreprocessRecipe, codec: TextCodec, counts: dict[str, Any], contents: Contents
) -> dict[str, Any]:
    return {
        **contents.to_manifest(),
        "source_lang": codec.source_lang,
        "target_lang": codec.target_lang,
        "segmentation": recipe.vocabulary.segmentation,
        "vocabulary_sizes": {"source": codec.source.size, "target": codec.target.size},
        "is_shared": codec.is_shared,
        "recipe": asdict(recipe),
        "counts": counts,
    }
