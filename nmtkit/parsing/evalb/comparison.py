"""EVALB: brackets and tags of parses that match those of gold trees.

Source: Sekine and Collins 1997, EVALB, with the quotation marks of Ellis 2006. Lines are read as by
EVALB, which accepts more than trees: several trees per line, empty brackets, unclosed brackets.

Differences: there is no limit of length, beyond which EVALB is undefined. A word outside brackets,
at which EVALB never ends, is one error. So is a closing bracket without an opening one, which is
undefined in EVALB. For a word without a tag in the parse (`XX`), the tag of the gold tree decides
whether the word counts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nmtkit.errors import DataError
from nmtkit.parsing.evalb.parameters import Parameters
from nmtkit.parsing.linearize import ANY_TAG

# A bracket with a word in it, or an opening one; a closing one; a word outside brackets.
# ASCII: white space as in C. Possessive quantifiers prevent backtracking.
_TOKEN = re.compile(r"\(([^\s()]*+)(?:\s++([^\s()]*+)(\)))?|(\))|([^\s()]++)", re.ASCII)
_OPENING_END = re.compile(r"\([^\s()]*+\s*+\Z", re.ASCII)
_FUNCTION_TAG = re.compile("[-=]")
_QUOTATION_MARKS = ("'", '"', "/")
_MAX_QUOTES = 20
"""Further quotation marks of a sentence are ordinary words. Source: EVALB's MAX_QUOTE_TERM."""
_NOWHERE = -1
"""End of an unclosed bracket: it matches none, and crosses none."""
_FEW_CROSSING = 2
SCORED, ERROR, SKIPPED = 0, 1, 2
"""Status of a sentence, EVALB's column Stat.; an error has problems, such as other words."""

Span = tuple[int, int, str]
"""A bracket: index of its first word, index after its last word, label."""


@dataclass(frozen=True)
class Quote:
    """A quotation mark; its label may delete it on one side only.

    Attributes:
        word, tag: of the mark.
        place: number of words before it, without deleted ones.
        num_brackets: number of brackets that open before it.
        enclosing: indices of the brackets that enclose it.
    """

    word: str
    tag: str
    place: int
    num_brackets: int
    enclosing: frozenset[int]


@dataclass(frozen=True)
class Sentence:
    """A line as EVALB reads it.

    Attributes:
        words, tags: without deleted ones.
        brackets: in the order in which they open, with unchanged labels.
        quotes: quotation marks, deleted or not.
        length: number of words that count for the length.
        problems: EVALB's messages about the line.
    """

    words: list[str]
    tags: list[str]
    brackets: list[Span]
    quotes: list[Quote]
    length: int
    problems: list[str]


@dataclass(frozen=True)
class Counts:
    """EVALB's counts of a sentence, or their sums; scores range from 0 to 100.

    Scores are 0 if nothing is counted. Sums are of scored sentences, except `all_gold` and
    `all_parsed`.

    Attributes:
        matched: number of brackets in both; this and the next five are 0 if the words differ.
        gold, parsed: number of brackets of each.
        crossing: number of brackets of the parse that overlap a gold bracket without nesting.
        words, correct_tags: number of words, and of those with the right tag.
        all_gold, all_parsed: number of brackets of each, also if the words differ.
        sentences, errors, skipped: numbers of all sentences, of errors, of parses without words.
        complete: sentences in which all brackets of both trees match.
        no_crossing, few_crossing: sentences with no crossing bracket, with at most two.
    """

    matched: int = 0
    gold: int = 0
    parsed: int = 0
    crossing: int = 0
    words: int = 0
    correct_tags: int = 0
    all_gold: int = 0
    all_parsed: int = 0
    sentences: int = 0
    errors: int = 0
    skipped: int = 0
    complete: int = 0
    no_crossing: int = 0
    few_crossing: int = 0

    @property
    def recall(self) -> float:
        """Percentage of the gold brackets that match."""
        return percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Percentage of the parse's brackets that match."""
        return percent(self.matched, self.parsed)

    @property
    def tagging_accuracy(self) -> float:
        """Percentage of words with the right tag."""
        return percent(self.correct_tags, self.words)

    @property
    def valid(self) -> int:
        """Number of scored sentences."""
        return self.sentences - self.errors - self.skipped

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, without errors and skipped sentences."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def strict_f1(self) -> float:
        """F1 over all sentences; no bracket matches in errors and skipped sentences."""
        return percent(2 * self.matched, self.all_gold + self.all_parsed)

    def figures(self) -> dict[str, float]:
        """Return scores and numbers of sentences by name."""
        return {
            "f1": self.f1,
            "recall": self.recall,
            "precision": self.precision,
            "strict_f1": self.strict_f1,
            "complete_match": percent(self.complete, self.valid),
            "average_crossing": self.crossing / max(1, self.valid),
            "no_crossing": percent(self.no_crossing, self.valid),
            "two_or_less_crossing": percent(self.few_crossing, self.valid),
            "tagging_accuracy": self.tagging_accuracy,
            "sentences": self.sentences,
            "errors": self.errors,
            "skipped": self.skipped,
        }


@dataclass(frozen=True)
class Comparison:
    """EVALB's result for a sentence.

    Attributes:
        length: number of words of the gold tree that count for the length.
        status: SCORED, ERROR or SKIPPED.
        problems: EVALB's messages, those about the gold tree first.
        num_gold_problems: number of messages about the gold tree.
        counts: of the sentence, also if its trees are malformed.
    """

    length: int
    status: int
    problems: Sequence[str]
    num_gold_problems: int
    counts: Counts

    def for_sums(self) -> Counts:
        """Return the counts that a text's sums include: without matches unless it is scored."""
        counts, status = self.counts, self.status
        if status != SCORED:
            counts = Counts(all_gold=counts.all_gold, all_parsed=counts.all_parsed)
        return replace(counts, sentences=1, errors=status == ERROR, skipped=status == SKIPPED)


def compare_lines(
    gold: Sequence[str], parsed: Sequence[str], parameters: Parameters
) -> Iterator[Comparison]:
    """Compare parses with gold trees, line by line.

    Args:
        gold, parsed: equally many lines.
        parameters: of EVALB.

    Raises:
        DataError: there are more errors than `max_error` permits, as in EVALB.
    """
    pairs = zip(gold, parsed, strict=True)
    return within_max_error((compare(*pair, parameters) for pair in pairs), parameters)


def within_max_error(
    comparisons: Iterable[Comparison], parameters: Parameters
) -> Iterator[Comparison]:
    """Yield the comparisons of a text; DataError as `compare_lines`."""
    num_errors = num_gold = 0
    for number, comparison in enumerate(comparisons, 1):
        num_errors += len(comparison.problems)
        num_gold += comparison.num_gold_problems
        # EVALB counts after its check, so one more than MAX_ERROR passes.
        if num_errors > parameters.max_error + 1:
            # Words may differ because the gold tree is malformed.
            side, place = ("gold trees", 0) if comparison.num_gold_problems else ("parses", -1)
            of_gold = f" ({num_gold} of the gold trees)" if num_gold else ""
            correct = "correct the gold trees, " if num_gold else ""
            raise DataError(
                f"line {number} of the {side}: {comparison.problems[place]}; that makes "
                f"{num_errors} errors{of_gold}, at which MAX_ERROR ({parameters.max_error}) stops: "
                f"{correct}parse the gold trees' own words, or give --prm a file with another "
                "MAX_ERROR"
            )
        yield comparison


def compare(gold_line: str, parsed_line: str, parameters: Parameters) -> Comparison:
    """Compare a parse with its gold tree."""
    gold = read_sentence(gold_line, parameters, ())
    parsed = read_sentence(parsed_line, parameters, _gold_tags(gold_line, parsed_line, parameters))
    gold_spans, spans = _counted(gold, parameters), _counted(parsed, parameters)
    refused = Comparison(
        length=gold.length,
        status=SKIPPED,
        problems=[*gold.problems, *parsed.problems],
        num_gold_problems=len(gold.problems),
        counts=Counts(all_gold=len(gold_spans), all_parsed=len(spans)),
    )
    if not parsed.words:
        return refused
    if len(gold.words) != len(parsed.words):
        gold, parsed = _with_equal_quotes(gold, parsed, parameters)
        gold_spans, spans = _counted(gold, parameters), _counted(parsed, parameters)
    difference = _difference(gold.words, parsed.words, parameters)
    if difference:
        return replace(refused, status=ERROR, problems=[*refused.problems, difference])
    pairs_of_tags = zip(gold.tags, parsed.tags, strict=True)
    matched = _num_matches(gold_spans, spans, parameters)
    crossing = _num_crossing(gold_spans, spans, len(gold.words))
    counts = Counts(
        matched=matched,
        gold=len(gold_spans),
        parsed=len(spans),
        crossing=crossing,
        words=len(gold.words),
        correct_tags=sum(parameters.is_equal_label(one, two) for one, two in pairs_of_tags),
        all_gold=len(gold_spans),
        all_parsed=len(spans),
        complete=matched == len(gold_spans) == len(spans),
        no_crossing=crossing == 0,
        few_crossing=crossing <= _FEW_CROSSING,
    )
    return replace(refused, status=ERROR if refused.problems else SCORED, counts=counts)


def read_sentence(line: str, parameters: Parameters, gold_tags: Sequence[str]) -> Sentence:
    """Read any line of text as a sentence.

    Args:
        line: text of the line.
        parameters: of EVALB.
        gold_tags: for each word with the tag `XX`, the tag that decides whether it counts; empty =
            `XX` is an ordinary tag.
    """
    sentence = Sentence([], [], [], [], 0, [])
    words, brackets, problems = sentence.words, sentence.brackets, sentence.problems
    length = 0
    enclosing: list[int] = []
    gold_tag = iter(gold_tags)
    for label, word, ending, close, stray in _TOKEN.findall(line):
        if ending:
            tag = next(gold_tag, label) if label == ANY_TAG else label
            length += tag not in parameters.deleted_for_length
            is_quote = tag in parameters.quotes and word in _QUOTATION_MARKS
            if is_quote and len(sentence.quotes) < _MAX_QUOTES:
                place = (len(words), len(brackets))
                sentence.quotes.append(Quote(word, tag, *place, frozenset(enclosing)))
            if tag not in parameters.deleted:
                words.append(word)
                sentence.tags.append(label)
        elif close and enclosing:
            bracket = enclosing.pop()
            start, _, name = brackets[bracket]
            brackets[bracket] = (start, len(words), name)
        elif close:
            problems.append("Bracketing unbalance (too many close bracket)")
        elif stray:
            problems.append("Reading sentence")
        else:
            enclosing.append(len(brackets))
            brackets.append((len(words), _NOWHERE, label))
    if enclosing and _OPENING_END.search(line):
        problems.append("More than two elements in a bracket")
    if enclosing:
        problems.append("Bracketing is unbalanced (too many open bracket)")
    return replace(sentence, length=length, problems=list(dict.fromkeys(problems)))


def _gold_tags(gold_line: str, parsed_line: str, parameters: Parameters) -> Sequence[str]:
    """Return the gold tags of a parse's words without tag (`XX`); empty if the words differ.

    The parse may have the traces of the gold tree as words, or none.
    """
    if f"({ANY_TAG}" not in parsed_line:  # for speed: most parses have tags
        return ()
    everything = _tagged_words(gold_line), _tagged_words(parsed_line)
    for left_out in (frozenset[str](), parameters.deleted_for_length):
        gold, parsed = ([one for one in side if one[0] not in left_out] for side in everything)
        if len(gold) == len(parsed):
            pairs = list(zip(gold, parsed, strict=True))
            if all(parameters.is_equal_word(one[1], two[1]) for one, two in pairs):
                return [one[0] for one, two in pairs if two[0] == ANY_TAG]
    return ()


def percent(part: int, whole: int) -> float:
    """Return 100 * part / whole, or 0 if `whole` is 0."""
    return 100 * part / whole if whole else 0.0


def leaves(line: str, parameters: Parameters) -> list[str]:
    """Return the words of a line that count for its length, punctuation included."""
    return [word for tag, word in _tagged_words(line) if tag not in parameters.deleted_for_length]


def _tagged_words(line: str) -> list[tuple[str, str]]:
    """Return the tags and words of a line, deleted or not."""
    return [(label, word) for label, word, ending, _, _ in _TOKEN.findall(line) if ending]


def _counted(sentence: Sentence, parameters: Parameters) -> list[Span]:
    """Return the brackets that count, with the labels by which they match."""
    counted = []
    for start, end, label in sentence.brackets:
        if start != end:
            name = _FUNCTION_TAG.split(label, maxsplit=1)[0]
            if name not in parameters.deleted_brackets:
                counted.append((start, end, name if parameters.is_labelled else ""))
    return counted


def _difference(gold: Sequence[str], parsed: Sequence[str], parameters: Parameters) -> str:
    """Return EVALB's message about the first difference of words, or ""."""
    if len(gold) != len(parsed):
        return f"Length unmatch ({len(gold)}|{len(parsed)})"
    for one, two in zip(gold, parsed, strict=True):
        if not parameters.is_equal_word(one, two):
            return f"Words unmatch ({one}|{two})"
    return ""


def _num_matches(gold: Sequence[Span], parsed: Sequence[Span], parameters: Parameters) -> int:
    """Count matches: each gold bracket, in order, is paired with the first equal unpaired one."""
    left: dict[Span, list[int]] = {}
    for position in range(len(parsed) - 1, -1, -1):
        left.setdefault(parsed[position], []).append(position)
    num_matches = 0
    for start, end, label in gold:
        equals = [(start, end, one) for one in parameters.equals.get(label, (label,))]
        candidates = [left[span] for span in equals if left.get(span)]
        if candidates:
            min(candidates, key=lambda positions: positions[-1]).pop()
            num_matches += 1
    return num_matches


def _num_crossing(gold: Sequence[Span], parsed: Sequence[Span], num_words: int) -> int:
    """Count brackets of the parse that overlap a gold bracket without nesting.

    Gold brackets nest. If any gold bracket around a boundary of the parse's bracket crosses it, the
    innermost one does. So only that one is compared.
    """
    innermost = [(0, num_words)] * (num_words + 1)
    stack: list[tuple[int, int]] = []
    position = 0
    for boundary in range(1, num_words):
        while stack and stack[-1][1] <= boundary:
            stack.pop()
        while position < len(gold) and gold[position][0] < boundary:
            start, end, _ = gold[position]
            if end > boundary:
                stack.append((start, end))
            position += 1
        if stack:
            innermost[boundary] = stack[-1]
    return sum(
        innermost[start][1] < end or innermost[end][0] > start
        for start, end, _ in parsed
        if end != _NOWHERE
    )


def _with_equal_quotes(
    gold: Sentence, parsed: Sentence, parameters: Parameters
) -> tuple[Sentence, Sentence]:
    """Restore deleted quotation marks that are kept on the other side."""
    gold_places = [quote.place for quote in gold.quotes]
    places = [quote.place for quote in parsed.quotes]
    for i, quote in enumerate(parsed.quotes):
        place = places[i]
        for j, gold_quote in enumerate(gold.quotes):
            if gold_places[j] != place:
                continue
            is_deleted = quote.tag in parameters.deleted
            if is_deleted == (gold_quote.tag in parameters.deleted):
                continue
            if is_deleted:
                parsed = _restored(parsed, quote, places[i])
                places[i:] = [one + 1 for one in places[i:]]
            else:
                gold = _restored(gold, gold_quote, place)
                gold_places[j:] = [one + 1 for one in gold_places[j:]]
    return gold, parsed


def _restored(sentence: Sentence, quote: Quote, place: int) -> Sentence:
    """Return a sentence with a deleted quotation mark restored before the word at `place`."""
    brackets = [
        (
            start + (number >= quote.num_brackets),
            end + (number >= quote.num_brackets or number in quote.enclosing),
            label,
        )
        for number, (start, end, label) in enumerate(sentence.brackets)
    ]
    words = [*sentence.words[:place], quote.word, *sentence.words[place:]]
    tags = [*sentence.tags[:place], quote.tag, *sentence.tags[place:]]
    return replace(sentence, words=words, tags=tags, brackets=brackets)
