"""The declaration of settings, and settings that several commands share.

Sections inherit from the classes here, so each recipe has a shared setting in its own section. All
other settings are in schema.py and the modules that it names.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

GIVEN: Collection[object] = frozenset({"given"})
"""Values of another setting in `only_with`: this object stands for all except 0, "" and []."""


@dataclass(frozen=True)
class Setting:
    """Facts about a field besides its type and default.

    Attributes:
        help: what it sets, then the details; `--help` shows the part before the first full stop,
            colon or semicolon, `--help-all` and the documentation show all of it.
        unit: the unit of a number, in the plural ("tokens", "minutes"), or "".
        short_flag: its one-letter flag ("-s"), or "".
        metavar: the placeholder of a text in `--help` ("FILE"); it replaces a list of choices.
        zero: the word for 0 ("auto") if 0 has a special meaning.
        choices: the permitted values of a text setting, or a table with these keys; empty = any.
        minimum, maximum: the inclusive range of a number; a default of 0 is permitted, too.
        required: an empty value is an error.
        only_with: other settings of the recipe, and the values with which this one has an effect
            (`GIVEN` = all except 0, "" and an empty list); without, it is an error.
        is_common: `--help` shows it; `--help-all` shows every setting.
        common_in: the only commands where it is common; empty = all that have it.
        in_recipes: whether a recipe may set it; False for what runs programs, because recipes,
            runs and models may come from anybody.
    """

    help: str
    unit: str = ""
    short_flag: str = ""
    metavar: str = ""
    zero: str = ""
    choices: Collection[str] = ()
    minimum: float = 0
    maximum: float | None = None
    required: bool = False
    only_with: Mapping[str, Collection[bool | str]] = field(default_factory=dict)
    is_common: bool = False
    common_in: Collection[str] = ()
    in_recipes: bool = True


def setting(default: Any, help: str, **details: Any) -> Any:
    """Declare a field with its default and its `Setting`."""
    return field(default=default, metadata={"setting": Setting(help, **details)})


def common(default: Any, help: str, **details: Any) -> Any:
    """Declare a field that `--help` shows."""
    return setting(default, help, is_common=True, **details)


@dataclass(frozen=True, kw_only=True)
class DirectionConfig:
    """The direction of a model that has several."""

    target_lang: str = common(
        "",
        "Target language, for a model that has several.",
        common_in=("translate",),
        metavar="LANG",
    )
    source_lang: str = setting(
        "",
        "Language of the source, of a model with directions; required by `preprocess "
        "--source-symbols`.",
        metavar="LANG",
    )


@dataclass(frozen=True, kw_only=True)
class InferenceConfig(DirectionConfig):
    """Precision and batches in translation and scoring."""

    precision: str = setting(
        "auto",
        "Number format of matrix products. auto: bfloat16 on GPUs that support it, otherwise "
        "float32. int8: 8-bit integers, for x86 CPUs; faster, with slightly different scores.",
        choices=("auto", "float32", "bfloat16", "int8"),
    )
    max_tokens: int = common(
        0,
        "Largest batch in tokens, with padding: source tokens and, if the target is given, target "
        "tokens. It bounds memory use. With W > 4 hypotheses per sentence, the limit is 4/W of it. "
        "auto = 4096 on a CPU, 32768 on a GPU.",
        zero="auto",
        unit="tokens",
    )
