"""Moses' normalisation, tokenisation and detokenisation, line by line, through sacremoses.

They give what the scripts normalize-punctuation.perl, tokenizer.perl and detokenizer.perl of
https://github.com/moses-smt/mosesdecoder give; docs/scoring.md lists where they do not. sacremoses
is imported when a `Moses` is made.
"""

import re

_FINAL_PERIOD = re.compile(r"(?<=[^\s.])\.$")
_HYPHEN_IN_WORD = re.compile(r"(\S)-(\S)")
# What sacremoses means to join behind an apostrophe in Czech, and ends with a TypeError instead.
_CZECH_SUFFIX = re.compile(r"(?<=['\u2019]) ([-\u2013]) (?=li(?: |$)|mail)", re.IGNORECASE)


class Moses:
    """What Moses does to lines of one language."""

    def __init__(self, lang: str) -> None:
        """Load the rules.

        Args:
            lang: code of the language, such as de. One that Moses knows no abbreviations of has
                those of English, as with Moses.
        """
        from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

        self._lang = lang
        self._normaliser = MosesPunctNormalizer(lang, perl_parity=True)
        self._tokeniser = MosesTokenizer(lang)
        self._detokeniser = MosesDetokenizer(lang)

    def normalise(self, line: str) -> str:
        """Return the line with plain quotation marks, dashes and spaces."""
        # The scripts see the end of a line, where a quotation may end as well.
        return str(self._normaliser.normalize(line + "\n"))

    def tokenise(self, line: str, escapes: bool = True) -> str:
        """Return the line with spaces between tokens.

        As from the script, a space comes last where a line ends with a full stop and `'`.

        Args:
            line: plain text.
            escapes: write `&`, `|`, `<` and so on as `&amp;`, which Moses' own formats need.
        """
        tokens = str(self._tokeniser.tokenize(line, return_str=True, escape=escapes))
        # The last word of a line is no abbreviation to Moses; sacremoses does not know that.
        return _FINAL_PERIOD.sub(" .", tokens)

    def detokenise(self, line: str, unescapes: bool = True) -> str:
        """Return a tokenised line as text; the inverse of `tokenise` where that is possible."""
        if self._lang == "cs":
            line = _CZECH_SUFFIX.sub(r"\1", line)
        return str(self._detokeniser.detokenize(line.split(" "), unescape=unescapes))


def split_compounds(tokens: str) -> str:
    """Split words at hyphens, as the scores of "Attention Is All You Need" were computed.

    Source: tensor2tensor, utils/get_ende_bleu.sh. It leaves every second hyphen of a-b-c whole.
    """
    return _HYPHEN_IN_WORD.sub(r"\1 ##AT##-##AT## \2", tokens)
