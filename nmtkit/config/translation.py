"""Settings of `nmtkit translate`: constraints, sampling, formats, batches and input lines."""

from dataclasses import dataclass

from nmtkit.config.setting import InferenceConfig, setting


@dataclass(frozen=True, kw_only=True)
class ConstraintsConfig:
    """Constraints."""

    max_output_length: int = setting(
        0,
        "Longest translation, for any source; each part of a split line counts by itself; 0 = no "
        "limit.",
        unit="tokens",
        minimum=0,
        maximum=1_000_000,
    )
    min_length_ratio: float = setting(
        0.0,
        "Shortest translation, as a multiple of the source length; --min-length-offset is added.",
        minimum=0,
        maximum=1000,
    )
    min_length_offset: int = setting(
        0,
        "Tokens added to --min-length-ratio times the source length; end symbols of both sides do "
        "not count; each part of a split line counts by itself.",
        unit="tokens",
        minimum=0,
        maximum=1_000_000,
    )
    no_repeat_ngram: int = setting(
        0, "Forbid repeated n-grams of this many tokens; 0 = allow them.", minimum=0
    )
    ban_unknown: bool = setting(False, "Never write <unk>.")
    malformed_trees: str = setting(
        "prevent",
        "Handling of malformed trees by parsers; the output is always a tree of the source's "
        "words. prevent: search only well-formed trees; repair: search all, repair the result.",
        choices=("prevent", "repair"),
    )


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """Sampling instead of beam search."""

    sample: bool = setting(
        False, "Sample tokens from the model; --n-best independent translations per line."
    )
    temperature: float = setting(
        1.0, "Sampling temperature; below 1, likely tokens become likelier.", minimum=1e-3
    )
    top_k: int = setting(0, "Sample among the K likeliest tokens; 0 = all.", minimum=0)
    top_p: float = setting(
        1.0,
        "Sample among the fewest likeliest tokens with this total probability.",
        minimum=1e-6,
        maximum=1,
    )
    epsilon_cutoff: float = setting(
        0.0,
        "Never sample tokens below this probability, such as 0.02, except the likeliest; 0 = off.",
        minimum=0,
        maximum=1,
    )


OUTPUT_FORMATS = {
    "text": ("scores", "alignments"),
    "moses": ("n_best", "alignments"),
    "json": ("n_best", "alignments", "token_scores", "attention"),
}
"""Formats of translations, and the settings of `OutputConfig` that each one uses.

`OUTPUT_FORMATS` in nmtkit/decoding/output_formats.py writes them.
"""


@dataclass(frozen=True, kw_only=True)
class OutputConfig:
    """Input and output."""

    input_format: str = setting(
        "text",
        "Format of the input. text: a sentence per line; json: an object per line with source and, "
        "optionally, target_prefix, a forced prefix; other keys are copied to the output, except "
        "those of an earlier answer.",
        choices=("text", "json"),
    )
    output_format: str = setting(
        "text",
        "Format of the output. text: a translation per line; moses: n-best lists of Moses; json: "
        "an object per line.",
        choices=tuple(OUTPUT_FORMATS),
    )
    n_best: int = setting(
        1,
        "Translations per line, best first; with --sample, in the order of drawing.",
        minimum=1,
        maximum=10_000,
    )
    scores: bool = setting(False, "In text, append a tab and the score to each translation.")
    alignments: bool = setting(
        False, "Word alignments s-t, from the decoder's attention; in text after a tab."
    )
    token_scores: bool = setting(False, "In json, add tokens and their log-probabilities.")
    attention: bool = setting(False, "In json, add cross-attention, a row per target token.")


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(InferenceConfig):
    """Batches and input lines."""

    batch_size: int = setting(
        0,
        "Largest number of sentences per batch; with W > 4 hypotheses per sentence, 4/W of it. "
        "auto = 64 on a CPU, 1024 on a GPU.",
        zero="auto",
        unit="sentences",
        minimum=0,
        on_resume="free",
    )
    chunk_lines: int = setting(
        4096,
        "Lines that are read ahead and sorted by length; on a terminal always 1.",
        unit="lines",
        minimum=1,
        on_resume="free",
    )
    shortlist: str = setting(
        "",
        "Restrict output tokens to a shortlist from `nmtkit shortlist`.",
        metavar="FOLDER",
    )
    compile: str = setting(
        "off",
        "Compile the decoder for lines that are translated one at a time, on a CPU with a C++ "
        "compiler; takes up to a minute, once for a model. If that fails, translation prints the "
        "reason and continues without it.",
        choices=("on", "off"),
        on_resume="free",
    )
    stream: bool = setting(False, "Translate each line before reading the next one.")
    devices: int = setting(
        1,
        "Processes that share the lines, one per GPU; on a CPU they share its threads.",
        zero="auto",
        minimum=0,
        maximum=1024,
    )
    max_source_length: int = setting(
        1024,
        "Longest line that is translated as a whole; the end symbol counts.",
        unit="tokens",
        minimum=2,
        on_resume="free",
    )
    on_too_long: str = setting(
        "split",
        "Handling of longer lines. split: at spaces, and join the translations; truncate: to the "
        "limit; error: stop.",
        choices=("split", "truncate", "error"),
        on_resume="free",
    )
