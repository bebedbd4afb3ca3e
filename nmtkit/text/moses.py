"""Moses' normalisation, tokenisation and detokenisation, line by line, through sacremoses.

The results equal those of normalize-punctuation.perl, tokenizer.perl and detokenizer.perl of
https://github.com/moses-smt/mosesdecoder; docs/scoring.md lists the exceptions. sacremoses is
imported when a `Moses` is made.
"""

import re

_FINAL_PERIOD = re.compile(r"(?<=[^\s.])\.$")
_HYPHEN_IN_WORD = re.compile(r"(\S)-(\S)")
# sacremoses should join these to a preceding apostrophe in Czech, but raises a TypeError.
_CZECH_SUFFIX = re.compile(r"(?<=['\u2019]) ([-\u2013]) (?=li(?: |$)|mail)", re.IGNORECASE)
# sacremoses should join the parts of a Czech number or date, but looks for them at the line's end.
_CZECH_NUMBER = re.compile(r"(?<![^ ])[0-9]+(?: [.,] [0-9]+)*(?: [.,]$|(?= |$))")


class Moses:
    """Moses' normalisation, tokenisation and detokenisation for one language."""

    def __init__(self, lang: str) -> None:
        """Load the rules.

        Args:
            lang: code of the language, such as de. As with Moses, languages without a list of
                abbreviations use the English one.
        """
        from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

        self.lang = lang
        self._normalizer = MosesPunctNormalizer(lang, perl_parity=True)
        self._tokenizer = MosesTokenizer(lang)
        self._detokenizer = MosesDetokenizer(lang)

    def normalize(self, line: str) -> str:
        """Return the line with plain quotation marks, dashes and spaces."""
        # The scripts keep the line end, which also closes a quotation.
        return str(self._normalizer.normalize(line + "\n"))

    def tokenize(self, line: str, escapes: bool = True) -> str:
        """Return the line with spaces between tokens.

        As with the script, the result ends with a space if the line ends with a full stop and `'`.

        Args:
            line: plain text.
            escapes: replace `&`, `|`, `<` and others by entities such as `&amp;`, which Moses' own
                formats need.
        """
        tokens = str(self._tokenizer.tokenize(line, return_str=True, escape=escapes))
        # Moses never takes the last word of a line for an abbreviation; sacremoses may.
        return _FINAL_PERIOD.sub(" .", tokens)

    def detokenize(self, line: str, unescapes: bool = True) -> str:
        """Return a tokenised line as text; the inverse of `tokenize` where that is possible."""
        if self.lang == "cs":
            line = _CZECH_SUFFIX.sub(r"\1", line)
            line = _CZECH_NUMBER.sub(lambda number: number[0].replace(" ", ""), line)
        return str(self._detokenizer.detokenize(line.split(" "), unescape=unescapes))


def split_compounds(tokens: str) -> str:
    """Split words at hyphens, as the scores of "Attention Is All You Need" were computed.

    Source: tensor2tensor, utils/get_ende_bleu.sh. In a-b-c, only every second hyphen is split.
    """
    return _HYPHEN_IN_WORD.sub(r"\1 ##AT##-##AT## \2", tokens)
