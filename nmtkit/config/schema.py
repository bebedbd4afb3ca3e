"""Every setting of the toolkit: its type, its only default, its help.

Command-line flags, TOML files, validation and documentation are generated from these dataclasses.
A section is a dataclass of settings; a recipe (`PreprocessRecipe`, `TrainRecipe`,
`TranslateRecipe`, `ScoreRecipe`, `AttentionRecipe`) is the sections that one command takes. Field
names are unique within a recipe, so that `--dropout` needs no prefix. Presets are in presets.py,
checks in validate.py and rules.py.
"""

from dataclasses import dataclass, field

from nmtkit.config.attention import SelectionConfig, ViewConfig
from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.config.preprocessing import CorpusConfig, FilterConfig, VocabularyConfig
from nmtkit.config.setting import InferenceConfig, setting
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


LENGTH_PENALTIES = {
    "gnmt": ("length_penalty",),
    "power": ("length_penalty",),
    "none": (),
}
"""Forms of the length penalty, and the settings that have an effect in each.

`nmtkit/decoding/search.py` computes them.
"""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Beam search. Source: paper, section 6.1."""

    beam: int = setting(4, "Width of the beam; 1 = greedy.", minimum=1, on_resume="free")
    length_penalty: float = setting(
        0.6,
        "Alpha of the length penalty, by which scores are divided.",
        minimum=0,
        maximum=10,
        on_resume="free",
    )
    length_penalty_form: str = setting(
        "gnmt",
        "gnmt: ((5 + length) / 6) ** alpha, the paper's; power: length ** alpha; none: 1.",
        choices=tuple(LENGTH_PENALTIES),
        on_resume="free",
    )
    max_length_ratio: float = setting(
        1.0,
        "Longest translation: so many times the source tokens, plus --extra-length.",
        minimum=0,
        maximum=1000,
        on_resume="free",
    )
    extra_length: int = setting(
        50,
        "Longest translation: --max-length-ratio times the source tokens, plus this.",
        unit="tokens",
        minimum=1,
        maximum=1_000_000,
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class ConstraintsConfig:
    """What a translation must be."""

    max_output_length: int = setting(
        0,
        "Longest translation whatever the source, of each piece of a line that is split; 0 = no "
        "such limit.",
        unit="tokens",
        minimum=0,
    )
    min_length_ratio: float = setting(
        0.0,
        "Shortest translation: so many times the source, plus --min-length.",
        minimum=0,
        maximum=1000,
    )
    min_length: int = setting(
        0,
        "Tokens of the shortest translation, its end symbol not counted, of each piece of a line "
        "that is split.",
        minimum=0,
    )
    no_repeat_ngram: int = setting(
        0, "No sequence of so many tokens comes twice in a translation; 0 = any may.", minimum=0
    )
    ban_unknown: bool = setting(False, "Never put out <unk>.")
    malformed_trees: str = setting(
        "prevent",
        "Of parsers, whose output is always a tree of the source's words. prevent: only what "
        "leads to such trees is searched; repair: all is, and what is found is mended.",
        choices=("prevent", "repair"),
    )


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """Drawing translations at random instead of searching."""

    sample: bool = setting(
        False, "Draw each token from its distribution; --n-best translations, independently."
    )
    temperature: float = setting(
        1.0, "Divides the logits; below 1, likely tokens become likelier.", minimum=1e-3
    )
    top_k: int = setting(0, "Draw among the so many likeliest tokens; 0 = all.", minimum=0)
    top_p: float = setting(
        1.0,
        "Draw among the fewest likeliest tokens that have this probability together.",
        minimum=1e-6,
        maximum=1,
    )


OUTPUT_FORMATS = {
    "text": ("scores", "alignments"),
    "moses": ("n_best", "alignments"),
    "json": ("n_best", "alignments", "token_scores", "attention"),
}
"""Formats of translations, and the settings of `OutputConfig` that have an effect in each.

`OUTPUT_FORMATS` in nmtkit/decoding/formats.py has the functions that write them.
"""


@dataclass(frozen=True, kw_only=True)
class OutputConfig:
    """What is read and written."""

    input_format: str = setting(
        "text",
        "Format of the input. text: a sentence a line; json: an object a line with source and, for "
        "a translation that must begin with it, target_prefix; other keys are passed on, except "
        "those that an answer has itself.",
        choices=("text", "json"),
    )
    output_format: str = setting(
        "text",
        "Format of the output. text: a translation a line; moses: its n-best lists; json: an "
        "object a line.",
        choices=tuple(OUTPUT_FORMATS),
    )
    n_best: int = setting(1, "Translations of each line, the best first.", minimum=1)
    scores: bool = setting(False, "In text, put the score behind each translation and a tab.")
    alignments: bool = setting(
        False, "Word alignments s-t, by the decoder's attention; in text behind a tab."
    )
    token_scores: bool = setting(False, "In json, the tokens and their log-probabilities.")
    attention: bool = setting(False, "In json, the decoder's attention, a row a target token.")


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(InferenceConfig):
    """How lines are read and grouped."""

    batch_size: int = setting(
        64,
        "Sentences translated together, at most; with W > 4 translations of each in the beam or "
        "drawn, 4/W as many.",
        unit="sentences",
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
    shortlist: str = setting(
        "",
        "Look at the candidates of a shortlist alone, as `nmtkit shortlist` makes it.",
        metavar="FOLDER",
    )
    stream: bool = setting(False, "Answer each line before the next one is read.")
    devices: int = setting(
        1,
        "Processes that share the lines, one a GPU; on a CPU they share its threads.",
        zero="auto",
        minimum=0,
        maximum=1024,
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
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
    translation: TranslationConfig = field(default_factory=TranslationConfig)
    seed: SeedConfig = field(default_factory=SeedConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# --------------------------------------------------------------------------------------- score


@dataclass(frozen=True, kw_only=True)
class ScoringConfig(InferenceConfig):
    """How a model scores, with --model."""

    max_length: int = setting(
        4096,
        "A line with more tokens on either side, its end symbol counted, is an error.",
        unit="tokens",
        minimum=2,
    )


@dataclass(frozen=True, kw_only=True)
class ScoreRecipe:
    """The settings of `nmtkit score`: three sections with --reference, two with --model."""

    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    significance: SignificanceConfig = field(default_factory=SignificanceConfig)
    breakdown: BreakdownConfig = field(default_factory=BreakdownConfig)
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


Recipe = PreprocessRecipe | TrainRecipe | TranslateRecipe | ScoreRecipe | AttentionRecipe
