"""Word alignments from text to dataset."""

import gzip
from pathlib import Path

import pytest

from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import describe
from nmtkit.data.binary import Dataset, Pairs
from nmtkit.data.prepare import Sizes
from nmtkit.errors import ConfigError, DataError
from nmtkit.text.corpus import Corpus, chunks
from tests.messages import refuses
from tests.tiny import prepared, tiny_recipe, with_settings, write_lines
from tests.unit.data.test_prepare import write_pairs

PAIRS = [("a b c", "C A B"), ("d", "D"), ("", "x"), ("e f", "F E"), ("g h", "H G")]
LINKS = ["0-1 1-2 2-0", "", "", "0-1 1-0 1-0", "1-0"]


def with_links(folder: Path, *lines: str, pairs: list[tuple[str, str]]) -> PreprocessRecipe:
    """Return a recipe of a training text and its links; the validation text is the same."""
    train = write_pairs(folder, "train", pairs)
    links = write_lines(folder / "links", lines)
    recipe = tiny_recipe(train, train)
    return with_settings(recipe, alignments=(str(links),), valid_alignments=str(links))


def linked_pieces(dataset: Dataset, pairs: Pairs) -> set[tuple[str, str, tuple[str, ...]]]:
    """Return each pair, and its linked pieces as `source-target`."""
    assert pairs.links is not None
    found = set()
    for number in range(len(pairs)):
        ids = pairs.source[number].tolist(), pairs.target[number].tolist()
        sides = dataset.codec.source, dataset.codec.target
        pieces = [
            [side.piece(index) for index in own] for side, own in zip(sides, ids, strict=True)
        ]
        links = pairs.links[number].reshape(-1, 2).tolist()
        source, target = (side.decode(own[:-1]) for side, own in zip(sides, ids, strict=True))
        found.add((source, target, tuple(f"{pieces[0][s]}-{pieces[1][t]}" for s, t in links)))
    return found


def test_links_stay_with_their_pairs_in_all_shards(tmp_path: Path) -> None:
    recipe = with_links(tmp_path, *LINKS, pairs=PAIRS)
    lines: list[str] = []
    counts = prepared(recipe, tmp_path / "data", lines.append, Sizes(shard=2, chunk=2))
    dataset = Dataset.open(tmp_path / "data")
    expected = {
        ("a b c", "C A B", ("c-C", "a-A", "b-B")),
        ("d", "D", ()),
        ("e f", "F E", ("f-F", "e-E")),
        ("g h", "H G", ("h-H",)),
    }
    assert len(dataset.train) > 1
    assert set.union(*(linked_pieces(dataset, shard) for shard in dataset.train)) == expected
    assert linked_pieces(dataset, dataset.valid) == expected
    assert dataset.valid_links == LINKS
    assert counts["train"]["linked"] == 3
    said = f"{recipe.corpus.valid[0]}: 3 of 4 pairs have a word alignment"
    assert said in lines
    assert said in describe(tmp_path / "data", check=True)


def test_links_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    recipe = with_links(tmp_path, *LINKS, pairs=PAIRS)
    prepared(recipe, tmp_path / "linked")
    prepared(with_settings(recipe, alignments=(), valid_alignments=""), tmp_path / "plain")
    linked, unlinked = (Dataset.open(tmp_path / name) for name in ("linked", "plain"))
    assert unlinked.train[0].links is unlinked.valid.links is None
    assert unlinked.valid_links == ()
    assert linked.fingerprint != unlinked.fingerprint


def test_tags_shift_links_and_filters_drop_them_with_their_pairs(tmp_path: Path) -> None:
    recipe = with_links(tmp_path, *LINKS, pairs=PAIRS)
    (train,) = recipe.corpus.valid
    recipe = with_settings(recipe, tag=(f"{train}=<bt>",), max_length=3, drop_duplicates=True)
    prepared(recipe, tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    expected = {
        ("<bt> d", "D", ()),
        ("<bt> e f", "F E", ("f-F", "e-E")),
        ("<bt> g h", "H G", ("h-H",)),
    }
    assert linked_pieces(dataset, dataset.train[0]) == expected
    assert linked_pieces(dataset, dataset.valid) == expected


def test_links_may_count_tokens_of_another_tokenization(tmp_path: Path) -> None:
    pairs = [("It isn't here.", "\u732b\u54aa\u5728\u3002")]
    recipe = with_links(tmp_path, "0-1 2-0 4-2", pairs=pairs)
    tokens = write_pairs(tmp_path, "tok", [("it is n't here .", "\u732b\u54aa \u5728 \u3002")])
    recipe = with_settings(recipe, alignment_text=(tokens,), valid_alignments="")
    prepared(with_settings(recipe, segmentation="bpe", vocab_size=279), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    ((_, _, links),) = linked_pieces(dataset, dataset.train[0])
    joined = [link.replace("\u2581", "") for link in links]
    assert ".-\u3002" in joined
    assert "It-\u5728" in joined or "I-\u5728" in joined
    assert {"n-\u732b", "n-\u54aa", "t-\u54aa"} <= {*joined}
    assert not any(link.startswith(("i", "s", "h", "e")) for link in joined)


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (LINKS[:4], "links 4 train.en 5"),
        ([*LINKS, ""], "links 6 train.en 5"),
        (["0-1 1:2", *LINKS[1:]], "links:1 1:2; SOURCE-TARGET 0-2 0p2"),
        ([*LINKS[:3], "2-0", ""], "links:4 2-0 2; 0"),
        ([*LINKS[:2], "0-0", "", ""], "links:3 0-0 0 1; 0"),
    ],
)
def test_links_that_do_not_fit_are_refused(tmp_path: Path, lines: list[str], keys: str) -> None:
    with refuses(DataError, keys):
        prepared(with_links(tmp_path, *lines, pairs=PAIRS), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_compressed_links_with_windows_line_ends_are_read(tmp_path: Path) -> None:
    recipe = with_links(tmp_path, *LINKS, pairs=PAIRS)
    Path(recipe.corpus.alignments[0]).write_bytes(gzip.compress("\r\n".join(LINKS).encode()))
    prepared(recipe, tmp_path / "data")
    assert Dataset.open(tmp_path / "data").valid_links == LINKS


def test_links_to_trees_are_refused(tmp_path: Path) -> None:
    recipe = with_links(tmp_path, "0-0", pairs=[("a", "(S (N a))")])
    with refuses(ConfigError, "[corpus.alignments] trees; --alignments --valid-alignments"):
        prepared(with_settings(recipe, target_segmentation="trees"), tmp_path / "data")


def test_links_of_tagged_validation_text_count_the_tag(tmp_path: Path) -> None:
    recipe = with_links(tmp_path, "0-0 1p1", "0-0", "", "", "1?0", pairs=PAIRS)
    tag = (f"{recipe.corpus.valid[0]}=<bt>",)
    prepared(with_settings(recipe, tag=tag), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    assert dataset.valid_links == ["1-0 2p1", "1-0", "", "", "2?0"]


@pytest.mark.parametrize("lines", [LINKS[:3], ["0-0", "", "", "", ""]])
def test_links_that_change_while_they_are_read_are_refused(
    tmp_path: Path, lines: list[str]
) -> None:
    recipe = with_links(tmp_path, *LINKS, pairs=PAIRS)
    (prefix,), (links,) = recipe.corpus.train, recipe.corpus.alignments
    corpus = Corpus.find(prefix, "en", "de")
    aligned = corpus.with_links(Path(links), None)
    write_lines(Path(links), lines)
    with refuses(DataError, "links"):
        list(chunks([aligned]))
