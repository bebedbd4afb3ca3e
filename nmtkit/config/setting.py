"""How a setting is declared, and the settings that several commands have in their own sections.

Such a section inherits from the classes here, so a recipe keeps the setting where it is. All other
settings are in schema.py and the modules that it names.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Setting:
    """What is known of a field beside its type and default.

    Attributes:
        help: what it sets, then the details, for `--help-all` and the documentation; `--help`
            shows it up to the first full stop, colon or semicolon.
        unit: what a number counts, in the plural ("tokens", "minutes"), or "".
        metavar: what stands for a text in `--help` ("FILE"), instead of its choices if it has some.
        zero: how 0 is written ("auto"), where it means something else than the number.
        choices: the permitted values of a text setting, or a table with these keys; empty = any.
        minimum, maximum: the inclusive range of a number.
        on_resume: "fixed" settings make the model what it is and may not change between the
            sessions of one run; "free" ones may.
        required: an empty value is an error.
    """

    help: str
    unit: str = ""
    metavar: str = ""
    zero: str = ""
    choices: Collection[str] = ()
    minimum: float | None = None
    maximum: float | None = None
    on_resume: Literal["fixed", "free"] = "fixed"
    required: bool = False


def setting(default: Any, help: str, **details: Any) -> Any:
    """Declare a field with its default and its `Setting`."""
    return field(default=default, metadata={"setting": Setting(help, **details)})


@dataclass(frozen=True, kw_only=True)
class PrecisionConfig:
    """The arithmetic of a model, in training, translation and scoring."""

    precision: str = setting(
        "auto",
        "Type of matrix products. auto: bfloat16 on GPUs that have it, and to train models of size "
        "256 or more on CPUs with instructions for it; else float32.",
        choices=("auto", "float32", "bfloat16"),
        on_resume="free",
    )


@dataclass(frozen=True, kw_only=True)
class InferenceConfig(PrecisionConfig):
    """The batches of a trained model, in translation and scoring."""

    max_tokens: int = setting(
        4096,
        "Largest batch: at most this many source tokens and, if the target is given, target "
        "tokens, padding counted. This bounds the memory. For W > 4 translations of a sentence in "
        "the beam or drawn, the limit is 4/W of it.",
        unit="tokens",
        minimum=1,
        on_resume="free",
    )
