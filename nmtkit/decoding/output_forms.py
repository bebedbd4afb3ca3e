"""The form of a model's outputs, which follows from the type of its target: plain text has any."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from nmtkit.config.metrics import TargetType
from nmtkit.config.schema import ConstraintsConfig
from nmtkit.decoding.constraints import FormConstraint
from nmtkit.errors import ConfigError
from nmtkit.parsing.well_formed import TreeForm
from nmtkit.text.codec import TextCodec


class OutputForm(Protocol):
    """The form of all outputs of a type of target, as a translator keeps to it.

    Attributes:
        own_settings: settings of `ConstraintsConfig` that have an effect for this type alone; with
            each, why it has none for others.
        no_shortlist, no_prefix: why a shortlist, or a forced beginning, does not fit; "" = it does.
    """

    own_settings: ClassVar[Mapping[str, str]]
    no_shortlist: ClassVar[str]
    no_prefix: ClassVar[str]

    def __init__(self, codec: TextCodec, config: ConstraintsConfig, device: torch.device) -> None:
        """Prepare for a codec of this type."""

    def fewest_tokens(self, ids: list[int], line: str) -> int:
        """Return the length of the shortest output of a source, its end symbol counted.

        Args:
            ids: of the source.
            line: the text that they are of, or are a part of.
        """

    def constraint(self, fewest: Sequence[int], max_lengths: Tensor) -> FormConstraint | None:
        """Return the constraint on a batch; None = a search is free.

        Args:
            fewest: the fewest tokens of each of B outputs.
            max_lengths: (B,) int64, the longest hypotheses permitted, end symbols counted.
        """


class AnyForm:
    """Plain text: any sequence of tokens is one."""

    own_settings: ClassVar[Mapping[str, str]] = {}
    no_shortlist: ClassVar[str] = ""
    no_prefix: ClassVar[str] = ""

    def __init__(self, codec: TextCodec, config: ConstraintsConfig, device: torch.device) -> None:
        """Take what other forms need."""

    def fewest_tokens(self, ids: list[int], line: str) -> int:  # noqa: ARG002
        """Return the length of the end symbol."""
        return 1

    def constraint(self, fewest: Sequence[int], max_lengths: Tensor) -> None:
        """Return no constraint."""


OUTPUT_FORMS: dict[TargetType, type[OutputForm]] = {"text": AnyForm, "trees": TreeForm}
"""Forms of outputs by the type of the target."""


def output_form(codec: TextCodec, config: ConstraintsConfig, device: torch.device) -> OutputForm:
    """Return the form that the target of a codec demands.

    Raises:
        ConfigError: a setting has no effect on this type of target.
    """
    form = OUTPUT_FORMS[codec.target_type]
    for other in OUTPUT_FORMS.values():
        for name, reason in other.own_settings.items():
            value = getattr(config, name)
            if name not in form.own_settings and value != getattr(ConstraintsConfig, name):
                raise ConfigError(
                    f"{name} ({value!r}) has no effect: {reason}; leave it out [constraints.{name}]"
                )
    return form(codec, config, device)
