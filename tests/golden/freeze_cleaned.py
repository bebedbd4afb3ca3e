"""Freeze a codec of version 3: text cleaned before Moses' tokenisation, and before BPE.

Run once, as `python -m tests.golden.freeze_cleaned`; see freeze.py.
"""

import json
from pathlib import Path

from nmtkit.text.cleaned import Cleaned, Cleaning
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import Subword
from nmtkit.text.tokenized import Tokenized
from nmtkit.text.words import Words

FROZEN = Path(__file__).parent / "formats-7"
SUBWORDS = Path(__file__).parent / "formats-5" / "codec" / "shared.model"
LINES = (
    "caf&eacute; &amp; th\u00e9",
    "cafe\u0301 & the\u0301 \ufb01",
    "a &amp;lt; b&#39;s",
)


def main() -> None:
    """Write the example; what stands there is an error."""
    words = Words(["caf\u00e9", "th\u00e9", "&", "a", "b", "fi", "lt", ";"])
    codec = TextCodec(
        source_lang="en",
        target_lang="de",
        source=Cleaned(Tokenized(words, "en"), Cleaning(unescape=True, normalize="nfkc")),
        target=Cleaned(Subword.load(SUBWORDS), Cleaning(unescape=True, normalize="none")),
        is_shared=False,
    )
    (FROZEN / "codec").mkdir(parents=True)
    codec.save(FROZEN / "codec")
    expected = {
        "source": [codec.encode_source(line) for line in LINES],
        "target": [codec.encode_target(line) for line in LINES],
    }
    text = json.dumps(expected, indent=1) + "\n"
    (FROZEN / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
