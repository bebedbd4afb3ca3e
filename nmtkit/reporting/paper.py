"""The paper's tables 2 and 3, compared with runs and models.

Source: Vaswani et al. 2017, "Attention Is All You Need" (arXiv 1706.03762v7).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmtkit.config.model import ModelConfig
from nmtkit.config.presets import PRESET_OF_ROW, PRESETS
from nmtkit.config.schema import TrainRecipe, recipe_of
from nmtkit.reporting.page import Cell, Section, Table, cell
from nmtkit.reporting.runs import Run


@dataclass(frozen=True)
class System:
    """The results of a system for one pair of languages; of table 2, on newstest2014.

    Attributes:
        name: the model.
        languages: "en-de" or "en-fr"; None = unknown.
        bleu: tokenised, case-sensitive, German compounds split; None = unknown.
        operations: floating-point operations of training: time x GPUs x sustained rate of a GPU;
            None if the table has no figure.
    """

    name: str
    languages: str | None
    bleu: float | None
    operations: float | None


@dataclass(frozen=True)
class Row:
    """A row of table 3, on newstest2013.

    Attributes:
        perplexity: per word-piece.
        bleu: as in table 2.
        millions: millions of parameters; None if the table has no figure: as many as base. Row E
            has none either, but its learned positions are additional parameters.
    """

    perplexity: float
    bleu: float
    millions: int | None


TABLE_2 = (
    System("ByteNet", "en-de", 23.75, None),
    System("GNMT + RL", "en-de", 24.6, 2.3e19),
    System("ConvS2S", "en-de", 25.16, 9.6e18),
    System("MoE", "en-de", 26.03, 2.0e19),
    System("GNMT + RL ensemble", "en-de", 26.30, 1.8e20),
    System("ConvS2S ensemble", "en-de", 26.36, 7.7e19),
    System("Transformer (base model)", "en-de", 27.3, 3.3e18),
    System("Transformer (big)", "en-de", 28.4, 2.3e19),
    System("Deep-Att + PosUnk", "en-fr", 39.2, 1.0e20),
    System("GNMT + RL", "en-fr", 39.92, 1.4e20),
    System("ConvS2S", "en-fr", 40.46, 1.5e20),
    System("MoE", "en-fr", 40.56, 1.2e20),
    System("Deep-Att + PosUnk ensemble", "en-fr", 40.4, 8.0e20),
    System("GNMT + RL ensemble", "en-fr", 41.16, 1.1e21),
    System("ConvS2S ensemble", "en-fr", 41.29, 1.2e21),
    System("Transformer (base model)", "en-fr", 38.1, 3.3e18),
    System("Transformer (big)", "en-fr", 41.8, 2.3e19),
)

TABLE_3 = {
    "base": Row(4.92, 25.8, 65),
    "A1": Row(5.29, 24.9, None),
    "A2": Row(5.00, 25.5, None),
    "A3": Row(4.91, 25.8, None),
    "A4": Row(5.01, 25.4, None),
    "B1": Row(5.16, 25.1, 58),
    "B2": Row(5.01, 25.4, 60),
    "C1": Row(6.11, 23.7, 36),
    "C2": Row(5.19, 25.3, 50),
    "C3": Row(4.88, 25.5, 80),
    "C4": Row(5.75, 24.5, 28),
    "C5": Row(4.66, 26.0, 168),
    "C6": Row(5.12, 25.4, 53),
    "C7": Row(4.75, 26.2, 90),
    "D1": Row(5.77, 24.6, None),
    "D2": Row(4.95, 25.5, None),
    "D3": Row(4.67, 25.3, None),
    "D4": Row(5.47, 25.7, None),
    "E": Row(4.92, 25.7, None),
    "big": Row(4.33, 26.4, 213),
}
"""Rows by name; the rows of each of the paper's groups are numbered from 1."""

_HEADERS = ("model", "languages", "BLEU", "FLOPs")
_NOTES = (
    "BLEU: the paper's is on newstest2014, tokenised, compounds split; a run's is its best "
    "sacreBLEU on its validation set, which differs; nmtkit score --metric paper-bleu computes "
    "the paper's",
    "FLOPs: the paper's are training time x GPUs x sustained rate of a GPU; a run's are matrix "
    "products, forward and backward, counted from the model's shape",
)


def table2(runs: Sequence[Run]) -> Section:
    """Return the paper's table 2, a row per model and pair of languages, and a row per run."""
    own = [System(run.name, run.languages, _bleu(run), run.operations) for run in runs]
    rows = [
        [Cell(one.name), cell(one.languages), cell(one.bleu, ".2f"), cell(one.operations, ".1e")]
        for one in (*TABLE_2, *own)
    ]
    return Section("The paper's table 2", Table(_HEADERS, rows), _NOTES)


@dataclass(frozen=True)
class PaperParameters:
    """The number of parameters in table 3 of a model.

    Attributes:
        millions: in millions; None if table 3 has no figure for the model.
        vocab_size: size of the vocabulary that gives this number of parameters, or None.
    """

    millions: int | None
    vocab_size: int | None

    @staticmethod
    def of(model: ModelConfig, num_parameters: int, vocab_size: int) -> "PaperParameters":
        """Look up a model in table 3.

        Args:
            model: the model's configuration.
            num_parameters: its number of parameters with a vocabulary of `vocab_size`.
            vocab_size: size of the vocabulary that both sides share.
        """
        millions = _millions(model)
        if millions is None:
            return PaperParameters(None, None)
        rest = num_parameters - vocab_size * model.model_size
        return PaperParameters(millions, round((millions * 1e6 - rest) / model.model_size))

    def __str__(self) -> str:
        if self.millions is None:
            return "table 3 has no figure for this model"
        return (
            f"{self.millions} million parameters, which needs {self.vocab_size:,} entries; base's "
            "rows of table 3 need about 41,000 and big 36,000, so no vocabulary gives all"
        )

    def to_json(self) -> dict[str, int | None]:
        """Return plain values."""
        return {"paper_millions": self.millions, "paper_vocab_size": self.vocab_size}


def _bleu(run: Run) -> float | None:
    best = run.best("bleu")
    return best.scores["bleu"] if best else None


def _millions(model: ModelConfig) -> int | None:
    """Return the millions of parameters in table 3 of a model; None if it has none.

    Rows without a figure have as many as base, except with learned positions.
    """
    base = TrainRecipe().model
    for name, row in TABLE_3.items():
        of_row = recipe_of(TrainRecipe, PRESETS[PRESET_OF_ROW[name]]).model
        own = replace(
            of_row,
            dropout=model.dropout,
            attention_dropout=model.attention_dropout,
            activation_dropout=model.activation_dropout,
        )
        if own == model:
            is_as_base = own.positions == base.positions
            return row.millions or (TABLE_3["base"].millions if is_as_base else None)
    return None
