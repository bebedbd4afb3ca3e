import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.reporting.systems.page import short_names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["baseline.de", "new.de"], ["baseline", "new"]),
        (["run1/out.de", "run2/out.de"], ["run1", "run2"]),
        (
            ["sys/newstest2017.FBK.4870.en-de.de.gz", "sys/newstest2017.online-A.0.en-de.de.gz"],
            ["FBK.4870", "online-A.0"],
        ),
        (["a.de", "a.b.de"], ["a", "a.b"]),
        (["out/model-8.txt", "out/model-10.txt"], ["model-8", "model-10"]),
        (["some/where/out.de.gz"], ["out.de.gz"]),
        (["standard input"], ["standard input"]),
        (["/dev/fd/63", "/dev/fd/62"], ["63", "62"]),
        (["a.de", "a.de"], ["a", "a"]),
        (["x\ud800.de", "y\0.de"], ["x\ufffd", "y\ufffd"]),
        (["-", "_"], ["-", "_"]),
    ],
)
def test_parts_that_all_names_share_are_left_out(names: list[str], expected: list[str]) -> None:
    assert short_names(names) == expected


@given(st.lists(st.text("ab./-_1", min_size=1, max_size=8), min_size=1, max_size=4, unique=True))
def test_short_names_differ_as_the_names_do_and_are_never_empty(names: list[str]) -> None:
    labels = short_names(names)
    assert len(set(labels)) == len(names)
    assert all(label in name for label, name in zip(labels, names, strict=True))
    assert all(labels)
