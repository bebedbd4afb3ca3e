"""Settings that several commands have in sections of their own, each declared once.

A section inherits from these classes, so that recipes keep the setting where it is.
"""

from dataclasses import dataclass

from nmtkit.config.setting import setting


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
