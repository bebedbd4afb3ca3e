from xml.etree import ElementTree

from hypothesis import given

from nmtkit.parsing.trees import Tree, parse_tree
from nmtkit.parsing.views import outline, svg, tree_counts
from tests.trees import TREEBANK, deep_tree, trees

TREE = parse_tree("(S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .))", "text")
NAMESPACE = "{http://www.w3.org/2000/svg}"

OUTLINE = """\
S
+- NP
|  +- DT The
|  `- NN dog
+- VP
|  `- VBZ barks
`- . ."""


def texts(picture: str) -> dict[str, tuple[float, float]]:
    """Return the place of each text; the texts differ."""
    return {
        "".join(one.itertext()): (float(one.attrib["x"]), float(one.attrib["y"]))
        for one in ElementTree.fromstring(picture).iter(f"{NAMESPACE}text")
    }


def test_an_outline_has_a_constituent_a_line_with_lines_to_its_children() -> None:
    plain = str.maketrans({"\u251c": "+", "\u2514": "`", "\u2502": "|", "\u2500": "-"})
    assert "\n".join(outline(TREE)).translate(plain) == OUTLINE


@given(trees())
def test_an_outline_has_as_many_lines_as_constituents(tree: Tree) -> None:
    assert len(list(outline(tree))) == sum(1 for _ in tree.nodes())


def test_a_picture_has_words_in_one_row_and_labels_above_the_middle_of_their_children() -> None:
    place = texts(svg([TREE]))
    words = [place[word] for word in ("The", "dog", "barks")]
    assert [x for x, _ in words] == sorted(x for x, _ in words)
    assert len({y for _, y in words}) == 1
    assert abs(place["NP"][0] - (place["DT"][0] + place["NN"][0]) / 2) < 0.2
    assert place["S"][1] < place["NP"][1] == place["VP"][1] < place["DT"][1] < place["The"][1]


@given(trees())
def test_a_picture_of_any_trees_is_well_formed_and_holds_all_of_them(tree: Tree) -> None:
    picture = svg([tree, TREE])
    root = ElementTree.fromstring(picture)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for group, one in zip(root.findall(f"{NAMESPACE}g"), (tree, TREE), strict=True):
        _, *rest = group.findall(f"{NAMESPACE}text")
        assert len(rest) == sum(1 for _ in one.nodes()) + len(one.words())
    assert all(0 <= x <= width and 0 <= y <= height for x, y in texts(svg([TREE])).values())


def test_each_picture_has_its_number_and_words_above_it() -> None:
    other = parse_tree("(S (UH Oh))", "text")
    found = texts(svg([TREE, other]))
    assert {"1: The dog barks .", "2: Oh"} <= found.keys()
    assert found["1: The dog barks ."][1] < texts(svg([TREE]))["S"][1]


@given(trees())
def test_pictures_have_a_background_of_their_size_below_all_else(tree: Tree) -> None:
    root = ElementTree.fromstring(svg([tree, TREE]))
    background = root[0]
    assert background.tag == f"{NAMESPACE}rect"
    assert background.attrib == {
        "width": root.attrib["width"],
        "height": root.attrib["height"],
        "fill": "#ffffff",
    }
    assert "currentColor" not in svg([tree])


def test_deep_trees_are_drawn() -> None:
    tree = deep_tree(1_000)
    assert len(list(outline(tree))) == 1_001
    assert svg([tree]).count("<text") == 1_003


def test_characters_that_xml_cannot_hold_are_replaced() -> None:
    assert "a\ufffd<" in texts(svg([Tree("S", (Tree("N", (), "a\x1b<"),))]))


def test_wide_characters_take_two_columns() -> None:
    wide, narrow = (
        Tree("S", (Tree("N", (), one), Tree("N", (), "b"))) for one in ("\u732b" * 9, "a" * 18)
    )
    assert texts(svg([wide]))["b"] == texts(svg([narrow]))["b"]


def test_trees_are_counted() -> None:
    lines = list(tree_counts(parse_tree(text, "text") for text in TREEBANK))
    assert lines == [
        "trees\t4",
        "words\t10",
        "words of a tree\t2.50",
        "words of the longest\t4",
        "constituents\t14",
        "greatest depth\t5",
        "labels\t4",
        "tags\t4",
        "tokens of the longest\t15",
    ]


def test_no_trees_are_counted_as_zero() -> None:
    assert "words of a tree\t0.00" in list(tree_counts([]))
