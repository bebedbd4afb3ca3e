from pathlib import Path

from nmtkit.data.audit import Example, PairCounts, SideCounts, describe, first_of_each, table
from nmtkit.data.filters import REASONS
from nmtkit.errors import DamagedError
from tests.messages import refuses
from tests.tiny import prepared, with_settings
from tests.unit.data.test_prepare import write_pairs
from tests.unit.data.test_prepare_mixing import with_more

NONE = dict.fromkeys(REASONS, 0)
FIRST = PairCounts(
    10, {**NONE, "empty": 1, "ratio": 2}, SideCounts(70, 7, 12), SideCounts(35, 0, 9), linked=4
)
SECOND = PairCounts(5, {**NONE, "too long": 1}, SideCounts(30, 1, 8), SideCounts(20, 2, 11))


def test_counts_of_texts_add_up() -> None:
    total = FIRST + SECOND
    assert (total.read, total.kept) == (15, 11)
    assert total.dropped == {**NONE, "empty": 1, "too long": 1, "ratio": 2}
    assert total.source == SideCounts(100, 8, 12)
    assert total.target == SideCounts(55, 2, 11)
    assert total.linked == 4


def test_adding_zero_counts_changes_nothing() -> None:
    assert FIRST + PairCounts.none() == PairCounts.none() + FIRST == FIRST


def test_a_manifest_has_all_counts() -> None:
    assert FIRST.to_manifest() == {
        "read": 10,
        "kept": 7,
        "dropped": {**NONE, "empty": 1, "ratio": 2},
        "source": {"tokens": 70, "unknown": 7, "longest": 12},
        "target": {"tokens": 35, "unknown": 0, "longest": 9},
        "linked": 4,
    }


def test_the_table_shows_pairs_and_tokens_aligned() -> None:
    assert table([("train", FIRST), ("x", SECOND)], "bytes") == [
        "pairs  read  kept  empty  too long  ratio  script  copy  held out  score  duplicate",
        "train    10     7      1         0      2       0     0         0      0          0",
        "x         5     4      0         1      0       0     0         0      0          0",
        "tokens    side  all  mean  longest    bytes",
        "train   source   70  10.0       12  10.000%",
        "train   target   35   5.0        9   0.000%",
        "x       source   30   7.5        8   3.333%",
        "x       target   20   5.0       11  10.000%",
    ]


def test_filters_that_were_off_have_no_count(tmp_path: Path) -> None:
    recipe = with_settings(with_more(tmp_path), max_ratio=2.0, drop_duplicates=True)
    reports: list[str] = []
    counts = prepared(recipe, tmp_path / "data", reports.append)
    lines = reports[next(i for i, line in enumerate(reports) if line.startswith("pairs")) :]
    train, valid = (line.split()[3:] for line in lines[1:3])
    assert train == ["0", "0", "0", "-", "-", "-", "-", "0"]
    assert valid == ["0", "0", "-", "-", "-", "-", "-", "-"]
    assert list(counts["train"]["dropped"]) == ["empty", "too long", "ratio", "duplicate"]
    assert list(counts["valid"]["dropped"]) == ["empty", "too long"]
    assert lines == list(describe(tmp_path / "data", check=False))[-len(lines) :]


def test_the_table_shows_texts_without_kept_pairs() -> None:
    assert table([("x", PairCounts.none())], "unknown")[-1].split() == [
        "x", "target", "0", "-", "-", "-",
    ]  # fmt: skip


def test_the_first_examples_of_each_reason_are_kept_in_order() -> None:
    examples = [Example.of("empty" if i % 2 else "ratio", i, ("", "x")) for i in range(20)]
    assert [one.line for one in first_of_each(examples)] == [0, 1, 2, 3, 4, 5]
    assert first_of_each(first_of_each(examples)) == first_of_each(examples)


def test_long_lines_are_truncated() -> None:
    example = Example.of("too long", 1, ("a" * 80, "b" * 81))
    assert example.source == "a" * 80
    assert example.target == "b" * 77 + "..."


def test_a_dataset_is_described_by_its_table_and_examples(tmp_path: Path) -> None:
    more = write_pairs(tmp_path, "more", [("", "A"), ("b", "B")])
    recipe = with_more(tmp_path, f"{more}=2", tag=(f"{more}=<bt>",))
    reports: list[str] = []
    prepared(recipe, tmp_path / "data", reports.append)
    lines = list(describe(tmp_path / "data", check=True))
    table = reports[-11:]
    assert table[0].startswith("pairs")
    assert table[2].startswith(f"{more}=2 <bt>  ")
    start = lines.index(table[0])
    assert lines[start : start + len(table)] == table
    assert lines[-1] == f"empty: {more}:1: '' | 'A'"
    assert "train        11 pairs in 1 shard" in lines
    assert lines[6] == "checked      every file matches its hash"


def test_hashes_are_checked_on_request(tmp_path: Path) -> None:
    prepared(with_more(tmp_path), tmp_path / "data")
    path = tmp_path / "data" / "train.00000.source.ids"
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    assert list(describe(tmp_path / "data", check=False))
    with refuses(DamagedError, "train.00000.source.ids"):
        list(describe(tmp_path / "data", check=True))
