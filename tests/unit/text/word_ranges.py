"""The law of `Vocabulary.word_ranges`."""

from collections.abc import Sequence

from nmtkit.text.vocabulary import Vocabulary
from nmtkit.text.words import words_of


def check_word_ranges(vocabulary: Vocabulary, ids: Sequence[int]) -> None:
    """Check that the tokens of each word spell it, and that no token has words that it does not."""
    words, ranges = words_of(vocabulary.decode(ids)), vocabulary.word_ranges(ids)
    assert len(ranges) == len(ids)
    assert ranges == sorted(ranges, key=lambda own: (own.start, own.stop))
    assert {word for own in ranges for word in own} == {*range(max(len(words), bool(ids)))}
    for index, word in enumerate(words):
        own = [one for one, of_token in zip(ids, ranges, strict=True) if index in of_token]
        assert word in vocabulary.decode(own)
    for one, own_words in zip(ids, ranges, strict=True):
        assert len(own_words) <= max(1, len(words_of(vocabulary.decode([one]))))
