"""Every setting of the toolkit: its type, its only default, its help.

Command-line flags, TOML files, validation and documentation are generated from these dataclasses.
A section is a dataclass of settings. A recipe (`PreprocessRecipe`, `TrainRecipe`,
`TranslateRecipe`, `ScoreRecipe`, `RerankRecipe`, `AttentionRecipe`) has the sections of one
command. Field names are unique within a recipe, so `--dropout` needs no prefix. Presets are in
presets.py, checks in validate.py and rules.py.
"""

from dataclasses import dataclass, field, fields

from nmtkit.config.attention import SelectionConfig, ViewConfig
from nmtkit.config.engine import EngineConfig, RanksConfig
from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.config.preprocessing import CorpusConfig, FilterConfig, VocabularyConfig
from nmtkit.config.rerank import RerankConfig, RerankOutputConfig, TuningConfig
from nmtkit.config.setting import InferenceConfig, setting
from nmtkit.config.training import (
    CheckpointConfig,
    LoggingConfig,
    ModelConfig,
    TrainingConfig,
    ValidationConfig,
)

# ---------------------------------------------------------------------------------- preprocess


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

    seed: int = setting(1, "Seed of the random numbers.", minimum=0)


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """Device."""

    device: str = setting(
        "auto",
        "Device to compute on; auto = the first GPU, or the CPU without one.",
        choices=("auto", "cpu", "cuda"),
        on_resume="free",
    )
    threads: int = setting(
        0,
        "CPU threads; 0 = PyTorch's default: OMP_NUM_THREADS, or one per core.",
        minimum=0,
        maximum=1024,
        on_resume="free",
    )


# ----------------------------------------------------------------------------------- translate


LENGTH_PENALTIES = {
    "gnmt": ("length_penalty",),
    "power": ("length_penalty",),
    "none": (),
}
"""Forms of the length penalty, and the settings that each one uses.

`nmtkit/decoding/search.py` computes them.
"""

STOP_RULES = ("finished", "proved")
"""When the search of a sentence stops; `nmtkit/decoding/search.py` has the rules."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Beam search. Source: paper, section 6.1."""

    beam: int = setting(
        4, "Beam size; 1 = greedy search.", minimum=1, maximum=10_000, on_resume="free"
    )
    length_penalty: float = setting(
        0.6,
        "Exponent alpha of the length penalty, which divides scores.",
        minimum=0,
        maximum=10,
        on_resume="free",
    )
    length_penalty_form: str = setting(
        "gnmt",
        "Form of the length penalty. gnmt: ((5 + length) / 6) ** alpha, the paper's; power: "
        "length ** alpha; none: 1.",
        choices=tuple(LENGTH_PENALTIES),
        on_resume="free",
    )
    stop_when: str = setting(
        "finished",
        "When the search of a sentence stops. finished: when --beam translations have finished; "
        "proved: when no unfinished one can become better, which takes longer.",
        choices=STOP_RULES,
        on_resume="free",
    )
    max_length_ratio: float = setting(
        1.0,
        "Longest translation, as a multiple of the source length; --max-length-offset is added.",
        minimum=0,
        maximum=1000,
        on_resume="free",
    )
    max_length_offset: int = setting(
        50,
        "Tokens added to --max-length-ratio times the source length; end symbols count.",
        unit="tokens",
        minimum=1,
        maximum=1_000_000,
        on_resume="free",
    )


SEARCH_SETTINGS = tuple(one.name for one in fields(SearchConfig))


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
    n_best: int = setting(1, "Translations per line, best first.", minimum=1, maximum=10_000)
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
        64,
        "Largest number of sentences per batch; with W > 4 hypotheses per sentence, 4/W of it.",
        unit="sentences",
        minimum=1,
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


@dataclass(frozen=True, kw_only=True)
class TrainRecipe:
    """The settings of `nmtkit train`; runs and models store them as config.toml."""

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
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
    translation: TranslationConfig = field(default_factory=TranslationConfig)
    seed: SeedConfig = field(default_factory=SeedConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# --------------------------------------------------------------------------------------- score


@dataclass(frozen=True, kw_only=True)
class ScoreInputConfig:
    """Input."""

    input_format: str = setting(
        "text",
        "Format of the translations. text: one per line; json: an object per line with source and "
        "translation, as translate and rerank write it.",
        choices=("text", "json"),
    )


@dataclass(frozen=True, kw_only=True)
class ScoringConfig(InferenceConfig):
    """Scoring by a model."""

    max_length: int = setting(
        4096,
        "Longest line on either side; the end symbol counts; longer lines are an error.",
        unit="tokens",
        minimum=2,
    )


@dataclass(frozen=True, kw_only=True)
class JudgingConfig(ScoringConfig):
    """Scoring by a model, with --model."""

    contrastive: str = setting(
        "",
        "Contrastive suite to judge, instead of --source: source, right translation, wrong ones "
        "and category, separated by tabs.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class ScoreRecipe:
    """The settings of `nmtkit score`: three sections with --reference, two with --model."""

    input: ScoreInputConfig = field(default_factory=ScoreInputConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    significance: SignificanceConfig = field(default_factory=SignificanceConfig)
    breakdown: BreakdownConfig = field(default_factory=BreakdownConfig)
    scoring: JudgingConfig = field(default_factory=JudgingConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# -------------------------------------------------------------------------------------- rerank


@dataclass(frozen=True, kw_only=True)
class RerankRecipe:
    """The settings of `nmtkit rerank`."""

    rerank: RerankConfig = field(default_factory=RerankConfig)
    output: RerankOutputConfig = field(default_factory=RerankOutputConfig)
    tuning: TuningConfig = field(default_factory=TuningConfig)
    seed: SeedConfig = field(default_factory=SeedConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# ----------------------------------------------------------------------------------- attention


@dataclass(frozen=True, kw_only=True)
class AttentionRecipe:
    """The settings of `nmtkit attention`."""

    view: ViewConfig = field(default_factory=ViewConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


Recipe = (
    PreprocessRecipe | TrainRecipe | TranslateRecipe | ScoreRecipe | RerankRecipe | AttentionRecipe
)

RECIPES: dict[str, type[Recipe]] = {
    "preprocess": PreprocessRecipe,
    "train": TrainRecipe,
    "translate": TranslateRecipe,
    "score": ScoreRecipe,
    "rerank": RerankRecipe,
    "attention": AttentionRecipe,
}
"""The recipe of each command that has one."""
