"""Settings of `nmtkit translate` and `nmtkit align`; schema.py names the other modules."""

from dataclasses import dataclass
from functools import partial

from nmtkit.config.setting import InferenceConfig, common, setting

MARKUPS = ("none", "xml", "html")
"""Markup of lines; `MARKUPS` in nmtkit/spans/tags.py has the rules of those with tags."""

PLACEHOLDERS = ("braces", "printf", "url", "email", "number")
"""Kinds of placeholders; `PLACEHOLDERS` in nmtkit/spans/placeholders.py finds them."""


GLOSSARY_MODES = ("soft", "hard", "both")
"""Ways to use terms."""


@dataclass(frozen=True, kw_only=True)
class ConstraintsConfig:
    """Constraints."""

    markup: str = common(
        "none",
        "Markup of the lines, xml or html: inline tags, comments and entities leave the text, and "
        "return around the translation of what they enclosed.",
        choices=MARKUPS,
    )
    placeholders: str = common(
        "",
        "Comma-separated kinds of placeholders to keep: braces, printf, url, email, number. Each "
        "is in the translation byte for byte, as often as in the line.",
        metavar="KINDS",
    )
    placeholder_pattern: tuple[str, ...] = setting(
        (), "Regular expression of further placeholders; may be repeated.", metavar="REGEX"
    )
    glossary: str = common(
        "",
        "Terms that must be used: source term, tab, target term, or alternatives separated by |.",
        metavar="FILE",
    )
    glossary_case: bool = setting(False, "Terms of --glossary match with their case only.")
    glossary_mode: str = setting(
        "both",
        "How terms are used. soft: the model reads them, and may inflect them, if it was trained "
        "with `--annotate terms`; hard: the search writes one of the alternatives; both.",
        choices=GLOSSARY_MODES,
    )
    max_output_length: int = setting(
        0,
        "Longest translation, for any source; each part of a split line counts by itself; 0 = no "
        "limit.",
        unit="tokens",
        maximum=1_000_000,
    )
    min_length_ratio: float = setting(
        0.0,
        "Shortest translation, as a multiple of the source length; --min-length-offset is added.",
        maximum=1000,
    )
    min_length_offset: int = setting(
        0,
        "Tokens added to --min-length-ratio times the source length; end symbols of both sides do "
        "not count; each part of a split line counts by itself.",
        unit="tokens",
        maximum=1_000_000,
    )
    no_repeat_ngram: int = setting(
        0, "Forbid repeated n-grams of this many tokens; 0 = allow them."
    )
    ban_unknown: bool = setting(False, "Never write <unk>.")
    malformed_trees: str = setting(
        "prevent",
        "Handling of malformed trees by parsers; the output is always a tree of the source's "
        "words. prevent: search only well-formed trees; repair: search all, repair the result.",
        choices=("prevent", "repair"),
    )

    @property
    def placeholder_kinds(self) -> tuple[str, ...]:
        """The kinds of `placeholders`."""
        return tuple(filter(None, self.placeholders.split(",")))


_sampled = partial(setting, only_with={"sample": (True,)})


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """Sampling instead of beam search."""

    sample: bool = setting(
        False, "Sample tokens from the model; --n-best independent translations per line."
    )
    temperature: float = _sampled(
        1.0, "Sampling temperature; below 1, likely tokens become likelier.", minimum=1e-3
    )
    top_k: int = _sampled(0, "Sample among the K likeliest tokens; 0 = all.")
    top_p: float = _sampled(
        1.0,
        "Sample among the fewest likeliest tokens with this total probability.",
        minimum=1e-6,
        maximum=1,
    )
    epsilon_cutoff: float = _sampled(
        0.0,
        "Never sample tokens below this probability, such as 0.02, except the likeliest; 0 = off.",
        maximum=1,
    )
    seed: int = _sampled(1, "Seed of the samples.")


OUTPUT_FORMATS = ("text", "moses", "json")
"""Formats of translations; `OUTPUT_FORMATS` in nmtkit/decoding/formats.py writes them."""

_IN_JSON = {"output_format": ("json",)}


@dataclass(frozen=True, kw_only=True)
class OutputConfig:
    """Input and output."""

    input_format: str = common(
        "text",
        "Format of the input. text: a sentence per line; json: an object per line with source and, "
        "optionally, target_prefix, a forced prefix; other keys are copied to the output, except "
        "those of an earlier answer.",
        choices=("text", "json"),
    )
    output_format: str = common(
        "text",
        "Format of the output. text: a translation per line; moses: n-best lists of Moses; json: "
        "an object per line.",
        choices=OUTPUT_FORMATS,
    )
    stream: bool = common(False, "Translate each line before reading the next one.")
    n_best: int = common(
        1,
        "Translations per line, best first; with --sample, in the order of drawing.",
        minimum=1,
        maximum=10_000,
        only_with={"output_format": ("moses", "json")},
    )
    scores: bool = common(
        False,
        "Append a tab and the score to each line of text.",
        only_with={"output_format": ("text",)},
    )
    quality: bool = setting(
        False,
        "Add the expected chrF and its standard error, as `nmtkit calibrate` learnt them; in text "
        "after tabs.",
        only_with={"sample": (False,)},
    )
    alignments: bool = common(
        False, "Word alignments s-t, from the decoder's attention; in text after a tab."
    )
    token_scores: bool = setting(
        False, "In json, add tokens and their log-probabilities.", only_with=_IN_JSON
    )
    attention: bool = setting(
        False, "In json, add cross-attention, a row per target token.", only_with=_IN_JSON
    )


_devices = partial(
    common,
    1,
    "Processes that share the lines, one per GPU; on a CPU they share its threads.",
    zero="auto",
    maximum=1024,
)


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(InferenceConfig):
    """Batches and input lines."""

    batch_size: int = setting(
        0,
        "Largest number of sentences per batch; with W > 4 hypotheses per sentence, 4/W of it. "
        "auto = 64 on a CPU, 1024 on a GPU.",
        zero="auto",
        unit="sentences",
    )
    chunk_lines: int = setting(
        4096,
        "Lines that are read ahead and sorted by length; on a terminal always 1.",
        unit="lines",
        minimum=1,
        only_with={"stream": (False,)},
    )
    shortlist: str = setting(
        "", "Restrict output tokens to a shortlist from `nmtkit shortlist`.", metavar="FOLDER"
    )
    devices: int = _devices(only_with={"stream": (False,)})
    max_source_length: int = setting(
        1024,
        "Longest line that is translated as a whole; the end symbol counts.",
        unit="tokens",
        minimum=2,
    )
    on_too_long: str = setting(
        "split",
        "Handling of longer lines. split: between sentences or words, and join the translations; "
        "truncate: to the limit; error: stop.",
        choices=("split", "truncate", "error"),
    )


SYMMETRIZATIONS = ("intersection", "grow-diag", "grow-diag-final-and", "union")
"""Ways to combine two directions; `nmtkit/decoding/symmetrize.py` computes them."""


@dataclass(frozen=True, kw_only=True)
class LinksConfig:
    """Links."""

    symmetrize: str = common(
        "grow-diag",
        "Combination of the two directions, with --reverse. intersection: links of both; "
        "grow-diag: these, and links of either next to them; grow-diag-final-and: these, and "
        "links between words that have none; union: links of either.",
        choices=SYMMETRIZATIONS,
    )
    min_weight: float = common(
        0.1,
        "Smallest attention of a link; a word that attends less to any word has none.",
        maximum=1,
    )
    tokenized: bool = common(
        False,
        "Count tokens between spaces in any script: the text is tokenised already.",
    )
    probabilities: bool = common(
        False,
        "Add the probability of each link: its attention, of two directions the mean; in text "
        "after a tab.",
    )
    input_format: str = common(
        "text",
        "Format of standard input. text: source, tab, target; json: an object per line with source "
        "and translation, as `nmtkit translate` writes it.",
        choices=("text", "json"),
    )
    output_format: str = common(
        "text",
        "Format of the output. text: the links of a pair per line, `0-0 1-2`; json: an object per "
        "line.",
        choices=("text", "json"),
    )


@dataclass(frozen=True, kw_only=True)
class AligningConfig(InferenceConfig):
    """Batches and input lines."""

    max_length: int = setting(
        1024,
        "Longest line on either side; the end symbol counts; a pair with a longer one has no "
        "links.",
        unit="tokens",
        minimum=2,
    )
    chunk_lines: int = setting(
        4096, "Pairs that are read ahead and sorted by length.", unit="lines", minimum=1
    )
    devices: int = _devices()
