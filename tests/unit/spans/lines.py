"""Made-up lines with markup."""

from hypothesis import strategies as st

WORDS = [
    "Save", "the", "file", "42", "\u00fcber", "\u0633\u0644\u0627\u0645", "\u0939\u093f\u0928",
    "\u6211", "\u7528\u6237", "\u0e19\u0e49\u0e33", "a&amp;b", "&lt;", "&#8212;x",
]  # fmt: skip
OPENINGS = ["b", "i", 'a href="x&gt;y"', "g id='\">'", "\u00e9l", 'ph  x="a b"']
MARKS = ["<x/>", '<x id="1"/>', "<!-- < -->", "<br />", "<?p q?>"]
PUNCTUATION = [".", ",", ")", " (", "\u3002", "\u061f"]


def marked_lines(max_leaves: int = 8) -> st.SearchStrategy[str]:
    """Return lines of well-formed XML: words, punctuation, marks and nested elements."""
    leaves = st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(WORDS).map(" {} ".format),
        st.sampled_from(PUNCTUATION),
        st.sampled_from(MARKS),
    )

    def elements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.tuples(st.sampled_from(OPENINGS), st.lists(inner, max_size=3)).map(
            lambda found: f"<{found[0]}>{''.join(found[1])}</{found[0].split()[0]}>"
        )

    parts = st.recursive(leaves, elements, max_leaves=max_leaves)
    lines = st.lists(parts, max_size=5).map("".join)
    return lines.map(lambda line: line.replace("  ", " ").replace("  ", " "))


def tidy_lines() -> st.SearchStrategy[str]:
    """Return lines with single spaces whose tags are at the borders of words."""
    words = st.sampled_from(WORDS)

    def elements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        tags = st.sampled_from(OPENINGS)
        content = st.lists(inner, min_size=1, max_size=3).map(" ".join)
        return st.tuples(tags, content, st.sampled_from(["", ".", ","])).map(
            lambda found: f"<{found[0]}>{found[1]}</{found[0].split()[0]}>{found[2]}"
        )

    parts = st.recursive(st.one_of(words, st.sampled_from(MARKS[:3])), elements, max_leaves=8)
    return st.lists(parts, max_size=5).map(" ".join)
