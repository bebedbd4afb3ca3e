"""The sections of a recipe that preprocessing alone has; see schema.py for the rest."""

from dataclasses import dataclass
from pathlib import Path

from nmtkit.config.setting import setting

MIN_ENTRIES = 8
"""Of a vocabulary."""

SENTENCEPIECE = "sentencepiece"


@dataclass(frozen=True)
class Segmentation:
    """Facts about a segmentation.

    Attributes:
        vocabulary: the kind of its vocabulary, as codec.json names it.
        settings: the settings by which its vocabulary is learnt.
        unknown: what the table of counts calls tokens that the vocabulary lacks.
        is_of_targets: only a target can have it.
        no_tokenizer: why the text is not tokenised before, and what to do instead; "" = it may be.
    """

    vocabulary: str
    settings: tuple[str, ...]
    unknown: str
    is_of_targets: bool = False
    no_tokenizer: str = ""


_SUBWORDS = Segmentation(SENTENCEPIECE, ("vocab_size", "sample_lines", "whole_tokens"), "bytes")
_TREES = Segmentation(
    "trees",
    (),
    "unknown",
    is_of_targets=True,
    no_tokenizer="the words of parses are those of the text as it stands; leave it out, and cut "
    "raw text by `nmtkit trees tokenize`",
)
SEGMENTATIONS = {
    "bpe": _SUBWORDS,
    "unigram": _SUBWORDS,
    "words": Segmentation("words", ("vocab_size", "min_count"), "unknown"),
    "trees": _TREES,
    "tagged-trees": _TREES,
}
"""Segmentations of text into tokens.

`LEARNERS` in nmtkit/data/vocabulary.py has the functions that learn their vocabularies.
"""

SCRIPTS = (
    "any",
    "latin",
    "cyrillic",
    "greek",
    "arabic",
    "hebrew",
    "armenian",
    "georgian",
    "ethiopic",
    "devanagari",
    "bengali",
    "tamil",
    "thai",
    "han",
    "japanese",
    "korean",
)


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """Which text is read."""

    source_lang: str = setting(
        "", "Suffix of the source files, such as en.", metavar="SUFFIX", required=True
    )
    target_lang: str = setting(
        "", "Suffix of the target files, such as de.", metavar="SUFFIX", required=True
    )
    train: tuple[str, ...] = setting(
        (),
        "Training text PREFIX.SOURCE and PREFIX.TARGET (or .gz); may be repeated. With a weight, "
        "an epoch has each of its pairs so many times: 2 = twice, 0.5 = once in two epochs.",
        metavar="PREFIX[=WEIGHT]",
        required=True,
    )
    tag: tuple[str, ...] = setting(
        (),
        "Begin the source lines of a training text with a token that tells where they are from, "
        "such as back-translation=<bt>; may be repeated.",
        metavar="PREFIX=TAG",
    )
    valid: str = setting(
        "",
        "Validation text PREFIX.SOURCE and PREFIX.TARGET (or .gz).",
        metavar="PREFIX",
        required=True,
    )


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """How a line becomes a sequence of ids."""

    segmentation: str = setting(
        "bpe",
        "Segmentation into tokens. bpe or unigram: SentencePiece with byte fallback, raw text in "
        "and out; words: text that is segmented already, split at spaces.",
        choices=tuple(name for name, one in SEGMENTATIONS.items() if not one.is_of_targets),
    )
    target_segmentation: str = setting(
        "same",
        "The target's, where it differs; each side then has a vocabulary of its own. trees: the "
        "target is a parse of the source in brackets, tags left out; tagged-trees: with them.",
        choices=("same", *SEGMENTATIONS),
    )
    tokenizer: str = setting(
        "none",
        "moses: punctuation is normalised and split from words before segmentation, and joined to "
        "them again in translations, as Moses does; needs no other tool on either end.",
        choices=("none", "moses"),
    )
    vocab_size: int = setting(
        32_000, "Entries of a vocabulary; for words, at most so many.", minimum=MIN_ENTRIES
    )
    target_vocab_size: int = setting(
        0, "Entries of the target's, where it has a vocabulary of its own.", zero="same", minimum=0
    )
    separate_vocabularies: bool = setting(
        False, "Learn one vocabulary a side instead of one that both sides share."
    )
    source_vocabulary: str = setting(
        "",
        "Existing vocabulary of the source: a SentencePiece model, or for words a list, "
        "one a line. Given for both sides, the same file makes a shared vocabulary.",
        metavar="FILE",
    )
    target_vocabulary: str = setting(
        "", "Existing vocabulary of the target, likewise.", metavar="FILE"
    )
    min_count: int = setting(
        1, "For words: rarer words become <unk>.", unit="occurrences", minimum=1
    )
    whole_tokens: str = setting(
        "",
        "Tokens, one a line, that a vocabulary of SentencePiece which is learnt has as an entry "
        "each where they follow a space, such as the brackets of `nmtkit trees linearize`.",
        metavar="FILE",
    )
    sample_lines: int = setting(
        1_000_000,
        "SentencePiece learns from at most this many lines, drawn evenly from all of them.",
        unit="lines",
        minimum=1,
    )


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Which training pairs are kept; every drop is counted by its reason."""

    max_length: int = setting(
        250, "Drop pairs with a longer side, its end symbol counted.", unit="tokens", minimum=2
    )
    max_ratio: float = setting(
        0.0,
        "Drop pairs whose sides differ in length by more than this factor; 0 = keep.",
        minimum=0,
    )
    source_script: str = setting(
        "any",
        "Drop pairs of which more than half of the source's letters are of other scripts than "
        f"this one: {', '.join(SCRIPTS)}.",
        choices=SCRIPTS,
        metavar="SCRIPT",
    )
    target_script: str = setting(
        "any", "Likewise for the target.", choices=SCRIPTS, metavar="SCRIPT"
    )
    drop_copies: bool = setting(False, "Drop pairs whose target is the source.")
    held_out: tuple[str, ...] = setting(
        (),
        "Drop pairs that have a line of this text PREFIX.SOURCE or PREFIX.TARGET, such as of "
        "the test set; may be repeated.",
        metavar="PREFIX",
    )
    drop_duplicates: bool = setting(False, "Drop pairs that are equal to an earlier one.")


def segmentations(config: VocabularyConfig) -> tuple[str, str]:
    """Return how the source, and how the target, is cut."""
    target = config.target_segmentation
    return config.segmentation, config.segmentation if target == "same" else target


def is_shared(config: VocabularyConfig) -> bool:
    """Tell whether both sides use one vocabulary."""
    if len({*segmentations(config)}) > 1:
        return False
    source, target = config.source_vocabulary, config.target_vocabulary
    if source and target:
        return Path(source).resolve() == Path(target).resolve()
    return not config.separate_vocabularies
