"""Every setting of the toolkit: its type, its only default, its help.

Command-line flags, TOML files, validation and documentation are generated from these dataclasses.
A section is a dataclass of settings. A recipe (`PreprocessRecipe`, `TrainRecipe`,
`TranslateRecipe`, `AlignRecipe`, `ScoreRecipe`, `RerankRecipe`, `AttentionRecipe`) has the sections
of one command. Field names are unique within a recipe, so `--dropout` needs no prefix, and a
mapping from name to value describes a recipe fully. Presets are in presets.py, checks in
validate.py and rules.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_origin, get_type_hints

from nmtkit.config.attention import SelectionConfig, ViewConfig
from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig, TuningConfig
from nmtkit.config.model import ModelConfig
from nmtkit.config.preprocessing import CorpusConfig, FilterConfig, VocabularyConfig
from nmtkit.config.rerank import RerankConfig, RerankOutputConfig
from nmtkit.config.setting import InferenceConfig, Setting, common, setting
from nmtkit.config.training import (
    MAY_CHANGE_ON_RESUME,
    CheckpointConfig,
    EngineConfig,
    LoggingConfig,
    RanksConfig,
    TrainingConfig,
    ValidationConfig,
)
from nmtkit.config.translation import (
    AligningConfig,
    ConstraintsConfig,
    LinksConfig,
    OutputConfig,
    SamplingConfig,
    TranslationConfig,
)


class Recipe:
    """The settings of a command: a section per field."""


@dataclass(frozen=True, kw_only=True)
class SeedConfig:
    """Randomness."""

    seed: int = setting(1, "Seed of the random numbers.")


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """Device."""

    device: str = common(
        "auto",
        "Device to compute on; auto = the first GPU, or the CPU without one.",
        choices=("auto", "cpu", "cuda"),
    )
    threads: int = setting(
        0, "CPU threads; 0 = PyTorch's default: OMP_NUM_THREADS, or one per core.", maximum=1024
    )


# ---------------------------------------------------------------------------------- preprocess


@dataclass(frozen=True, kw_only=True)
class PreprocessRecipe(Recipe):
    """The settings of `nmtkit preprocess`."""

    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    filters: FilterConfig = field(default_factory=FilterConfig)
    seed: SeedConfig = field(default_factory=SeedConfig)


# ----------------------------------------------------------------------------------- translate


LENGTH_PENALTIES = ("gnmt", "power", "none")
"""Forms of the length penalty; `nmtkit/decoding/search.py` computes them."""

STOP_RULES = ("finished", "proved")
"""When the search of a sentence stops; `nmtkit/decoding/search.py` has the rules."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Beam search. Source: paper, section 6.1."""

    beam: int = common(
        4,
        "Beam size; 1 = greedy search.",
        minimum=1,
        maximum=10_000,
        only_with={"sample": (False,)},
        common_in=("translate",),
    )
    length_penalty: float = common(
        0.6,
        "Exponent alpha of the length penalty, which divides scores.",
        maximum=10,
        only_with={"length_penalty_form": ("gnmt", "power")},
        common_in=("translate",),
    )
    length_penalty_form: str = setting(
        "gnmt",
        "Form of the length penalty. gnmt: ((5 + length) / 6) ** alpha, the paper's; power: "
        "length ** alpha; none: 1.",
        choices=LENGTH_PENALTIES,
    )
    stop_when: str = setting(
        "finished",
        "When the search of a sentence stops. finished: when --beam translations have finished; "
        "proved: when no unfinished one can become better, which takes longer.",
        choices=STOP_RULES,
        only_with={"sample": (False,)},
    )
    max_length_ratio: float = setting(
        1.0,
        "Longest translation, as a multiple of the source length; --max-length-offset is added.",
        maximum=1000,
    )
    max_length_offset: int = setting(
        50,
        "Tokens added to --max-length-ratio times the source length; end symbols count.",
        unit="tokens",
        minimum=1,
        maximum=1_000_000,
    )


SEARCH_SETTINGS = tuple(one.name for one in fields(SearchConfig))


@dataclass(frozen=True, kw_only=True)
class TrainRecipe(Recipe):
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
class TranslateRecipe(Recipe):
    """The settings of `nmtkit translate`."""

    search: SearchConfig = field(default_factory=SearchConfig)
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
    translation: TranslationConfig = field(default_factory=TranslationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


@dataclass(frozen=True, kw_only=True)
class CalibrateRecipe(Recipe):
    """The settings of `nmtkit calibrate`."""

    search: SearchConfig = field(default_factory=SearchConfig)
    translation: TranslationConfig = field(default_factory=TranslationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# --------------------------------------------------------------------------------------- align


@dataclass(frozen=True, kw_only=True)
class AlignRecipe(Recipe):
    """The settings of `nmtkit align`."""

    links: LinksConfig = field(default_factory=LinksConfig)
    aligning: AligningConfig = field(default_factory=AligningConfig)
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
class ScoreRecipe(Recipe):
    """The settings of `nmtkit score`: three sections with --reference, two with --model."""

    input: ScoreInputConfig = field(default_factory=ScoreInputConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    significance: SignificanceConfig = field(default_factory=SignificanceConfig)
    breakdown: BreakdownConfig = field(default_factory=BreakdownConfig)
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# -------------------------------------------------------------------------------------- rerank


@dataclass(frozen=True, kw_only=True)
class RerankRecipe(Recipe):
    """The settings of `nmtkit rerank`."""

    rerank: RerankConfig = field(default_factory=RerankConfig)
    output: RerankOutputConfig = field(default_factory=RerankOutputConfig)
    metrics: TuningConfig = field(default_factory=TuningConfig)
    seed: SeedConfig = field(default_factory=SeedConfig)
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


# ----------------------------------------------------------------------------------- attention


@dataclass(frozen=True, kw_only=True)
class AttentionRecipe(Recipe):
    """The settings of `nmtkit attention`."""

    view: ViewConfig = field(default_factory=ViewConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)


RECIPES: dict[str, type[Recipe]] = {
    "preprocess": PreprocessRecipe,
    "train": TrainRecipe,
    "translate": TranslateRecipe,
    "calibrate": CalibrateRecipe,
    "align": AlignRecipe,
    "score": ScoreRecipe,
    "rerank": RerankRecipe,
    "attention": AttentionRecipe,
}
"""The recipe of each command that has one."""


# -------------------------------------------------------------------------- settings as a table


Value = bool | int | float | str | tuple[str, ...]
Values = Mapping[str, Value]
AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)


@dataclass(frozen=True, kw_only=True)
class Field(Setting):
    """A setting, with its place in a recipe.

    Attributes:
        section: name of its section.
        name: its name, unique within the recipe.
        kind: bool, int, float, str, or tuple (of texts).
        default: the schema's default.
    """

    section: str
    name: str
    kind: type
    default: Value

    @property
    def place(self) -> str:
        """Section and name, as messages end: `[training.dropout]`."""
        return f"[{self.section}.{self.name}]"

    @property
    def may_change_on_resume(self) -> bool:
        """Whether a run may be resumed with another value."""
        return not MAY_CHANGE_ON_RESUME.isdisjoint((self.section, self.name))

    @property
    def flag(self) -> str:
        """The flag of the command line: `--label-smoothing`."""
        return flag_of(self.name)


def flag_of(name: str) -> str:
    """Return the flag of a setting: `--label-smoothing`."""
    return "--" + name.replace("_", "-")


def sections_of(recipe_type: type[AnyRecipe]) -> dict[str, type[Any]]:
    """Return the types of the recipe's sections, by name, in order."""
    return get_type_hints(recipe_type)


def fields_of(recipe_type: type[AnyRecipe]) -> dict[str, Field]:
    """Return every setting of a recipe, by name, in the order of the schema."""
    table = {}
    for section, section_type in sections_of(recipe_type).items():
        hints, defaults = get_type_hints(section_type), vars(section_type())
        for one in fields(section_type):
            table[one.name] = Field(
                section=section,
                name=one.name,
                kind=get_origin(hints[one.name]) or hints[one.name],
                default=defaults[one.name],
                **vars(one.metadata["setting"]),
            )
    return table


def values_of(recipe: Recipe) -> dict[str, Value]:
    """Return the value of every setting, by name."""
    sections = (getattr(recipe, section) for section in sections_of(type(recipe)))
    return {name: value for section in sections for name, value in vars(section).items()}


def recipe_of(recipe_type: type[AnyRecipe], values: Values) -> AnyRecipe:
    """Return the recipe with these values; the schema's defaults fill the rest.

    Values are not checked: see `nmtkit.config.validate`.
    """
    sections: dict[str, dict[str, Any]] = {name: {} for name in sections_of(recipe_type)}
    for name, one in fields_of(recipe_type).items():
        if name in values:
            sections[one.section][name] = values[name]
    types = sections_of(recipe_type)
    return recipe_type(**{name: types[name](**chosen) for name, chosen in sections.items()})
