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
from nmtkit.config.metrics import (
    BreakdownConfig,
    MetricsConfig,
    SignificanceConfig,
    TuningConfig,
)
from nmtkit.config.preprocessing import CorpusConfig, FilterConfig, VocabularyConfig
from nmtkit.config.rerank import RerankConfig, RerankOutputConfig
from nmtkit.config.setting import InferenceConfig, setting
from nmtkit.config.training import (
    CheckpointConfig,
    LoggingConfig,
    ModelConfig,
    TrainingConfig,
    ValidationConfig,
)
from nmtkit.config.translation import (
    ConstraintsConfig,
    OutputConfig,
    SamplingConfig,
    TranslationConfig,
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
class ScoreRecipe:
    """The settings of `nmtkit score`: three sections with --reference, two with --model."""

    input: ScoreInputConfig = field(default_factory=ScoreInputConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    significance: SignificanceConfig = field(default_factory=SignificanceConfig)
    breakdown: BreakdownConfig = field(default_factory=BreakdownConfig)
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# -------------------------------------------------------------------------------------- rerank


@dataclass(frozen=True, kw_only=True)
class RerankRecipe:
    """The settings of `nmtkit rerank`."""

    rerank: RerankConfig = field(default_factory=RerankConfig)
    output: RerankOutputConfig = field(default_factory=RerankOutputConfig)
    metrics: TuningConfig = field(default_factory=TuningConfig)
    seed: SeedConfig = field(default_factory=SeedConfig)
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
