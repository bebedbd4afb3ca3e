"""Freeze an example of each format as this version writes it: `python -m tests.golden.freeze`.

Run it for a new version of a format.
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import chdir, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.config.schema import RuntimeConfig, SearchConfig, TrainRecipe, TranslateRecipe
from nmtkit.config.translation import OutputConfig, TranslationConfig
from nmtkit.data.binary import Dataset
from nmtkit.data.prepare import Sizes, prepare
from nmtkit.data.shortlist import Shortlist
from nmtkit.decoding.answers import Request
from nmtkit.decoding.corpus import CorpusFiles, translate_file
from nmtkit.decoding.formats import make_writer
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.quality import Calibration, Regression, settings_of
from nmtkit.decoding.translator import Translator
from nmtkit.progress.counting import SILENT
from nmtkit.storage.growing_file import GrowingFile
from nmtkit.storage.model_description import hashes_of
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RunFolder, ValidationLines, find_model
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from nmtkit.text.json_lines import write_object
from nmtkit.text.subword import Subword
from nmtkit.text.translations import SCHEMA
from nmtkit.text.vocabulary import Steps
from nmtkit.training.micro_batches import MicroBatchSchedule
from nmtkit.training.run import train
from tests.tiny import (
    TRAIN_LINES,
    VALID_LINES,
    never_warn,
    tiny_corpus,
    tiny_dataset,
    tiny_recipe,
    tiny_train_recipe,
    write_lines,
)
from tests.translating import answers_to, translate
from tests.trees import TREEBANK, parser_codec

FROZEN = Path(__file__).parent / "formats"
NUM_UPDATES = 600
SAVE_EVERY = 300
CODEC_LINES = (
    "caf&eacute; &amp; th\u00e9",
    "cafe\u0301 & the\u0301 \ufb01",
    "a &amp;lt; b&#39;s",
    "<bt> it isn't a dog: 5,000 cats!",
    "",
    "the cat sat on\u2581the mat",
    "\u2581 the \u2581cat\u2581",
    "\uff3f \ufb01 <bt>",
)
CODECS = {"cleaned": CODEC_LINES, "subwords": CODEC_LINES, "in_order": TREEBANK}
"""Lines by frozen codec: text cleaned and tokenised first; one SentencePiece model; parses."""
SEARCH, CPU = SearchConfig(max_length_offset=4), RuntimeConfig(device="cpu", threads=1)
CORPUS_RECIPE = TranslateRecipe(
    search=SEARCH, translation=TranslationConfig(chunk_lines=4), runtime=CPU
)
NUM_CHUNKS = 2
"""Chunks of the unfinished translation of a corpus."""
REQUESTS = (Request("a b c", others={"id": 1}), Request(""), Request("d a", "D"))
JSON_RECIPE = TranslateRecipe(
    search=SEARCH,
    output=OutputConfig(
        output_format="json", n_best=2, token_scores=True, alignments=True, attention=True
    ),
    runtime=CPU,
)
REGRESSION = Regression([0.1, -1.0], [0.9, 1.0], [10.0, 50.0, 5.0], [2.0, 20.0, 0.0])
LINES = {
    "bleu": ValidationLines(300, 41.5, "case:mixed|version:2.6.0", [[2, 1, 3, 4], [0, 0, 1, 1]]),
    "ter": ValidationLines(600, 12.5, "case:lc", [[0.5, 4.0], [1, 3]]),
}
FIRST = {"translation": "A B", "score": -1.5, "log_prob": -2.0}
RERANKED = FIRST | {"features": {"model": -1.5}, "rerank_score": -1.5, "system": "one.jsonl"}


class Killed(Exception):  # noqa: N818
    """The command is killed here."""


def recipe(max_updates: int) -> TrainRecipe:
    tiny = tiny_train_recipe(max_updates=max_updates, dropout=0.1)
    return replace(
        tiny,
        checkpoints=replace(tiny.checkpoints, save_every=SAVE_EVERY),
        validation=replace(tiny.validation, validate_every=SAVE_EVERY),
    )


def translations(run: Path) -> list[str]:
    """Translate the training lines with the last checkpoint of a run."""
    loaded = load_model(run / "last", torch.device("cpu"))
    recipe = TranslateRecipe(search=SEARCH)
    translator = Translator([loaded.model], loaded.codec, recipe, print)
    return list(translate(translator, TRAIN_LINES))


def losses(run: Path) -> list[float]:
    """Read the smoothed loss of each update from a run's metrics."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    return [record["loss"] for record in records if record["event"] == "training"]


def encoded(codec: TextCodec, lines: Sequence[str]) -> dict[str, Any]:
    """Return what a codec makes of lines."""
    target = [codec.encode_target(line) for line in lines]
    return {
        "source": [codec.encode_source(line) for line in lines],
        "target": target,
        "decoded": [codec.decode_target(ids) for ids in target],
    }


def main() -> None:
    """Write the examples; what stands there is an error."""
    FROZEN.mkdir()
    freeze_run()
    freeze_weights()
    for (name, lines), codec in zip(CODECS.items(), make_codecs(), strict=True):
        folder = FROZEN / name
        folder.mkdir()
        codec.save(folder)
        write_json(FROZEN / f"{name}.json", encoded(codec, lines))
    Shortlist.learn(Dataset.open(FROZEN / "dataset"), 3, 4, 100).save(FROZEN / "shortlist", False)
    freeze_translation(FROZEN / "translation")
    freeze_translations(FROZEN / "translations.jsonl")
    freeze_calibration()
    RunFolder(FROZEN).write_validation_lines(LINES)


def freeze_run() -> None:
    """Freeze a dataset, and a run whose updates are split in two from the next one on."""
    with chdir(FROZEN):  # so that the manifest holds no path of this machine
        shutil.move(tiny_dataset(Path()), "dataset")
    for path in FROZEN.glob("*.*"):
        path.unlink()
    run, copy = FROZEN / "run", FROZEN / "copy"
    with chdir(FROZEN):
        train(recipe(NUM_UPDATES), Path("dataset"), run)
    MicroBatchSchedule(RunFolder(run), 1, []).increase(NUM_UPDATES + 1, 2, is_writer=True)
    expected = {"translations": translations(run), "losses": losses(run)}
    shutil.copytree(run, copy, symlinks=True)
    train(recipe(NUM_UPDATES + 1), FROZEN / "dataset", copy)
    write_json(FROZEN / "expected.json", expected | {"next": losses(copy)[-1]})
    shutil.rmtree(copy)


def freeze_weights() -> None:
    """Freeze a dataset with weights, tags, drops, word alignments and several shards."""
    folder = FROZEN / "weights"
    folder.mkdir()
    lines = ("a b c", "", "h h", "g", "g")
    with chdir(folder):
        recipe = tiny_recipe(*tiny_corpus(Path()))
        write_lines(Path("more.en"), lines)
        write_lines(Path("more.de"), [line.upper() for line in lines])
        for name, text in (("train", TRAIN_LINES), ("more", lines), ("valid", VALID_LINES)):
            links = (" ".join(f"{n}-{n}" for n in range(len(line.split()))) for line in text)
            write_lines(Path(f"{name}.links"), [*links])
        corpus = replace(
            recipe.corpus,
            train=("train", "more=0.5"),
            tag=("more=<bt>",),
            alignments=("train.links", "more.links"),
            valid_alignments="valid.links",
        )
        recipe = replace(recipe, corpus=corpus, filters=FilterConfig(drop_duplicates=True))
        prepare(recipe, Path("dataset"), 1, False, SILENT, Sizes(shard=8))
    for path in folder.glob("*.*"):
        path.unlink()


def make_codecs() -> tuple[TextCodec, TextCodec, TextCodec]:
    subwords = Subword.train(CODEC_LINES, "bpe", 320, "x", ["<bt>"])
    words = Words(["caf\u00e9", "th\u00e9", "&", "a", "b", "fi", "lt", ";", "<bt>"])
    cleaned = TextCodec(
        source_lang="en",
        target_lang="de",
        source=words.with_steps(Steps(True, "nfkc", "en")),
        target=subwords.with_steps(Steps(True, "none", "de")),
        is_shared=False,
    )
    shared = TextCodec("en", "de", subwords, subwords, is_shared=True)
    return cleaned, shared, parser_codec(keeps_tags=True, linearization="in-order")


def freeze_translation(folder: Path) -> None:
    """Freeze an unfinished translation of a corpus, as a kill leaves it: two chunks of four lines.

    Its model is the run's.
    """
    folder.mkdir()
    source = write_lines(folder / "text", TRAIN_LINES)
    files = CorpusFiles((source,), folder / "expected"), CorpusFiles((source,), folder / "out")
    model = [FROZEN / "run" / "last"]
    translate_file(model, CORPUS_RECIPE, files[0], SILENT, never_warn)
    append, chunks = GrowingFile.append, iter(range(NUM_CHUNKS))

    def append_or_kill(file: GrowingFile, lines: list[str]) -> None:
        if next(chunks, None) is None:
            raise Killed
        append(file, lines)

    with patch.object(GrowingFile, "append", append_or_kill), suppress(Killed):
        translate_file(model, CORPUS_RECIPE, files[1], SILENT, never_warn)
    with (folder / "out.partial").open("ab") as stream:
        stream.write(b"torn")  # appended, but not whole


def freeze_calibration() -> None:
    """Freeze a calibration of the run's best model."""
    folder, recipe = find_model(FROZEN / "run"), TranslateRecipe()
    settings = settings_of(recipe.search, recipe.translation)
    Calibration(hashes_of(folder), settings, 100, REGRESSION).save(folder)


def freeze_translations(path: Path) -> None:
    """Freeze translations as JSON lines, with all keys."""
    write = make_writer(JSON_RECIPE.output)
    translator = load_translator([FROZEN / "run" / "last"], JSON_RECIPE, never_warn)
    lines = [line for one in answers_to(translator, REQUESTS) for line in write(one, 0)]
    reranked = {"schema": SCHEMA, "source": "a b"} | RERANKED | {"n_best": [RERANKED]}
    write_lines(path, [*lines, write_object(reranked)])


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
