"""Freeze translations as JSON lines of version 1, with all keys.

Run once, as `python -m tests.golden.freeze_translations`; see freeze.py. `before.jsonl` was written
by `nmtkit translate` before objects had the key `schema`.
"""

from pathlib import Path

from nmtkit.config.schema import RuntimeConfig, SearchConfig, TranslateRecipe
from nmtkit.config.translation import OutputConfig
from nmtkit.decoding.input_formats import Request
from nmtkit.decoding.loading import load_translator
from nmtkit.decoding.output_formats import make_writer
from nmtkit.text.json_lines import write_object
from nmtkit.text.translations import SCHEMA
from tests.golden.freeze_translation import MODEL
from tests.tiny import never_warn, write_lines

FROZEN = Path(__file__).parent / "formats-8"
REQUESTS = (Request("a b c", others={"id": 1}), Request(""), Request("d a", "D"))
RECIPE = TranslateRecipe(
    search=SearchConfig(max_length_offset=4),
    output=OutputConfig(
        output_format="json", n_best=2, token_scores=True, alignments=True, attention=True
    ),
    runtime=RuntimeConfig(device="cpu", threads=1),
)
FIRST = {"translation": "A B", "score": -1.5, "log_prob": -2.0}
RERANKED = FIRST | {"features": {"model": -1.5}, "rerank_score": -1.5, "system": "one.jsonl"}


def main() -> None:
    """Write the example; what stands there is an error."""
    path = FROZEN / "translations.jsonl"
    assert not path.exists(), path
    translator, write = load_translator([MODEL], RECIPE, never_warn), make_writer(RECIPE.output)
    lines = [line for one in translator.answer(REQUESTS, 1) for line in write(one, 0)]
    reranked = {"schema": SCHEMA, "source": "a b"} | RERANKED | {"n_best": [RERANKED]}
    write_lines(path, [*lines, write_object(reranked)])


if __name__ == "__main__":
    main()
