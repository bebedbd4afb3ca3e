"""Every setting of the toolkit: its type, its only default, its help.

Command-line flags, TOML files, validation and documentation are generated from these dataclasses.
A section is a dataclass of settings; a recipe (`PreprocessRecipe`, `TrainRecipe`,
`TranslateRecipe`) is the sections that one command takes. Field names are unique within a recipe,
so that `--dropout` needs no prefix. Presets are in presets.py, checks in validate.py and rules.py.
"""

from dataclasses import dataclass, field

from nmtkit.config.setting import setting

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


# --------------------------------------------------------------------------------------- model


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The Transformer's shape. Source: paper, section 3 and table 3."""

    encoder_layers: int = setting(6, "Layers of the encoder.", minimum=1)
    decoder_layers: int = setting(6, "Layers of the decoder.", minimum=1)
    model_size: int = setting(512, "Width d_model of embeddings and layers.", minimum=2)
    feed_forward_size: int = setting(
        2048, "Inner width d_ff of the feed-forward layers.", minimum=1
    )
    heads: int = setting(8, "Attention heads h.", minimum=1)
    key_size: int = setting(
        0, "Width d_k of a head's queries and keys; 0 = model_size / heads.", minimum=0
    )
    value_size: int = setting(0, "Width d_v of a head's values; 0 = model_size / heads.", minimum=0)
    dropout: float = setting(
        0.1,
        "Dropout of sub-layer outputs and of the sum of embedding and position.",
        minimum=0,
        maximum=0.99,
    )
    attention_dropout: float = setting(
        0.0, "Dropout of attention weights.", minimum=0, maximum=0.99
    )
    activation_dropout: float = setting(
        0.0, "Dropout inside the feed-forward layers, after the ReLU.", minimum=0, maximum=0.99
    )
    norm: str = setting(
        "post",
        "post: LayerNorm(x + Sublayer(x)), the paper's; pre: x + Sublayer(LayerNorm(x)), "
        "with one more LayerNorm at the end of each stack.",
        choices=("post", "pre"),
    )
    norm_epsilon: float = setting(1e-5, "Epsilon of LayerNorm.", minimum=1e-12)
    positions: str = setting(
        "sinusoidal",
        "Position encoding: fixed sinusoids, or learned.",
        choices=("sinusoidal", "learned"),
    )
    max_positions: int = setting(
        1024, "Learned positions there are; longer input is an error.", unit="tokens", minimum=1
    )
    tie_embeddings: bool = setting(
        True,
        "Share one matrix between the target embedding and the output projection, and, where "
        "the vocabulary is shared, the source embedding.",
    )


# ------------------------------------------------------------------------------------ training


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Batches, loss and optimiser. Source: paper, section 5."""

    update_tokens: int = setting(
        25_000,
        "Largest update: at most this many source and this many target tokens, "
        "end symbols counted.",
        unit="tokens",
        minimum=1,
    )
    max_tokens: int = setting(
        4096,
        "An update is cut into slots of about this many source and target tokens, which bounds "
        "memory and does not change what is learnt but for the dropout masks.",
        unit="tokens",
        minimum=1,
    )
    max_updates: int = setting(
        100_000, "Stop after this many updates.", unit="updates", minimum=1, on_resume="free"
    )
    max_epochs: int = setting(
        0, "Stop after this many passes over the corpus; 0 = no limit.", minimum=0, on_resume="free"
    )
    max_minutes: float = setting(
        0.0,
        "Stop after this much time in training, all sessions of the run together; 0 = no limit.",
        unit="minutes",
        minimum=0,
        on_resume="free",
    )
    warmup_updates: int = setting(
        4000, "Updates of linear warm-up before the decay with 1/sqrt(update).", minimum=1
    )
    learning_rate_scale: float = setting(
        1.0, "Factor on the paper's schedule; its peak is printed at the start.", minimum=0
    )
    adam_beta1: float = setting(0.9, "Adam's beta 1.", minimum=0, maximum=0.9999)
    adam_beta2: float = setting(0.98, "Adam's beta 2.", minimum=0, maximum=0.99999)
    adam_epsilon: float = setting(1e-9, "Adam's epsilon.", minimum=1e-20)
    label_smoothing: float = setting(
        0.1, "Probability mass spread evenly over the vocabulary.", minimum=0, maximum=0.99
    )
    clip_norm: float = setting(
        0.0, "Scale gradients of a larger norm down to this one; 0 = never.", minimum=0
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """What is saved, and what is kept."""

    save_every: int = setting(
        1000,
        "Save a checkpoint after every so many updates; averaging takes these.",
        unit="updates",
        minimum=1,
        on_resume="free",
    )
    save_minutes: float = setting(
        10.0,
        "Save one for safety when this much time has passed without; 0 = never.",
        unit="minutes",
        minimum=0,
        on_resume="free",
    )
    keep: int = setting(
        5,
        "Keep this many of the newest checkpoints made by --save-every (and the best).",
        minimum=1,
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """When the validation set is looked at, and what follows from it."""

    validate_every: int = setting(
        1000,
        "Validate after every so many updates, 0 = never; a multiple of --save-every.",
        unit="updates",
        minimum=0,
        on_resume="free",
    )
    validate_bleu: bool = setting(
        True, "Also translate the validation set and compute BLEU.", on_resume="free"
    )
    best_metric: str = setting(
        "loss",
        "What makes a checkpoint the best, and what early stopping watches.",
        choices=("loss", "bleu"),
    )
    patience: int = setting(
        0,
        "Stop after this many validations in a row without a new best; 0 = never.",
        minimum=0,
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class LoggingConfig:
    """What is reported while training."""

    log_every: int = setting(
        100,
        "Report progress after every so many updates.",
        unit="updates",
        minimum=1,
        on_resume="free",
    )


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


@dataclass(frozen=True, kw_only=True)
class TranslateRecipe:
    """The settings of `nmtkit translate`."""

    search: SearchConfig = field(default_factory=SearchConfig)
    translation: TranslationConfig = field(default_factory=TranslationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


Recipe = PreprocessRecipe | TrainRecipe | TranslateRecipe
