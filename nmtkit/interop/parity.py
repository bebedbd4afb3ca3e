"""Parts of all formats: unsupported settings, files, and the comparison of scores.

A model scores pairs in another library and in nmtkit. A pair's score is log P(target | source),
summed over its tokens, the end symbol counted. The pairs are drawn from the vocabularies, so they
exist for every language.
"""

import importlib
import importlib.metadata
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nmtkit.config.model import POSITIONS, ModelConfig
from nmtkit.config.problems import Problem
from nmtkit.decoding.forced import score_pairs
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.model.transformer import Transformer
from nmtkit.storage.model_folder import LoadedModel
from nmtkit.symbols import EOS_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.subword import SentencePieceVocabulary
from nmtkit.text.vocabulary import Vocabulary

NUM_POSITIONS = 2048
"""Longest sequence of an exported model: other libraries store the sinusoids as a table."""

SOURCE, TARGET = "source.spm", "target.spm"
"""SentencePiece models of both sides, named as in OPUS-MT."""

NUM_PAIRS = 64
MAX_SHORT_TOKENS = 24
"""Largest number of tokens drawn per side of a pair, except in long pairs.

Their text may be segmented differently again.
"""

NUM_LONG = 4
LONG_TOKENS = 400
"""The last NUM_LONG pairs have LONG_TOKENS tokens, to catch errors at far positions."""

TOLERANCE = 1e-3
"""Largest difference of scores; float32 alone makes 1e-5 to 1e-4.

The difference of a pair with more than `MAX_SHORT_TOKENS` tokens is scaled to that many, because
rounding errors add up.
"""

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
    """A model that another library has loaded.

    Attributes:
        library: name and version of the library.
        num_positions: the longest sequence that it can read or write.
        score: returns the scores of pairs.
    """

    library: str
    num_positions: int
    score: Scorer


def num_positions(config: ModelConfig) -> int:
    """Return the longest sequence that an exported model can read or write."""
    is_learned = POSITIONS[config.positions].is_learned
    return config.max_positions if is_learned else NUM_POSITIONS


def unsupported_attention(config: ModelConfig) -> Iterator[Problem]:
    """Yield attention settings that other libraries lack: other head sizes, windows, QK-norm."""
    own = config.model_size // config.heads
    for name, size in (("key_size", config.key_size), ("value_size", config.value_size)):
        if size * config.heads not in (0, config.model_size):
            yield unsupported_value(name, size, f"model_size / heads ({own})")
    if config.window:
        yield unsupported_value("window", config.window, "0")
    if config.qk_norm:
        yield unsupported_value("qk_norm", config.qk_norm, "False")


def unsupported_choice(config: ModelConfig, name: str, known: Collection[str]) -> Iterator[Problem]:
    """Yield a problem if a choice setting has a value that a format does not know."""
    value = vars(config)[name]
    if value not in known:
        yield unsupported_value(name, value, " or ".join(known))


def unsupported_value(name: str, value: object, wanted: str) -> Problem:
    """Return the problem of a setting whose value a format does not support."""
    return Problem((name,), f"{name} ({value}) must be {wanted} [model.{name}]")


def write_sentencepiece(codec: TextCodec, folder: Path) -> None:
    """Write the SentencePiece models of both sides, if any; a shared one is written twice."""
    for name, vocabulary in ((SOURCE, codec.source), (TARGET, codec.target)):
        model = sentencepiece_model(vocabulary)
        if model is not None:
            (folder / name).write_bytes(model)


def sentencepiece_model(vocabulary: Vocabulary) -> bytes | None:
    """Return the SentencePiece model of a vocabulary; None if it has none."""
    if isinstance(vocabulary, SentencePieceVocabulary) and not vocabulary.steps.names:
        return vocabulary.model
    return None


def import_extra(library: str, extra: str) -> Any:
    """Import a library that only an extra of nmtkit installs.

    Raises:
        ConfigError: the library is not installed.
    """
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError:
        raise ConfigError(
            f"{library.partition('.')[0]} is not installed; the conversion compares scores with "
            f"it; run `pip install 'nmtkit[{extra}]'`"
        ) from None


def name_of(library: str) -> str:
    """Return the name and version of an installed library."""
    return f"{library} {importlib.metadata.version(library)}"


def check_parity(loaded: LoadedModel, peer: Peer, out: Path) -> float:
    """Compare the scores of drawn pairs in both libraries.

    Args:
        loaded: a model on the CPU.
        peer: the same model in the other library.
        out: the folder to write, for the message.

    Returns:
        the largest difference of scores; see `TOLERANCE` for long pairs.

    Raises:
        DamagedError: the largest difference is above `TOLERANCE`.
    """
    differences = []
    for pair, own, other in _scored_by_both(loaded, peer):
        differences.append(abs(own - other) / max(1, len(pair.target_ids) / MAX_SHORT_TOKENS))
        if not differences[-1] <= TOLERANCE:  # a score that is not a number differs too
            raise DamagedError(
                f"{out}: not written, because the two models differ: as translation of "
                f"{_excerpt(pair.source)}, {peer.library} gives {_excerpt(pair.target)} the score "
                f"{other:.4f} and nmtkit {own:.4f}; install another version of "
                f"{peer.library.split()[0]}"
            )
    return max(differences)


def parity_line(peer: Peer, difference: float) -> str:
    """Return a line that reports equal scores and their largest difference."""
    return (
        f"{peer.library} scores {NUM_PAIRS} drawn pairs of sentences as nmtkit does: the largest "
        f"difference is {difference:.1e}, the limit {TOLERANCE:.0e}"
    )


def quantization_line(loaded: LoadedModel, quantized: Peer, name: str) -> str:
    """Return a line on the differences between a quantised model and the same one in nmtkit."""
    differences = [
        abs(own - other) / len(pair.target_ids)
        for pair, own, other in _scored_by_both(loaded, quantized)
    ]
    return (
        f"{name}: log-probabilities per token of {NUM_PAIRS} drawn pairs differ by "
        f"{sum(differences) / NUM_PAIRS:.2g} on average, {max(differences):.2g} at most"
    )


def draw_pairs(codec: TextCodec, longest: int) -> list[Pair]:
    """Draw pairs of random tokens from the vocabularies, always the same pairs.

    Args:
        codec: the codec with the vocabularies.
        longest: largest number of ids, the end symbol counted; longer texts are truncated.
    """
    generator = torch.Generator().manual_seed(_SEED)
    pairs = []
    for number in range(NUM_PAIRS):
        is_long = number >= NUM_PAIRS - NUM_LONG
        source, target = (
            _truncate(_draw_text(side, is_long, generator), side, longest - 1)
            for side in (codec.source, codec.target)
        )
        ids = codec.encode_source(source), codec.encode_target(target)
        pairs.append(Pair(source, target, *ids))
    return pairs


def own_scores(model: Transformer, pairs: Sequence[Pair]) -> list[float]:
    """Return the score of each pair by nmtkit."""
    ids = [(pair.source_ids, pair.target_ids) for pair in pairs]
    return [math.fsum(log_probs) for log_probs in score_pairs(model, ids, _BATCH_TOKENS)]


def _scored_by_both(loaded: LoadedModel, peer: Peer) -> Iterator[tuple[Pair, float, float]]:
    """Yield drawn pairs with their scores in nmtkit and in the other library."""
    longest = min(num_positions(loaded.model.config), peer.num_positions)
    pairs = draw_pairs(loaded.codec, longest)
    return zip(pairs, own_scores(loaded.model, pairs), peer.score(pairs), strict=True)


def _draw_text(vocabulary: Vocabulary, is_long: bool, generator: torch.Generator) -> str:
    """Return the text of random ids other than special symbols."""
    length = (
        LONG_TOKENS
        if is_long
        else int(torch.randint(1, MAX_SHORT_TOKENS + 1, (), generator=generator))
    )
    ids = torch.randint(EOS_ID + 1, vocabulary.size, (length,), generator=generator)
    return vocabulary.decode(ids.tolist())


def _truncate(text: str, vocabulary: Vocabulary, longest: int) -> str:
    """Truncate a text to at most `longest` ids."""
    while (num_ids := len(vocabulary.encode(text))) > longest:
        text = text[: len(text) * longest // num_ids]
    return text


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
