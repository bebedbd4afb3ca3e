from nmtkit.data.examples import Example, first_of_each


def test_a_few_of_each_reason_are_kept_in_their_order() -> None:
    examples = [Example.of("empty" if i % 2 else "ratio", i, ("", "x")) for i in range(20)]
    assert [one.line for one in first_of_each(examples)] == [0, 1, 2, 3, 4, 5]
    assert first_of_each(first_of_each(examples)) == first_of_each(examples)


def test_long_lines_are_cut() -> None:
    example = Example.of("too long", 1, ("a" * 80, "b" * 81))
    assert example.source == "a" * 80
    assert example.target == "b" * 77 + "..."
