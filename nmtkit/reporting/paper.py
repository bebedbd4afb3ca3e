"""What the paper reports in its tables 2 and 3, to set beside what nmtkit counts and reaches.

Source: Vaswani et al. 2017, "Attention Is All You Need" (arXiv 1706.03762v7).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class System:
    """A cell of table 2, on newstest2014.

    Attributes:
        name: the model.
        languages: "en-de" or "en-fr".
        bleu: tokenised, case-sensitive, German compounds split.
        operations: floating-point operations of its training: time x GPUs x what one sustains;
            None where the table leaves it open.
    """

    name: str
    languages: str
    bleu: float
    operations: float | None


@dataclass(frozen=True)
class Row:
    """A row of table 3, on newstest2013.

    Attributes:
        perplexity: a word-piece.
        bleu: as in table 2.
        millions: of parameters; None where the table leaves it open, as it is that of base. (E's,
            open as well, is not quite: learned positions are parameters too.)
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
"""Rows by their names: those of the paper's groups numbered from 1."""
