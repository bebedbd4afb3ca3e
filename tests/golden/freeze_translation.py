"""Freeze an unfinished translation of a corpus, as a kill leaves it: two chunks of four lines.

Run once, as `python -m tests.golden.freeze_translation`; see freeze.py.
"""

from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from nmtkit.config.schema import RuntimeConfig, SearchConfig, TranslateRecipe
from nmtkit.config.translation import TranslationConfig
from nmtkit.decoding.corpus import CorpusFiles, translate_file
from nmtkit.progress.counting import SILENT
from nmtkit.storage.growing_file import GrowingFile
from tests.golden.freeze import FROZEN as FROZEN_RUN
from tests.tiny import TRAIN_LINES, never_warn, write_lines

FROZEN = Path(__file__).parent / "formats-10"
MODEL = FROZEN_RUN / "run" / "last"
RECIPE = TranslateRecipe(
    search=SearchConfig(max_length_offset=4),
    translation=TranslationConfig(chunk_lines=4),
    runtime=RuntimeConfig(device="cpu", threads=1),
)
NUM_CHUNKS = 2


class Killed(Exception):  # noqa: N818
    """The command is killed here."""


def main() -> None:
    """Write the example; what stands there is an error."""
    FROZEN.mkdir()
    source = write_lines(FROZEN / "text", TRAIN_LINES)
    files = CorpusFiles(source, FROZEN / "expected"), CorpusFiles(source, FROZEN / "out")
    translate_file([MODEL], RECIPE, files[0], SILENT, never_warn)
    append, chunks = GrowingFile.append, iter(range(NUM_CHUNKS))

    def append_or_kill(file: GrowingFile, lines: list[str]) -> None:
        if next(chunks, None) is None:
            raise Killed
        append(file, lines)

    with patch.object(GrowingFile, "append", append_or_kill), suppress(Killed):
        translate_file([MODEL], RECIPE, files[1], SILENT, never_warn)
    with (FROZEN / "out.partial").open("ab") as stream:
        stream.write(b"torn")  # appended, but not whole


if __name__ == "__main__":
    main()
