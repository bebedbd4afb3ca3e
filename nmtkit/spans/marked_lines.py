"""Lines whose tags, placeholders and terms are marks: as ids for a model, and back from its ids.

The nth tag or placeholder of a line has mark n. Text is segmented as without marks; a placeholder
replaces its text. In a translation, the pieces before a mark say where it is.
nmtkit/text/marks.py has examples.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nmtkit.spans.annotate import space_of
from nmtkit.spans.edges import Span
from nmtkit.spans.markup import MarkedLine
from nmtkit.spans.tags import ROOT, Element
from nmtkit.symbols import EOS_ID
from nmtkit.text.links import words_of_pieces
from nmtkit.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Item:
    """A tag or a placeholder with a mark.

    Attributes:
        span: its characters in the plain text.
        parent: the number of the item that encloses it, or ROOT.
        element: the index of its element; None = it is a placeholder.
        is_empty: one mark stands for it, not two.
        is_replaced: the mark stands for the text, too.
        is_of_next_word: it touches the word after it, but not the word before it.
    """

    span: Span
    parent: int
    element: int | None
    is_empty: bool
    is_replaced: bool
    is_of_next_word: bool = False


@dataclass(frozen=True)
class Marking:
    """A line with marks.

    Attributes:
        ids: of the source, the end symbol last.
        items: by their number, in the order of the line.
    """

    ids: list[int]
    items: tuple[Item, ...]

    @property
    def num_tokens(self) -> int:
        """Number of marks that a translation has."""
        return sum(1 if item.is_empty else 2 for item in self.items)


@dataclass(frozen=True)
class Reading:
    """A translation with marks, as text.

    Attributes:
        text: with the text of placeholders.
        spans: the characters of each element of the line.
        places: the characters of each part that a mark replaced, by its characters in the line.
    """

    text: str
    spans: tuple[Span, ...]
    places: dict[Span, Span]


class MarkedLines:
    """Writes lines with the marks of the source; reads translations with those of the target."""

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        """Store vocabularies, which have marks."""
        assert source.marks
        assert target.marks
        self._source, self._target = source, target
        self.source_marks, self.target_marks = source.marks, target.marks
        self._most = min(len(source.marks), len(target.marks))
        self._space = space_of(source)

    def write(
        self, line: MarkedLine, replaced: Sequence[Span], terms: Mapping[Span, str]
    ) -> Marking | None:
        """Return a line with marks; None if it has too many, or tags within what they replace.

        Args:
            line: the plain text and its markup.
            replaced: the parts of the text that marks replace, in order: placeholders and kept
                elements.
            terms: the target text of other parts.
        """
        if len(line.elements) + len(replaced) > self._most or any(
            start < place < end
            for start, end in replaced
            for one in line.elements
            for place in (one.start, one.end)
        ):
            return None
        items = _numbered(line.elements, replaced, line.text)
        numbers = range(len(items))
        return Marking(self._ids(line, items, numbers, self._source, replaced, terms), items)

    def write_pair(
        self, source: MarkedLine, target: MarkedLine
    ) -> tuple[list[int], list[int]] | None:
        """Return a line and its translation with marks, the end symbol last.

        A tag of the translation has the mark of the first equal tag of the line, within the same
        element, that no other one has. None if the tags of both do not pair, or are too many.
        """
        items, others = (_numbered(one.elements, (), one.text) for one in (source, target))
        free = [*enumerate(items)]
        numbers: list[int] = []
        for other in others:
            parent = ROOT if other.parent == ROOT else numbers[other.parent]
            own = next(
                (
                    number
                    for number, item in free
                    if (item.parent, item.is_empty) == (parent, other.is_empty)
                    and _opening(source, item) == _opening(target, other)
                ),
                None,
            )
            if own is None:
                return None
            numbers.append(own)
            free = [one for one in free if one[0] != own]
        if free or len(items) > self._most:
            return None
        return (
            self._ids(source, items, range(len(items)), self._source),
            self._ids(target, others, numbers, self._target),
        )

    def _ids(
        self,
        line: MarkedLine,
        items: Sequence[Item],
        own_numbers: Sequence[int],
        vocabulary: Vocabulary,
        replaced: Sequence[Span] = (),
        terms: Mapping[Span, str] = MappingProxyType({}),
    ) -> list[int]:
        """Return the ids of a line, given the numbers of its items."""
        pieces = _LinePieces(line.text, [*replaced], vocabulary)
        before: dict[int, list[int]] = {}
        assert vocabulary.marks
        marks = vocabulary.marks
        for (_, end), text in terms.items():
            own = [marks.term, *self._source.encode(text), marks.term_end]
            before.setdefault(pieces.place(end, is_opening=False), []).extend(own)
        numbers, last = {}, 0
        for index, is_opening in _tags(items):
            item, number = items[index], own_numbers[index]
            if item.is_replaced:
                numbers[item.span] = number
                continue
            # Tags within a word are outside of it, in their order.
            offset = item.span[0] if is_opening else item.span[1]
            last = max(last, pieces.place(offset, is_opening=is_opening and not item.is_empty))
            pair = marks.openings if is_opening else marks.closings
            before.setdefault(last, []).append((marks.empties if item.is_empty else pair)[number])
        ids: list[int] = []
        for place, unit in enumerate(pieces.units):
            ids += before.get(place, ())
            if isinstance(unit, tuple):
                has_space = unit[0] == 0 or line.text[unit[0] - 1].isspace()
                ids += [*(self._space if has_space else ()), marks.empties[numbers[unit]]]
            else:
                ids.append(unit)
        return [*ids, *before.get(len(pieces.units), ()), EOS_ID]

    def tokens_of(self, marking: Marking) -> list[tuple[int, ...]]:
        """Return the marks of each item of a translation, one or two."""
        marks = self.target_marks
        return [
            (marks.empties[n],) if item.is_empty else (marks.openings[n], marks.closings[n])
            for n, item in enumerate(marking.items)
        ]

    def read(self, marking: Marking, ids: Sequence[int], line: MarkedLine) -> Reading:
        """Return a translation as text.

        Args:
            marking: of its line.
            ids: with marks, without begin and end symbols.
            line: the plain text and its markup.
        """
        marks = self.target_marks
        tokens = enumerate(self.tokens_of(marking))
        numbers = {index: number for number, own in tokens for index in own}
        text, segment = "", list[int]()
        places: dict[int, list[int]] = {}
        replaced: dict[int, Span] = {}
        for index in ids:
            number = numbers.get(index)
            if number is None:
                segment += [index] if index not in marks.ids else []
            elif marking.items[number].is_replaced:
                text, segment = text + self._text(segment, is_first=not text), []
                own = line.text[slice(*marking.items[number].span)]
                replaced.setdefault(number, (len(text), len(text) + len(own)))
                text += own
            else:
                so_far = text + "".join(self._target.texts(segment))
                places.setdefault(number, []).append(len("".join(so_far.split())))
        text = (text + self._text(segment, is_first=not text)).rstrip(" ")
        found = _spans(marking.items, text, places, replaced)
        of_elements = {item.element: span for item, span in zip(marking.items, found, strict=True)}
        spans: list[Span] = []
        for index, element in enumerate(line.elements):
            # What is within an empty element is where that is.
            around = spans[element.parent] if element.parent != ROOT else (0, 0)
            spans.append(of_elements.get(index, around))
        parts = {marking.items[number].span: span for number, span in replaced.items()}
        return Reading(text, tuple(spans), parts)

    def _text(self, ids: Sequence[int], *, is_first: bool) -> str:
        """Return the text of a part of a translation, with the spaces at its ends."""
        texts = "".join(self._target.texts(ids))
        text = self._target.decode(ids).strip(" ")
        before = " " if texts.startswith(" ") and not is_first else ""
        return f"{before}{text}{' ' if text and texts.endswith(' ') else ''}"


class _LinePieces:
    """The pieces of a line in which marks replace parts of the text.

    Attributes:
        units: ids of pieces, and the characters of the parts.
    """

    def __init__(self, text: str, replaced: Sequence[Span], vocabulary: Vocabulary) -> None:
        self._ends = [end for _, end in replaced]
        self._segments: list[tuple[int, str, list[int], int]] = []
        self._vocabulary = vocabulary
        self.units: list[int | Span] = []
        begin = 0
        for span in [*replaced, (len(text), len(text))]:
            own = text[begin : span[0]]
            ids = _encoded(own, vocabulary, is_glued=begin > 0)
            self._segments.append((begin, own, ids, len(self.units)))
            self.units += ids
            if span[0] < span[1]:
                self.units.append(span)
            begin = span[1]

    def place(self, offset: int, *, is_opening: bool) -> int:
        """Return the place among the units of a character's beginning.

        Within a piece, it is before an opening tag, and else after the piece.
        """
        begin, text, ids, first = self._segments[bisect_right(self._ends, offset)]
        parts = [
            *filter(
                None,
                ("".join(one.split()) for one in (text[: offset - begin], text[offset - begin :])),
            )
        ]
        if len(parts) < 2:
            return first + (len(ids) if parts and text[: offset - begin].strip() else 0)
        ranges = words_of_pieces(self._vocabulary, ids, parts, text)
        if is_opening:
            return first + next((n for n, one in enumerate(ranges) if one.stop > 1), len(ids))
        return first + max((n + 1 for n, one in enumerate(ranges) if one.start < 1), default=0)


def _encoded(text: str, vocabulary: Vocabulary, *, is_glued: bool) -> list[int]:
    """Return the ids of a part of a line; a glued one follows other text without a space."""
    if not is_glued or not text or text[0].isspace():
        return vocabulary.encode(text)
    return glued_ids(text, vocabulary) or vocabulary.encode(text)


def glued_ids(text: str, vocabulary: Vocabulary) -> list[int]:
    """Return the ids of a text after other text without a space; none if they depend on that."""
    ids = vocabulary.encode(f"({text}")
    parts = vocabulary.texts(ids)
    num_before = next((n for n in (1, 2) if "".join(parts[:n]).strip() == "("), None)
    return ids[num_before:] if num_before else []


def _numbered(elements: Sequence[Element], replaced: Sequence[Span], text: str) -> tuple[Item, ...]:
    """Return the tags and placeholders of a line in order; what is in empty ones has no number."""
    children: dict[int, list[tuple[Span, int | None]]] = {}
    kept = {(one.start, one.end) for one in elements if one.kept}
    for number, one in enumerate(elements):
        children.setdefault(one.parent, []).append(((one.start, one.end), number))
    for span in reversed(replaced):
        if span in kept:
            continue
        around = (
            n
            for n, one in enumerate(elements)
            if one.closing and one.start <= span[0] and span[1] <= one.end
        )
        siblings = children.setdefault(max(around, default=ROOT), [])
        after = (n for n, (other, _) in enumerate(siblings) if other[0] >= span[1])
        siblings.insert(next(after, len(siblings)), (span, None))
    items: list[Item] = []
    pending = [(*child, ROOT) for child in reversed(children.get(ROOT, []))]
    while pending:
        span, index, parent = pending.pop()
        element = None if index is None else elements[index]
        is_replaced = element is None or (bool(element.kept) and span in replaced)
        is_empty = is_replaced or span[0] == span[1]
        previous, following = text[: span[0]][-1:], text[span[0] : span[0] + 1]
        is_of_next_word = not previous.strip() and bool(following.strip())
        items.append(Item(span, parent, index, is_empty, is_replaced, is_of_next_word))
        if index is not None and not is_empty:
            own = reversed(children.get(index, []))
            pending += [(*child, len(items) - 1) for child in own]
    return tuple(items)


def _opening(line: MarkedLine, item: Item) -> str:
    return "" if item.element is None else line.elements[item.element].opening


def _tags(items: Sequence[Item]) -> Iterator[tuple[int, bool]]:
    """Yield the number of each tag in order, and whether it opens its item."""
    stack: list[int] = []
    for number, item in enumerate(items):
        while stack and stack[-1] != item.parent:
            yield stack.pop(), False
        yield number, True
        if not item.is_empty:
            stack.append(number)
    for number in reversed(stack):
        yield number, False


def _spans(
    items: Sequence[Item],
    text: str,
    places: Mapping[int, Sequence[int]],
    replaced: Mapping[int, Span],
) -> tuple[Span, ...]:
    """Return the characters of each item of a translation, each within its parent.

    Args:
        items: of the line.
        text: the translation.
        places: the number of characters, without spaces, before each tag.
        replaced: the characters of the items that stand for text.
    """
    bare = [place for place, one in enumerate(text) if not one.isspace()]
    whole = 0, len(text)
    found: list[Span] = []
    for number, item in enumerate(items):
        first, *others = places.get(number, [len(bare)])
        start = bare[first] if first < len(bare) else len(text)
        last = min([first, *others][-1], len(bare))
        end = bare[last - 1] + 1 if last else 0
        if item.is_empty or end < start:
            start = end = start if item.is_of_next_word else end
        span = replaced.get(number, (start, end))
        low, high = whole if item.parent == ROOT else found[item.parent]
        found.append((min(max(span[0], low), high), min(max(span[1], low), high)))
    return tuple(found)
