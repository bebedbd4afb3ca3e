"""Freeze an unfinished translation of a corpus, as a kill leaves it: two chunks of four lines.

Run once, as `python -m tests.golden.freeze_translation`; see freeze.py.
"""

from pathlib import Path

from nmtkit.config.schema import RuntimeConfig, SearchConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.corpus import FORMAT, VERSION, CorpusTranslation
from nmtkit.decoding.corpus_plan import CorpusFiles, open_input, plan_of, read_input
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.output_formats import make_writer
from nmtkit.progress.counting import SILENT
from nmtkit.storage.growing_file import growing_file
from nmtkit.storage.model_description import hashes_of
from nmtkit.storage.model_path import find_model
from tests.golden.freeze import FROZEN as FROZEN_RUN
from tests.tiny import TRAIN_LINES, never_warn, write_lines

FROZEN = Path(__file__).parent / "formats-6"
MODEL = FROZEN_RUN / "run" / "last"
RECIPE = TranslateRecipe(
    search=SearchConfig(max_length_offset=4),
    translation=TranslationConfig(chunk_lines=4),
    runtime=RuntimeConfig(device="cpu", threads=1),
)
NUM_CHUNKS = 2


def main() -> None:
    """Write the example; what stands there is an error."""
    FROZEN.mkdir()
    translator, write = load_translator([MODEL], RECIPE, never_warn), make_writer(RECIPE.output)
    answers = translator.answer([Request(line) for line in TRAIN_LINES], 1)
    source = write_lines(FROZEN / "text", TRAIN_LINES)
    write_lines(FROZEN / "expected", [line for one in answers for line in write(one, 0)])
    files = CorpusFiles(source, FROZEN / "out")
    with (
        open_input(files) as text,
        growing_file(files.output, FORMAT, VERSION, overwrite=False) as file,
    ):
        facts = read_input(text, files, RECIPE, SILENT)
        plan = plan_of([hashes_of(find_model(MODEL))], None, RECIPE, files, facts)
        corpus = CorpusTranslation(plan, file)
        corpus.begin()
        for _, chunk in list(corpus.chunks(answers))[:NUM_CHUNKS]:
            corpus.add(chunk, write)
    with (FROZEN / "out.partial").open("ab") as stream:
        stream.write(b"torn")  # appended, but not recorded


if __name__ == "__main__":
    main()
