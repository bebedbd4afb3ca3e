"""Raw English text to the words of the Penn Treebank, as parsers that learn from it expect them.

A line is taken for a sentence: only at its end is a full stop a word of its own, as elsewhere it
belongs to an abbreviation.

Source: the rules of `tokenizer.sed` (Robert MacIntyre, University of Pennsylvania, 1995), with two
departures: a comma or colon between digits stays in its number, as it does in the treebank, and
typographic quotes, dashes and dots are first spelled as the treebank spells them.
"""

import re

from nmtkit.parsing.trees import escape, split_words

_SPELLINGS = {
    "\u201c": " `` ",
    "\u201d": " '' ",
    "\u2018": " ` ",
    "\u2019": "'",
    "\u2014": "--",
    "\u2026": "...",
}

# In order, on a line that begins and ends with a space.
_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r'(?<=[ (\[{<])"', " `` "),
        (r"\.\.\.", " ... "),
        (r"[;@#$%&]|(?<!\d)[,:]|[,:](?!\d)", r" \g<0> "),
        (r"([^.])(\.)([\])}>\"' ]*)$", r"\1 \2\3"),
        (r"[?!\[\](){}<>]|--", r" \g<0> "),
        (r'"', " '' "),
        (r"(?<=[^'])' ", " ' "),
        (r"(?<=\S)('[sSmMdD]|'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r" \1 "),
        (r" ([Cc]an)(not) ", r" \1 \2 "),
        (r" ([Dd]')(ye) ", r" \1 \2 "),
        (r" ([Gg]im|[Ll]em)(me) ", r" \1 \2 "),
        (r" ([Gg]on|[Ww]an)(na) ", r" \1 \2 "),
        (r" ([Gg]ot)(ta) ", r" \1 \2 "),
        (r" ([Mm]ore)('n) ", r" \1 \2 "),
        (r" ('[Tt])(is|was) ", r" \1 \2 "),
    )
]


def tokenize(line: str) -> list[str]:
    """Cut a sentence into words; brackets are spelled as in trees, `-LRB-`."""
    for character, spelling in _SPELLINGS.items():
        line = line.replace(character, spelling)
    line = f" {line} "
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return [escape(word) for word in split_words(line)]
