"""The codec of a recipe: vocabularies read from files or learnt from the training text.

A finding reports a learnt vocabulary that is too large for the text.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.preprocessing import (
    AUTO,
    SENTENCEPIECE,
    CorpusConfig,
    VocabularyConfig,
    directions_of,
    first_words_of,
    is_shared,
    segmentations,
    vocabulary_kinds,
)
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.binary import ID_TYPES, SIDES, Contents, shard_name, side_paths
from nmtkit.data.encode import plain_pair
from nmtkit.data.findings import Finding
from nmtkit.errors import ConfigError, DataError
from nmtkit.parsing.vocabulary import learn_tree_tokens
from nmtkit.progress.counting import QUICK_ITEMS, REPORT_S, WorkReporter
from nmtkit.runtime.workers import Worker, ended_early
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import KINDS, SEVERAL, TextCodec
from nmtkit.text.corpus import Corpus, Pair
from nmtkit.text.lines import read_list
from nmtkit.text.marks import is_marked
from nmtkit.text.subword import (
    SPACE_SYMBOL,
    Algorithm,
    Subword,
    SubwordRules,
    trained_pieces,
)
from nmtkit.text.vocabulary import NormalForm, Steps, Vocabulary
from nmtkit.units import duration

_SOURCE, _TARGET = 0, 1
_MANY_LINES = 500_000
"""Lines from which SentencePiece, which reports no progress, learns for minutes."""


def make_codec(
    recipe: PreprocessRecipe,
    corpora: Sequence[Corpus],
    valid: Sequence[Corpus],
    reporter: WorkReporter,
) -> TextCodec:
    """Read or learn the vocabularies.

    Args:
        recipe: settings of `nmtkit preprocess`.
        corpora: the training text.
        valid: the validation text, which the vocabulary has to encode, too.
        reporter: receives a line about each vocabulary that is learnt, and the progress.

    Raises:
        ConfigError: a vocabulary file cannot be read, it lacks a tag, or the text does not allow
            the size.
        DataError: a list of words or tokens has an invalid line, there is no text to learn from, or
            the vocabulary cannot encode the text.
        DamagedError: a file is not a SentencePiece model.
    """
    config = recipe.vocabulary
    directions = directions_of(recipe.corpus)
    codec_languages = (SEVERAL, SEVERAL) if directions else corpora[0].languages
    form = cast(NormalForm, "none" if config.normalize == AUTO else config.normalize)
    moses_languages = codec_languages if config.tokenizer == "moses" else ("", "")
    steps = [Steps(config.unescape, form, lang) for lang in moses_languages]
    kinds, first_words = _kinds(config), first_words_of(recipe.corpus)
    for kind in kinds:
        kind.check(valid)

    def get(path: str, *sides: int) -> Vocabulary:
        name = segmentations(config)[sides[0]]
        names = dict.fromkeys(one.languages[side] for one in corpora for side in sides)
        if not path:
            tags = first_words if _SOURCE in sides else ()
            markup = recipe.corpus.markup
            text = _LearningText(corpora, markup, sides, " and ".join(names), steps, tags, config)
            return LEARNERS[name](text, reporter)
        kind = kinds[sides[0]]
        kind.check(corpora)
        return kind.load(Path(path))

    shared = is_shared(config)
    if shared:
        source = target = get(config.source_vocabulary, _SOURCE, _TARGET)
    else:
        paths = config.source_vocabulary, config.target_vocabulary
        # Plain text last: malformed lines of other types are reported before subwords are learnt.
        order = sorted((_SOURCE, _TARGET), key=lambda side: kinds[side].target_type == "text")
        vocabularies = {side: get(paths[side], side) for side in order}
        source, target = vocabularies[_SOURCE], vocabularies[_TARGET]
    codec = TextCodec(
        *codec_languages,
        source.with_steps(steps[_SOURCE]),
        target.with_steps(steps[_TARGET]),
        is_shared=shared,
    )
    if directions:
        codec = codec.with_directions(directions, recipe.corpus.source_symbols)
    check_first_words(recipe.corpus, codec)
    return codec.with_marks(config.marks) if config.marks else codec


def check_files(config: VocabularyConfig) -> None:
    """Raise the error of a file that is given for the vocabularies, before any text is read."""
    read_whole_tokens(config)
    paths = config.source_vocabulary, config.target_vocabulary
    for path, kind in zip(paths, _kinds(config), strict=True):
        if path:
            kind.load(Path(path))


def read_whole_tokens(config: VocabularyConfig) -> list[str]:
    """Return the distinct tokens of --whole-tokens.

    Raises:
        ConfigError: the file cannot be read.
        DataError: a line has several tokens, or there are too many.
    """
    if not config.whole_tokens:
        return []
    path = Path(config.whole_tokens)
    tokens: dict[str, None] = {}  # in order
    for number, line in enumerate(read_list(path), 1):
        words = line.split()
        if len(words) > 1:
            raise DataError(
                f"{path}:{number}: {len(words)} tokens; give one per line: "
                "`tr ' ' '\\n' < text | sort -u`"
            )
        tokens.update(dict.fromkeys(words))
    return [*tokens]


def check_first_words(config: CorpusConfig, codec: TextCodec) -> None:
    """Raise ConfigError for a tag or language symbol that the source vocabulary lacks.

    An entry may have the space before it, or not.
    """
    vocabulary = codec.source
    for word in first_words_of(config):
        ids = vocabulary.encode(word)
        pieces = [one for one in map(vocabulary.piece, ids) if one != SPACE_SYMBOL]
        if len(pieces) != 1 or not vocabulary.unknown_ids.isdisjoint(ids):
            raise ConfigError(
                f"{word!r}, a tag or language symbol, is not in the source vocabulary; use another "
                "--tag, or a vocabulary with this entry (with --vocabulary-of: give --whole-tokens "
                "a file with this line)"
            )


def _kinds(config: VocabularyConfig) -> list[type[Vocabulary]]:
    """Return the kinds of the source and target vocabulary."""
    return [KINDS[kind] for kind in vocabulary_kinds(config)]


@dataclass(frozen=True)
class _LearningText:
    """What a vocabulary is learnt from: one or both sides of the training text, and settings.

    Attributes:
        corpora: the training text.
        markup: of all its lines; the text is without it.
        sides: the sides to use.
        name: name of the text in messages.
        steps: what is done to the lines of each side first.
        tags: tokens that become entries.
        config: the settings.
    """

    corpora: Sequence[Corpus]
    markup: str
    sides: Sequence[int]
    name: str
    steps: Sequence[Steps]
    tags: Sequence[str]
    config: VocabularyConfig

    @property
    def size(self) -> tuple[int, str]:
        """Number of entries to learn, and the flag that sets it."""
        if self.sides == (_TARGET,):
            return self.config.target_vocab_size or self.config.vocab_size, "--target-vocab-size"
        return self.config.vocab_size, "--vocab-size"

    @property
    def num_lines(self) -> int:
        """Number of all lines."""
        return len(self.sides) * sum(corpus.num_pairs for corpus in self.corpora)

    def lines(self) -> Iterator[str]:
        """Yield all lines after their steps."""
        for corpus in self.corpora:
            for pair in corpus.pairs():
                for side in self.sides:
                    yield self._prepared(pair, side)

    def sample(self, num_lines: int) -> Iterator[str]:
        """Yield about `num_lines` lines, evenly spaced in each language; some repeatedly.

        A language with n lines has a share proportional to n^(1/T), T the setting's temperature.
        """
        counts: Counter[str] = Counter()
        for corpus in self.corpora:
            for side in self.sides:
                counts[corpus.languages[side]] += corpus.num_pairs
        exponent = 1 / self.config.vocabulary_temperature
        powers = {lang: number**exponent for lang, number in counts.items()}
        unit = num_lines / sum(powers.values())
        wanted = {lang: round(unit * power) for lang, power in powers.items()}
        ends = dict.fromkeys(counts, 0)  # multiples of a line, of those read so far
        for corpus in self.corpora:
            sides = [(side, corpus.languages[side]) for side in self.sides]
            for pair in corpus.pairs():
                for side, lang in sides:
                    before = ends[lang]
                    ends[lang] = end = before + wanted[lang]
                    if times := end // counts[lang] - before // counts[lang]:
                        yield from [self._prepared(pair, side)] * times

    def _prepared(self, pair: Pair, side: int) -> str:
        return self.steps[side].prepare(plain_pair(pair, self.markup)[side])


def _learn_words(text: _LearningText, reporter: WorkReporter) -> Words:
    reporter.message(f"counting the words of {text.name}")
    size, _ = text.size
    with reporter.track(text.lines(), "counted", "lines", text.num_lines, QUICK_ITEMS) as lines:
        return Words.count(lines, size, text.config.min_count, text.tags)


def _learn_subwords(algorithm: Algorithm, text: _LearningText, reporter: WorkReporter) -> Subword:
    config, (size, size_flag) = text.config, text.size
    rules = SubwordRules(config.normalize == AUTO, config.split_digits)
    num_pairs = text.num_lines // len(text.sides)
    num_lines = min(max(config.sample_lines // len(text.sides), 1), num_pairs) * len(text.sides)
    patience = "; this can take minutes" if num_lines >= _MANY_LINES else ""
    reporter.message(
        f"learning {size} {algorithm} subwords from {num_lines} lines of {text.name}{patience}"
    )
    tokens = read_whole_tokens(config)
    for name, words, sides in (
        ("--tag", text.tags, (_SOURCE,)),
        (config.whole_tokens, tokens, text.sides),
    ):
        try:
            for side in sides:
                text.steps[side].check_unchanged(words)
            trained_pieces(words, rules)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
    # SentencePiece answers no signal while it trains, so another process runs it, to be killed.
    learner: Worker[int | bytes] = Worker(_train_subwords, ended_early("lower --sample-lines"))
    try:
        learner.send((text, num_lines, algorithm, size, [*text.tags, *tokens], size_flag, rules))
        learner.receive()  # it has started, which takes a second
        with reporter.counting("sampled", "lines", num_lines) as counting:
            while num_sampled := cast(int, learner.receive()):
                counting.add(num_sampled)
        start = time.monotonic()
        while not learner.connection.poll(REPORT_S):
            reporter.message(f"still learning, for {duration(time.monotonic() - start)}")
        return Subword(cast(bytes, learner.receive()), f"subwords of {text.name}")
    finally:
        learner.end()


def _train_subwords(connection: "Connection[int | bytes, Any]") -> None:
    """Receive a text and the settings of its subwords; send back the SentencePiece model.

    Before it, the numbers of lines sampled since the last message are sent, first and last 0.
    """
    text, num_lines, algorithm, size, tokens, size_flag, rules = connection.recv()

    def sampled() -> Iterator[str]:
        connection.send(number := 0)
        for number, line in enumerate(text.sample(num_lines), 1):
            yield line
            if number % QUICK_ITEMS == 0:
                connection.send(QUICK_ITEMS)
        if number % QUICK_ITEMS:
            connection.send(number % QUICK_ITEMS)
        connection.send(0)

    learnt = Subword.train(sampled(), algorithm, size, text.name, tokens, size_flag, rules)
    connection.send(learnt.data)


def _learn_from_pairs(
    learn: Callable[[str, Sequence[Corpus], WorkReporter], Vocabulary],
    text: _LearningText,
    reporter: WorkReporter,
) -> Vocabulary:
    """Learn a vocabulary that depends only on the pairs of lines."""
    return learn(text.config.linearization, text.corpora, reporter)


LEARNERS: dict[str, Callable[[_LearningText, WorkReporter], Vocabulary]] = {
    "bpe": partial(_learn_subwords, "bpe"),
    "unigram": partial(_learn_subwords, "unigram"),
    "words": _learn_words,
    "trees": partial(_learn_from_pairs, partial(learn_tree_tokens, False)),
    "tagged-trees": partial(_learn_from_pairs, partial(learn_tree_tokens, True)),
}
"""Functions that learn a vocabulary."""


MIN_OCCURRENCES = 10
"""Entries with fewer occurrences are rare.

Gowda and May (2020), "Finding the Optimal Vocabulary Size for Neural Machine Translation", find the
best size where 95 % of the entries occur 100 times. A finding is for vocabularies far above that.
"""

_CHUNK_IDS = 2**20


def rare_entries(
    config: VocabularyConfig, codec: TextCodec, folder: Path, contents: Contents
) -> Iterator[Finding]:
    """Yield a finding for each learnt subword vocabulary whose entries are mostly rare.

    Ids are read until enough entries are frequent, so a large text costs little.

    Args:
        config: settings of the vocabularies.
        codec: the vocabularies.
        folder: the dataset, whose files are written; all parts of it.
        contents: its contents.
    """
    given = (config.source_vocabulary, config.target_vocabulary)
    flags = ("--vocab-size", "--target-vocab-size")
    sides = [(SIDES, 0)] if codec.is_shared else [(SIDES[:1], 0), (SIDES[1:], 1)]
    for names, number in sides:
        is_subwords = vocabulary_kinds(config)[number] == SENTENCEPIECE
        if config.vocabulary_of or given[number] or not is_subwords:
            continue
        vocabulary = (codec.source, codec.target)[number]
        enough = _num_frequent(vocabulary, _ids(folder, names, contents))
        if 2 * enough > vocabulary.size:
            continue
        yield Finding(
            "vocabulary",
            f"{names[0]} vocabulary" if len(names) == 1 else "vocabulary",
            1 - enough / vocabulary.size,
            (),
            f"only {enough} of {vocabulary.size} entries occur at least {MIN_OCCURRENCES} times, "
            f"or have to exist; the others are too rare: give {flags[number]} {_rounded(enough)}",
        )


def _num_frequent(vocabulary: Vocabulary, chunks: Iterator[NDArray[np.integer]]) -> int:
    """Return the number of entries that are frequent, or have to exist; half of all is enough.

    Special symbols, bytes and characters have to exist; SentencePiece refuses smaller vocabularies.
    """
    counts = np.zeros(vocabulary.size, np.int64)
    needed = np.array(
        [
            entry in (UNK_ID, BOS_ID, EOS_ID)
            or entry in vocabulary.unknown_ids
            or is_marked([entry], vocabulary.marks)
            or len(vocabulary.piece(entry)) == 1
            for entry in range(vocabulary.size)
        ]
    )
    enough = int(needed.sum())
    for ids in chunks:
        counts += np.bincount(ids, minlength=vocabulary.size)
        enough = int(np.count_nonzero(needed | (counts >= MIN_OCCURRENCES)))
        if 2 * enough > vocabulary.size:
            break
    return enough


def _ids(folder: Path, sides: Sequence[str], contents: Contents) -> Iterator[NDArray[np.integer]]:
    for number in range(len(contents.shards)):
        for side in sides:
            path, _ = side_paths(folder / f"{shard_name(number)}.{side}")
            with path.open("rb") as file:
                while data := file.read(_CHUNK_IDS * 4):
                    yield np.frombuffer(data, ID_TYPES[contents.id_type])


def _rounded(number: int) -> int:
    """Return a number rounded up to one significant digit."""
    unit = int(10 ** (len(str(number)) - 1))
    return -(-number // unit) * unit
