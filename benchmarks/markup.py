r"""Places of tags by word links: the reference's words are given, its tags are to be found.

    python -m benchmarks.markup --markup xml --source test.en --reference test.de \
      --links guided=test.links

For the nearest position and each file of links, of the words of both plain texts, it prints the
percentage of the reference's elements that have the same tag around the same words.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nmtkit.spans.markup import marked_words, read_markup
from nmtkit.spans.tags import MARKUPS
from nmtkit.spans.writing import write_markup
from nmtkit.text.lines import read_list
from nmtkit.text.links import parse_links


def elements_of(line: str, markup: str) -> Counter[tuple[str, range]]:
    """Return the elements of a line with text: opening tag and words."""
    return Counter((one.opening, one.words) for one in marked_words(line, markup) if one.text)


def exact_spans(
    sources: Sequence[str], references: Sequence[str], links: Sequence[str], markup: str
) -> tuple[int, int]:
    """Return the elements whose place is found, and all."""
    num_found = num_all = 0
    for source, reference, pairs in zip(sources, references, links, strict=True):
        wanted = elements_of(reference, markup)
        if wanted:
            plain = read_markup(reference, markup).text
            own = sorted(parse_links(pairs).possible)
            written = write_markup(read_markup(source, markup), plain, own, {})
            num_found += (wanted & elements_of(written, markup)).total()
            num_all += wanted.total()
    return num_found, num_all


def main() -> None:
    """Print a line per kind of links."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--markup", choices=MARKUPS, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--links", action="append", default=[], metavar="NAME=FILE")
    options = parser.parse_args()
    sources, references = (list(read_list(path)) for path in (options.source, options.reference))
    files = {"nearest position": [""] * len(sources)}
    for one in options.links:
        name, _, path = one.partition("=")
        files[name] = list(read_list(Path(path)))
    for name, links in files.items():
        found, total = exact_spans(sources, references, links, options.markup)
        print(f"{name:20} {100 * found / max(1, total):5.1f} % of {total:,} elements")


if __name__ == "__main__":
    main()
