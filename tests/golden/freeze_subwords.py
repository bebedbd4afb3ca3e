"""Freeze a SentencePiece vocabulary in which U+2581 is text, not a space.

Run once, as `python -m tests.golden.freeze_subwords`; see freeze.py.
"""

import json
from pathlib import Path

from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword

FROZEN = Path(__file__).parent / "formats-5"
LINES = (
    "the cat sat on\u2581the mat",
    "\u2581 the \u2581cat\u2581",
    "\uff3f \ufb01 <bt>",
)


def main() -> None:
    """Write the example; what stands there is an error."""
    subwords = Subword.train(LINES, "bpe", 300, "x", ["<bt>"])
    codec = TextCodec("en", "de", subwords, subwords, is_shared=True)
    (FROZEN / "codec").mkdir(parents=True)
    codec.save(FROZEN / "codec")
    ids = [codec.encode_target(line) for line in LINES]
    expected = {"ids": ids, "decoded": [codec.decode_target(line) for line in ids]}
    text = json.dumps(expected, indent=1) + "\n"
    (FROZEN / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
