"""Facts about a setting besides its type and default; schema.py holds the settings."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Setting:
    """Facts about a field besides its type and default.

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
