"""Every setting of the toolkit: its type, its only default, its help.

Command-line flags, TOML files, validation and documentation are generated from these dataclasses.
A section is a dataclass of settings; a recipe (`PreprocessRecipe`, `TrainRecipe`,
`TranslateRecipe`) is the sections that one command takes. Field names are unique within a recipe,
so that `--dropout` needs no prefix. Presets are in presets.py, checks in validate.py and rules.py.
"""

from dataclasses import dataclass, field

from nmtkit.config.setting import setting
from nmtkit.config.training import (
    CheckpointConfig,
    EngineConfig,
    LoggingConfig,
    ModelConfig,
    RanksConfig,
    TrainingConfig,
    ValidationConfig,
)

# ---------------------------------------------------------------------------------- preprocess


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
        "Training text PREFIX.SOURCE and PREFIX.TARGET (or .gz); may be repeated.",
        metavar="PREFIX",
        required=True,
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
        "bpe or unigram: SentencePiece with byte fallback, raw text in and out; "
        "words: text that is segmented already, cut at spaces.",
        choices=("bpe", "unigram", "words"),
    )
    vocab_size: int = setting(
        32_000, "Entries of a vocabulary; for words, at most so many.", minimum=8
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


@dataclass(frozen=True, kw_only=True)
class PreprocessRecipe:
    """The settings of `nmtkit preprocess`."""

    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    filters: FilterConfig = field(default_factory=FilterConfig)
    seed: "SeedConfig" = field(default_factory=lambda: SeedConfig())


@dataclass(frozen=True, kw_only=True)
class SeedConfig:
    """Randomness."""

    seed: int = setting(1, "Seed of everything that is drawn at random.", minimum=0)


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """The machine."""

    device: str = setting(
        "auto",
        "Where tensors live: auto takes the first GPU if there is one.",
        choices=("auto", "cpu", "cuda"),
        on_resume="free",
    )
    threads: int = setting(
        0,
        "CPU threads; 0 = torch's choice: OMP_NUM_THREADS, or one a core.",
        minimum=0,
        maximum=1024,
        on_resume="free",
    )


# ----------------------------------------------------------------------------------- translate


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Beam search. Source: paper, section 6.1."""

    beam: int = setting(4, "Width of the beam; 1 = greedy.", minimum=1, on_resume="free")
    length_penalty: float = setting(
        0.6, "Alpha of the length penalty ((5 + length) / 6) ** alpha.", minimum=0, on_resume="free"
    )
    extra_length: int = setting(
        50,
        "Longest translation: source tokens plus this.",
        unit="tokens",
        minimum=1,
        maximum=1_000_000,
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class TranslationConfig:
    """How lines are read and grouped."""

    batch_size: int = setting(
        64,
        "Sentences translated together, at most.",
        unit="sentences",
        minimum=1,
        on_resume="free",
    )
    batch_tokens: int = setting(
        4096,
        "Source tokens translated together, at most (padding counted).",
        unit="tokens",
        minimum=1,
        on_resume="free",
    )
    chunk_lines: int = setting(
        4096,
        "Lines read ahead, sorted by length and answered together; on a terminal always 1.",
        unit="lines",
        minimum=1,
        on_resume="free",
    )
    max_source_length: int = setting(
        1024,
        "Longest line translated whole, its end symbol counted.",
        unit="tokens",
        minimum=2,
        on_resume="free",
    )
    on_too_long: str = setting(
        "split",
        "A longer line is split at spaces and its pieces' translations joined, "
        "truncated to the limit, or an error.",
        choices=("split", "truncate", "error"),
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class TrainRecipe:
    """The settings of `nmtkit train`; a run and its models carry them as config.toml."""

    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    seed: SeedConfig = field(default_factory=SeedConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    ranks: RanksConfig = field(default_factory=RanksConfig)


@dataclass(frozen=True, kw_only=True)
class TranslateRecipe:
    """The settings of `nmtkit translate`."""

    search: SearchConfig = field(default_factory=SearchConfig)
    translation: TranslationConfig = field(default_factory=TranslationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


Recipe = PreprocessRecipe | TrainRecipe | TranslateRecipe
