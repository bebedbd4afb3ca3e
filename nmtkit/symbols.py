"""The three special symbols and their ids, the same in every vocabulary; language symbols.

The ids are SentencePiece's defaults. Padding has no id, because it exists only inside attention.
"""

SPECIAL_WORDS = ("<unk>", "<s>", "</s>")
"""Their names, by id."""

UNK_ID = 0
BOS_ID = 1
EOS_ID = 2


def target_symbol(lang: str) -> str:
    """Return the symbol that source lines begin with if their translation is in a language."""
    return f"<2{lang}>"


def source_symbol(lang: str) -> str:
    """Return the symbol of a source line's own language."""
    return f"<from-{lang}>"
