"""Settings of `nmtkit preprocess`; schema.py names the other modules of settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nmtkit.config.setting import GIVEN, common, setting
from nmtkit.config.translation import MARKUPS
from nmtkit.symbols import source_symbol, target_symbol

MIN_ENTRIES = 8
"""The smallest size of a vocabulary."""

LARGEST_VOCABULARY = 10_000_000
"""More entries than any language model has; their embeddings of size 512 take 19 GiB."""

MOST_MARKS = 1000
"""Tags per line, far above those of any text."""

LONGEST_SEQUENCE = 65_000
"""Far more tokens than any model reads; places of links, and a tag, take 16 bits."""

SENTENCEPIECE = "sentencepiece"
AUTO = "auto"


@dataclass(frozen=True)
class Segmentation:
    """Facts about a segmentation.

    Attributes:
        vocabulary: the kind of its vocabulary, as codec.json names it.
        linearized: the kinds by linearisation instead, if it has one.
        settings: the settings that its vocabulary is learnt with.
        unknown: the column of the table of counts for tokens that the vocabulary lacks.
        is_target_only: the source cannot have it.
        no_tokenizer: why --tokenizer is refused, and what to do instead; "" = it is allowed.
    """

    vocabulary: str
    settings: tuple[str, ...]
    unknown: str
    is_target_only: bool = False
    no_tokenizer: str = ""
    linearized: Mapping[str, str] = field(default_factory=dict)


_SUBWORDS = Segmentation(
    SENTENCEPIECE,
    ("vocab_size", "sample_lines", "whole_tokens", "split_digits", "vocabulary_temperature"),
    "bytes",
)
LINEARIZATIONS = {"brackets": "trees", "in-order": "in-order-trees"}
"""Kinds of vocabulary by linearisation."""

_TREES = Segmentation(
    LINEARIZATIONS["brackets"],
    (),
    "unknown",
    is_target_only=True,
    linearized=LINEARIZATIONS,
    no_tokenizer="a parse has the words of the source unchanged; leave it out, and split raw text "
    "with `nmtkit trees tokenize`",
)
SEGMENTATIONS = {
    "bpe": _SUBWORDS,
    "unigram": _SUBWORDS,
    "words": Segmentation("words", ("vocab_size", "min_count"), "unknown"),
    "trees": _TREES,
    "tagged-trees": _TREES,
}
"""Segmentations of text into tokens.

`LEARNERS` in nmtkit/data/vocabulary.py learns their vocabularies.
"""

SCRIPTS = (
    *("any", "latin", "cyrillic", "greek", "arabic", "hebrew", "armenian", "georgian"),
    *("ethiopic", "devanagari", "bengali", "tamil", "thai", "han", "japanese", "korean"),
)


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """Input text."""

    source_lang: str = common(
        "",
        "Suffix of the source files, such as en.  [required, or directions]",
        short_flag="-s",
        metavar="SUFFIX",
    )
    target_lang: str = common(
        "",
        "Suffix of the target files, such as de.  [required, or directions]",
        short_flag="-t",
        metavar="SUFFIX",
    )
    train: tuple[str, ...] = common(
        (),
        "Training text PREFIX.SOURCE and PREFIX.TARGET (or .gz); may be repeated. WEIGHT is how "
        "often an epoch has each pair: 2 = twice, 0.5 = once in two epochs. For a model of several "
        "directions, each text names its own, such as ted:en-sv, instead of -s and -t.",
        metavar="PREFIX[:SRC-TGT][=WEIGHT]",
        required=True,
    )
    tag: tuple[str, ...] = setting(
        (),
        "Token at the beginning of each source line of a training or validation text, such as "
        "back-translation=<bt>; may be repeated.",
        metavar="PREFIX=TAG",
    )
    valid: tuple[str, ...] = common(
        (),
        "Validation text PREFIX.SOURCE and PREFIX.TARGET (or .gz); one for each direction, if "
        "there are several.",
        metavar="PREFIX[:SRC-TGT]",
        required=True,
    )
    source_symbols: bool = setting(
        False,
        "With directions: source lines begin with the symbol of their own language, too, such as "
        "<from-en>; translation then needs --source-lang.",
    )
    markup: str = setting(
        "none",
        "Markup of all texts, xml or html: with --marks, inline tags become marks.",
        choices=MARKUPS,
    )
    alignments: tuple[str, ...] = setting(
        (),
        "File (or .gz) with the word alignment of a training text, links such as 0-0 1-2 per pair, "
        "for `train --guided-alignment-weight`; one for each --train, in the same order.",
        metavar="FILE",
    )
    alignment_text: tuple[str, ...] = setting(
        (),
        "The training text PREFIX.SOURCE and PREFIX.TARGET (or .gz) as tokens between spaces, if "
        "--alignments count these; one for each --train. Otherwise they count words between "
        "spaces, and characters in scripts without spaces, of the training text.",
        metavar="PREFIX",
        only_with={"alignments": GIVEN},
    )
    valid_alignments: str = setting(
        "",
        "File (or .gz) with the word alignment of the validation text, for the alignment error "
        "rate in training; 0p2 is a link that is only possible.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """Segmentation and vocabulary."""

    segmentation: str = common(
        "bpe",
        "Segmentation into tokens. bpe, unigram: SentencePiece with byte fallback, for raw text; "
        "words: split at spaces, for text that is segmented already.",
        choices=tuple(name for name, one in SEGMENTATIONS.items() if not one.is_target_only),
    )
    target_segmentation: str = setting(
        "same",
        "Segmentation of the target, if different; each side then has its own vocabulary. trees: "
        "the target is a bracketed parse of the source, without tags; tagged-trees: with tags.",
        choices=("same", *SEGMENTATIONS),
    )
    linearization: str = setting(
        "brackets",
        "Order of the tokens of trees. brackets: depth-first, as in the text; in-order: the first "
        "child of each constituent before its opening bracket.",
        choices=LINEARIZATIONS,
        only_with={
            "target_segmentation": [name for name, one in SEGMENTATIONS.items() if one.linearized]
        },
    )
    tokenizer: str = setting(
        "none",
        "Tokenizer before segmentation. moses: normalise punctuation and split it from words, as "
        "Moses does; translations are detokenised. It is built in.",
        choices=("none", "moses"),
    )
    unescape: bool = setting(
        False,
        "Turn HTML entities, such as &amp;, into characters, before all else; translation does the "
        "same.",
    )
    normalize: str = setting(
        AUTO,
        "Unicode normal form of the text, before tokenizer and segmentation; translation does the "
        "same. auto: nfkc without invisible characters for bpe and unigram, none for words.",
        choices=(AUTO, "none", "nfc", "nfkc"),
    )
    vocab_size: int = common(
        32_000,
        "Entries of a vocabulary; the maximum for words.",
        minimum=MIN_ENTRIES,
        maximum=LARGEST_VOCABULARY,
    )
    target_vocab_size: int = setting(
        0,
        "Entries of the target's vocabulary, if it is separate.",
        zero="same",
        minimum=MIN_ENTRIES,
        maximum=LARGEST_VOCABULARY,
    )
    separate_vocabularies: bool = common(
        False, "Learn one vocabulary per side instead of a joint one."
    )
    source_vocabulary: str = setting(
        "",
        "Existing vocabulary of the source: a SentencePiece model, or for words a list, one per "
        "line. The same file for both sides makes a joint vocabulary.",
        metavar="FILE",
    )
    target_vocabulary: str = setting(
        "", "Existing vocabulary of the target; see --source-vocabulary.", metavar="FILE"
    )
    vocabulary_of: str = common(
        "",
        "Model folder, run or checkpoint, whose vocabularies and tokenizer are used instead; to "
        "train that model further.",
        metavar="MODEL",
    )
    split_digits: bool = setting(
        False, "Learn no subword of more than one digit, so that numbers are spelled by digits."
    )
    min_count: int = setting(
        1, "Minimum frequency of words; rarer ones become <unk>.", unit="occurrences", minimum=1
    )
    whole_tokens: str = setting(
        "",
        "Tokens, one per line, that SentencePiece keeps whole where they follow a space; such as "
        "the brackets of `nmtkit trees linearize`. --vocabulary-of: appended to its vocabularies.",
        metavar="FILE",
    )
    marks: int = setting(
        0,
        "Symbols for N tags or placeholders per line, and for terms, which a model learns to write "
        "with `train --annotate`; 0 = none. --vocabulary-of: appended to its vocabularies.",
        maximum=MOST_MARKS,
    )
    vocabulary_temperature: float = setting(
        5.0,
        "Temperature T of the lines that the vocabulary of several directions is learnt from: a "
        "language with n lines has a share proportional to n^(1/T); 1 = the text unchanged.",
        minimum=1,
        maximum=1000,
    )
    sample_lines: int = setting(
        1_000_000,
        "Largest number of lines that SentencePiece learns from; sampled evenly from all lines.",
        unit="lines",
        minimum=1,
    )


LEARNING_SETTINGS = tuple(
    name
    for name in vars(VocabularyConfig())
    if name not in ("vocabulary_of", "whole_tokens", "marks")
)
"""Settings that have no effect with `vocabulary_of`."""


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Filters of training pairs; dropped pairs are counted by reason."""

    max_length: int = common(
        250,
        "Drop pairs with a longer side; the end symbol counts.",
        unit="tokens",
        minimum=2,
        maximum=LONGEST_SEQUENCE,
    )
    max_ratio: float = setting(
        0.0, "Drop pairs whose lengths differ by more than this factor; 0 = keep all.", minimum=1
    )
    source_script: str = setting(
        "any",
        "Drop pairs whose source is mostly written in another script: more than half of its "
        f"letters. One of {', '.join(SCRIPTS)}.",
        choices=SCRIPTS,
        metavar="SCRIPT",
    )
    target_script: str = setting(
        "any",
        "Drop pairs whose target is mostly written in another script; see --source-script.",
        choices=SCRIPTS,
        metavar="SCRIPT",
    )
    drop_copies: bool = setting(False, "Drop pairs whose target equals the source.")
    held_out: tuple[str, ...] = setting(
        (),
        "Drop pairs with a line of PREFIX.SOURCE or PREFIX.TARGET, such as the test set; may be "
        "repeated.",
        metavar="PREFIX[:SRC-TGT]",
    )
    scores: tuple[str, ...] = setting(
        (),
        "File (or .gz) with a number per pair, as bicleaner and LASER write them; one for each "
        "--train, in the same order.",
        metavar="FILE",
    )
    keep_above: float = setting(
        0.5,
        "With --scores: drop pairs whose number is lower; an equal one is kept.",
        minimum=-1_000_000,
        only_with={"scores": GIVEN},
    )
    drop_duplicates: bool = common(False, "Drop pairs that repeat an earlier one.")


def has_alignments(config: CorpusConfig) -> bool:
    """Return whether a text has a word alignment."""
    return bool(config.alignments or config.valid_alignments)


def segmentations(config: VocabularyConfig) -> tuple[str, str]:
    """Return the segmentation of the source, and of the target."""
    target = config.target_segmentation
    return config.segmentation, config.segmentation if target == "same" else target


def vocabulary_kinds(config: VocabularyConfig) -> tuple[str, str]:
    """Return the kinds of the source and target vocabulary."""
    source, target = (SEGMENTATIONS[name] for name in segmentations(config))
    return source.vocabulary, target.linearized.get(config.linearization, target.vocabulary)


def is_shared(config: VocabularyConfig) -> bool:
    """Return whether both sides use one vocabulary."""
    if len({*segmentations(config)}) > 1:
        return False
    source, target = config.source_vocabulary, config.target_vocabulary
    if source and target:
        return Path(source).resolve() == Path(target).resolve()
    return not config.separate_vocabularies


@dataclass(frozen=True)
class TextEntry:
    """A training or validation text.

    Attributes:
        prefix: path of its files without the languages' suffixes.
        weight: mean number of times that an epoch has each pair.
        tag: a token at the beginning of its source lines, or "".
        direction: its languages, such as en-sv, if the model has several directions; or "".
    """

    prefix: str
    weight: float
    tag: str
    direction: str = ""

    @property
    def name(self) -> str:
        """The text as --train and --valid name it, without a weight."""
        return f"{self.prefix}:{self.direction}" if self.direction else self.prefix

    def languages(self, config: CorpusConfig) -> tuple[str, str]:
        """Return the suffixes of its files."""
        source, _, target = self.direction.partition("-")
        return (source, target) if source else (config.source_lang, config.target_lang)

    def first_words(self, config: CorpusConfig) -> list[str]:
        """Return the words that its source lines begin with: language symbols, and the tag."""
        source, target = self.languages(config)
        symbols = [target_symbol(target)] if self.direction else []
        if symbols and config.source_symbols:
            symbols.append(source_symbol(source))
        return [*symbols, *([self.tag] if self.tag else [])]


def training_texts(config: CorpusConfig) -> list[TextEntry]:
    """Return the training texts in the order of --train."""
    return [_text_entry(name, weight, config) for name, weight in map(split_weight, config.train)]


def valid_texts(config: CorpusConfig) -> list[TextEntry]:
    """Return the validation texts in the order of --valid."""
    return [_text_entry(name, 1.0, config) for name in config.valid]


def _text_entry(name: str, weight: float, config: CorpusConfig) -> TextEntry:
    prefix, direction = split_direction(name)
    return TextEntry(prefix, weight, dict(map(split_tag, config.tag)).get(name, ""), direction)


def directions_of(config: CorpusConfig) -> list[str]:
    """Return the distinct directions of all texts; none of a dataset of two languages."""
    texts = [*training_texts(config), *valid_texts(config)]
    return [one for one in dict.fromkeys(text.direction for text in texts) if one]


def first_words_of(config: CorpusConfig) -> list[str]:
    """Return the distinct tags and language symbols of all texts."""
    texts = [*training_texts(config), *valid_texts(config)]
    return [*dict.fromkeys(word for text in texts for word in text.first_words(config))]


_DIRECTION = re.compile(r"\w+-\w+")


def split_direction(entry: str) -> tuple[str, str]:
    """Split PREFIX:SRC-TGT; a colon that no direction follows is part of the path."""
    prefix, _, direction = entry.rpartition(":")
    return (prefix, direction) if prefix and _DIRECTION.fullmatch(direction) else (entry, "")


def split_weight(entry: str) -> tuple[str, float]:
    """Split PREFIX=WEIGHT; an equals sign that no number follows is part of the path."""
    prefix, _, text = entry.rpartition("=")
    try:
        return (prefix, float(text)) if prefix else (entry, 1.0)
    except ValueError:
        return entry, 1.0


def split_tag(entry: str) -> tuple[str, str]:
    """Split PREFIX=TAG."""
    prefix, _, tag = entry.rpartition("=")
    return prefix, tag
