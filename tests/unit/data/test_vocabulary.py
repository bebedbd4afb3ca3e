from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmtkit.config.preprocessing import SEGMENTATIONS, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe, fields_of
from nmtkit.data import vocabulary
from nmtkit.data.binary import SIDES, Contents, shard_name, side_paths
from nmtkit.data.vocabulary import LEARNERS, MIN_OCCURRENCES, make_codec, rare_entries
from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.parsing.linearize import linearize
from nmtkit.parsing.trees import parse_tree
from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import KINDS, TextCodec
from nmtkit.text.corpus import Corpus
from nmtkit.text.subword import Algorithm, Subword
from tests.doubles import report_everything
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, tiny_corpus, tiny_recipe, with_settings, write_lines
from tests.trees import TREEBANK

SIZE = 277


@pytest.fixture
def train(tmp_path: Path) -> str:
    return tiny_corpus(tmp_path)[0]


def made(train: str, *reports: list[str], **settings: Any) -> TextCodec:
    """Make the codec of a tiny corpus with these settings of the vocabulary."""
    recipe = replace(tiny_recipe(train, ""), vocabulary=VocabularyConfig(**settings))
    reporter = WorkReporter(reports[0].append) if reports else SILENT
    return make_codec(recipe, [Corpus.find(train, "en", "de")], [], reporter)


def words(codec: TextCodec) -> tuple[set[str], set[str]]:
    source, target = (
        {vocabulary.piece(i) for i in range(3, vocabulary.size)}
        for vocabulary in (codec.source, codec.target)
    )
    return source, target


def test_a_shared_vocabulary_is_learnt_from_both_sides(train: str) -> None:
    codec = made(train, segmentation="words")
    assert codec.is_shared
    assert codec.source is codec.target
    assert words(codec)[0] == set("abcdefghABCDEFGH")
    assert (codec.source_lang, codec.target_lang) == ("en", "de")


def test_separate_vocabularies_are_learnt_from_their_sides(train: str) -> None:
    codec = made(train, segmentation="words", separate_vocabularies=True)
    assert not codec.is_shared
    assert words(codec) == (set("abcdefgh"), set("ABCDEFGH"))


def test_sides_may_have_different_segmentations(train: str) -> None:
    reports: list[str] = []
    codec = made(
        train, reports, vocab_size=SIZE - 1, target_segmentation="words", target_vocab_size=9
    )
    assert not codec.is_shared
    assert (codec.source.kind, codec.target.kind) == ("sentencepiece", "words")
    assert (codec.source.size, codec.target.size) == (SIZE - 1, 9)
    assert reports == [
        f"learning {SIZE - 1} bpe subwords from {len(TRAIN_LINES)} lines of en",
        "counting the words of de",
    ]


def test_words_are_limited_by_size_and_count(train: str) -> None:
    assert made(train, segmentation="words", vocab_size=8).source.size == 8
    frequent = {w for w in "abcdefgh" if " ".join(TRAIN_LINES).split().count(w) >= 4}
    codec = made(train, segmentation="words", min_count=4, separate_vocabularies=True)
    assert words(codec)[0] == frequent


@pytest.mark.parametrize("segmentation", ["bpe", "unigram"])
def test_subwords_are_learnt_by_the_chosen_algorithm(train: str, segmentation: Algorithm) -> None:
    codec = made(train, segmentation=segmentation, vocab_size=SIZE)
    pairs = list(Corpus.find(train, "en", "de").pairs())
    lines = [line for pair in pairs for line in pair]
    assert codec.source.data == Subword.train(lines, segmentation, SIZE, "x").data


@pytest.mark.parametrize("segmentation", ["bpe", "unigram"])
def test_whole_tokens_are_single_entries_and_other_text_is_not_changed(
    tmp_path: Path, segmentation: str
) -> None:
    prefix, tokens = str(tmp_path / "text"), tmp_path / "tokens"
    trees = [" ".join(linearize(parse_tree(tree, "text"), False, "brackets")) for tree in TREEBANK]
    write_lines(Path(f"{prefix}.en"), ["a b c", "d", "a c e f", "g h"])
    write_lines(Path(f"{prefix}.de"), trees)
    write_lines(tokens, [*{token for tree in trees for token in tree.split()}, ""])
    codec = made(prefix, segmentation=segmentation, vocab_size=281, whole_tokens=str(tokens))
    assert codec.is_shared
    for tree in trees:
        ids = codec.encode_target(tree)
        assert [codec.target.piece(one) for one in ids[:-1]] == [
            f"\u2581{token}" for token in tree.split()
        ]
        assert codec.decode_target(ids) == tree
    for text in ("a (S )NPX(TOP (NPQ", "( TOP ) S"):
        assert codec.decode_target(codec.encode_source(text)) == text


@pytest.mark.parametrize(
    ("token", "entry"),
    [("e\u0301t\u00e9", "\u00e9t\u00e9"), ("\u21162", "No2"), ("\uff21\uff22", "AB")],
)
@pytest.mark.parametrize("segmentation", ["bpe", "unigram"])
def test_a_whole_token_is_an_entry_as_the_text_is_normalised(
    train: str, tmp_path: Path, segmentation: str, token: str, entry: str
) -> None:
    write_lines(tmp_path / "tokens", [token])
    codec = made(
        train, segmentation=segmentation, vocab_size=SIZE, whole_tokens=str(tmp_path / "tokens")
    )
    for text in (token, entry):
        ids = codec.encode_source(f"x {text}")
        assert codec.source.piece(ids[-2]) == f"\u2581{entry}"


@pytest.mark.parametrize(
    ("token", "settings", "keys"),
    [
        ("don't", {"tokenizer": "moses"}, '"don \'t" moses en'),
        ("&amp;", {"unescape": True}, "& unescape"),
        ("\ufdfa", {}, "\ufdfa"),
        ("x" * 9000, {}, "9,003 7,999"),
    ],
)
def test_a_token_that_the_text_cannot_have_is_refused_before_learning(
    train: str, tmp_path: Path, token: str, settings: dict[str, Any], keys: str
) -> None:
    write_lines(tmp_path / "tokens", [token])
    reports: list[str] = []
    with refuses(DataError, f"{tmp_path / 'tokens'} {keys}"):
        made(train, reports, vocab_size=SIZE, whole_tokens=str(tmp_path / "tokens"), **settings)


def test_whole_tokens_are_given_one_per_line(train: str, tmp_path: Path) -> None:
    write_lines(tmp_path / "tokens", ["(S", "(NP )NP"])
    with refuses(DataError, "tokens:2 2; tr"):
        made(train, vocab_size=SIZE, whole_tokens=str(tmp_path / "tokens"))


def test_a_sample_is_drawn_from_both_sides(train: str) -> None:
    reports: list[str] = []
    codec = made(train, reports, vocab_size=SIZE, sample_lines=7)
    assert reports == [f"learning {SIZE} bpe subwords from 6 lines of en and de"]
    pairs = [*Corpus.find(train, "en", "de").pairs()]
    places = [n for n in range(len(pairs)) if (n + 1) * 3 // len(pairs) > n * 3 // len(pairs)]
    lines = [line for place in places for line in pairs[place]]
    assert codec.source.data == Subword.train(lines, "bpe", SIZE, "x").data


def test_a_long_sample_is_counted_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_everything(monkeypatch)
    train, _ = tiny_corpus(tmp_path, TRAIN_LINES * 240)
    reports: list[str] = []
    made(train, reports, vocab_size=SIZE, sample_lines=2300)
    assert [line.partition(",")[0] for line in reports] == [
        f"learning {SIZE} bpe subwords from 2300 lines of en and de",
        *("sampled 1", "sampled 2", "sampled 2"),
    ]
    assert "sampled 1,000 of 2,300 lines (43%)" in reports[1]
    assert "sampled 2,300 lines" in reports[3]


def test_learning_for_long_says_so(train: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "REPORT_S", 1e-4)
    reports: list[str] = []
    made(train, reports, vocab_size=SIZE)
    _learning, *others = reports
    assert others
    assert all(line.startswith("still learning, for ") for line in others)


def test_a_size_error_names_the_languages(train: str) -> None:
    with refuses(ConfigError, "vocabulary en de; --vocab-size"):
        made(train)
    with refuses(ConfigError, "vocabulary 200 en 256; --vocab-size"):
        made(train, vocab_size=200, separate_vocabularies=True)


@pytest.mark.parametrize(("size", "bound"), [(90_000, "most"), (260, "least")])
def test_a_target_size_error_names_its_option(train: str, size: int, bound: str) -> None:
    with refuses(ConfigError, f"de; --target-vocab-size {bound}"):
        made(train, vocab_size=SIZE - 1, separate_vocabularies=True, target_vocab_size=size)


@pytest.mark.parametrize("is_separate", [False, True])
def test_each_side_is_tokenized_by_the_rules_of_its_language(
    tmp_path: Path, is_separate: bool
) -> None:
    prefix = str(tmp_path / "text")
    write_lines(Path(f"{prefix}.en"), ["it isn't l'air"])
    write_lines(Path(f"{prefix}.fr"), ["l'air isn't"])
    recipe = tiny_recipe(prefix, "")
    recipe = with_settings(
        recipe, target_lang="fr", tokenizer="moses", separate_vocabularies=is_separate
    )
    codec = make_codec(recipe, [Corpus.find(prefix, "en", "fr")], [], SILENT)
    english = [codec.source.piece(index) for index in codec.encode_source("it isn't l'air")]
    french = [codec.target.piece(index) for index in codec.encode_target("l'air isn't")]
    assert english == ["it", "isn", "'t", "l", "'air", "</s>"]
    assert french == ["l'", "air", "isn'", "t", "</s>"]


def test_the_same_existing_file_makes_a_shared_vocabulary(train: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    write_lines(path, ["x", "y"])
    detour = tmp_path / "." / "list.txt"
    codec = made(
        train,
        segmentation="words",
        source_vocabulary=str(path),
        target_vocabulary=str(detour),
    )
    assert codec.is_shared
    assert words(codec)[0] == {"x", "y"}


def test_one_existing_file_and_one_learnt_vocabulary(train: str, tmp_path: Path) -> None:
    codec = made(
        train,
        segmentation="words",
        separate_vocabularies=True,
        source_vocabulary=str(write_lines(tmp_path / "list.txt", ["x"])),
    )
    assert not codec.is_shared
    assert words(codec) == ({"x"}, set("ABCDEFGH"))


def test_a_bad_existing_vocabulary_is_an_error_that_names_it(train: str, tmp_path: Path) -> None:
    path = str(write_lines(tmp_path / "list.txt", ["x", "x"]))
    with refuses(DamagedError, "list.txt SentencePiece"):
        made(train, source_vocabulary=path, target_vocabulary=path)
    with refuses(DataError, "list.txt:2 x"):
        made(train, segmentation="words", source_vocabulary=path, target_vocabulary=path)


def test_settings_and_learners_have_the_same_segmentations() -> None:
    fields = fields_of(PreprocessRecipe)
    assert [*SEGMENTATIONS] == [*LEARNERS]
    assert fields["segmentation"].choices == ("bpe", "unigram", "words")
    assert fields["target_segmentation"].choices == ("same", *LEARNERS)
    assert {one.vocabulary for one in SEGMENTATIONS.values()} <= {*KINDS}


VOCABULARY = Words([f"word{number}" for number in range(96)])  # and three special entries
SHARED = TextCodec("en", "de", VOCABULARY, VOCABULARY, is_shared=True)
SEPARATE = TextCodec("en", "de", VOCABULARY, VOCABULARY, is_shared=False)


def write_ids(folder: Path, *shards: tuple[list[int], list[int]]) -> Contents:
    """Write the ids of both sides of shards."""
    for number, sides in enumerate(shards):
        for side, ids in zip(SIDES, sides, strict=True):
            path, _ = side_paths(folder / f"{shard_name(number)}.{side}")
            path.write_bytes(np.array(ids, "<u2").tobytes())
    return Contents("uint16", (1.0,), ((1,),) * len(shards), 1, 1, False, False, "", "")


def findings(codec: TextCodec, folder: Path, contents: Contents, **settings: str) -> list[str]:
    found = rare_entries(VocabularyConfig(**settings), codec, folder, contents)  # type: ignore[arg-type]
    return [*map(str, found)]


def frequent(first: int, number: int) -> list[int]:
    return [*range(first, first + number)] * MIN_OCCURRENCES


@pytest.mark.parametrize(("number", "is_reported"), [(46, True), (47, False)])
def test_half_of_the_entries_of_a_joint_vocabulary_have_to_be_frequent_on_both_sides_together(
    number: int, is_reported: bool, tmp_path: Path
) -> None:
    # Each side and each shard has a part of the occurrences; unknown words count as an entry.
    ids = frequent(3, number)
    parts = np.array_split(np.array(ids), 4)
    shards = [(parts[0].tolist(), parts[1].tolist()), (parts[2].tolist(), parts[3].tolist())]
    found = findings(SHARED, tmp_path, write_ids(tmp_path, *shards))
    expected = (
        f"vocabulary: only {number + 3} of 99 entries occur at least 10 times, or "
        "have to exist; the others are too rare: give --vocab-size 50"
    )
    assert found == [expected] * is_reported
    rare: list[tuple[list[int], list[int]]] = [(ids[:-1], []), ([], [])]
    assert len(findings(SHARED, tmp_path, write_ids(tmp_path, *rare))) == 1


def test_a_separate_vocabulary_is_reported_with_its_flag(tmp_path: Path) -> None:
    contents = write_ids(tmp_path, (frequent(3, 60), frequent(3, 20)))
    (found,) = findings(SEPARATE, tmp_path, contents)
    assert found.startswith("target vocabulary: only 23 of 99 entries occur")
    assert found.endswith("give --target-vocab-size 30")
    contents = write_ids(tmp_path, (frequent(3, 5), frequent(3, 60)))
    (found,) = findings(SEPARATE, tmp_path, contents)
    assert found.endswith("give --vocab-size 8")


@pytest.mark.parametrize(
    "settings",
    [
        {"vocabulary_of": "model"},
        {"source_vocabulary": "a", "target_vocabulary": "a"},
        {"segmentation": "words"},
    ],
)
def test_a_given_vocabulary_and_one_of_words_are_not_reported(
    settings: dict[str, str], tmp_path: Path
) -> None:
    assert not findings(SEPARATE, tmp_path, write_ids(tmp_path, ([3], [3])), **settings)


def test_a_large_text_is_read_until_enough_entries_are_frequent(tmp_path: Path) -> None:
    contents = write_ids(tmp_path, (frequent(3, 60), []), ([], []))
    for path in tmp_path.glob(f"{shard_name(1)}.*"):
        path.unlink()
    assert not findings(SHARED, tmp_path, contents)
