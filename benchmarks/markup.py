r"""Places of tags in given translations: the reference's words are forced, its tags to be found.

    python -m benchmarks.markup --markup xml --source test.en --reference test.de \
      --links guided=test.links --model marks=runs/marks

By links between words: for the nearest position and each file of links, of the words of both plain
texts. By marks: a model that was trained with --annotate tags chooses where its marks are between
the words. Printed is the percentage of the reference's elements that have the same tag around the
same words, and the p-value of its difference to the first file of links, or to the nearest
position, by paired permutation of the lines.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig
from nmtkit.decoding.constraints import IMPOSSIBLE, NO_TOKEN, Constraint, Constraints
from nmtkit.decoding.search import beam_search
from nmtkit.decoding.stepper import Stepper
from nmtkit.spans.mark_search import WellFormedMarks
from nmtkit.spans.marked_lines import MarkedLines
from nmtkit.spans.markup import marked_words, read_markup
from nmtkit.spans.phrases import WordEdges
from nmtkit.spans.tags import MARKUPS
from nmtkit.spans.writing import write_markup
from nmtkit.storage.model_folder import LoadedModel, load_model
from nmtkit.text.lines import read_list
from nmtkit.text.links import parse_links

BATCH, BEAM, PERMUTATIONS = 16, 24, 10_000


class ForcedWords(Constraint):
    """Hypotheses have given tokens, with marks at any place.

    A given token has the probability of all that are no marks: it is certain that it follows, and
    only the places of marks are to be chosen. Its own, often small, would favour rows that put
    marks before it.
    """

    def __init__(self, words: Tensor, is_mark: Tensor) -> None:
        """Store the tokens (B, T), end symbols included and padded with NO_TOKEN, and V flags."""
        self._words, self._is_mark = words, is_mark

    def apply(self, sums: Tensor, prefixes: Tensor) -> None:
        """Forbid all but marks and the next word."""
        count = (~self._is_mark[prefixes]).sum(2)
        count = count.clamp(max=self._words.shape[1] - 1)
        token = self._words.gather(1, count).clamp(min=0)[..., None]
        kept = sums.masked_fill(self._is_mark, IMPOSSIBLE).logsumexp(2, keepdim=True)
        sums.masked_fill_(~self._is_mark, IMPOSSIBLE)
        sums.scatter_(2, token, kept)

    def keep(self, sentences: Tensor) -> None:
        """Keep the words of these sentences."""
        self._words = self._words[sentences]


def by_links(
    sources: Sequence[str], references: Sequence[str], links: Sequence[str], markup: str
) -> Iterator[str]:
    """Yield the words of each reference with the tags of its source, by links between words."""
    for source, reference, pairs in zip(sources, references, links, strict=True):
        own = sorted(parse_links(pairs).possible)
        yield write_markup(
            read_markup(source, markup), read_markup(reference, markup).text, own, {}
        )


@torch.inference_mode()
def by_marks(
    loaded: LoadedModel, sources: Sequence[str], references: Sequence[str], markup: str
) -> Iterator[str]:
    """Yield the words of each reference with the tags of its source, where a model writes them.

    A line with more tags than marks has them by the nearest position.
    """
    codec, stepper = loaded.codec, Stepper([loaded.model])
    lines = MarkedLines(codec.source, codec.target)
    is_mark = torch.zeros(codec.target.size, dtype=torch.bool)
    is_mark[sorted(lines.target_marks.ids)] = True
    edges = WordEdges.of(codec.target)
    written = [*by_links(sources, references, [""] * len(sources), markup)]
    marked = []
    for number, pair in enumerate(zip(sources, references, strict=True)):
        line, plain = (read_markup(one, markup) for one in pair)
        if line.elements and (marking := lines.write(line, [], {})):
            marked.append((number, line, marking, codec.encode_target(plain.text)))
    marked.sort(key=lambda one: len(one[3]))
    for first in range(0, len(marked), BATCH):
        numbers, own, markings, words = zip(*marked[first : first + BATCH], strict=True)
        lengths = [len(ids) + one.num_tokens for ids, one in zip(words, markings, strict=True)]
        padded = torch.full((len(words), max(map(len, words))), NO_TOKEN)
        for row, ids in enumerate(words):
            padded[row, : len(ids)] = torch.tensor(ids)
        source_ids = [one.ids for one in markings]
        memories = stepper.encode(source_ids)
        tokens = [lines.tokens_of(one) for one in markings]
        max_lengths = torch.tensor(lengths)
        items = [one.items for one in markings]
        all_marks = is_mark.nonzero().squeeze(1)
        constraints: list[Constraint] = [
            ForcedWords(padded, is_mark),
            WellFormedMarks(items, tokens, all_marks, edges, max_lengths),
        ]
        found = beam_search(
            stepper.step,
            stepper.start(source_ids, memories, torch.full((len(words), 1), NO_TOKEN)),
            max_lengths,
            SearchConfig(beam=BEAM, length_penalty=0.0),
            Constraints(constraints, max_lengths),
        )
        for number, line, marking, (best,) in zip(numbers, own, markings, found, strict=True):
            reading = lines.read(marking, best.ids[:-1], line)
            written[number] = write_markup(line, reading.text, (), reading.places, reading.spans)
    yield from written


def elements_of(line: str, markup: str) -> Counter[tuple[str, range]]:
    """Return the elements of a line with text: opening tag and words."""
    return Counter((one.opening, one.words) for one in marked_words(line, markup) if one.text)


def exact_spans(
    written: Iterable[str], references: Sequence[str], markup: str
) -> list[tuple[int, int]]:
    """Return the elements of each line whose place is found, and all."""
    found = []
    for line, reference in zip(written, references, strict=True):
        wanted = elements_of(reference, markup)
        found.append(((wanted & elements_of(line, markup)).total(), wanted.total()))
    return found


def p_value(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> float:
    """Return the probability of a difference as large by exchanging lines at random."""
    differences = np.array([a[0] - b[0] for a, b in zip(one, other, strict=True)])
    signs = np.random.default_rng(1).choice((-1, 1), (PERMUTATIONS, len(differences)))
    sums = abs(signs @ differences)
    return float((1 + (sums >= abs(differences.sum())).sum()) / (1 + PERMUTATIONS))


def main() -> None:
    """Print a line per kind of links and per model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--markup", choices=MARKUPS, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--links", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=MODEL")
    options = parser.parse_args()
    sources, references = (list(read_list(path)) for path in (options.source, options.reference))
    texts = sources, references
    kinds = {"nearest position": by_links(*texts, [""] * len(sources), options.markup)}
    for name, _, path in (one.partition("=") for one in options.links):
        kinds[name] = by_links(*texts, list(read_list(Path(path))), options.markup)
    for name, _, path in (one.partition("=") for one in options.model):
        loaded = load_model(Path(path), torch.device("cpu"))
        loaded.model.prepare(torch.float32)
        kinds[name] = by_marks(loaded, *texts, options.markup)
    found = {
        name: exact_spans(written, references, options.markup) for name, written in kinds.items()
    }
    base = found[[*kinds][1 if options.links else 0]]
    for name, counts in found.items():
        share = 100 * sum(one for one, _ in counts) / max(1, sum(total for _, total in counts))
        total = sum(one for _, one in counts)
        print(f"{name:20} {share:5.1f} % of {total:,} elements, p = {p_value(counts, base):.4f}")


if __name__ == "__main__":
    main()
