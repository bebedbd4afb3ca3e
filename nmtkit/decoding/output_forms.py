"""The form that a type of target demands of a model's outputs; plain text demands none.

A module of its own: one table connects the translator with every type of target.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from nmtkit.config.metrics import CONSTRAINT_SETTINGS, TargetType
from nmtkit.config.translation import ConstraintsConfig
from nmtkit.decoding.constraints import Constraint
from nmtkit.errors import ConfigError
from nmtkit.parsing.well_formed import TreeForm
from nmtkit.text.codec import TextCodec


class OutputForm(Protocol):
    """The form of all outputs of a type of target.

    Attributes:
        no_shortlist, no_prefix: why a shortlist or a forced prefix is refused; "" = it is not.
    """

    no_shortlist: str
    no_prefix: str

    def fewest_tokens(self, ids: list[int], line: str) -> int:
        """Return the length of the shortest output of a source, its end symbol counted.

        Args:
            ids: ids of the source, or of a part of it.
            line: text of the whole source.
        """

    def constraint(self, fewest: Sequence[int], max_lengths: Tensor) -> Constraint | None:
        """Return the constraint on a batch; None = the search is free.

        Args:
            fewest: the fewest tokens of each of B outputs.
            max_lengths: (B,) int64, the longest hypotheses permitted, end symbols counted.
        """


MakeForm = Callable[[TextCodec, ConstraintsConfig, torch.device], OutputForm]

OUTPUT_FORMS: dict[TargetType, MakeForm | None] = {"text": None, "trees": TreeForm}
"""Functions that make the form of a type of target; None = any output is valid."""


def output_form(
    codec: TextCodec, config: ConstraintsConfig, device: torch.device
) -> OutputForm | None:
    """Return the form that the target of a codec demands, if any.

    Raises:
        ConfigError: a setting has no effect on this type of target.
    """
    own = CONSTRAINT_SETTINGS[codec.target_type]
    for settings in CONSTRAINT_SETTINGS.values():
        for name, reason in settings.items():
            value, default = vars(config)[name], getattr(ConstraintsConfig, name)
            if name not in own and value != default:
                raise ConfigError(
                    f"{name} ({value!r}) has no effect: {reason}; leave it out [constraints.{name}]"
                )
    make_form = OUTPUT_FORMS[codec.target_type]
    return None if make_form is None else make_form(codec, config, device)
