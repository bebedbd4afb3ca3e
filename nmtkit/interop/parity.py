"""Whether another library computes from a model what nmtkit computes: forced scores, compared.

A pair's score is log P(target | source), the sum over its tokens, the end symbol counted. The pairs
are drawn from the vocabularies, so that every model has some, in whatever language.
"""

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nmtkit.decoding.forced import score_pairs
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.interop.formats import num_positions
from nmtkit.model.transformer import Transformer
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec, Vocabulary

NUM_PAIRS = 64
LONGEST = 24
"""Pieces that a side is drawn of, at most; spelled as text and read again they may be others."""

NUM_LONG = 4
LONG = 400
"""So many pairs, the last ones, are of so many pieces, as what is wrong may be far positions."""

TOLERANCE = 1e-3
"""Scores that differ by more are of different models; float32 makes it 1e-5 to 1e-4. What rounding
adds up to in more than `LONGEST` tokens is allowed for: their difference is divided accordingly."""

_SEED = 1
_BATCH_TOKENS = 4096
_SHOWN = 80
"""Characters of a text that a message shows."""


@dataclass(frozen=True)
class Pair:
    """A pair of sentences as text, and as ids that end with the end symbol."""

    source: str
    target: str
    source_ids: list[int]
    target_ids: list[int]


Scorer = Callable[[Sequence[Pair]], list[float]]
"""Pairs -> the score of each."""


@dataclass(frozen=True)
class Peer:
    """A model in the hands of another library.

    Attributes:
        library: its name and version.
        num_positions: the longest sequence that it can read or write.
        score: what it says of pairs.
    """

    library: str
    num_positions: int
    score: Scorer


def import_extra(library: str, extra: str) -> Any:
    """Import a library that only an extra of nmtkit installs.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError:
        raise ConfigError(
            f"what is converted is compared with {library.partition('.')[0]}, which is not "
            f"installed; run `pip install 'nmtkit[{extra}]'`"
        ) from None


def name_of(library: str) -> str:
    """Return the name and version of an installed library."""
    return f"{library} {importlib.metadata.version(library)}"


def check_parity(loaded: LoadedModel, peer: Peer, out: Path) -> float:
    """Compare the scores of drawn pairs.

    Args:
        loaded: a model on the CPU.
        peer: the same model elsewhere.
        out: the folder that is not to be written if they differ, for the message.

    Returns:
        the largest difference between two scores; see `TOLERANCE` for those of long pairs.

    Raises:
        DamagedError: it is above `TOLERANCE`.
    """
    longest = min(num_positions(loaded.model.config), peer.num_positions)
    pairs = draw_pairs(loaded.codec, longest)
    ours, theirs = own_scores(loaded.model, pairs), peer.score(pairs)
    differences = [
        abs(own - other) / max(1, len(pair.target_ids) / LONGEST)
        for pair, own, other in zip(pairs, ours, theirs, strict=True)
    ]
    for pair, own, other, difference in zip(pairs, ours, theirs, differences, strict=True):
        if not difference <= TOLERANCE:  # a score that is not a number differs too
            raise DamagedError(
                f"{out}: not written, because the two models differ: as translation of "
                f"{_shown(pair.source)}, {peer.library} gives {_shown(pair.target)} the score "
                f"{other:.4f} and nmtkit {own:.4f}; install another version of "
                f"{peer.library.split()[0]}"
            )
    return max(differences)


def parity_line(peer: Peer, difference: float) -> str:
    """Tell that a model scores as it does elsewhere."""
    return (
        f"{peer.library} scores {NUM_PAIRS} drawn pairs of sentences as nmtkit does: the largest "
        f"difference is {difference:.1e}, and {TOLERANCE:.0e} would be refused"
    )


def draw_pairs(codec: TextCodec, longest: int) -> list[Pair]:
    """Draw pairs of sentences without sense from the vocabularies, always the same.

    Args:
        codec: whose vocabularies.
        longest: texts that have more ids, the end symbol counted, are cut.
    """
    generator = torch.Generator().manual_seed(_SEED)
    pairs = []
    for number in range(NUM_PAIRS):
        is_long = number >= NUM_PAIRS - NUM_LONG
        source, target = (
            _cut(_draw_text(side, is_long, generator), side, longest - 1)
            for side in (codec.source, codec.target)
        )
        ids = codec.encode_source(source), codec.encode_target(target)
        pairs.append(Pair(source, target, *ids))
    return pairs


def own_scores(model: Transformer, pairs: Sequence[Pair]) -> list[float]:
    """Compute the score of each pair with a model of ours."""
    ids = [(pair.source_ids, pair.target_ids) for pair in pairs]
    return [score.log_prob for score in score_pairs(model, ids, _BATCH_TOKENS, None)]


def _draw_text(vocabulary: Vocabulary, is_long: bool, generator: torch.Generator) -> str:
    """Draw ids other than special symbols, and spell them."""
    length = LONG if is_long else int(torch.randint(1, LONGEST + 1, (), generator=generator))
    ids = torch.randint(EOS_ID + 1, vocabulary.size, (length,), generator=generator)
    return vocabulary.decode(ids.tolist())


def _cut(text: str, vocabulary: Vocabulary, longest: int) -> str:
    """Shorten a text until it has at most so many ids."""
    while (num_ids := len(vocabulary.encode(text))) > longest:
        text = text[: len(text) * longest // num_ids]
    return text


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
